// Package testport gives tests ports for servers that must be told which one to listen on.
package testport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
)

// Ports from first to last are below those that Linux gives to connections and to listeners that ask for any: a port of those can be
// taken before its server listens, or while the server is started again.
const (
	first, last = 10_240, 32_767
	// attempts bounds how many ports are tried.
	attempts = 200
)

// Reserve returns an address of loopback whose port nothing listens on by TCP or UDP, and that no other caller on this machine gets (on
// Linux) until release, or the end of this process.
func Reserve() (addr string, release func(), err error) {
	for range attempts {
		port := first + rand.IntN(last-first+1)
		release, err := hold(port)
		if err != nil {
			continue
		}
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if free(addr) {
			return addr, release, nil
		}
		release()
	}
	return "", nil, errors.New("no port was found that is free for TCP and UDP")
}

// hold takes a name that stands for the port. Names of this kind end with who holds them.
func hold(port int) (release func(), err error) {
	if runtime.GOOS != "linux" {
		return func() {}, nil
	}
	l, err := net.Listen("unix", fmt.Sprintf("@guardyn-test-port-%d", port))
	if err != nil {
		return nil, err
	}
	return func() { _ = l.Close() }, nil
}

func free(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	return u.Close() == nil
}
