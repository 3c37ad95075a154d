package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Store is one process's access to one cohort: its barrier.Store, barrier.Leases and barrier.Artefacts. Every call that
// writes is one transaction, durable when it returns nil; a call that lost against others is run again, at most 8 times, and
// one whose COMMIT was not answered is not: its outcome is unknown. It is safe for concurrent use.
type Store struct {
	dialect Dialect
	cohort  string
	writer  *sql.DB
	reader  *sql.DB
	owned   []*sql.DB // to close
	clock   func() time.Time
	hook    Hook
	keys    keys
	loads   [4]string // the statement of each want
	watches watches
}

var (
	_ barrier.Store     = (*Store)(nil)
	_ barrier.Leases    = (*Store)(nil)
	_ barrier.Artefacts = (*Store)(nil)
)

// Option changes how a Store is made.
type Option func(*options)

type options struct {
	reader   *sql.DB
	clock    func() time.Time
	hook     Hook
	poll     time.Duration
	maxConns int
}

// ReadFrom makes the Store read from another pool of the same database, for SQLite, whose pool for writing has one connection.
func ReadFrom(db *sql.DB) Option { return func(o *options) { o.reader = db } }

// Clock replaces time.Now as the time of a store on SQLite. On Postgres it means nothing: the server's clock is the time.
func Clock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// OnChange runs f in each transaction that changes the cohort's head through this Store, those of In too: after its rows are
// written and before it commits, so that what f does in tx happens with the change or not at all. A host moves its own pointer
// there when after.Committed is another than before's. An error of f rolls the change back and is returned wrapped. f is
// called again when the transaction is run again; it is quick, since the cohort waits for it, and calls nothing of the
// Store but by In(tx).
func OnChange(f Hook) Option { return func(o *options) { o.hook = f } }

// PollInterval replaces DefaultPollInterval.
func PollInterval(d time.Duration) Option { return func(o *options) { o.poll = d } }

// DefaultPollInterval is how often a watched Store on SQLite looks whether another process wrote.
const DefaultPollInterval = 100 * time.Millisecond

// New returns the Store of a cohort (1 to barrier.MaxIDBytes bytes of letters, digits, '.', '_' and '-') in a database that
// Migrate has prepared: else the error is a *SchemaError. db stays the caller's and must outlive the Store. Its Postgres
// must be a primary; a Store uses any number of its connections at once, and one of its own to listen. On
// SQLite it should be in WAL mode with synchronous=FULL, a busy timeout and foreign keys. The caller closes the Store.
func New(ctx context.Context, db *sql.DB, d Dialect, cohort string, opts ...Option) (*Store, error) {
	o := options{reader: db, clock: time.Now, poll: DefaultPollInterval}
	for _, opt := range opts {
		opt(&o)
	}
	if barrier.CheckMember(barrier.MemberID(cohort), "boot") != nil {
		return nil, fmt.Errorf("%w: cohort %.80q is not 1 to %d letters, digits, '.', '_' and '-'", barrier.ErrInvalid, cohort, barrier.MaxIDBytes)
	}
	if d != Postgres && d != SQLite {
		return nil, fmt.Errorf("open cohort %s: unknown dialect %q", cohort, d)
	}
	have, err := SchemaVersion(ctx, db, d)
	if err == nil {
		err = checkSchema(have, d.schemaWanted())
	}
	if err == nil && d == Postgres {
		err = checkPrimary(ctx, db)
	}
	if err != nil {
		return nil, fmt.Errorf("open cohort %s: %w", cohort, err)
	}
	s := &Store{dialect: d, cohort: cohort, writer: db, reader: o.reader, clock: o.clock, hook: o.hook, keys: keysOf(cohort)}
	for w := range s.loads {
		s.loads[w] = d.statement(want(w))
	}
	s.watches.start(s, o.poll)
	return s, nil
}

// checkPrimary refuses a server that only follows another: what it shows may be old.
func checkPrimary(ctx context.Context, db *sql.DB) error {
	var standby bool
	if err := db.QueryRowContext(ctx, `SELECT pg_is_in_recovery()`).Scan(&standby); err != nil {
		return err
	}
	if standby {
		return errors.New("the server is a standby; the barrier needs the primary")
	}
	return nil
}

// Close ends what the Store began: it waits for its goroutine, and closes the connections that Open made. Channels of
// Watch stay silent and close with their contexts.
func (s *Store) Close() error {
	s.watches.stop()
	var err error
	for _, db := range s.owned {
		err = errors.Join(err, db.Close())
	}
	return err
}

// now is the time of a store on SQLite, in the precision that is stored.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }
