// Package memory keeps a cohort's row, lease and artefacts in one process's memory: for tests, for trying the barrier out,
// and to read as the example of how an adapter calls the transitions.
package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Options are what a Store can be given. The zero Options is a store with the system's clock.
type Options struct {
	// Clock is the store's time, called with the store's lock held; nil is time.Now.
	Clock func() time.Time
}

// Store is one cohort's barrier.Store, barrier.Leases and barrier.Artefacts. All who share it are the cohort's processes.
// It is safe for concurrent use, and what is in it lasts as long as it does: a call that returns has taken effect for all,
// and one whose context is over before it begins has none.
type Store struct {
	clock func() time.Time

	mu            sync.Mutex // guards everything below
	head          barrier.Head
	roster        barrier.Roster
	epoch         []barrier.MemberID // of head.Rollout, sorted
	registrations map[barrier.MemberID]barrier.Registration
	ballots       map[barrier.MemberID]barrier.Ballot // in head.Rollout
	watches       map[barrier.Topic]map[chan struct{}]bool
	lease         lease
	artefacts     map[barrier.Digest]artefact
}

var (
	_ barrier.Store     = (*Store)(nil)
	_ barrier.Leases    = (*Store)(nil)
	_ barrier.Artefacts = (*Store)(nil)
)

// New returns an empty Store.
func New(o Options) *Store {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Store{
		clock:         o.Clock,
		registrations: map[barrier.MemberID]barrier.Registration{},
		ballots:       map[barrier.MemberID]barrier.Ballot{},
		watches:       map[barrier.Topic]map[chan struct{}]bool{barrier.TopicHead: {}, barrier.TopicVotes: {}},
		artefacts:     map[barrier.Digest]artefact{},
	}
}

// now is the store's time: without the monotonic reading, so that it compares as it will after a journey as text.
func (s *Store) now() time.Time { return s.clock().UTC().Round(0) }

// lock begins a call.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	return nil
}

// Current implements barrier.Reader.
func (s *Store) Current(ctx context.Context) (barrier.Row, error) {
	if err := s.lock(ctx); err != nil {
		return barrier.Row{}, err
	}
	defer s.mu.Unlock()
	return barrier.Row{
		Head:   own(s.head),
		Roster: barrier.Roster{Revision: s.roster.Revision, Members: slices.Clone(s.roster.Members)},
		Seats:  s.seats(),
		Now:    s.now(),
	}, nil
}

// Look implements barrier.Reader.
func (s *Store) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	if err := s.lock(ctx); err != nil {
		return barrier.View{}, err
	}
	defer s.mu.Unlock()
	v := barrier.View{Head: own(s.head), Registration: s.registrations[m], Now: s.now()}
	if seat := s.seat(m); seat != nil {
		v.InEpoch, v.Ballot = true, seat.Ballot
	}
	return v, nil
}

// own returns h with nothing in it that the store holds too.
func own(h barrier.Head) barrier.Head {
	if h.Rollout != nil {
		ro := *h.Rollout
		h.Rollout = &ro
	}
	if h.Previous != nil {
		p := *h.Previous
		h.Previous = &p
	}
	return h
}

// seat returns the epoch's seat of m, or nil.
func (s *Store) seat(m barrier.MemberID) *barrier.Seat {
	if _, ok := slices.BinarySearch(s.epoch, m); !ok {
		return nil
	}
	return &barrier.Seat{Member: m, Registration: s.registrations[m], Ballot: s.ballots[m]}
}

func (s *Store) seats() []barrier.Seat {
	seats := make([]barrier.Seat, len(s.epoch))
	for i, m := range s.epoch {
		seats[i] = *s.seat(m)
	}
	return seats
}

// Watch implements barrier.Reader.
func (s *Store) Watch(ctx context.Context, t barrier.Topic) <-chan struct{} {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[t] == nil {
		s.watches[t] = map[chan struct{}]bool{}
	}
	s.watches[t][c] = true
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches[t], c)
		close(c)
	})
	return c
}

// hint wakes all watches of t. The lock is held, so that none is being closed.
func (s *Store) hint(t barrier.Topic) {
	for c := range s.watches[t] {
		select {
		case c <- struct{}{}:
		default: // it has not read the last one yet: merged
		}
	}
}
