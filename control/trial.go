package control

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// trial is the newest rollout as its nodes are told of it, immutable.
type trial struct {
	rollout    barrier.Rollout
	row        RolloutRow
	members    map[string]bool // its epoch, by node id
	sealed     *seal.Sealed    // what it carries; nil once it is over
	superseded chan struct{}   // closed when another takes its place
}

// concerns tells whether a node belongs to the epoch.
func (t *trial) concerns(nodeID string) bool { return t != nil && t.members[nodeID] }

// issued tells whether (epoch, generation) is what the trial's provisional activation gave to its nodes.
func (t *trial) issued(epoch, generation uint64) bool {
	return t != nil && t.row.Provisional != "" && t.row.Epoch == epoch && t.row.Generation == generation
}

// artefact is what nodes on trial are offered, nil when they are not on trial.
func (t *trial) artefact() *seal.Artefact {
	if t == nil || !t.rollout.OnTrial() || t.sealed == nil || t.row.Provisional == "" {
		return nil
	}
	return &seal.Artefact{Sealed: *t.sealed, Activation: t.row.Provisional}
}

// over is closed when what t says changes; nil, which never is, without a cohort.
func (t *trial) over() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.superseded
}

// trialState holds the present trial, which is nil without a cohort and before the first reading.
type trialState struct {
	p       atomic.Pointer[trial]
	counter atomic.Uint64 // Revisions.Rollouts of the last reading, plus one; 0: never read
	mu      sync.Mutex    // held while reading from the store
}

// refreshTrial reads the newest rollout; one reading at a time. What it leaves is not older than the call.
func (s *Service) refreshTrial(ctx context.Context) error {
	if s.cohort == nil {
		return nil
	}
	s.trial.mu.Lock()
	defer s.trial.mu.Unlock()
	row, err := s.cohort.Current(ctx)
	if err != nil {
		return fmt.Errorf("reading the cohort: %w", err)
	}
	old := s.trial.p.Load()
	next := &trial{superseded: make(chan struct{})}
	if ro := row.Rollout; ro != nil {
		next.rollout = *ro
		if err := s.readCandidate(ctx, next, old); err != nil {
			return err
		}
		next.members = make(map[string]bool, len(row.Seats))
		for _, seat := range row.Seats {
			next.members[string(seat.Member)] = true
		}
	}
	if old == nil || old.rollout != next.rollout || old.row != next.row {
		s.trial.p.Store(next)
		if old != nil {
			close(old.superseded)
		}
	}
	if next.rollout.ID != "" && !next.rollout.Open() {
		s.decisions.ended(next.rollout)
	}
	return nil
}

// readCandidate fills in what t carries, out of old where that has it.
func (s *Service) readCandidate(ctx context.Context, t, old *trial) error {
	same := old != nil && old.rollout.ID == t.rollout.ID
	if same && old.rollout == t.rollout {
		t.row, t.sealed = old.row, old.sealed
		return nil
	}
	rows, err := s.store.RolloutRows(ctx, []barrier.RolloutID{t.rollout.ID})
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("what rollout %s carries: %w", t.rollout.ID, ErrNotFound)
	}
	t.row = rows[0]
	switch {
	case !t.rollout.Open():
	case same && old.sealed != nil:
		t.sealed = old.sealed
	default:
		sealed, err := s.store.Sealed(ctx, t.row.Version)
		if err != nil {
			return fmt.Errorf("reading version %d of rollout %s: %w", t.row.Version, t.rollout.ID, err)
		}
		t.sealed = &sealed
	}
	return nil
}

// followTrial makes memory agree with the counter of steps.
func (s *Service) followTrial(ctx context.Context, counter uint64) error {
	if s.cohort == nil || s.trial.counter.Load() == counter+1 {
		return nil
	}
	// The counter was read first: a step in between is read again.
	if err := s.refreshTrial(ctx); err != nil {
		return err
	}
	s.trial.counter.Store(counter + 1)
	return nil
}

// CandidateFor returns what the open rollout carries to a node of its epoch (node). ErrNotFound for any other node or
// digest. The candidate is shared and must not be changed.
func (s *Service) CandidateFor(ctx context.Context, p Principal, digest string) (nodeproto.Candidate, error) {
	if err := p.isNode(); err != nil {
		return nodeproto.Candidate{}, err
	}
	for again := false; ; again = true {
		t := s.trial.p.Load()
		if t.concerns(p.NodeID) && t.sealed != nil && string(t.rollout.Digest) == digest {
			return nodeproto.Candidate{Sealed: *t.sealed, Margin: t.row.Margin}, nil
		}
		if again || s.cohort == nil {
			return nodeproto.Candidate{}, fmt.Errorf("no open rollout of node %s carries that: %w", p.NodeName, ErrNotFound)
		}
		// Another process may have proposed what this one reads only within a second.
		if err := s.refreshTrial(ctx); err != nil {
			return nodeproto.Candidate{}, err
		}
	}
}

// trialOf returns the trial that a node asks for or shows, read anew when memory does not have it.
func (s *Service) trialOf(ctx context.Context, q *nodeproto.Poll, l *live) (*trial, error) {
	t := s.trial.p.Load()
	switch {
	case q.Trial == "" || s.cohort == nil,
		t != nil && string(t.rollout.ID) == q.Trial && !t.rollout.Voting(),
		l.confirms(q):
		return t, nil
	}
	if err := s.refreshTrial(ctx); err != nil {
		return nil, err
	}
	return s.trial.p.Load(), nil
}
