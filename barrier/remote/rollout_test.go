package remote_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/barrier/remote"
	"github.com/guardyn-edge/guardyn/barrier/slotfile"
)

// echo is a host whose configuration is a text that it says when it runs.
type echo struct{ says chan<- string }

func (echo) Digest(b []byte) (barrier.Digest, error) {
	return barrier.Digest(fmt.Sprintf("text:%x", b)), nil
}

func (echo) Classify(context.Context, barrier.Pointer, []byte) (barrier.Class, error) {
	return barrier.Class{Name: "live-safe"}, nil
}

func (e echo) Prepare(_ context.Context, _ barrier.Pointer, b []byte) (barrier.Prepared, error) {
	return prepared{e, string(b)}, nil
}

func (echo) Converged(context.Context) (barrier.Health, error) {
	return barrier.Health{Converged: true, Detail: "said"}, nil
}

type prepared struct {
	echo
	text string
}

func (p prepared) BuildDigest() string        { return p.text }
func (p prepared) Swap(context.Context) error { p.says <- p.text; return nil }
func (p prepared) Discard()                   {}

// A whole cohort of real drivers, each with its own credentials and no others, rolls out over HTTP. Members poll so seldom
// that hints alone move them.
func TestRolloutOverHTTP(t *testing.T) {
	const n = 5
	s := memory.New(memory.Options{})
	server, _ := serve(t, remote.Backend{Store: s, Leases: s, Artefacts: s}, remote.Options{})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	quiet := slog.New(slog.DiscardHandler)
	op := client(t, server.URL, alice, remote.ClientOptions{})
	var ids []barrier.MemberID
	for i := range n {
		ids = append(ids, barrier.MemberID(fmt.Sprintf("node-%d", i)))
	}
	if _, err := op.SetRoster(ctx, 0, ids); err != nil {
		t.Fatal(err)
	}
	says := make(chan string, n)
	for _, id := range ids {
		slots, err := slotfile.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = slots.Close() })
		c := client(t, server.URL, memberOf(id), remote.ClientOptions{})
		m, err := barrier.NewMember(ctx, barrier.MemberOptions{
			ID: id, Store: c, Artefacts: c, Slots: slots, Host: echo{says}, Logger: quiet, Timing: barrier.Timing{Poll: time.Hour},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Poll(ctx); err != nil { // joins
			t.Fatal(err)
		}
		running.Go(func() { _ = m.Run(ctx) })
	}
	cc := client(t, server.URL, coordinator, remote.ClientOptions{})
	running.Go(func() {
		barrier.NewCoordinator(barrier.CoordinatorOptions{Store: cc, Leases: cc, Lease: 2 * time.Second, Logger: quiet}).Run(ctx)
	})
	for _, text := range []string{"one", "two"} {
		began := time.Now()
		ro, err := barrier.Proposer{Store: op, Artefacts: op, Host: echo{}}.Propose(ctx, []byte(text), barrier.Proposal{Proposer: "alice"})
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			select {
			case said := <-says:
				if said != text {
					t.Errorf("said %q, want %q", said, text)
				}
			case <-ctx.Done():
				t.Fatalf("%s: not all have it after a minute", text)
			}
		}
		row, err := op.Current(ctx)
		if err != nil || row.Committed != ro.Pointer() {
			t.Errorf("committed is %v, %v", row.Committed, err)
		}
		t.Logf("%s: from the proposal to the last of %d members %s", text, n, time.Since(began).Round(time.Millisecond))
	}
}
