package barriertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// benchProcesses bounds the handles that a benchmark opens: its members share them, as goroutines of few processes.
const benchProcesses = 4

// Benchmark measures rollouts without a window, from Propose to the last member's swap, with one coordinator and 3, 10, 100
// and 1,000 members (limited to most) that run the real drivers in this process and are told by the store's hints or find
// out at their polls, one a second. Beside the time it prints, per rollout, the calls that were refused by a condition (conflicts) and
// those without a known outcome (unknown), which the drivers repeat.
func Benchmark(b *testing.B, most int, fresh func(t testing.TB) Opener) {
	for _, n := range []int{3, 10, 100, 1000} {
		if n > most {
			return
		}
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) { benchmark(b, n, fresh(b)) })
	}
}

func benchmark(b *testing.B, n int, open Opener) {
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var (
		calls   calls
		swapped = make(chan struct{}, n)
		handles = make([]Handles, min(benchProcesses, n))
		quiet   = slog.New(slog.DiscardHandler)
	)
	for i := range handles {
		handles[i] = open(b)
	}
	store := open(b)
	roster := make([]barrier.MemberID, n)
	for i := range roster {
		roster[i] = memberID(i)
	}
	if _, err := store.Store.SetRoster(ctx, 0, roster); err != nil {
		b.Fatal(err)
	}
	for i, id := range roster {
		h := handles[i%len(handles)]
		m, err := barrier.NewMember(ctx, barrier.MemberOptions{
			ID: id, Store: &counted{h.Store, &calls}, Artefacts: h.Artefacts, Host: benchHost{swapped}, Slots: &benchSlots{}, Logger: quiet,
			Timing: barrier.Timing{CallTimeout: 30 * time.Second},
		})
		if err != nil {
			b.Fatal(err)
		}
		running.Go(func() {
			if err := m.Run(ctx); err != nil && ctx.Err() == nil {
				b.Error(err)
			}
		})
	}
	coordinator := barrier.NewCoordinator(barrier.CoordinatorOptions{
		Store: &counted{store.Store, &calls}, Leases: store.Leases, Lease: 3 * time.Second, CallTimeout: 30 * time.Second, Logger: quiet,
	})
	running.Go(func() { coordinator.Run(ctx) })
	proposer := barrier.Proposer{Store: store.Store, Artefacts: store.Artefacts, Host: benchHost{swapped}}
	rollout := func(i int) {
		_, err := proposer.Propose(ctx, fmt.Appendf(nil, "configuration %d", i), barrier.Proposal{Proposer: "benchmark", Version: uint64(i + 1)})
		if err != nil {
			b.Fatal(err)
		}
		for range n {
			select {
			case <-swapped:
			case <-time.After(5 * time.Minute):
				b.Fatalf("rollout %d: not every member has swapped", i)
			}
		}
	}
	joined(b, store.Store, roster) // who joins after a proposal has no vote
	rollout(0)                     // the coordinator's lock delay passes before what is measured
	calls.conflicts.Store(0)
	calls.unknown.Store(0)
	b.ResetTimer()
	for i := range b.N {
		rollout(i + 1)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/rollout")
	b.ReportMetric(float64(calls.conflicts.Load())/float64(b.N), "conflicts/rollout")
	b.ReportMetric(float64(calls.unknown.Load())/float64(b.N), "unknown/rollout")
	b.ReportMetric(0, "ns/op")
}

// joined waits until every member has.
func joined(b *testing.B, s barrier.Reader, roster []barrier.MemberID) {
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, id := range roster {
		for {
			v, err := s.Look(ctx, id)
			if err == nil && v.Registration.Boot != "" {
				break
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				b.Fatalf("%s has not joined: %v", id, err)
			}
		}
	}
}

// calls counts what came of writes.
type calls struct{ conflicts, unknown atomic.Int64 }

func (c *calls) note(err error) error {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
	case barrier.Code(err) != "":
		c.conflicts.Add(1)
	default:
		c.unknown.Add(1)
	}
	return err
}

// counted counts the writes of members and coordinator.
type counted struct {
	barrier.Store
	calls *calls
}

func (c *counted) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, n uint64) (barrier.Registration, error) {
	reg, err := c.Store.Join(ctx, m, boot, n)
	return reg, c.calls.note(err)
}

func (c *counted) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, digest string) error {
	return c.calls.note(c.Store.Ack(ctx, r, m, boot, digest))
}

func (c *counted) Claim(ctx context.Context, t barrier.Token) error {
	return c.calls.note(c.Store.Claim(ctx, t))
}

func (c *counted) Commit(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return c.calls.note(c.Store.Commit(ctx, r, t))
}

// benchHost builds nothing, at once.
type benchHost struct{ swapped chan<- struct{} }

func (benchHost) Digest(artefact []byte) (barrier.Digest, error) {
	sum := sha256.Sum256(artefact)
	return barrier.Digest("sha256:" + hex.EncodeToString(sum[:])), nil
}

func (benchHost) Classify(context.Context, barrier.Pointer, []byte) (barrier.Class, error) {
	return barrier.Class{Name: "live-safe"}, nil
}

func (h benchHost) Prepare(context.Context, barrier.Pointer, []byte) (barrier.Prepared, error) {
	return benchPrepared(h), nil
}

func (benchHost) Converged(context.Context) (barrier.Health, error) {
	return barrier.Health{Converged: true}, nil
}

type benchPrepared benchHost

func (benchPrepared) BuildDigest() string { return "" }
func (benchPrepared) Discard()            {}
func (p benchPrepared) Swap(context.Context) error {
	p.swapped <- struct{}{}
	return nil
}

// benchSlots forgets what it need not know.
type benchSlots struct{ memory barrier.Memory }

func (s *benchSlots) Load(context.Context) (barrier.Memory, error) { return s.memory, nil }

func (s *benchSlots) Save(_ context.Context, m barrier.Memory) error {
	s.memory = m
	return nil
}

func (*benchSlots) Keep(context.Context, barrier.Digest, []byte) error { return nil }

func (*benchSlots) Bytes(context.Context, barrier.Digest) ([]byte, error) {
	return nil, barrier.ErrNoArtefact
}
