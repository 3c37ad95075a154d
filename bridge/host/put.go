package host

import (
	"context"
	"fmt"
	"sync"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// Outcome is what has become of a document that was saved, so far.
type Outcome struct {
	Version uint64          `json:"version"`
	Digest  document.Digest `json:"digest,omitzero"`
	// Verb is what the member does about it: reload, activate, stand, underway, refused, waits, …
	Verb    string           `json:"verb"`
	Reason  string           `json:"reason,omitzero"`
	Rollout *barrier.Ref     `json:"rollout,omitzero"`
	Change  *document.Change `json:"change,omitzero"` // from what ran
}

// PutOptions say on what terms a document is saved. Exactly one of IfVersion and Create is given.
type PutOptions struct {
	IfVersion *uint64 // of the document that it replaces
	Create    bool    // only where there is none
	// ForReplacement saves what this bridge does not take over while it runs, for the processes that will replace its cohort.
	ForReplacement bool
}

// RefusedError is of a valid document that was not saved, since this bridge does not take it over while it runs.
type RefusedError struct {
	Reason string
	Change document.Change
}

func (e *RefusedError) Error() string { return e.Reason }

// Put saves a document in this member's source, and returns what comes of it: as far as it is known when ctx ends at the latest.
// Nothing is saved unless it is valid, this bridge takes it over while it runs, and this member can build it. Errors:
// *document.Error, *RefusedError, *barrier.OpenError, source.ErrVersion, source.ErrMissing, source.ErrExists.
func (h *Host) Put(ctx context.Context, body []byte, o PutOptions) (Outcome, error) {
	if (o.IfVersion == nil) != o.Create {
		return Outcome{}, fmt.Errorf("bridge: a document is saved over a version, or created")
	}
	parse := func(b []byte) (*document.Document, error) { return document.ParseFor(b, h.cfg.Process) }
	if o.ForReplacement {
		parse = document.Parse // who will run it may be others
	}
	d, err := parse(body)
	if err != nil {
		return Outcome{}, err
	}
	running := h.Running()
	var change *document.Change
	if running != nil {
		c := document.Compare(running, d)
		change = &c
		if !o.ForReplacement {
			if err := h.admit(ctx, running, d, c); err != nil {
				return Outcome{}, err
			}
		}
	}
	var saved source.Stored
	if o.Create {
		saved, err = h.cfg.Source.CreateIfAbsent(ctx, body)
	} else {
		saved, err = h.cfg.Source.SaveIfVersion(ctx, *o.IfVersion, body)
	}
	if err != nil {
		return Outcome{}, err
	}
	h.observer.Nudge()
	out := h.outcomes.of(ctx, saved.Version)
	out.Digest, out.Change = d.Digest(), change
	return out, nil
}

// admit says why a change is not taken over while this bridge runs.
func (h *Host) admit(ctx context.Context, running, d *document.Document, c document.Change) error {
	h.mu.Lock()
	rung, cohort := h.rung, h.cohort
	h.mu.Unlock()
	switch {
	case c.Class == document.NoChange:
		return nil
	case rung == Refuse, rung == Standalone && d.Bridge.Mode != document.Standalone:
		return &RefusedError{Reason: h.whyRefused(d), Change: c}
	case rung == Standalone:
		h.work.Lock()
		defer h.work.Unlock()
		building, cancel := context.WithTimeout(ctx, prepareTimeout)
		defer cancel()
		p, err := h.cfg.Runner.Prepare(building, d)
		if err != nil {
			return &RefusedError{Reason: fmt.Sprintf("it cannot be built: %v", err), Change: c}
		}
		p.Discard()
		return nil
	case cohort == nil:
		return nil
	}
	if class := classify(running, d); class.Refused {
		return &RefusedError{Reason: class.Name + ": " + class.Reason, Change: c}
	}
	r := h.cfg.Rollouts
	call, cancel := context.WithTimeout(ctx, r.callTimeout())
	defer cancel()
	view, err := r.Store.Look(call, barrier.MemberID(h.cfg.Process.MemberID))
	if err != nil {
		return fmt.Errorf("the rollout store does not answer: %w", err)
	}
	if ro := view.Rollout; ro != nil && ro.Open() {
		return &barrier.OpenError{Rollout: *ro}
	}
	return nil
}

// outcomes tell those who wait what became of a version.
type outcomes struct {
	mu   sync.Mutex
	last Outcome
	next chan struct{} // closed when there is another
}

func (o *outcomes) init() { o.next = make(chan struct{}) }

func (o *outcomes) tell(out Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = out
	close(o.next)
	o.next = make(chan struct{})
}

// of returns the first outcome of a version that is not that it waits, or that another was saved over it, or what is known of it when ctx ends.
func (o *outcomes) of(ctx context.Context, version uint64) Outcome {
	known := Outcome{Version: version, Verb: string(waiting), Reason: "this member has not looked at it yet"}
	for {
		o.mu.Lock()
		last, next := o.last, o.next
		o.mu.Unlock()
		if last.Version == version {
			if known = last; known.Verb != string(waiting) {
				return known
			}
		} else if last.Version > version {
			return Outcome{Version: version, Verb: string(behind), Reason: fmt.Sprintf("version %d was saved over it", last.Version)}
		}
		select {
		case <-next:
		case <-ctx.Done():
			return known
		}
	}
}
