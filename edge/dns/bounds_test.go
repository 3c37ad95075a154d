package dns

import (
	"testing"

	"github.com/guardyn-edge/guardyn/edge"
)

// However many sockets are asked for, so many are opened.
func TestSocketsAreBounded(t *testing.T) {
	for _, row := range []struct{ asked, opened int }{{1, 1}, {maxSockets, maxSockets}, {10 * maxSockets, maxSockets}, {-1, 1}} {
		s, err := NewServer(Config{Live: new(edge.Live), Addr: "127.0.0.1:0", Sockets: row.asked})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		if want := row.opened; len(s.udp) != want && (sharesPort || len(s.udp) != 1) {
			t.Errorf("asked for %d, opened %d, want %d", row.asked, len(s.udp), want)
		}
		s.Close()
	}
}
