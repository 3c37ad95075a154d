package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/guardyn-edge/guardyn/barrier"
)

// What an Options' zero values stand for.
const (
	DefaultClockSkew       = time.Second
	DefaultRequestTimeout  = time.Second
	DefaultReadTimeout     = 3 * time.Second
	DefaultTransferTimeout = 10 * time.Second
	DefaultPoll            = 250 * time.Millisecond
)

// Options say which cohort, and how sure of its clocks and its network one may be. All processes of a cohort need the same ClockSkew
// and RequestTimeout: each keeps the margin that is due to the clocks of all.
type Options struct {
	Table  string // its name or ARN
	Cohort string // 1 to barrier.MaxIDBytes bytes, as a MemberID; several share a table

	// ClockSkew bounds how far the clocks of any two processes of the cohort are apart. Default: DefaultClockSkew.
	ClockSkew time.Duration

	// RequestTimeout bounds one request that writes a decision, a vote or the lease, from the look at the clock until the
	// answer. It is a part of the margin, so it is short. Default: DefaultRequestTimeout.
	RequestTimeout time.Duration

	// ReadTimeout bounds one request that reads or deletes. Default: DefaultReadTimeout.
	ReadTimeout time.Duration

	// TransferTimeout bounds one request that carries a piece of an artefact. Default: DefaultTransferTimeout.
	TransferTimeout time.Duration

	// Poll is between a Watch's looks at the head. Default: DefaultPoll.
	Poll time.Duration

	// Now is this process's clock, kept by NTP; default: time.Now.
	Now func() time.Time

	// Uptime is this process's monotonic clock, from any instant of its own, for leases. Default: the runtime's.
	Uptime func() time.Duration
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&o.ClockSkew, DefaultClockSkew)
	set(&o.RequestTimeout, DefaultRequestTimeout)
	set(&o.ReadTimeout, DefaultReadTimeout)
	set(&o.TransferTimeout, DefaultTransferTimeout)
	set(&o.Poll, DefaultPoll)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Uptime == nil {
		start := time.Now()
		o.Uptime = func() time.Duration { return time.Since(start) }
	}
	return o
}

func (o Options) check() error {
	var problems []error
	if o.Table == "" {
		problems = append(problems, errors.New("table has no name"))
	}
	if barrier.CheckMember(barrier.MemberID(o.Cohort), "any") != nil {
		problems = append(problems, fmt.Errorf("cohort %.80q is not 1 to %d letters, digits, '.', '_' and '-'", o.Cohort, barrier.MaxIDBytes))
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"clock skew", o.ClockSkew},
		{"request timeout", o.RequestTimeout},
		{"transfer timeout", o.TransferTimeout},
		{"poll", o.Poll},
	} {
		if d.value < 0 {
			problems = append(problems, fmt.Errorf("%s is %s", d.name, d.value))
		}
	}
	return errors.Join(problems...)
}

// Store is one cohort in a table: its row, its lease and its artefacts. It keeps nothing but what never changes, and
// what it has seen of the lease; it is safe for use by many goroutines, and needs no closing.
type Store struct {
	client *dynamodb.Client
	table  string
	cohort string
	o      Options

	mu    sync.Mutex
	epoch epoch // the one that was read last
	seen  sighting
}

var _ interface {
	barrier.Store
	barrier.Leases
	barrier.Artefacts
} = (*Store)(nil)

// Open returns the cohort that o names, after it has made sure that its table can keep a barrier: that it has the keys that
// CreateTable makes, and is not replicated to another region. The client's own retries are never used.
func Open(ctx context.Context, client *dynamodb.Client, o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("open rollout store: %w", err)
	}
	s := &Store{client: client, table: o.Table, cohort: o.Cohort, o: o}
	if err := s.checkTable(ctx); err != nil {
		return nil, fmt.Errorf("open rollout store: %w", err)
	}
	return s, nil
}

// now is the store's time as this process knows it.
func (s *Store) now() time.Time { return s.o.Now().UTC().Round(0) }

// margin is how far off now may be, against any other process's, when a write that was sent at it takes effect.
func (s *Store) margin() time.Duration { return s.o.ClockSkew + s.o.RequestTimeout }
