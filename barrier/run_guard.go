package barrier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// guard is a Host whose panics are errors: a candidate that one build cannot take must not end the processes of a whole
// cohort before they have voted.
type guard struct {
	host Host
	log  *slog.Logger
}

// caught turns a panic into err.
func caught(log *slog.Logger, what string, err *error) {
	if r := recover(); r != nil {
		log.Error("a panic was caught", "in", what, "panic", r, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%s panicked: %v", what, r)
	}
}

func (g guard) Digest(artefact []byte) (d Digest, err error) {
	defer caught(g.log, "Digest", &err)
	return g.host.Digest(artefact)
}

func (g guard) Classify(ctx context.Context, running Pointer, artefact []byte) (c Class, err error) {
	defer caught(g.log, "Classify", &err)
	return g.host.Classify(ctx, running, artefact)
}

func (g guard) Prepare(ctx context.Context, p Pointer, artefact []byte) (_ Prepared, err error) {
	defer caught(g.log, "Prepare", &err)
	prepared, err := g.host.Prepare(ctx, p, artefact)
	if err != nil {
		return nil, err
	}
	if prepared == nil {
		return nil, errors.New("the host prepared nothing and gave no reason")
	}
	return guardedPrepared{prepared, g.log}, nil
}

func (g guard) Converged(ctx context.Context) (h Health, err error) {
	defer caught(g.log, "Converged", &err)
	return g.host.Converged(ctx)
}

type guardedPrepared struct {
	prepared Prepared
	log      *slog.Logger
}

func (p guardedPrepared) BuildDigest() (d string) {
	var err error
	defer func() {
		if err != nil {
			d = "" // not text: what did not say what it built is refused
		}
	}()
	defer caught(p.log, "BuildDigest", &err)
	return p.prepared.BuildDigest()
}

func (p guardedPrepared) Swap(ctx context.Context) (err error) {
	defer caught(p.log, "Swap", &err)
	return p.prepared.Swap(ctx)
}

func (p guardedPrepared) Discard() {
	var err error
	defer caught(p.log, "Discard", &err)
	p.prepared.Discard()
}

// aside is something that goes on beside the member's loop: what does not return keeps no deadman from running out.
type aside struct {
	done   chan struct{} // closed at its end
	err    error
	health Health
	view   View
}

// ended tells whether a is over.
func (a *aside) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// wait waits for a's end for at most d; false when it goes on.
func (a *aside) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-a.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return a.ended()
}

// judge asks the Host how the trial does. A Host that does not answer in time has not converged, and is not asked again before it
// has answered.
func (m *Member) judge(ctx context.Context) Health {
	j := m.judging
	if j != nil && !j.ended() {
		return Health{Detail: "the host does not say whether it has converged"}
	}
	j = &aside{done: make(chan struct{})}
	m.judging = j
	go func() {
		defer close(j.done)
		call, cancel := context.WithTimeout(ctx, m.o.Timing.CallTimeout)
		defer cancel()
		h, err := m.host.Converged(call)
		if err != nil {
			h = Health{Detail: err.Error()}
		}
		j.health = h
	}()
	if !j.wait(ctx, m.o.Timing.CallTimeout) {
		return Health{Detail: fmt.Sprintf("the host has not said within %s whether it has converged", m.o.Timing.CallTimeout)}
	}
	return j.health
}

// lookAside returns the look under way, or begins one.
func (m *Member) lookAside(ctx context.Context) *aside {
	if m.looking == nil {
		l := &aside{done: make(chan struct{})}
		m.looking = l
		go func() {
			defer close(l.done)
			call, cancel := context.WithTimeout(ctx, m.o.Timing.CallTimeout)
			defer cancel()
			l.view, l.err = m.o.Store.Look(call, m.o.ID)
		}()
	}
	return m.looking
}

// disk runs a write to the Slots, one at a time and in order. One that does not end within limit is an error, and
// goes on.
func (m *Member) disk(ctx context.Context, limit time.Duration, write func(context.Context) error) error {
	if write == nil {
		return nil
	}
	if w := m.writing; w != nil && !w.wait(ctx, limit) {
		return errors.New("an earlier write to the member's disk has not ended")
	}
	w := &aside{done: make(chan struct{})}
	m.writing = w
	go func() {
		defer close(w.done)
		defer caught(m.o.Logger, "a write to the member's disk", &w.err)
		call, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		w.err = write(call)
	}()
	if !w.wait(ctx, limit) {
		return fmt.Errorf("the member's disk has not answered within %s", limit)
	}
	return w.err
}

// finish waits, at the end of Run, for what goes on beside it: for DiskTimeout each at most.
func (m *Member) finish(ctx context.Context) {
	for _, a := range []*aside{m.judging, m.writing, m.looking} {
		if a != nil {
			a.wait(context.WithoutCancel(ctx), m.o.Timing.DiskTimeout)
		}
	}
	m.discard()
}

// whileVoting returns ctx for as long as the rollout waits for votes: what is built for one that was aborted, or whose deadline has passed, is
// built for nothing. stop ends the watching and waits for it.
func (m *Member) whileVoting(ctx context.Context, r Ref) (_ context.Context, stop func()) {
	limit := m.o.Timing.BuildTimeout
	if v := m.sit.View; v != nil && v.Rollout != nil && v.Rollout.Ref == r {
		limit = min(limit, max(v.Rollout.Deadline.Sub(v.Now), 0)+m.o.Timing.CallTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(m.o.Timing.Poll)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			call, done := context.WithTimeout(ctx, m.o.Timing.CallTimeout)
			v, err := m.o.Store.Look(call, m.o.ID)
			done()
			if err == nil && (v.Rollout == nil || v.Rollout.Ref != r || !v.Rollout.Voting()) {
				cancel()
				return
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
}
