package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/seal"
)

// Bounds of a Service.
const (
	// DefaultRefresh is how often Run reads Revisions, and how often it writes what was heard of nodes.
	DefaultRefresh = time.Second
	// DefaultMaxLongPolls bounds polls that wait at one time; a poll beyond it is answered at once.
	DefaultMaxLongPolls = 65_536
	// DefaultMaxBuilds bounds snapshots that are built at one time; who comes later waits.
	DefaultMaxBuilds = 2
	// MaxPage and DefaultPage are the largest and the usual number of rows of a listing.
	MaxPage     = 1000
	DefaultPage = 100
	// MaxImport is the size in bytes of the largest zone file that is imported.
	MaxImport = 64 << 20
	// MaxMessage is the length in bytes of the longest message of an apply.
	MaxMessage = 1000
	// MaxIdempotencyKey is the length in bytes of the longest idempotency key; ReplayAge is for how long
	// answers are kept under one, and MaxReplays how many of them, the newest.
	MaxIdempotencyKey = 128
	ReplayAge         = 24 * time.Hour
	MaxReplays        = 10_000
)

// Config is what a Service is made of. Store and SigningKey are required.
type Config struct {
	Store Store
	// Cohort is where rollouts are decided, in Store's own database and joined to it; nil: there is only direct publishing.
	Cohort     Cohort
	SigningKey seal.SigningKey
	// TrustedKeys are the public keys that nodes were given, when this process is told them. What is
	// sealed must open with one of them before it is stored. The zero value trusts the signing key's own
	// public half alone.
	TrustedKeys seal.TrustedKeys
	// AllowedOrigins are ranges that origins may have although they are private or loopback.
	AllowedOrigins []netip.Prefix
	Now            func() time.Time // time.Now when nil
	Logger         *slog.Logger     // discards when nil
	Refresh        time.Duration    // DefaultRefresh when 0
	MaxLongPolls   int              // DefaultMaxLongPolls when 0
	MaxBuilds      int              // DefaultMaxBuilds when 0
}

// Service is the control plane. It is safe for concurrent use. Every method that takes a Principal
// authorises it: ErrNoRoute or ErrNotFound for what the caller must not know of, ErrForbidden for what it
// may see but not do. Zone references are a zone's name or its id; one of another workspace is ErrNotFound.
type Service struct {
	store          Store
	cohort         Cohort // nil: none
	key            seal.SigningKey
	trusted        seal.TrustedKeys
	own            seal.TrustedKeys // the signing key's public half alone
	allowedOrigins []netip.Prefix
	now            func() time.Time
	stored         databaseClock // what is stored of nodes is dated by it
	log            *slog.Logger
	refresh        time.Duration
	maxLongPolls   int64

	builds      chan struct{} // one slot per build that runs
	lookups     chan struct{} // one slot per token that is read
	stopping    chan struct{} // closed when Run ends: long polls are answered
	live        liveState
	trial       trialState
	purges      purgeLog
	decisions   decisions
	opened      openedSnapshot
	sealer      seal.Sealer
	credentials credentials
	hashers     sync.Pool // of *blake3.Hasher
	roster      roster
	issues      issues
	rows        sharedCall[*savedRows]
	rosters     sharedCall[barrier.Roster]
	count       counters
}

