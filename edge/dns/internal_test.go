package dns

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// TestLimiterForgetsTheQuiet: a flood from prefixes without end neither grows the table nor frees a client
// that keeps asking.
func TestLimiterForgetsTheQuiet(t *testing.T) {
	start := time.Unix(0, 0)
	l := newRateLimiter(200, start)
	busy, name := netip.MustParseAddr("192.0.2.1"), rateName{apex: "x"}
	allowed := 0
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 1_000_000 {
		now := start.Add(time.Duration(i) * time.Microsecond) // one second in all
		if i%500 == 0 && l.allow(busy, name, now) && l.allow(busy, name, now) {
			allowed++
		}
		a := random.Uint32()
		l.allow(netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8)}), name, now)
	}
	if len(l.entries) != rateTableSize {
		t.Errorf("%d entries", len(l.entries))
	}
	// 4,000 asked in one second: 400 are within burst and rate.
	if allowed > 250 {
		t.Errorf("%d pairs allowed", allowed)
	}
}

func TestLimiterPrefixes(t *testing.T) {
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.254", true},
		{"192.0.2.1", "192.0.3.1", false},
		{"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"192.0.2.1", "c000:0200::", false},
	} {
		l := newRateLimiter(1, time.Unix(0, 0))
		a, b := netip.MustParseAddr(row.a), netip.MustParseAddr(row.b)
		if !l.allow(a, rateName{}, l.start) {
			t.Fatal("the first is refused")
		}
		if refused := !l.allow(b, rateName{}, l.start); refused != row.same {
			t.Errorf("%s and %s share a limit: %t", row.a, row.b, refused)
		}
	}
}
