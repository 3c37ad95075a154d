package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// sighting is what this process has seen of the lease: a renewal, known by its nonce, and since when.
type sighting struct {
	nonce string
	since time.Duration // on this process's monotonic clock, when its first read had ended
}

// storedLease is the lease's item. A lease that was given back has no holder; the item stays, for its token.
type storedLease struct {
	barrier.Lease
	nonce string
}

func (s *Store) lease(ctx context.Context) (storedLease, error) {
	it, err := s.get(ctx, s.key(sortLease))
	if err != nil || len(it) == 0 {
		return storedLease{}, err
	}
	f := fields{item: it}
	l := storedLease{nonce: f.text(attrNonce), Lease: barrier.Lease{
		Holder: f.text(attrHolder),
		Token:  barrier.Token(f.number(attrToken)),
		TTL:    time.Duration(f.number(attrTTL)) * time.Millisecond,
	}}
	if f.err != nil {
		return storedLease{}, fmt.Errorf("lease: %w", f.err)
	}
	return l, nil
}

func (s *Store) putLease(ctx context.Context, was storedLease, l barrier.Lease, nonce string) error {
	it := s.key(sortLease)
	it[attrHolder], it[attrToken], it[attrNonce] = text(l.Holder), number(uint64(l.Token)), text(nonce)
	it[attrTTL] = number(uint64((l.TTL + time.Millisecond - 1) / time.Millisecond)) // never less than was asked for
	limited, cancel := context.WithTimeout(ctx, s.o.RequestTimeout)
	defer cancel()
	return s.write(limited, put(it, unchanged(was.nonce)))
}

// Acquire takes the lease, or renews it for its holder. Nobody's wall clock is believed: a challenger takes a lease from another only when
// it has seen the same renewal for a whole TTL of the holder's on its own monotonic clock, from one call to a later
// one. So a holder that vanishes is succeeded one TTL after a standing challenger's next look, and up to two TTLs after
// its last renewal when the challenger's first look comes late.
func (s *Store) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	if err := barrier.CheckLease(holder, ttl); err != nil {
		return barrier.Lease{}, err
	}
	var taken barrier.Lease
	err := s.repeat(ctx, "acquire lease", func(ctx context.Context, nonce string) error {
		looked := s.o.Uptime()
		l, err := s.lease(ctx)
		if err != nil {
			return err
		}
		taken = l.Lease
		if l.nonce == nonce {
			return nil
		}
		next := barrier.Lease{Holder: holder, Token: l.Token, TTL: ttl}
		if l.Holder != holder {
			if l.Holder != "" && !s.expired(l, looked) {
				return &barrier.HeldError{Holder: l.Holder}
			}
			next.Token++
		}
		taken = next
		return s.putLease(ctx, l, next, nonce)
	})
	if err != nil {
		return barrier.Lease{}, err
	}
	return taken, nil
}

// expired notes that l was there at the time looked, and tells whether it has been for its whole TTL.
func (s *Store) expired(l storedLease, looked time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen.nonce != l.nonce {
		// From after the read: it may have been written while this one was under way.
		s.seen = sighting{nonce: l.nonce, since: s.o.Uptime()}
		return false
	}
	return looked-s.seen.since >= l.TTL
}

// Renew holds the lease for another TTL, from now on by every challenger's clock.
func (s *Store) Renew(ctx context.Context, l barrier.Lease) error {
	if err := barrier.CheckLease(l.Holder, l.TTL); err != nil {
		return err
	}
	return s.changeLease(ctx, "renew lease", l, l)
}

// Release gives the lease back; the next Acquire, by anybody, takes it at once.
func (s *Store) Release(ctx context.Context, l barrier.Lease) error {
	return s.changeLease(ctx, "release lease", l, barrier.Lease{Token: l.Token})
}

func (s *Store) changeLease(ctx context.Context, what string, l, next barrier.Lease) error {
	return s.repeat(ctx, what, func(ctx context.Context, nonce string) error {
		have, err := s.lease(ctx)
		switch {
		case err != nil:
			return err
		case have.nonce == nonce:
			return nil
		case have.Token != l.Token || have.Holder != l.Holder || have.Holder == "":
			return fmt.Errorf("%w: its token is %d, held by %q", barrier.ErrLost, have.Token, have.Holder)
		}
		return s.putLease(ctx, have, next, nonce)
	})
}
