package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/eclipse/paho.golang/paho"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// TestBridgeDeaths kills members at the worst moments, and takes the document away.
func TestBridgeDeaths(t *testing.T) {
	t.Parallel()
	c := postgresBridge(t, nil)
	db, err := pgxpool.New(t.Context(), c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c.start()

	// Before its vote: who starts after the proposal has no say in it, and nobody changes anything.
	_, rest := c.coordinator(db)
	d := c.doc
	d.rev++
	rest[0].kill()
	_, generation := c.put(rest[1], d)
	rest[0].start()
	if ro := c.ends(generation, barrier.Aborted); !strings.Contains(ro.Reason, rest[0].id) {
		t.Errorf("it was aborted: %s", ro.Reason)
	}
	c.converged(1)

	// The coordinator, before it can decide: what it has voted counts, and another one decides when the lease has run out.
	coordinator, others := c.coordinator(db)
	last := others[0]
	signal(t, last, syscall.SIGSTOP)
	version, generation := c.put(others[1], d)
	c.comes("two have voted", generation, func(ro barrier.Rollout) bool {
		votes := 0
		for _, s := range c.row().Seats {
			if s.Ballot.Vote == barrier.Acked {
				votes++
			}
		}
		return votes == 2
	})
	coordinator.kill()
	signal(t, last, syscall.SIGCONT)
	c.ends(generation, barrier.Committed)
	coordinator.start() // joins by what is committed
	c.doc = d
	c.converged(version)

	// In the window: the process that comes back boots what was confirmed, and the trial has failed for all.
	d.window = trial
	c.roll(c.members[0], d, barrier.Committed)
	confirmed := c.row().Committed
	d.rev++
	version, generation = c.put(c.members[0], d)
	c.comes("it is on trial", generation, func(ro barrier.Rollout) bool { return ro.OnTrial() || !ro.Open() })
	_, others = c.coordinator(db)
	c.await("it runs where it will be killed", func() error {
		if s := others[0].status(); s.Version != version {
			return fmt.Errorf("it runs version %d", s.Version)
		}
		return nil
	})
	others[0].kill()
	others[0].start()
	c.converged(confirmed.Version, others[0])
	if ro := c.ends(generation, barrier.Reverted); !strings.Contains(ro.Reason, others[0].id) {
		t.Errorf("it was reverted: %s", ro.Reason)
	}
	c.converged(confirmed.Version)

	// Without a document nobody runs one, and a process that starts waits for the next.
	if tag, err := db.Exec(t.Context(), `DELETE FROM bridge.document`); err != nil || tag.RowsAffected() != 1 {
		t.Fatal(tag, err)
	}
	for _, m := range c.members {
		<-m.ended
		if code := m.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(m.output.String(), "the document is gone from the source") {
			t.Errorf("%s ended with %d", m.id, code)
		}
		m.start()
		if resp, err := http.Get("http://" + m.addr + "/readyz"); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s is ready without a document: %v, %v", m.id, resp, err)
		}
	}
	if n := c.plant.Count(0, "Received DISCONNECT from gdn-plant"); n == 0 {
		t.Error("the exclusive session was not left in good order")
	}
	c.create()
	c.converged(confirmed.Version) // the same content: nothing to roll out
	heldOnce(t, c.plant, "gdn-plant")
}

// coordinator is the member that decides, and those that do not.
func (c *bridgeCohort) coordinator(db *pgxpool.Pool) (one *bridgeMember, others []*bridgeMember) {
	c.t.Helper()
	c.await("somebody coordinates", func() error {
		var holder string
		if err := db.QueryRow(c.t.Context(), `SELECT holder FROM barrier.lease WHERE cohort = 'bridge' AND until > clock_timestamp()`).Scan(&holder); err != nil {
			return err
		}
		one, others = nil, nil
		for _, m := range c.members {
			if strings.HasPrefix(holder, m.id+"-") {
				one = m
			} else {
				others = append(others, m)
			}
		}
		if one == nil {
			return fmt.Errorf("%s does", holder)
		}
		return nil
	})
	return one, others
}