// New checks cfg. It reads nothing; the first use or Run does.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil {
		return nil, errors.New("control: no store")
	}
	if cfg.SigningKey.IsZero() {
		return nil, errors.New("control: no signing key; set GUARDYN_CONFIG_SIGNING_KEY, gdn keys generate makes one")
	}
	if cfg.Refresh < 0 || cfg.MaxLongPolls < 0 || cfg.MaxBuilds < 0 {
		return nil, errors.New("control: a bound is negative")
	}
	own, err := seal.Trust(cfg.SigningKey.Public())
	if err != nil {
		return nil, fmt.Errorf("control: signing key: %w", err)
	}
	trusted := cfg.TrustedKeys
	if len(trusted.IDs()) == 0 {
		trusted = own
	}
	s := &Service{
		store: cfg.Store, cohort: cfg.Cohort, key: cfg.SigningKey, trusted: trusted, own: own, allowedOrigins: cfg.AllowedOrigins,
		now: cfg.Now, log: cfg.Logger,
		refresh:      cmp.Or(cfg.Refresh, DefaultRefresh),
		maxLongPolls: int64(cmp.Or(cfg.MaxLongPolls, DefaultMaxLongPolls)),
		builds:       make(chan struct{}, cmp.Or(cfg.MaxBuilds, DefaultMaxBuilds)),
		lookups:      make(chan struct{}, maxLookups),
		stopping:     make(chan struct{}),
		roster:       roster{writing: make(chan struct{}, 1)},
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// flushTimeout bounds the last write of Run, which begins when its context is done already.
const flushTimeout = 5 * time.Second

// Run owns all background work and returns nil when ctx is done, after a last write of what was heard of
// nodes: reading Revisions, refreshing what is held in memory, recording nodes. A store that fails is
// logged and tried again; memory keeps answering. Run is called once.
func (s *Service) Run(ctx context.Context) error {
	defer close(s.stopping)
	hearing, deaf := context.WithCancel(ctx)
	all := s.store.Changes(hearing)
	defer func() {
		deaf()
		for range all { // until nothing of it runs
		}
	}()
	changes := all // nil once it is closed
	var steps <-chan struct{}
	if s.cohort != nil {
		// On SQLite this alone hints at what rollouts do.
		steps = s.cohort.Watch(hearing, barrier.TopicHead)
		if err := s.store.AdoptLive(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("what is live could not be given to the cohort; the next publication does it", "error", err)
		}
	}
	tick := time.NewTicker(s.refresh)
	defer tick.Stop()
	failing := false
	for hinted := false; ; {
		err := s.follow(ctx)
		if !hinted {
			err = errors.Join(err, s.flushNodes(ctx))
		}
		switch {
		case err != nil && ctx.Err() == nil && !failing:
			s.log.Error("the store does not answer; serving nodes from memory", "error", err)
			failing = true
		case err == nil && failing:
			s.log.Info("the store answers again")
			failing = false
		}
		select {
		case <-tick.C:
			hinted = false
		case _, hinted = <-changes:
			if !hinted {
				changes = nil // ctx is done
			}
		case _, hinted = <-steps:
			if !hinted {
				steps = nil // the same
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			if err := s.flushNodes(last); err != nil {
				return fmt.Errorf("control: recording nodes at the end: %w", err)
			}
			return nil
		}
	}
}

// follow makes memory agree with the store's Revisions.
func (s *Service) follow(ctx context.Context) error {
	rev, err := s.revisions(ctx)
	if err != nil {
		return err
	}
	s.credentials.keep(rev.Directory)
	if err := s.followPurges(ctx, rev.Purges); err != nil {
		return err
	}
	// What is live first: whoever waits for the confirmation of a trial is woken once.
	if l := s.live.load(); l == nil || l.epochNow != rev.Epoch || l.generation != rev.Generation {
		if _, err = s.refreshLive(ctx); err != nil {
			return err
		}
	}
	return s.followTrial(ctx, rev.Rollouts)
}

// revisions reads them, and the database's time.
func (s *Service) revisions(ctx context.Context) (Revisions, error) {
	asked := s.now()
	rev, err := s.store.Revisions(ctx)
	if err != nil {
		return rev, fmt.Errorf("reading revisions: %w", err)
	}
	s.stored.read(asked, s.now(), rev.Now)
	return rev, nil
}

// Ready tells whether the store answers and what is live is in memory.
func (s *Service) Ready(ctx context.Context) error {
	if _, err := s.revisions(ctx); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	_, err := s.currentLive(ctx)
	return err
}

// counters are the sources of Stats.
type counters struct {
	polls, answered, ahead, acks, rejections atomic.Uint64
	coded, codedSaved                        atomic.Uint64
	builds, buildNanos, applies, failures    atomic.Uint64
	rollbacks, rollbackFailures, proposals   atomic.Uint64
	purges, purgeAnswers                     atomic.Uint64
	waiting                                  atomic.Int64
}

// Stats counts since the start of the process.
type Stats struct {
	Polls            uint64 // all of them
	PollsAnswered    uint64 // with an artefact
	PollsCoded       uint64 // of those, with a difference from what the node holds
	CodedSaved       uint64 // bytes that were not sent for that
	PollsAhead       uint64 // by a node that is ahead
	LongPolls        int64  // waiting now
	Acks             uint64 // well-formed, of what was issued
	NodeRejections   uint64 // acks that report an error
	Builds           uint64
	BuildSeconds     float64
	Applies          uint64 // that published
	ApplyFailures    uint64
	Rollbacks        uint64 // that were activated
	RollbackFailures uint64
	LiveVersion      uint64
	LiveGeneration   uint64

	Purges        uint64 // that were made
	PurgeAnswers  uint64 // statements of purges that nodes got
	PurgeSequence uint64 // of the newest purge, by whichever process; 0 for none

	Proposals uint64 // of rollouts
	// Resolved counts ends of rollouts that this process decided, or its database in a call of its.
	Resolved map[Resolution]uint64
	// Rollout is the newest one, nil when there never was one.
	Rollout *barrier.Rollout
}

// Stats reads the counters; they are not one consistent read.
func (s *Service) Stats() Stats {
	c := &s.count
	st := Stats{
		Polls: c.polls.Load(), PollsAnswered: c.answered.Load(), PollsAhead: c.ahead.Load(),
		PollsCoded: c.coded.Load(), CodedSaved: c.codedSaved.Load(),
		LongPolls: c.waiting.Load(), Acks: c.acks.Load(), NodeRejections: c.rejections.Load(),
		Builds: c.builds.Load(), BuildSeconds: time.Duration(c.buildNanos.Load()).Seconds(),
		Applies: c.applies.Load(), ApplyFailures: c.failures.Load(),
		Rollbacks: c.rollbacks.Load(), RollbackFailures: c.rollbackFailures.Load(),
		Purges: c.purges.Load(), PurgeAnswers: c.purgeAnswers.Load(),
		Proposals: c.proposals.Load(), Resolved: s.decisions.count(),
	}
	if t := s.trial.p.Load(); t != nil && t.rollout.ID != "" {
		ro := t.rollout
		st.Rollout = &ro
	}
	if h := s.purges.head.Load(); h != nil {
		st.PurgeSequence = h.mark.Sequence
	}
	if l := s.live.load(); l != nil {
		st.LiveVersion, st.LiveGeneration = l.version, l.generation
	}
	return st
}

// Listing is a page of rows. Next is the Page.After of the page that follows, "" when this is the last one.
type Listing[T any] struct {
	Items []T
	Next  string
}

// bounded returns p with its limit set and checked.
func bounded(p Page) (Page, error) {
	if p.Limit == 0 {
		p.Limit = DefaultPage
	}
	if p.Limit < 0 || p.Limit > MaxPage {
		return p, malformed("", "limit", "limit_invalid", "the limit of a page is 1 to %d", MaxPage)
	}
	return p, nil
}

// listing makes a page; a full one may be the last, then the next is empty.
func listing[T any](rows []T, p Page, key func(T) string) Listing[T] {
	l := Listing[T]{Items: rows}
	if len(rows) == p.Limit {
		l.Next = key(rows[len(rows)-1])
	}
	return l
}
