package dynamo_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// uptime is a monotonic clock that tests move.
type uptime struct{ atomic.Int64 }

func (u *uptime) now() time.Duration   { return time.Duration(u.Load()) }
func (u *uptime) pass(d time.Duration) { u.Add(int64(d)) }

func TestLeaseIsTakenAfterAWholeTTLOfSilence(t *testing.T) {
	const ttl = 10 * time.Second
	o := options(newTable(t))
	holder := open(t, o)
	clock := &uptime{}
	o.Uptime = clock.now
	// Wall clocks of others, however wrong, say nothing.
	o.Now = func() time.Time { return time.Now().Add(time.Hour) }
	challenger := open(t, o)

	refused := func() {
		t.Helper()
		_, err := challenger.Acquire(t.Context(), "challenger", ttl)
		var held *barrier.HeldError
		if !errors.As(err, &held) || held.Holder != "holder" {
			t.Fatalf("Acquire: %v, want that holder has it", err)
		}
	}
	lease := must(holder.Acquire(t.Context(), "holder", ttl))(t)
	clock.pass(time.Hour) // before it looks for the first time
	refused()
	clock.pass(ttl - 1)
	refused()
	ok(t, holder.Renew(t.Context(), lease))
	clock.pass(1)
	refused() // it was renewed, and that is seen now
	clock.pass(ttl - 1)
	refused()
	if again := must(holder.Acquire(t.Context(), "holder", ttl))(t); again != lease {
		t.Errorf("the holder's own Acquire gives %+v, want %+v", again, lease)
	}
	clock.pass(1)
	refused()
	clock.pass(ttl)
	taken := must(challenger.Acquire(t.Context(), "challenger", time.Minute))(t)
	if want := (barrier.Lease{Holder: "challenger", Token: lease.Token + 1, TTL: time.Minute}); taken != want {
		t.Errorf("taken = %+v, want %+v", taken, want)
	}
	for what, err := range map[string]error{
		"Renew": holder.Renew(t.Context(), lease), "Release": holder.Release(t.Context(), lease),
	} {
		if !errors.Is(err, barrier.ErrLost) {
			t.Errorf("%s of the lease that was taken: %v", what, err)
		}
	}
	ok(t, challenger.Release(t.Context(), taken))
	if next := must(holder.Acquire(t.Context(), "holder", ttl))(t); next.Token != taken.Token+1 {
		t.Errorf("after Release: %+v, want token %d at once", next, taken.Token+1)
	}
}

// Two who have waited long enough do not both take it.
func TestLeaseIsTakenByOne(t *testing.T) {
	o := options(newTable(t))
	must(open(t, o).Acquire(t.Context(), "gone", barrier.MinLease))(t)
	clock := &uptime{}
	o.Uptime = clock.now
	w := newWire()
	first, second := open(t, o, w.use), open(t, o)
	if _, err := first.Acquire(t.Context(), "first", time.Minute); !errors.Is(err, barrier.ErrHeld) {
		t.Fatal(err)
	}
	if _, err := second.Acquire(t.Context(), "second", time.Minute); !errors.Is(err, barrier.ErrHeld) {
		t.Fatal(err)
	}
	clock.pass(barrier.MinLease)
	w.set(func(r request) fate {
		if r.operation == "PutItem" && r.n == 0 && strings.Contains(r.body, "LEASE") {
			must(second.Acquire(t.Context(), "second", time.Minute))(t) // between the first's read and its write
		}
		return pass
	})
	if _, err := first.Acquire(t.Context(), "first", time.Minute); !errors.Is(err, barrier.ErrHeld) {
		t.Errorf("both have taken it: %v", err)
	}
}
