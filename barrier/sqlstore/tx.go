package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Bounds of one transaction on Postgres, set for it alone. A coordinator or a member that is suspended between its look at
// the clock and its COMMIT must neither hold the cohort's lock for minutes nor decide when it wakes: the server ends it.
const (
	lockTimeout      = 2 * time.Second // waiting for the cohort's lock, or for a row
	statementTimeout = 2 * time.Second // one statement
	idleTimeout      = 2 * time.Second // between two statements: the connection is closed
)

// maxDecision is how long after its look at the clock a Commit or Confirm may come to its COMMIT. Both databases refuse it
// later, and any time after the deadline that it was for: Postgres inside of its COMMIT, SQLite just before. What is left is
// the COMMIT's own flush, so a Proposal's Grace, DefaultGrace as any other, should exceed what that takes on the
// slowest disk, or standby that is waited for.
const maxDecision = 4 * time.Second

// maxAttempts bounds how often a transaction that lost against another is run.
const maxAttempts = 8

// errLost is a row that is not as it was read any more.
var errLost = errors.New("the row was changed by another transaction")

// The locks that a transaction takes first. All calls of a cohort share one lock, which decisions take alone and votes
// together. On Postgres it is an advisory lock and not the head's row lock: of row locks, a stream of shared ones keeps an
// exclusive one out for seconds, here it waits for those alone that came before it. On SQLite any lock is the
// file's.
type lock int

const (
	lockNone   lock = iota
	lockShared      // votes and evidence: no decision meanwhile
	lockAlone       // what changes the head
	lockLease       // of the lease: apart from all others
)

// keys are a cohort's advisory locks. Two cohorts whose keys collide wait for each other and no more.
type keys struct{ head, lease int64 }

func keysOf(cohort string) keys {
	key := func(what string) int64 {
		sum := sha256.Sum256([]byte("guardyn barrier " + what + " " + cohort))
		return int64(binary.BigEndian.Uint64(sum[:8]))
	}
	return keys{head: key("head"), lease: key("lease")}
}

// Hook is part of a transaction that changes a cohort's head; see OnChange.
type Hook func(ctx context.Context, tx *sql.Tx, before, after barrier.Head) error

// Tx makes a cohort's changes part of the caller's transaction; see Store.In. It is no more concurrent than its
// *sql.Tx.
type Tx struct {
	s      *Store
	tx     *sql.Tx
	theirs bool // the transaction is the caller's
	locked lock
	head   bool      // the head was changed
	votes  bool      // a registration or a ballot was
	wrote  bool      // anything was
	until  time.Time // the deadline of what was decided; zero: none
	seen   time.Time // when the clock was looked at for that
}

// In returns the Store's calls as parts of tx, which is of the Store's database and which the caller commits: what they
// write takes effect with it or not at all, together with whatever else the caller does there.
//
// On Postgres tx must be READ COMMITTED. Its first call takes the cohort's lock until tx ends, so that it should come before
// the caller locks rows that an OnChange of another process could want in the opposite order; and it
// bounds the rest of tx: 2 s for each statement, for each wait for a lock, and for each pause between two. A Commit or Confirm
// is tested again inside of tx's COMMIT, which fails when its deadline has passed meanwhile, or 4 s: Named
// tells that error's name. On SQLite tx holds the file's write lock from its first call; begin it IMMEDIATE if it reads
// before. Nothing looks at the clock again when such a tx commits: it is for the caller to be quick.
//
// A named error leaves tx as it was. After any other error roll it back; if the error is Transient, run it again from its
// beginning. Those who Watch the head are told on Postgres with the COMMIT, on SQLite within the poll interval.
func (s *Store) In(tx *sql.Tx) *Tx { return &Tx{s: s, tx: tx, theirs: true} }

// Named returns err, which a COMMIT returned, with the port's name where it has one: ErrLate when a Commit or Confirm in
// that transaction came too late. Nothing took effect then.
func Named(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == stateLate {
		return fmt.Errorf("%w: %w", barrier.ErrLate, err)
	}
	return err
}

