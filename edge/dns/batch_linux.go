package dns

import (
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchSize is how many messages are received, and then answered, by one system call each.
const batchSize = 32

// batch receives messages from a socket and sends their answers, up to batchSize at a time (recvmmsg(2),
// sendmmsg(2)). It belongs to one goroutine and does not allocate after it was made. Its buffers take 180 KiB.
type batch struct {
	raw syscall.RawConn
	// control is room for each message's control messages; 0 on a socket that has one address.
	control int

	in     [batchSize]packet
	inHdr  [batchSize]mmsghdr
	outHdr [batchSize]mmsghdr
	outIov [batchSize]unix.Iovec
	// received and queued are how many of in and of outHdr are in use.
	received, queued int

	// onRead and onWrite are methods of the batch, made once; errno and done are what they leave.
	onRead, onWrite func(fd uintptr) bool
	errno           syscall.Errno
	done            int
}

// packet is a message as the system told it, with room for its answer.
type packet struct {
	from   unix.RawSockaddrInet6 // or of IPv4, which is shorter
	iov    unix.Iovec
	data   [readSize]byte
	oob    [controlSize]byte
	answer [udpSize]byte
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr    unix.Msghdr
	length uint32
}

// newBatch returns a batch of conn. control tells that each message's own address has to be told, and answered
// from.
func newBatch(conn *net.UDPConn, control bool) (*batch, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &batch{raw: raw}
	if control {
		b.control = controlSize
	}
	for i := range b.in {
		p := &b.in[i]
		p.iov.Base = &p.data[0]
		p.iov.SetLen(len(p.data))
		b.inHdr[i].hdr.Name = (*byte)(unsafe.Pointer(&p.from))
		b.inHdr[i].hdr.Iov = &p.iov
		b.inHdr[i].hdr.SetIovlen(1)
		b.outHdr[i].hdr.Iov = &b.outIov[i]
		b.outHdr[i].hdr.SetIovlen(1)
		b.reset(i)
	}
	b.onRead, b.onWrite = b.tryReceive, b.trySend
	return b, nil
}

// reset makes a header ready to be received into again: the system has written lengths over the room's.
func (b *batch) reset(i int) {
	h := &b.inHdr[i].hdr
	h.Namelen = unix.SizeofSockaddrInet6
	if b.control > 0 {
		h.Control = &b.in[i].oob[0]
		h.SetControllen(b.control)
	}
}

// receive waits until there is a message, and returns how many came.
func (b *batch) receive() (n int, err error) {
	for i := range b.received {
		b.reset(i)
	}
	b.received, b.queued = 0, 0
	if err := b.raw.Read(b.onRead); err != nil {
		return 0, err
	}
	if b.errno != 0 {
		return 0, b.errno
	}
	b.received = b.done
	return b.received, nil
}

// tryReceive reports false when there is nothing to receive.
func (b *batch) tryReceive(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.inHdr[0])), batchSize, unix.MSG_DONTWAIT, 0, 0)
		b.done, b.errno = int(n), errno
		if errno != unix.EINTR {
			return errno != unix.EAGAIN
		}
	}
}

// message returns the message i of those received and who sent it. message is nil for one that was longer
// than what is read.
func (b *batch) message(i int) (message []byte, from netip.Addr) {
	p, n := &b.in[i], int(b.inHdr[i].length)
	if n < len(p.data) {
		message = p.data[:n]
	}
	if p.from.Family == unix.AF_INET {
		return message, netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(&p.from)).Addr)
	}
	return message, netip.AddrFrom16(p.from.Addr).Unmap()
}

// room is where the answer to message i is made.
func (b *batch) room(i int) []byte { return b.in[i].answer[:0] }

// queue makes answer, which is in room(i), one of those to send.
func (b *batch) queue(i int, answer []byte) {
	from, out := &b.inHdr[i].hdr, &b.outHdr[b.queued].hdr
	iov := &b.outIov[b.queued]
	iov.Base = &answer[0]
	iov.SetLen(len(answer))
	out.Name, out.Namelen = from.Name, from.Namelen
	out.Control = nil
	out.SetControllen(0)
	if b.control > 0 {
		if control := sourceControl(b.in[i].oob[:from.Controllen]); len(control) > 0 {
			out.Control = &control[0]
			out.SetControllen(len(control))
		}
	}
	b.queued++
}

// send sends what is queued and returns how many answers the system did not take.
func (b *batch) send() (failed int) {
	for b.done = 0; b.done < b.queued; {
		if err := b.raw.Write(b.onWrite); err != nil {
			return failed + b.queued - b.done
		}
		if b.errno != 0 { // it is the next one's
			failed++
			b.done++
		}
	}
	return failed
}

// trySend reports false when the socket's buffer is full.
func (b *batch) trySend(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&b.outHdr[b.done])), uintptr(b.queued-b.done), unix.MSG_DONTWAIT, 0, 0)
		b.errno = errno
		switch errno {
		case 0:
			b.done += int(n)
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			return true
		}
	}
}
