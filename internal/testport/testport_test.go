package testport_test

import (
	"net"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/testport"
)

// TestReserve: ports differ although nobody listens on them yet, are free for both transports, and are none that the kernel gives away.
func TestReserve(t *testing.T) {
	seen := map[string]bool{}
	for range 500 {
		addr, release, err := testport.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		if seen[addr] {
			t.Fatalf("%s was given twice", addr)
		}
		seen[addr] = true
		a, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil || a.Port < 10_240 || a.Port >= 32_768 {
			t.Fatalf("%s, %v", addr, err)
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		u, err := net.ListenPacket("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = u.Close()
	}
}
