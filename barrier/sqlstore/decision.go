package sqlstore

import (
	"context"

	"github.com/guardyn-edge/guardyn/barrier"
)

// What a host decides by itself beside rollouts, in the transaction of its own rows.

// Lock takes the cohort's lock as a decision does, until the transaction ends: what is read afterwards stays so.
func (t *Tx) Lock(ctx context.Context) error { return t.begin(ctx, lockAlone) }

// Raise has every generation from now on be above generation, which somebody has shown whom this database forgot. While a
// rollout is open it is *OpenError. A generation that is not above the head's changes nothing.
func (t *Tx) Raise(ctx context.Context, generation uint64) error {
	if err := checkNumber("generation", generation); err != nil {
		return err
	}
	return t.decide(ctx, "", 0, func(st *state) (barrier.Head, error) {
		next := st.Head
		switch {
		case next.Rollout != nil && next.Rollout.Open():
			return next, &barrier.OpenError{Rollout: *next.Rollout}
		case generation > next.Generation:
			next.Generation = generation
			next.Revision++
		}
		return next, nil
	})
}

// EmptyRoster is SetRoster of nobody: the last member leaves, and nothing can be proposed until another joins.
func (t *Tx) EmptyRoster(ctx context.Context, revision uint64) (barrier.Roster, error) {
	var roster barrier.Roster
	err := t.decide(ctx, "", wantRoster, func(st *state) (barrier.Head, error) {
		roster = st.roster
		if len(st.roster.Members) == 0 && (revision == st.roster.Revision || revision+1 == st.roster.Revision) {
			return st.Head, nil
		}
		// Of the roster that comes next the head's judgement knows only that it is another one.
		next, changed, err := st.ChangeRoster(st.roster, revision, []barrier.MemberID{"nobody"}, st.now)
		if err != nil {
			return next, err
		}
		changed.Members = nil
		roster = changed
		return next, t.saveRoster(ctx, st, changed)
	})
	if err != nil {
		return barrier.Roster{}, err
	}
	return roster, nil
}
