//go:build unix

package web

import "syscall"

// peek looks for what there is to read without taking it.
func (c *originConn) peek(fd uintptr) {
	for {
		_, _, err := syscall.Recvfrom(int(fd), c.octet[:], syscall.MSG_PEEK)
		if err != syscall.EINTR {
			c.calm = err == syscall.EAGAIN // the descriptor does not block
			return
		}
	}
}
