package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func rule(name string, limit uint32, period time.Duration) *Rule {
	return NewRule("zone", name, limit, period)
}

func TestRateIsExactUpToTheLimit(t *testing.T) {
	for _, tc := range []struct {
		limit  uint32
		period time.Duration
		wait   time.Duration // of the first one refused
	}{
		{1, time.Second, time.Second},
		{3, time.Second, 333333333},
		{7, time.Minute, 8571428571},
		{100, 24 * time.Hour, 864 * time.Second},
		{100_000, time.Second, 10 * time.Microsecond},
	} {
		t.Run(fmt.Sprintf("%d in %s", tc.limit, tc.period), func(t *testing.T) {
			l, r := New(64, start), rule("a", tc.limit, tc.period)
			for i := range tc.limit {
				if wait := l.Take(r, "k", start); wait != 0 {
					t.Fatalf("request %d is refused for %s", i+1, wait)
				}
			}
			if got := l.Take(r, "k", start); got != tc.wait {
				t.Errorf("one more waits %s, want %s", got, tc.wait)
			}
			if got := l.Take(r, "other", start); got != 0 {
				t.Errorf("another key waits %s", got)
			}
			if got := l.Take(r, "k", start.Add(tc.wait-1)); got != 1 {
				t.Errorf("a nanosecond too early waits %s", got)
			}
			if got := l.Take(r, "k", start.Add(tc.wait)); got != 0 {
				t.Errorf("who waited as told waits %s", got)
			}
			for i := range tc.limit {
				if wait := l.Take(r, "k", start.Add(3*tc.period)); wait != 0 {
					t.Fatalf("request %d after a rest is refused", i+1)
				}
			}
		})
	}
}

func TestWhoKeepsToTheLimitInEveryPeriodIsNeverRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		limit, period := uint32(1+random.IntN(20)), time.Duration(1+random.IntN(60))*time.Second
		l, r := New(64, start), rule("a", limit, period)
		var sent []time.Time
		now := start
		for range 300 {
			now = now.Add(time.Duration(random.Int64N(int64(period) / 3)))
			if n := len(sent); n >= int(limit) && now.Sub(sent[n-int(limit)]) < period {
				now = sent[n-int(limit)].Add(period)
			}
			sent = append(sent, now)
			if wait := l.Take(r, "k", now); wait != 0 {
				t.Fatalf("%d in %s: request %d is refused for %s", limit, period, len(sent), wait)
			}
		}
	}
}

func TestAddressesCountByWhatOneClientHas(t *testing.T) {
	for _, tc := range []struct {
		name, first, second string
		shared              bool
	}{
		{"one IPv4 address", "192.0.2.1", "192.0.2.1", true},
		{"neighbours of IPv4", "192.0.2.1", "192.0.2.2", false},
		{"mapped is IPv4", "192.0.2.1", "::ffff:192.0.2.1", true},
		{"one /64", "2001:db8::1", "2001:db8::ffff:1:2:3", true},
		{"two /64", "2001:db8::1", "2001:db8:0:1::1", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, r := New(0, start), rule("a", 1, time.Second)
			l.TakeAddr(r, netip.MustParseAddr(tc.first), start)
			if got := l.TakeAddr(r, netip.MustParseAddr(tc.second), start) != 0; got != tc.shared {
				t.Errorf("they share a count: %v, want %v", got, tc.shared)
			}
		})
	}
}

func TestRulesAreToldApartByIdentity(t *testing.T) {
	l := New(0, start)
	l.Take(NewRule("z", "a", 1, time.Second), "k", start)
	for _, tc := range []struct {
		name   string
		rule   *Rule
		shared bool
	}{
		{"the same, compiled again", NewRule("z", "a", 1, time.Second), true},
		{"another rule", NewRule("z", "b", 1, time.Second), false},
		{"another zone", NewRule("y", "a", 1, time.Second), false},
	} {
		if got := l.Take(tc.rule, "k", start) != 0; got != tc.shared {
			t.Errorf("%s: shares the count: %v, want %v", tc.name, got, tc.shared)
		}
	}
}

func TestFloodOfNewKeysDoesNotEraseWhoIsAtTheLimit(t *testing.T) {
	l, r := New(64, start), rule("a", 10, time.Minute)
	for range 10 {
		l.Take(r, "attacker", start)
	}
	for i := range 100_000 {
		l.Take(r, strconv.Itoa(i), start)
	}
	if l.Take(r, "attacker", start) == 0 {
		t.Error("a flood of keys erased the count of who is at his limit")
	}
	if len(l.sets) != 8 {
		t.Errorf("%d sets, the bound is 8", len(l.sets))
	}
}

func TestZoneKeepsItsShareOfASet(t *testing.T) {
	l := New(ways, start) // one set
	mine, theirs := NewRule("mine", "a", 10, time.Minute), NewRule("theirs", "a", 1, time.Hour)
	for i := range 3 {
		for range 9 - i {
			l.Take(mine, strconv.Itoa(i), start)
		}
	}
	for i := range 1000 { // each of them at its limit with one request
		l.Take(theirs, strconv.Itoa(i), start)
	}
	var counts int
	for _, e := range l.sets[0] {
		if e.zone == mine.zone {
			counts++
		}
	}
	if counts != 3 {
		t.Errorf("%d of 3 counts outlived another zone's flood", counts)
	}
}

func TestConcurrentRequestsAreCountedOnce(t *testing.T) {
	l, r := New(0, start), rule("a", 500, time.Hour)
	var m Meter
	var admitted, metered atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				if l.Take(r, "k", start) == 0 {
					admitted.Add(1)
				}
				if m.Take(r.Rate, start) == 0 {
					metered.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != 500 || metered.Load() != 500 {
		t.Errorf("%d and %d admitted, want 500", admitted.Load(), metered.Load())
	}
}

func TestNothingIsAllocatedForAKeyThatIsThere(t *testing.T) {
	l, r, a := New(0, start), rule("a", 500, time.Hour), netip.MustParseAddr("2001:db8::1")
	l.Take(r, "k", start)
	if n := testing.AllocsPerRun(100, func() { l.Take(r, "k", start); l.TakeAddr(r, a, start) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestClockThatIsSetBackHoldsNobodyUp(t *testing.T) {
	var m Meter
	r := NewRate(10, time.Second)
	m.Take(r, start)
	if wait := m.Take(r, start.Add(-time.Hour)); wait > 100*time.Millisecond {
		t.Errorf("waits %s", wait)
	}
}

func TestZeroRateAdmitsEverything(t *testing.T) {
	l := New(0, start)
	for range 100 {
		if l.Take(rule("a", 0, time.Second), "k", start) != 0 || new(Meter).Take(Rate{}, start) != 0 {
			t.Fatal("refused")
		}
	}
}

func BenchmarkTakeAddr(b *testing.B) {
	l, r, a := New(0, start), rule("a", 500, time.Hour), netip.MustParseAddr("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		l.TakeAddr(r, a, start)
	}
}
