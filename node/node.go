// Package node is the agent of an edge node: it polls for sealed snapshots, verifies them, keeps them on
// disk, has the host swap to them, and reports what it serves.
package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// Config is what an agent needs. Source, Host, Keys and Dir must be set.
type Config struct {
	Source Source
	Host   Host
	Keys   seal.TrustedKeys
	// Dir is the node's state directory, held for the agent until its Close. The caller opens it.
	Dir *durable.Dir
	// Interval between polls, default nodeproto.DefaultInterval. It is also where back-off starts.
	Interval time.Duration
	// Wait asks the control plane to hold a poll until something changes, at most nodeproto.MaxWait; 0 turns
	// long polling off.
	Wait   time.Duration
	Logger *slog.Logger
	// Pools returns what acknowledgements say of the pools; nil: nothing. It is called without a lock of the agent's held.
	Pools func() *nodeproto.Pools
	// Purger drops what is cached, and Purges is where the agent hears what; both nil: nothing is cached.
	Purger Purger
	Purges PurgeSource
	// Jitter returns a number in [0, 1); nil uses the runtime's generator.
	Jitter func() float64
	// Now is the clock, default time.Now.
	Now func() time.Time
}

// Agent is one node's agent. Its methods are safe for concurrent use, except that Boot comes before Run
// and RunRollouts, each of which is called once.
type Agent struct {
	cfg  Config
	log  *slog.Logger
	boot string

	// work guards what is below, and that one installation goes on at a time. It is not held while the control
	// plane is asked.
	work  sync.Mutex
	state state
	// unsaved: writing the last state failed, so that the file may hold that one or the one before.
	unsaved bool
	// served is what the host serves. home is what it goes back to from a trial: the same but on trial, and what a
	// boot serves.
	served, home *installed
	held         *held  // the candidate of a rollout, compiled
	rejected     string // Fingerprint of the offer that was refused last
	distrust     bool   // an offer without its payload was refused: the next is to come with it
	whole        bool   // a coding could not be used: the next offer is to come whole, until one is installed
	returned     bool   // from a trial, and nothing was installed since
	pending      *nodeproto.Ack
	acks         uint64 // that were sent, delivered or not
	fresh        freshness
	purges       purges
	// toldStale: the last acknowledgement that was delivered said that nothing is fresh.
	toldStale bool
	interrupt context.CancelCauseFunc // of the poll that waits
	wake      chan struct{}           // ends the pause between polls; one value
	news      chan struct{}           // something else was installed; one value

	mu     sync.Mutex
	status Status
	member *barrier.Member // while the node takes part in rollouts
}

// Status is what an agent says of itself.
type Status struct {
	Version     uint64 // served, 0: nothing
	Generation  uint64
	Epoch       uint64
	ContentHash string
	LastPoll    time.Time // that was answered
	Failures    int       // polls that failed since
	Stale       bool      // no fresh answer for three freshness intervals
	// Ahead: the control plane says that it never issued what this node serves.
	Ahead     bool
	LastError *nodeproto.AckError
	// Codings counts payloads that came as the difference from what is held, CodingSaved the bytes that did not come for
	// that, CodingFailures differences that could not be used, so that the payload was fetched whole.
	Codings, CodingSaved, CodingFailures uint64
	// PurgesFollowed: the node knows its place in the log of purges, which is PurgeSequence. Purges counts those that it did,
	// PurgeFloors how often it dropped everything instead, PurgeFailures how often it could not follow since it last did.
	PurgesFollowed      bool
	PurgeSequence       uint64
	Purges, PurgeFloors uint64
	PurgeFailures       int
	// Trial is the id of the rollout on whose trial the served generation is; empty: it is confirmed.
	Trial string
	// Cohort: the node takes part in rollouts, and Rollout is what it knows of them.
	Cohort  bool
	Rollout barrier.Status
}

