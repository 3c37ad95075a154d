package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// leases are one member's way to the cohort's leases, which can be cut.
type leases struct {
	store *memory.Store
	mu    sync.Mutex
	cut   bool
}

func (l *leases) Session(string) (barrier.Leases, error) { return l, nil }

func (l *leases) Cut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

func (l *leases) reach() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return errors.New("the store does not answer")
	}
	return nil
}

func (l *leases) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	if err := l.reach(); err != nil {
		return barrier.Lease{}, err
	}
	return l.store.Acquire(ctx, holder, ttl)
}

func (l *leases) Renew(ctx context.Context, x barrier.Lease) error {
	if err := l.reach(); err != nil {
		return err
	}
	return l.store.Renew(ctx, x)
}

func (l *leases) Release(ctx context.Context, x barrier.Lease) error {
	if err := l.reach(); err != nil {
		return err
	}
	return l.store.Release(ctx, x)
}

// TestExclusive: a durable session is one member's at a time, by its broker's log; the other takes over, and what was not confirmed comes to it.
func TestExclusive(t *testing.T) {
	a, b := two(t)
	text := fmt.Sprintf(`bridge: {deployment_mode: clustered, cluster: {members: [m1, m2]}}
sessions:
  - {id: a, kind: mqtt, url: %q, client_id: one, clean_start: false, session_expiry: 1h, exclusive: true}
  - {id: b, kind: mqtt, url: %q, client_id: "out-{member}"}
routes:
  - {id: r, from: {session: a, topic: in}, to: {session: b, topic: out}}
`, a.URL(), b.URL())
	store := memory.New(memory.Options{})
	members := map[string]*member{}
	ways := map[string]*leases{}
	for _, id := range []string{"m1", "m2"} {
		ways[id] = &leases{store: store}
		members[id] = start(t, run.Options{Member: id, Leases: ways[id], Lease: 1200 * time.Millisecond}, text)
	}
	holder := func() (held, other string) {
		testmosquitto.Until(t, "one holds it and the other stands by", func() bool {
			held, other = "", ""
			for id, m := range members {
				switch s := m.session("a"); s.State {
				case bridge.Connected:
					held = id
				case bridge.Standby:
					if s.Converged {
						other = id
					}
				}
			}
			return held != "" && other != ""
		})
		return held, other
	}
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "#")
	n := 0
	for range 3 {
		held, other := holder()
		if s := members[other].session("a"); s.Holder != held || !s.Exclusive {
			t.Errorf("%s stands by as %+v", other, s)
		}
		for range 20 {
			in.Publish("in", fmt.Sprint(n))
			n++
		}
		ways[held].Cut(true)
		testmosquitto.Until(t, "the other holds it", func() bool { return members[other].session("a").State == bridge.Connected })
		ways[held].Cut(false)
	}
	out.AwaitCount(n)
	held, other := holder()
	members[held].stop() // gives the lease back
	testmosquitto.Until(t, "the other holds it", func() bool { return members[other].session("a").State == bridge.Connected })
	if got := firsts(payloads(out.Got(), "out")); len(got) != n {
		t.Errorf("%d of %d messages came", len(got), n)
	}
	// Never by two: the broker would have ended the older connection.
	connected := 0
	for _, line := range a.Lines(0, "one") {
		switch {
		case strings.Contains(line, "New client connected") && strings.Contains(line, " as one "):
			if connected++; connected > 1 {
				t.Errorf("held twice: %s", line)
			}
		case strings.Contains(line, "Client one disconnected"), strings.Contains(line, "Client one closed"):
			connected--
		case strings.Contains(line, "already connected"), strings.Contains(line, "session taken over"):
			t.Errorf("held twice: %s", line)
		}
	}
	if c := a.Count(0, "New client connected", " as one "); c < 4 {
		t.Errorf("the session was taken over %d times", c-1)
	}
}

// TestExclusiveTarget: a member whose target is another's takes nothing of a group: the other does.
func TestExclusiveTarget(t *testing.T) {
	a, b := two(t)
	text := fmt.Sprintf(`bridge: {deployment_mode: clustered, cluster: {members: [m1, m2]}}
sessions:
  - {id: a, kind: mqtt, url: %q, client_id: "in-{member}"}
  - {id: b, kind: mqtt, url: %q, client_id: one, exclusive: true}
routes:
  - {id: r, from: {session: a, topic: in, share: g}, to: {session: b, topic: out}}
`, a.URL(), b.URL())
	store := memory.New(memory.Options{})
	var members []*member
	for _, id := range []string{"m1", "m2"} {
		members = append(members, start(t, run.Options{Member: id, Leases: &leases{store: store}, Lease: 3 * time.Second}, text))
	}
	for _, m := range members {
		m.converge()
	}
	testmosquitto.Until(t, "one of them takes", func() bool {
		return len(members[0].session("a").Subscriptions)+len(members[1].session("a").Subscriptions) == 1
	})
	for _, m := range members {
		m.converge()
	}
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "#")
	for i := range 10 {
		in.Publish("in", fmt.Sprint(i))
	}
	out.AwaitCount(10)
}
