package memory

import (
	"context"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Every write is the same four steps: load, call the transition, write what it changed, hint. Under the lock nothing that was
// loaded can change before it is written; other adapters write under the condition that the head still has the Revision
// that was loaded, and begin again when it has not.

// set writes next if it has another Revision, which is how a transition says that it changed the head.
func (s *Store) set(next barrier.Head) {
	if next.Revision == s.head.Revision {
		return
	}
	s.head = next
	s.hint(barrier.TopicHead)
}

// decide applies a transition of the head alone.
func (s *Store) decide(ctx context.Context, transition func(now time.Time) (barrier.Head, error)) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	next, err := transition(s.now())
	if err != nil {
		return err
	}
	s.set(next)
	return nil
}

// vote applies a transition of m's ballot.
func (s *Store) vote(ctx context.Context, m barrier.MemberID, transition func(seat *barrier.Seat, now time.Time) (barrier.Head, barrier.Ballot, error)) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	next, ballot, err := transition(s.seat(m), s.now())
	if err != nil {
		return err
	}
	if ballot != s.ballots[m] {
		s.ballots[m] = ballot
		s.hint(barrier.TopicVotes)
	}
	s.set(next)
	return nil
}

// Join implements barrier.Voter.
func (s *Store) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	if err := barrier.CheckMember(m, boot); err != nil {
		return barrier.Registration{}, err
	}
	if err := s.lock(ctx); err != nil {
		return barrier.Registration{}, err
	}
	defer s.mu.Unlock()
	old := s.registrations[m]
	next, reg, err := s.head.Join(old, s.seat(m) != nil, boot, incarnation)
	if err != nil {
		return barrier.Registration{}, err
	}
	if reg != old {
		s.registrations[m] = reg
		s.hint(barrier.TopicVotes)
	}
	s.set(next)
	return reg, nil
}

// Ack implements barrier.Voter.
func (s *Store) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, buildDigest string) error {
	return s.vote(ctx, m, func(seat *barrier.Seat, now time.Time) (barrier.Head, barrier.Ballot, error) {
		b, err := s.head.Ack(r, seat, boot, buildDigest, now)
		return s.head, b, err
	})
}

// Nack implements barrier.Voter.
func (s *Store) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return s.vote(ctx, m, func(seat *barrier.Seat, now time.Time) (barrier.Head, barrier.Ballot, error) {
		b, err := s.head.Nack(r, seat, boot, reason, now)
		return s.head, b, err
	})
}

// Converge implements barrier.Voter.
func (s *Store) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	return s.vote(ctx, m, func(seat *barrier.Seat, now time.Time) (barrier.Head, barrier.Ballot, error) {
		b, err := s.head.Converge(r, seat, boot, detail, now)
		return s.head, b, err
	})
}

// Withdraw implements barrier.Voter.
func (s *Store) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return s.vote(ctx, m, func(seat *barrier.Seat, now time.Time) (barrier.Head, barrier.Ballot, error) {
		return s.head.Withdraw(r, seat, boot, reason, now)
	})
}

// Claim implements barrier.Decider.
func (s *Store) Claim(ctx context.Context, t barrier.Token) error {
	return s.decide(ctx, func(time.Time) (barrier.Head, error) { return s.head.WithClaim(t) })
}

// Commit implements barrier.Decider.
func (s *Store) Commit(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return s.decide(ctx, func(now time.Time) (barrier.Head, error) {
		return s.head.Commit(r, t, s.seats(), s.roster.Revision, now, 0)
	})
}

// Abort implements barrier.Decider.
func (s *Store) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return s.decide(ctx, func(now time.Time) (barrier.Head, error) { return s.head.Abort(r, by, reason, now) })
}

// Confirm implements barrier.Decider.
func (s *Store) Confirm(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return s.decide(ctx, func(now time.Time) (barrier.Head, error) {
		return s.head.Confirm(r, t, s.seats(), now, 0)
	})
}

// Revert implements barrier.Voter and barrier.Decider.
func (s *Store) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return s.decide(ctx, func(now time.Time) (barrier.Head, error) {
		return s.head.Revert(r, by, s.seat(by.Member), reason, now)
	})
}

// Propose implements barrier.Proposing.
func (s *Store) Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	if err := s.lock(ctx); err != nil {
		return barrier.Rollout{}, err
	}
	defer s.mu.Unlock()
	next, err := s.head.Propose(s.roster, p, s.now())
	if err != nil {
		return barrier.Rollout{}, err
	}
	if next.Revision != s.head.Revision {
		// The epoch is frozen, and nobody has said anything of this rollout yet. A roster's slice is never written to.
		s.epoch = s.roster.Members
		clear(s.ballots)
	}
	s.set(next)
	return *next.Rollout, nil
}

// SetRoster implements barrier.Proposing.
func (s *Store) SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	if err := s.lock(ctx); err != nil {
		return barrier.Roster{}, err
	}
	defer s.mu.Unlock()
	next, roster, err := s.head.ChangeRoster(s.roster, revision, members, s.now())
	if err != nil {
		return barrier.Roster{}, err
	}
	s.roster = roster
	s.set(next)
	return barrier.Roster{Revision: roster.Revision, Members: slices.Clone(roster.Members)}, nil
}

// AdoptBaseline implements barrier.Proposing.
func (s *Store) AdoptBaseline(ctx context.Context, p barrier.Pointer) (barrier.BaselineOutcome, error) {
	if err := s.lock(ctx); err != nil {
		return barrier.BaselineFailed, err
	}
	defer s.mu.Unlock()
	next, outcome, err := s.head.AdoptBaseline(p)
	if err != nil {
		return outcome, err
	}
	s.set(next)
	return outcome, nil
}
