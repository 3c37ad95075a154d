package dns

import (
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharesPort: sockets of one process may share a UDP port, and the system spreads clients over them.
const sharesPort = true

// controlSize is room for the control messages of one message.
const controlSize = 128

// udpControl sets up a socket before it is bound: shared port, the local address of each message told, and
// no path MTU discovery, whose forged answers would make the system fragment.
func udpControl(network, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		set := func(level, option, value int) {
			if failed == nil {
				failed = unix.SetsockoptInt(int(fd), level, option, value)
			}
		}
		set(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		if strings.HasSuffix(network, "4") {
			set(unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
			set(unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_OMIT)
			return
		}
		set(unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		set(unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_OMIT)
	})
	return errors.Join(err, failed)
}

// sourceControl keeps of a message's control messages the one that makes its answer come from the address
// that it was sent to. It changes control in place; nil is none.
func sourceControl(control []byte) []byte {
	for rest := control; len(rest) > 0; {
		header, data, next, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			return nil
		}
		message := rest[:len(rest)-len(next)]
		switch {
		case header.Level == unix.IPPROTO_IP && header.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			clear(data[:4]) // any interface
			return message
		case header.Level == unix.IPPROTO_IPV6 && header.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			if linkLocal := data[0] == 0xfe && data[1]&0xc0 == 0x80; !linkLocal {
				clear(data[16:20])
			}
			return message
		}
		rest = next
	}
	return nil
}

func isInUse(err error) bool { return errors.Is(err, unix.EADDRINUSE) }
