package barrier_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
)

// In a store that was restored from a backup the lease's tokens begin again below the claim. Its holder gives the lease back
// until its token has caught up; it does not sit on it.
func TestCoordinatorCatchesUpWithTheClaim(t *testing.T) {
	ctx := context.Background()
	store := memory.New(memory.Options{})
	const claim = 5
	if err := store.Claim(ctx, claim); err != nil {
		t.Fatal(err)
	}
	if _, err := store.SetRoster(ctx, 0, []barrier.MemberID{"a"}); err != nil {
		t.Fatal(err)
	}
	p := barrier.Proposal{ID: "r1", Proposer: "t", Digest: "t:1", RosterRevision: 1, Deadline: time.Minute}
	if _, err := store.Propose(ctx, p); err != nil {
		t.Fatal(err)
	}
	c := barrier.NewCoordinator(barrier.CoordinatorOptions{Store: store, Leases: store, Logger: slog.New(slog.DiscardHandler)})
	for range claim {
		if _, err := c.Look(ctx); err != nil {
			t.Fatal(err)
		}
	}
	row, err := store.Current(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if row.Rollout.State != barrier.Staging {
		t.Errorf("the rollout is %s after %d looks, with claim %d; want staging", row.Rollout.State, claim, row.Claim)
	}
}