// New reads the state directory. State that cannot be read is rebuilt from the slots, each of which proves
// itself; without any it is an error: starting from nothing would forget what protects against replay.
func New(cfg Config) (*Agent, error) {
	if cfg.Interval == 0 {
		cfg.Interval = nodeproto.DefaultInterval
	}
	if cfg.Interval < 0 || cfg.Wait < 0 || cfg.Wait > nodeproto.MaxWait {
		return nil, fmt.Errorf("node: interval must be positive and wait between 0 and %s", nodeproto.MaxWait)
	}
	if err := cfg.checkPurges(); err != nil {
		return nil, err
	}
	if cfg.Jitter == nil {
		cfg.Jitter = mrand.Float64
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	st, err := readState(cfg.Dir)
	var damaged *damagedState
	if errors.As(err, &damaged) {
		cfg.Logger.Error("state is damaged; rebuilding it from the slots", "error", err)
		st, err = rebuildState(cfg.Dir, cfg.Keys, damaged)
	}
	if err != nil {
		return nil, err
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	a := &Agent{
		cfg: cfg, log: cfg.Logger, state: st, boot: hex.EncodeToString(id[:]), wake: make(chan struct{}, 1), news: make(chan struct{}, 1),
	}
	a.fresh.since = cfg.Now()
	return a, nil
}

// Status returns what the agent does now.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.status
	if a.member != nil {
		s.Cohort, s.Rollout = true, a.member.Status()
	}
	return s
}

func (a *Agent) update(f func(*Status)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.status)
}

// Boot serves what the disk holds, verified anew, without a control plane: the current slot or, when that
// one is damaged or has crashed this node twice at load, the one before it. What was on trial is not booted. It reports whether
// anything is served. A state directory that takes nothing, as on a disk that is full, keeps no node from serving what it holds: that is
// reported as disk_failed, and the loads that it does not count are no crashes.
func (a *Agent) Boot(ctx context.Context) (bool, error) {
	a.work.Lock()
	defer a.work.Unlock()
	var failed *nodeproto.AckError
	for _, name := range []string{a.state.Current, a.state.Previous} {
		if name == "" {
			continue
		}
		unsaved, err := a.bootSlot(ctx, name)
		if err == nil {
			if failed != nil {
				failed.Message += "; booted " + name
				a.log.Error("booted an older slot", "slot", name, "error", failed.Message)
			}
			if unsaved != nil {
				a.log.Error("booted without a word on the disk", "slot", name, "error", unsaved)
				failed = cmp.Or(failed, refusal(unsaved, a.served.Activation().Version))
			}
			a.report(failed)
			return true, nil
		}
		if failed == nil {
			failed = &nodeproto.AckError{Code: "boot_fell_back", Message: err.Error()}
		}
		a.log.Error("slot not booted", "slot", name, "error", err)
	}
	if failed != nil {
		a.report(failed)
	}
	return false, nil
}

// bootSlot serves what a slot holds. unsaved is what the state directory refused.
func (a *Agent) bootSlot(ctx context.Context, name string) (unsaved, err error) {
	art, err := readSlot(a.cfg.Dir, name)
	if err != nil {
		return nil, err
	}
	v, err := seal.Open(art, a.cfg.Keys, nil)
	if err != nil {
		return nil, fmt.Errorf("slot %s: %w", name, err)
	}
	act := v.Activation()
	if act.Kind == seal.KindProvisional {
		return nil, fmt.Errorf("slot %s: its activation is provisional, and no node boots from one", name)
	}
	prepared, err := a.prepare(ctx, v.Candidate(), act.Epoch, act.Generation)
	var disk *diskError
	if errors.As(err, &disk) {
		unsaved = disk
		prepared, err = a.compile(ctx, v.Candidate(), act.Epoch, act.Generation)
	}
	if err != nil {
		return nil, fmt.Errorf("slot %s: %w", name, err)
	}
	if unsaved == nil {
		unsaved = a.save(a.state)
	}
	a.swap(newInstalled(v, art.Activation, art.Sealed), prepared)
	return unsaved, nil
}

// swap makes i what is served; p is nil when the host serves it already, under another kind of activation.
func (a *Agent) swap(i *installed, p Prepared) {
	if p != nil {
		p.Swap()
	}
	a.served = i
	if !i.provisional() {
		a.home = i
	}
	act := i.Activation()
	a.update(func(s *Status) {
		s.Version, s.Generation, s.Epoch, s.ContentHash = act.Version, act.Generation, act.Epoch, act.ContentHash
		s.LastError, s.Trial = nil, a.trialID()
	})
	a.log.Info("serving", "version", act.Version, "generation", act.Generation, "kind", act.Kind, "content_hash", act.ContentHash,
		"zones", i.Snapshot().Len())
	signal(a.news)
}

// signal puts a value into c, unless one is there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// diskError is a failure of the state directory, not of the artefact.
type diskError struct{ err error }

func (e *diskError) Error() string { return e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

func (a *Agent) save(s state) error {
	if err := writeState(a.cfg.Dir, s); err != nil {
		a.unsaved = true
		return &diskError{err}
	}
	a.state, a.unsaved = s, false
	return nil
}
