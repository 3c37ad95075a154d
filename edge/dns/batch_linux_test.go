package dns

import (
	"net"
	"testing"
	"time"
)

// batchOf returns a batch on a socket, and a client of the socket.
func batchOf(t *testing.T, control bool) (*batch, *net.UDPConn) {
	t.Helper()
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	client, err := net.DialUDP("udp4", nil, server.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	b, err := newBatch(server, control)
	if err != nil {
		t.Fatal(err)
	}
	return b, client
}

// TestBatch: messages that wait come in few calls, all are answered, and one answer that the system does not take does not
// hold back those behind it.
func TestBatch(t *testing.T) {
	b, client := batchOf(t, false)
	const messages = 2*batchSize + 3
	for i := range messages {
		if _, err := client.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	got, failed := 0, 0
	for _, want := range []int{batchSize, batchSize, 3} { // loopback delivers before Write returns
		n, err := b.receive()
		if err != nil {
			t.Fatal(err)
		}
		if n != want {
			t.Errorf("%d messages, want %d", n, want)
		}
		for i := range n {
			message, from := b.message(i)
			if len(message) != 1 || int(message[0]) != got || from != clientAddr(client.LocalAddr().(*net.UDPAddr).AddrPort()) {
				t.Fatalf("message %d: %x from %s", got, message, from)
			}
			if got%20 == 7 {
				b.in[i].from.Port = 0 // cannot be sent to
			}
			b.queue(i, append(b.room(i), message[0], 0xff))
			got++
		}
		failed += b.send()
	}
	if failed != 3 {
		t.Errorf("%d answers failed", failed)
	}
	client.SetReadDeadline(time.Now().Add(5 * time.Second))
	buf := make([]byte, 16)
	for i := range messages {
		if i%20 == 7 {
			continue
		}
		if n, err := client.Read(buf); err != nil || n != 2 || int(buf[0]) != i {
			t.Fatalf("answer %d: %x, %v", i, buf[:n], err)
		}
	}
}

// TestBatchCut: a message that fills what is read is told apart, and the next one has all of its room again.
func TestBatchCut(t *testing.T) {
	b, client := batchOf(t, true)
	for _, size := range []int{readSize + 1, readSize - 1, readSize, 1, 0} {
		if _, err := client.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.receive(); err != nil {
			t.Fatal(err)
		}
		message, _ := b.message(0)
		if whole := message != nil; whole != (size < readSize) || whole && len(message) != size {
			t.Errorf("%d octets: %d, whole %t", size, len(message), whole)
		}
	}
}
