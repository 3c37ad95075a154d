package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

var errChanged = errors.New("what this node serves has changed since it was prepared")

// standing is what is served already.
type standing struct {
	c *cohort
	p barrier.Pointer
}

func (s *standing) BuildDigest() string { return string(s.p.Digest) }
func (s *standing) Discard()            {}

func (s *standing) Swap(context.Context) error {
	s.c.a.work.Lock()
	defer s.c.a.work.Unlock()
	if !s.c.a.serves(s.p) {
		return errChanged
	}
	return nil
}

// wayBack is what was served before a trial, compiled anew. It needs no word of the control plane: its activation is the one that
// a boot would serve.
type wayBack struct {
	c        *cohort
	p        barrier.Pointer
	home     *installed
	prepared Prepared
}

func (w *wayBack) BuildDigest() string { return string(w.p.Digest) }
func (w *wayBack) Discard()            {}

func (w *wayBack) Swap(context.Context) error {
	a := w.c.a
	a.work.Lock()
	defer a.work.Unlock()
	switch {
	case a.serves(w.p): // by the agent's own poll meanwhile
		return nil
	case a.home != w.home:
		return errChanged
	}
	a.swap(w.home, w.prepared)
	a.returned = true
	a.report(nil)
	a.nudge()
	return nil
}

// built is a candidate.
type built struct {
	c *cohort
	h *held
}

func (b *built) BuildDigest() string { return string(b.h.pointer.Digest) }

// Discard drops the candidate, and its file unless the member remembers it.
func (b *built) Discard() {
	a := b.c.a
	a.work.Lock()
	defer a.work.Unlock()
	if a.held != b.h {
		return
	}
	a.held = nil
	next := a.state.loaded(b.h.c.PayloadBLAKE3())
	if !remembers(next.Rollout, next.Candidate) {
		next.Candidate = ""
	}
	if err := a.save(next); err != nil {
		a.log.Warn("a candidate that was discarded is still in the state", "error", err)
		return
	}
	if err := sweepSlots(a.cfg.Dir, a.state); err != nil {
		a.log.Warn("old slots not removed", "error", err)
	}
}

// Swap fetches the activation that was signed when the cohort decided, and installs it. One answer that was lost, or came from a process that
// does not know of the decision yet, must not fail the whole cohort: it asks again for a while.
func (b *built) Swap(ctx context.Context) error {
	a := b.c.a
	ctx, cancel := context.WithTimeout(ctx, 3*b.c.cfg.Timing.CallTimeout)
	defer cancel()
	var err error
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, b.c.cfg.Timing.CallTimeout/2) {
		var final bool
		if final, err = b.install(ctx); err == nil || final {
			break
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("activate generation %d: %w", b.h.pointer.Generation, err)
		case <-timer.C:
		}
	}
	if err != nil {
		return fmt.Errorf("activate generation %d: %w", b.h.pointer.Generation, err)
	}
	a.work.Lock()
	defer a.work.Unlock()
	if a.held == b.h {
		a.held = nil
	}
	return nil
}

// install makes one attempt; final tells that another is in vain.
func (b *built) install(ctx context.Context) (final bool, err error) {
	a := b.c.a
	a.work.Lock()
	defer a.work.Unlock()
	if a.serves(b.h.pointer) {
		return true, nil
	}
	if a.held != b.h || a.unproven() {
		return true, errChanged
	}
	o := order{pointer: b.h.pointer, begin: b.c.begin(b.h.margin)}
	if t := a.state.Rollout.Trial; t != nil && t.Pointer == b.h.pointer {
		o.trial = t.Ref.ID
	}
	ask := nodeproto.Poll{TrustedKeys: a.cfg.Keys.IDs(), Held: b.h.c.PayloadBLAKE3(), Trial: string(o.trial)}
	if a.served != nil {
		act := a.served.Activation()
		ask.Have, ask.Generation, ask.Epoch = act.Version, act.Generation, act.Epoch
	}
	answer, err := b.ask(ctx, ask)
	switch {
	case err != nil:
		return false, err
	case a.serves(b.h.pointer):
		return true, nil
	case a.held != b.h:
		return true, errChanged
	case answer.Artefact == nil:
		return false, errors.New("the control plane offers no activation of it")
	}
	if err := a.install(ctx, offer{art: answer.Artefact, held: answer.Held, order: &o}); err != nil {
		var disk *diskError
		return errors.As(err, &disk), err
	}
	a.rejected = ""
	a.report(nil)
	a.nudge()
	return true, nil
}

// ask polls without the lock.
func (b *built) ask(ctx context.Context, ask nodeproto.Poll) (nodeproto.Answer, error) {
	b.c.a.work.Unlock()
	defer b.c.a.work.Lock()
	ctx, cancel := context.WithTimeout(ctx, b.c.cfg.Timing.CallTimeout)
	defer cancel()
	return b.c.a.cfg.Source.Poll(ctx, ask)
}