func signal(t testing.TB, m *bridgeMember, s syscall.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestBridgeAway cuts members off from a broker and from their store, while messages go on.
func TestBridgeAway(t *testing.T) {
	t.Parallel()
	var database *gate
	c := postgresBridge(t, func(url string) string {
		database = gateToPostgres(t, url)
		return throughGate(t, url, database)
	})
	way := testmosquitto.NewProxy(t, c.cloud.Addr)
	c.cloudAddr = way.Addr
	c.start()
	in, out := testmosquitto.Dial(t, c.plant.Addr), testmosquitto.Dial(t, c.cloud.Addr, "t/#", "f/#")
	sent, large := 0, strings.Repeat("0123456789abcdef", 1<<16)
	send := func(n int) {
		for range n {
			in.Publish("plant/a", fmt.Sprint(sent))
			in.Publish("field/a", fmt.Sprint(sent))
			sent++
		}
	}
	arrived := func() {
		t.Helper()
		got := map[string]bool{}
		for _, topic := range []string{"t/a", "f/a"} {
			for i := range sent {
				got[fmt.Sprint(topic, i)] = false
			}
		}
		seen := 0
		c.await("every message is there", func() error {
			all := out.Got()
			for _, p := range all[seen:] {
				got[p.Topic+string(p.Payload)] = true
			}
			seen = len(all)
			for what, is := range got {
				if !is {
					return fmt.Errorf("%s is not", what)
				}
			}
			return nil
		})
	}

	// A broker: its sessions say so, the source's keeps the messages, and what a change does not need is no hindrance for long.
	way.Refuse(true)
	way.Cut()
	send(100)
	for range 3 {
		in.Publish("plant/large", large)
	}
	c.await("members say that it is away", func() error {
		for _, m := range c.members {
			if s := m.status(); !s.Ready || !strings.Contains(strings.Join(s.Degraded, "\n"), "session cloud: it is not connected") {
				return fmt.Errorf("%s is ready %v, degraded by %q", m.id, s.Ready, s.Degraded)
			}
		}
		return nil
	})
	way.Refuse(false)
	arrived()
	out.Await("what is a megabyte each", func(got []*paho.Publish) bool {
		n := 0
		for _, p := range got {
			if p.Topic == "t/large" && string(p.Payload) == large {
				n++
			}
		}
		return n >= 3
	})
	c.converged(1)

	// The store, between changes: messages go on, nobody decides anything, and nothing is left of it.
	d := c.doc
	d.rev++
	d.window = trial
	c.roll(c.members[0], d, barrier.Committed)
	database.cut()
	send(100)
	c.await("members say that it is away", func() error {
		for _, m := range c.members {
			if s := m.status(); s.Rollout == nil || !s.Rollout.Stale || !s.Ready {
				return fmt.Errorf("%s: %+v", m.id, s.Rollout)
			}
		}
		return nil
	})
	arrived()
	if out, err := c.command("bridge", "put", "first.yaml", "--url", "http://"+c.members[0].addr); err == nil {
		t.Errorf("saved without a store: %s", out)
	}
	database.mend()
	c.converged(c.row().Committed.Version)

	// The store, while all are on trial: each goes back by itself once the window is over.
	d.rev++
	version, generation := c.put(c.members[0], d)
	c.await("it is on trial everywhere", func() error {
		for _, m := range c.members {
			if s := m.status(); s.Version != version {
				return fmt.Errorf("%s runs version %d", m.id, s.Version)
			}
		}
		return nil
	})
	database.cut()
	c.await("members take it back", func() error {
		for _, m := range c.members {
			if s := m.status(); s.Version != 2 || s.Rollout.TakenBack == "" {
				return fmt.Errorf("%s runs version %d, %+v", m.id, s.Version, s.Rollout)
			}
		}
		return nil
	})
	send(10)
	database.mend()
	c.ends(generation, barrier.Reverted)
	c.converged(2)
	arrived()
	d.rev++
	c.roll(c.members[1], d, barrier.Confirmed)
	heldOnce(t, c.plant, "gdn-plant")
}