// begin takes l, once.
func (t *Tx) begin(ctx context.Context, l lock) error {
	if t.locked == l && l != lockNone {
		return nil
	}
	t.locked = l
	if t.s.dialect == SQLite {
		// Whatever mode tx began in, a first statement that writes waits for the file's lock and then sees the newest rows.
		_, err := t.tx.ExecContext(ctx, `UPDATE barrier_head SET cohort = cohort WHERE cohort = ?1`, t.s.cohort)
		return err
	}
	// The lock comes last: the settings bound its wait. A commit that answers before it is on disk would be no decision.
	const settings = `SELECT current_setting('transaction_isolation'),
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'local' ELSE current_setting('synchronous_commit') END, true)`
	var isolation, ignored string
	var err error
	if l == lockNone {
		err = t.tx.QueryRowContext(ctx, settings).Scan(&isolation, &ignored)
	} else {
		function, key := "pg_advisory_xact_lock", t.s.keys.head
		switch l {
		case lockShared:
			function = "pg_advisory_xact_lock_shared"
		case lockLease:
			key = t.s.keys.lease
		}
		err = t.tx.QueryRowContext(ctx, settings+`,
			set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
			set_config('idle_in_transaction_session_timeout', $3, true), `+function+`($4)::text`,
			milliText(lockTimeout), milliText(statementTimeout), milliText(idleTimeout), key,
		).Scan(&isolation, &ignored, &ignored, &ignored, &ignored, &ignored)
	}
	if err == nil && isolation != "read committed" {
		return fmt.Errorf("the transaction's isolation level is %s; read committed is needed: rows are read after the lock is taken", isolation)
	}
	return err
}

func milliText(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// exec runs a statement and returns how many rows changed.
func (t *Tx) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	res, err := t.tx.ExecContext(ctx, t.s.dialect.rewrite(statement), args...)
	if err != nil {
		return 0, err
	}
	t.wrote = true
	return res.RowsAffected()
}

// one runs a statement that changes exactly one row, if that still is as it was read.
func (t *Tx) one(ctx context.Context, statement string, args ...any) error {
	n, err := t.exec(ctx, statement, args...)
	if err == nil && n != 1 {
		return errLost
	}
	return err
}

// write runs f in a transaction of the Store's own. One that lost against another is run again, so f keeps nothing from
// an earlier run.
func (s *Store) write(ctx context.Context, what string, f func(*Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := s.writeOnce(ctx, f)
		switch {
		case err == nil:
			return nil
		case barrier.Code(err) != "":
			return err
		case !Transient(err) || attempt == maxAttempts:
			return fmt.Errorf("%s in cohort %s: %w", what, s.cohort, err)
		}
		wait := time.NewTimer(time.Millisecond << attempt)
		select {
		case <-ctx.Done():
			wait.Stop()
			return fmt.Errorf("%s in cohort %s: %w", what, s.cohort, errors.Join(ctx.Err(), err))
		case <-wait.C:
		}
	}
}

func (s *Store) writeOnce(ctx context.Context, f func(*Tx) error) error {
	tx, err := s.writer.BeginTx(ctx, s.dialect.readCommitted())
	if err != nil {
		return err
	}
	t := &Tx{s: s, tx: tx}
	err = f(t)
	if err == nil && t.wrote && s.dialect == SQLite {
		err = t.inTime(s.now())
	}
	if err != nil || !t.wrote {
		_ = tx.Rollback() // err says more than a connection that broke meanwhile
		return err
	}
	err = tx.Commit()
	if err == nil || !refused(err) {
		t.committed()
	}
	if err != nil && !refused(err) {
		return fmt.Errorf("commit, of which the outcome is unknown: %w", err)
	}
	return Named(err)
}

// readCommitted is how transactions that write begin on Postgres: after it has the lock each statement sees
// what others committed before they gave it up.
func (d Dialect) readCommitted() *sql.TxOptions {
	if d == SQLite {
		return nil
	}
	return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
}

// inTime is what the trigger rollout_in_time is on Postgres.
func (t *Tx) inTime(now time.Time) error {
	switch {
	case t.until.IsZero():
		return nil
	case now.After(t.until):
		return fmt.Errorf("%w: while it was decided", barrier.ErrLate)
	case now.Sub(t.seen) > maxDecision:
		return fmt.Errorf("the decision took %s, longer than %s", now.Sub(t.seen), maxDecision)
	}
	return nil
}

// notify has those who watch told: of the head within the transaction, of votes once it has committed. Postgres lets one
// transaction that notifies commit at a time, its flush to disk included: votes would no longer share flushes, and a
// thousand of them take five times as long.
func (t *Tx) notify(ctx context.Context, head, votes bool) error {
	if head && !t.head && t.s.dialect == Postgres {
		if _, err := t.exec(ctx, `SELECT pg_notify($1, '')`, t.s.channel(barrier.TopicHead)); err != nil {
			return err
		}
	}
	if votes && !t.votes && t.s.dialect == SQLite {
		if _, err := t.exec(ctx, `UPDATE barrier.head SET votes = votes + 1 WHERE cohort = $1`, t.s.cohort); err != nil {
			return err
		}
	}
	t.head, t.votes = t.head || head, t.votes || votes
	return nil
}

// committed tells what could not be told within the transaction, which may have committed.
func (t *Tx) committed() {
	if t.s.dialect == SQLite {
		t.s.tell(t.head, t.votes)
	} else if t.votes {
		t.s.watches.hintVotes()
	}
}
