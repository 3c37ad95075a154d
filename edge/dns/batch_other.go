//go:build !linux

package dns

import (
	"net"
	"net/netip"
)

// batch receives messages from a socket and sends their answers, one at a time. It belongs to one goroutine.
type batch struct {
	conn   *net.UDPConn
	from   netip.AddrPort
	data   [readSize]byte
	length int
	answer [udpSize]byte
	queued []byte
}

func newBatch(conn *net.UDPConn, _ bool) (*batch, error) { return &batch{conn: conn}, nil }

// receive waits until there is a message, and returns how many came.
func (b *batch) receive() (n int, err error) {
	b.queued = nil
	b.length, b.from, err = b.conn.ReadFromUDPAddrPort(b.data[:])
	return 1, err
}

// message returns the message that was received and who sent it. message is nil for one that was longer
// than what is read.
func (b *batch) message(int) (message []byte, from netip.Addr) {
	if b.length < len(b.data) {
		message = b.data[:b.length]
	}
	return message, b.from.Addr().Unmap().WithZone("")
}

// room is where the answer is made.
func (b *batch) room(int) []byte { return b.answer[:0] }

// queue makes answer the one to send.
func (b *batch) queue(_ int, answer []byte) { b.queued = answer }

// send sends what is queued and returns how many answers the system did not take.
func (b *batch) send() (failed int) {
	if b.queued == nil {
		return 0
	}
	if _, err := b.conn.WriteToUDPAddrPort(b.queued, b.from); err != nil {
		return 1
	}
	return 0
}
