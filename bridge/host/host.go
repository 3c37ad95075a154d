package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// Config is what a Host runs on. Source and Runner must be set; their owner closes them after Run.
type Config struct {
	Source  source.Source
	Runner  bridge.Runner
	Process document.Process // RolloutStore is set from Rollouts
	Name    string           // of the cohort, for people

	// Rollouts is the cohort's, for a document that asks for coordinated rollouts; nil: none.
	Rollouts *Rollouts
	// Initial is the document that this process creates when its source has none; nil: it never does.
	Initial []byte
	// Baseline is the document that the deployment names as the cohort's first; "": the first that a member finds is.
	Baseline document.Digest

	Poll     time.Duration // of the source, and of a change that waits to be proposed; 0: source.DefaultPoll
	Timeout  time.Duration // of one look at the source; 0: source.DefaultTimeout
	Logger   *slog.Logger  // nil: slog.Default
	LogLevel *slog.LevelVar
	Now      func() time.Time // nil: time.Now
}

// Rollouts are the ports of the cohort's barrier.
type Rollouts struct {
	Store     barrier.Store
	Leases    barrier.Leases
	Artefacts barrier.Artefacts
	Slots     barrier.Slots
	Timing    barrier.Timing // zero fields take barrier.DefaultTiming's
	Lease     time.Duration  // of the coordinator; 0: its default
	// Grace and EvidenceTTL of proposals; 0: the barrier's defaults. A store without a clock of its own needs more.
	Grace, EvidenceTTL time.Duration
}

// Host is one member. Run is called once; all else is safe for concurrent use.
type Host struct {
	cfg      Config
	observer *source.Observer
	watched  *watched // the rollout store; nil: none
	outcomes outcomes

	// work is held while the runner is driven, so that it is by one at a time.
	work sync.Mutex

	mu       sync.Mutex // guards what is below, and is held for moments
	phase    Phase
	running  *document.Document
	rung     Rung
	ran      bool // a document was run by this process
	seen     sighting
	want     *document.Document // the valid document that the source of a coordinated member holds
	cohort   *cohort            // nil: none
	baseline baseline
	problem  string // why it is idle, or what is wrong with what runs
}

// sighting is the last observation, judged.
type sighting struct {
	source.Observation
	verb   verb
	doc    *document.Document // of a valid one
	reason string             // why it is not what runs
}

// New returns a Host; nothing happens before Run.
func New(cfg Config) (*Host, error) {
	if cfg.Source == nil || cfg.Runner == nil {
		return nil, errors.New("bridge: a host needs a source and a runner")
	}
	var store *watched
	if cfg.Rollouts != nil {
		r := *cfg.Rollouts
		if r.Store == nil || r.Leases == nil || r.Artefacts == nil || r.Slots == nil {
			return nil, errors.New("bridge: rollouts need a store, leases, artefacts and slots")
		}
		if cfg.Process.MemberID == "" {
			return nil, errors.New("bridge: who takes part in rollouts needs a member id")
		}
		store = &watched{Store: r.Store}
		r.Store = store
		cfg.Rollouts = &r
	}
	cfg.Process.RolloutStore = cfg.Rollouts != nil
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.Poll = cmp.Or(cfg.Poll, source.DefaultPoll)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	h := &Host{
		cfg:      cfg,
		watched:  store,
		observer: &source.Observer{Source: cfg.Source, Poll: cfg.Poll, Timeout: cfg.Timeout, Now: cfg.Now},
		phase:    Idle, problem: "the source has not answered yet",
	}
	h.outcomes.init()
	return h, nil
}

// Run follows the source until ctx ends, and then stops intake, drains and stops within the running document's timeouts: nil when all
// of it did. It ends by itself with ErrReplace, or with barrier.ErrSuperseded when another process has this one's member id.
func (h *Host) Run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	observations := make(chan source.Observation)
	var watch sync.WaitGroup
	watch.Go(func() { h.observer.Run(watching, observations) })
	defer watch.Wait()
	defer stop()
	tick := time.NewTicker(h.cfg.Poll)
	defer tick.Stop()
	for {
		var err error
		select {
		case o, ok := <-observations:
			if ok {
				err = h.observe(ctx, o)
			} else {
				observations = nil
			}
		case <-tick.C:
			err = h.again(ctx)
		case err = <-h.ended():
		case <-ctx.Done():
			return h.shutDown()
		}
		if err != nil && ctx.Err() == nil {
			h.cfg.Logger.Error("the bridge stops", "error", err)
			return errors.Join(err, h.shutDown())
		}
	}
}

// ended is told when the member takes part no more; nil when it never does.
func (h *Host) ended() <-chan error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cohort == nil {
		return nil
	}
	return h.cohort.ended
}

// again does what waits for something else than the source: a change that is to be proposed, or a start that failed.
func (h *Host) again(ctx context.Context) error {
	h.mu.Lock()
	seen, c, running := h.seen, h.cohort, h.running
	h.mu.Unlock()
	switch {
	case c != nil:
		h.reconsider(ctx)
	case running == nil && (seen.verb == activate || seen.verb == resume || seen.verb == create):
		return h.act(ctx, seen)
	}
	return nil
}

