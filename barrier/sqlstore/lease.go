package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// lease is the lease's row.
type lease struct {
	stored bool
	token  barrier.Token
	holder string // empty: released
	until  time.Time
	claim  barrier.Token // of the head
	now    time.Time
}

// loadLease takes the lease's lock and reads its row.
func (t *Tx) loadLease(ctx context.Context) (lease, error) {
	var l lease
	if err := t.begin(ctx, lockLease); err != nil {
		return l, err
	}
	var token sql.Null[int64]
	err := t.tx.QueryRowContext(ctx, t.s.dialect.rewrite(`SELECT l.token, l.holder, l.until, h.claim, `+t.s.dialect.clock()+`
		FROM (SELECT 1) AS one LEFT JOIN barrier.lease l ON l.cohort = $1 LEFT JOIN barrier.head h ON h.cohort = $1`), t.s.cohort,
	).Scan(&token, column[string]{&l.holder}, instantColumn{&l.until}, column[barrier.Token]{&l.claim}, instantColumn{&l.now})
	l.stored, l.token = token.Valid, barrier.Token(token.V)
	if t.s.dialect == SQLite {
		l.now = t.s.now()
	}
	return l, err
}

func (t *Tx) saveLease(ctx context.Context, l lease) error {
	statement := `INSERT INTO barrier.lease (cohort, token, holder, until) VALUES ($1, $2, $3, $4)`
	if l.stored {
		statement = `UPDATE barrier.lease SET token = $2, holder = $3, until = $4 WHERE cohort = $1`
	}
	return t.one(ctx, statement, t.s.cohort, number(l.token), l.holder, t.s.dialect.instant(l.until))
}

// Acquire implements barrier.Leases. A new token is higher than the head's claim too, so that a cohort whose leases were kept
// elsewhere before can go on.
func (s *Store) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	if err := barrier.CheckLease(holder, ttl); err != nil {
		return barrier.Lease{}, err
	}
	var given barrier.Lease
	err := s.write(ctx, "acquire the lease", func(t *Tx) error {
		l, err := t.loadLease(ctx)
		if err != nil {
			return err
		}
		// A lease that ends later than any can was given before the clock stepped back: it is over.
		switch held := l.holder != "" && l.now.Before(l.until) && l.until.Sub(l.now) <= barrier.MaxLease; {
		case held && l.holder != holder:
			return &barrier.HeldError{Holder: l.holder}
		case !held:
			next := max(l.token, l.claim) + 1
			if next > maxNumber {
				return errors.New("tokens are used up")
			}
			l.holder, l.token = holder, next
		}
		l.until = l.now.Add(ttl)
		given = barrier.Lease{Holder: holder, Token: l.token, TTL: ttl}
		return t.saveLease(ctx, l)
	})
	if err != nil {
		return barrier.Lease{}, err
	}
	return given, nil
}

// Renew implements barrier.Leases.
func (s *Store) Renew(ctx context.Context, l barrier.Lease) error {
	if err := barrier.CheckLease(l.Holder, l.TTL); err != nil {
		return err
	}
	return s.held(ctx, "renew the lease", l, func(row *lease) { row.until = row.now.Add(l.TTL) })
}

// Release implements barrier.Leases.
func (s *Store) Release(ctx context.Context, l barrier.Lease) error {
	return s.held(ctx, "release the lease", l, func(row *lease) { row.holder = "" })
}

// held writes what change makes of the row, if l is the lease that was given last and not released since; its time
// may be over.
func (s *Store) held(ctx context.Context, what string, l barrier.Lease, change func(*lease)) error {
	return s.write(ctx, what, func(t *Tx) error {
		row, err := t.loadLease(ctx)
		if err != nil {
			return err
		}
		if l.Token != row.token || l.Holder != row.holder || l.Holder == "" {
			return fmt.Errorf("%w: token %d of %q", barrier.ErrLost, l.Token, l.Holder)
		}
		change(&row)
		return t.saveLease(ctx, row)
	})
}
