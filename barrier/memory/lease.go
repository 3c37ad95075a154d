package memory

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// lease is the lease's row: its token stays when nobody holds it.
type lease struct {
	holder string // empty: released, or never held
	token  barrier.Token
	until  time.Time
}

// Acquire implements barrier.Leases.
func (s *Store) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	if err := barrier.CheckLease(holder, ttl); err != nil {
		return barrier.Lease{}, err
	}
	if err := s.lock(ctx); err != nil {
		return barrier.Lease{}, err
	}
	defer s.mu.Unlock()
	now := s.now()
	// A lease that ends later than any can was given before the clock stepped back: it is over.
	if s.lease.holder != "" && now.Before(s.lease.until) && s.lease.until.Sub(now) <= barrier.MaxLease {
		if s.lease.holder != holder {
			return barrier.Lease{}, &barrier.HeldError{Holder: s.lease.holder}
		}
	} else {
		s.lease.holder = holder
		s.lease.token++
	}
	s.lease.until = now.Add(ttl)
	return barrier.Lease{Holder: holder, Token: s.lease.token, TTL: ttl}, nil
}

// Renew implements barrier.Leases.
func (s *Store) Renew(ctx context.Context, l barrier.Lease) error {
	if err := barrier.CheckLease(l.Holder, l.TTL); err != nil {
		return err
	}
	return s.held(ctx, l, func(now time.Time) { s.lease.until = now.Add(l.TTL) })
}

// Release implements barrier.Leases.
func (s *Store) Release(ctx context.Context, l barrier.Lease) error {
	return s.held(ctx, l, func(time.Time) { s.lease.holder = "" })
}

// held calls change if l is the lease that was given last and not released since; its time may be over.
func (s *Store) held(ctx context.Context, l barrier.Lease, change func(now time.Time)) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if l.Token != s.lease.token || l.Holder != s.lease.holder || l.Holder == "" {
		return fmt.Errorf("%w: token %d of %q", barrier.ErrLost, l.Token, l.Holder)
	}
	change(s.now())
	return nil
}

// artefact is what is kept under a digest.
type artefact struct {
	bytes []byte
	put   time.Time // last
}

// Put implements barrier.Artefacts.
func (s *Store) Put(ctx context.Context, d barrier.Digest, b []byte) error {
	if err := barrier.CheckArtefact(d, b); err != nil {
		return err
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	now := s.now()
	a, ok := s.artefacts[d]
	if !ok {
		a.bytes = bytes.Clone(b)
	}
	a.put = now
	s.artefacts[d] = a
	for d, a := range s.artefacts {
		if now.Sub(a.put) > barrier.ArtefactRetention && !s.names(d) {
			delete(s.artefacts, d)
		}
	}
	return nil
}

// names tells whether the row names d.
func (s *Store) names(d barrier.Digest) bool {
	h := s.head
	return h.Committed.Digest == d || h.Rollout != nil && h.Rollout.Digest == d || h.Previous != nil && h.Previous.Digest == d
}

// Get implements barrier.Artefacts.
func (s *Store) Get(ctx context.Context, d barrier.Digest) ([]byte, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	a, ok := s.artefacts[d]
	if !ok {
		return nil, fmt.Errorf("%w: %s", barrier.ErrNoArtefact, d)
	}
	return bytes.Clone(a.bytes), nil
}