// observe judges one observation and does what follows.
func (h *Host) observe(ctx context.Context, o source.Observation) error {
	s := sighting{Observation: o}
	switch o.State {
	case source.Present:
		d, err := document.ParseFor(o.Stored.Body, h.cfg.Process)
		if err != nil {
			s.reason = err.Error()
		} else {
			d.Version = o.Stored.Version
			s.doc = d
		}
	case source.Failed:
		s.reason = o.Err.Error()
	}
	remembers := h.remembers(ctx)
	h.mu.Lock()
	s.verb = judge(situation{h.running, h.rung, remembers, h.cfg.Initial != nil && !h.ran}, o.State, s.doc)
	h.seen = s
	if s.doc == nil {
		h.want = nil // what the source does not say any more is not proposed
	}
	h.mu.Unlock()
	return h.act(ctx, s)
}

// remembers tells whether this member's disk says what its cohort has confirmed. What cannot be read is told when it is needed.
func (h *Host) remembers(ctx context.Context) bool {
	h.mu.Lock()
	busy := h.running != nil || h.cohort != nil
	h.mu.Unlock()
	if h.cfg.Rollouts == nil || busy {
		return false
	}
	m, err := h.cfg.Rollouts.Slots.Load(ctx)
	return err == nil && !m.Confirmed.IsZero()
}

// act does what a sighting asks for. The error ends Run.
func (h *Host) act(ctx context.Context, s sighting) error {
	log := h.cfg.Logger.With("source", h.cfg.Source.String(), "observed", s.State, "verb", s.verb)
	var err error
	reason := s.reason
	switch s.verb {
	case stayIdle:
		if s.State == source.Missing {
			reason = "the source has no document"
		}
	case create:
		reason = h.create(ctx)
	case activate, resume:
		if reason, err = h.start(ctx, s.doc); reason == "" && s.doc == nil {
			reason = s.reason // it runs, and the source is as bad as before
		}
	case stand:
		h.setVersion(h.Running(), s.doc.Version)
	case reload:
		reason = h.reload(ctx, s.doc)
	case refuse:
		if s.doc != nil {
			reason = h.whyRefused(s.doc)
		}
	case quiesce:
		reason = "the document is gone from the source"
		err = h.quiesce(ctx, reason)
	case leave:
		h.mu.Lock()
		activated := h.running != nil
		h.mu.Unlock()
		if !activated {
			reason = "the source has no document"
			h.abandon(reason)
			break
		}
		err = fmt.Errorf("%w: the document is gone from the source, and a clustered bridge does not run what nobody wants any more", ErrReplace)
	case propose:
		h.mu.Lock()
		h.want = s.doc
		h.mu.Unlock()
		h.reconsider(ctx)
		return nil
	}
	h.mu.Lock()
	h.seen.reason = reason
	if h.running == nil && reason != "" {
		h.problem = reason
	}
	h.mu.Unlock()
	switch {
	case err != nil:
	case reason != "":
		log.Warn("bridge", "reason", reason)
	default:
		log.Info("bridge")
	}
	h.outcomes.tell(Outcome{Version: s.Stored.Version, Verb: string(s.verb), Reason: reason})
	return err
}

// create puts the initial document into the source before the cohort's first activation, and never after it: whoever takes the document
// away wants nothing to run, and a process that starts anew must not bring it back. It says what was done, or why nothing was.
func (h *Host) create(ctx context.Context) (reason string) {
	const missing = "the source has no document"
	if r := h.cfg.Rollouts; r != nil {
		call, cancel := context.WithTimeout(ctx, r.callTimeout())
		defer cancel()
		memory, err := r.Slots.Load(call)
		if err != nil {
			return fmt.Sprintf("%s, and none is created: the member's memory cannot be read: %v", missing, err)
		}
		had := !memory.Confirmed.IsZero()
		if !had && h.cfg.Source.Shared() { // in a file of its own another member's first document never was
			row, err := r.Store.Current(call)
			if err != nil {
				return fmt.Sprintf("%s, and none is created: the rollout store does not say whether the cohort has run one: %v", missing, err)
			}
			had = !row.Committed.IsZero()
		}
		if had {
			h.mu.Lock()
			h.seen.verb = stayIdle // that does not change
			h.mu.Unlock()
			return fmt.Sprintf("%s, and the initial one is not created: cohort %s has run one, and somebody has taken it away. To begin anew put a document into the source", missing, h.cfg.Name)
		}
	}
	defer h.observer.Nudge()
	if _, err := h.cfg.Source.CreateIfAbsent(ctx, h.cfg.Initial); err != nil && !errors.Is(err, source.ErrExists) {
		return fmt.Sprintf("the initial document could not be created: %v", err)
	}
	return missing + "; creates it"
}

// setVersion notes that running is saved under another version, if it still is what runs.
func (h *Host) setVersion(running *document.Document, v uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == running && running.Version != v {
		d := *running
		d.Version = v
		h.running = &d
	}
}

// whyRefused says why a valid change is not taken over on this rung, and what to do.
func (h *Host) whyRefused(d *document.Document) string {
	h.mu.Lock()
	running, rung := h.running, h.rung
	h.mu.Unlock()
	if rung == Standalone {
		return standaloneMode
	}
	change := document.Compare(running, d)
	return fmt.Sprintf("a clustered bridge with rollout: refuse takes no change over while it runs (%s): %s", summary(change), replaceRefuse)
}

// summary names what a change is about, for people.
func summary(c document.Change) string {
	fields := c.Fields
	const most = 5
	text := ""
	for i, f := range fields {
		if i == most {
			return fmt.Sprintf("%s and %d more", text, len(fields)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += f.Path
	}
	return text
}
