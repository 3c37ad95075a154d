package barrier_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/barrier/slotfile"
)

// greeter is a daemon whose whole configuration is what it says. It is a Host, and so simple that it is its own Prepared too.
type greeter struct{ says func(text string) }

func (g greeter) Prepare(_ context.Context, _ barrier.Pointer, b []byte) (barrier.Prepared, error) {
	return greeter{func(string) { g.says(string(b)) }}, nil // an error here, on one member, and nobody says it
}

func (g greeter) Swap(context.Context) error { g.says(""); return nil }
func (greeter) Discard()                     {}
func (greeter) BuildDigest() string          { return "" }

func (greeter) Digest(b []byte) (barrier.Digest, error) { return "text:" + barrier.Digest(b), nil } // in life a hash

func (greeter) Classify(context.Context, barrier.Pointer, []byte) (c barrier.Class, _ error) { return }

func (greeter) Converged(context.Context) (h barrier.Health, _ error) { h.Converged = true; return }

// Three members say hello when all three have agreed to.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	store, says := memory.New(memory.Options{}), make(chan string) // in life the store is sqlstore, dynamo or remote
	dir, _ := os.MkdirTemp("", "members-*")
	defer os.RemoveAll(dir)
	cities := []barrier.MemberID{"Athens", "Bergen", "Cairo"}
	store.SetRoster(ctx, 0, cities)
	var running sync.WaitGroup
	for _, city := range cities {
		slots, _ := slotfile.Open(dir + "/" + string(city))
		m, _ := barrier.NewMember(ctx, barrier.MemberOptions{ID: city, Store: store, Artefacts: store, Slots: slots, Host: greeter{func(text string) { says <- string(city) + " says " + text }}})
		m.Poll(ctx)                       // joins: who joins after a proposal does not vote on it
		running.Go(func() { m.Run(ctx) }) // takes part until ctx ends
	}
	coordinator := barrier.CoordinatorOptions{Store: store, Leases: store, Lease: 100 * time.Millisecond}
	running.Go(func() { barrier.NewCoordinator(coordinator).Run(ctx) })
	barrier.Proposer{Store: store, Artefacts: store, Host: greeter{}}.Propose(ctx, []byte("hello"), barrier.Proposal{Proposer: "somebody"})
	for range cities {
		fmt.Println(<-says)
	}
	stop()
	running.Wait()
	// Unordered output:
	// Athens says hello
	// Bergen says hello
	// Cairo says hello
}
