package node

import (
	"context"
	"errors"
	"time"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// outcome is how one poll ended.
type outcome int

const (
	outcomeCurrent   outcome = iota // nothing newer
	outcomeInstalled                // serving something else now
	outcomeSkipped                  // the offer is one that was refused before
	outcomeRejected                 // refused
	outcomeFailed                   // no answer, or a disk that cannot be written
	outcomeNudged                   // given up, since there is something else to ask or to say: now
)

// errNudged ends a poll that waits.
var errNudged = errors.New("there is something else to ask")

// Run polls until ctx ends and returns nil then. A failed poll is never fatal.
func (a *Agent) Run(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		begun := a.cfg.Now()
		a.sendAck(ctx)
		var pause time.Duration
		switch a.poll(ctx) {
		case outcomeInstalled:
			failures = 0
		case outcomeCurrent, outcomeSkipped:
			failures = 0
			// A long poll that was held needs no pause; one that came back at once must not become a
			// flood.
			pause = max(0, a.cfg.Interval-a.cfg.Now().Sub(begun))
		case outcomeRejected, outcomeFailed:
			failures++
			pause = a.backoff(failures)
		case outcomeNudged:
		}
		if a.followPurges(ctx) {
			pause = min(pause, max(0, purgePause-a.cfg.Now().Sub(begun)))
		}
		a.tellStale(failures)
		a.sendAck(ctx) // now, not after the pause
		if pause == 0 {
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// tellStale has an acknowledgement say when freshness has ended, or come back.
func (a *Agent) tellStale(failures int) {
	a.work.Lock()
	defer a.work.Unlock()
	stale := a.fresh.stale(a.cfg.Now())
	a.update(func(s *Status) { s.Failures, s.Stale = failures, stale })
	if stale != a.toldStale {
		a.reportAgain()
	}
}

// nudge has the agent report and poll now: what it would say has changed, or something is there for it. The caller
// holds the lock.
func (a *Agent) nudge() {
	signal(a.wake)
	if a.interrupt != nil {
		a.interrupt(errNudged)
	}
}

// backoff doubles from the interval to a minute and takes off up to half at random, so that a fleet does
// not come back in one instant.
func (a *Agent) backoff(failures int) time.Duration {
	d := a.cfg.Interval
	for range failures - 1 {
		if d >= nodeproto.MaxBackoff {
			break
		}
		d *= 2
	}
	d = min(d, nodeproto.MaxBackoff)
	return d - time.Duration(a.cfg.Jitter()*float64(d)/2)
}

// question is the next poll, the context to ask it under, and what is served as it is asked.
func (a *Agent) question(ctx context.Context) (nodeproto.Poll, context.Context, *installed) {
	a.work.Lock()
	defer a.work.Unlock()
	ask := nodeproto.Poll{TrustedKeys: a.cfg.Keys.IDs(), Rejected: a.rejected, Held: a.heldPayload(), Trial: a.trialID()}
	if a.served != nil {
		act := a.served.Activation()
		ask.Have, ask.Generation, ask.Epoch = act.Version, act.Generation, act.Epoch
		if !a.whole {
			ask.Dictionary = a.served.dictionary
		}
	}
	ask.Nonce = a.fresh.nonce(a)
	select {
	case <-a.wake: // asking is what it is for
	default:
	}
	// Nothing may wait while there is something to report.
	if a.pending == nil && a.cfg.Wait > 0 {
		ask.Wait = a.cfg.Wait
		ctx, a.interrupt = context.WithCancelCause(ctx)
	}
	a.askPurges(&ask)
	return ask, ctx, a.served
}

// answered ends the poll under asked and reports whether it was given up.
func (a *Agent) answered(asked context.Context) bool {
	nudged := errors.Is(context.Cause(asked), errNudged)
	if a.interrupt != nil {
		a.interrupt(nil)
		a.interrupt = nil
	}
	return nudged
}

func (a *Agent) poll(ctx context.Context) outcome {
	ask, asked, served := a.question(ctx)
	answer, err := a.cfg.Source.Poll(asked, ask)
	a.work.Lock()
	defer a.work.Unlock()
	nudged := a.answered(asked)
	if ctx.Err() != nil {
		return outcomeFailed
	}
	if err != nil && nudged {
		return outcomeNudged
	}
	ahead := errors.Is(err, nodeproto.ErrAhead)
	if a.served != served && (err == nil || ahead) {
		// A rollout moved the node on meanwhile: this is of what was served when the question was sent.
		return outcomeNudged
	}
	a.update(func(s *Status) { s.Ahead = ahead })
	if ahead {
		a.log.Error("the control plane is behind this node; serving goes on", "error", err)
		a.reportAgain() // with the proof of what the poll only claims
		return outcomeFailed
	}
	if err != nil {
		a.log.Warn("poll failed; serving goes on", "error", err)
		var r *seal.Refusal
		if errors.As(err, &r) {
			a.report(refusal(err, 0))
			return outcomeRejected
		}
		return outcomeFailed
	}
	a.update(func(s *Status) { s.LastPoll = a.cfg.Now() })
	a.purges.end = answer.Purges
	a.fresh.hear(a, ask.Nonce, answer.Freshness, answer.Artefact != nil)
	if answer.Skipped {
		return outcomeSkipped
	}
	if answer.Artefact == nil {
		return outcomeCurrent
	}
	if answer.Coding != nil {
		if ask.Dictionary == (seal.DictionaryID{}) {
			a.log.Warn("poll failed; serving goes on", "error", "the answer is coded, which was not asked for")
			return outcomeFailed
		}
		if err := a.decode(&answer, ask.Dictionary); err != nil {
			a.log.Warn("a difference from what is served could not be used; asking for the whole payload", "error", err)
			a.whole = true
			a.update(func(s *Status) { s.CodingFailures++ })
			return outcomeNudged
		}
	}
	return a.take(ctx, offer{art: answer.Artefact, held: answer.Held})
}

// take installs what every node is offered, or says why not.
func (a *Agent) take(ctx context.Context, o offer) outcome {
	err := a.install(ctx, o)
	switch {
	case err == nil:
		a.rejected = ""
		a.report(nil)
		return outcomeInstalled
	case errors.Is(err, errNothingToDo):
		return outcomeCurrent
	case ctx.Err() != nil:
		return outcomeFailed
	}
	why := refusal(err, o.art.Version)
	a.log.Error("configuration refused; serving goes on", "code", why.Code, "error", why.Message, "version", why.Version)
	a.report(why)
	var disk *diskError
	if errors.As(err, &disk) {
		return outcomeFailed
	}
	a.reject(o, err)
	return outcomeRejected
}

// report makes an acknowledgement pending; the newest replaces one that was not sent.
func (a *Agent) report(why *nodeproto.AckError) {
	ack := &nodeproto.Ack{Boot: a.boot, TrustedKeys: a.cfg.Keys.IDs(), Error: why}
	if a.served != nil {
		act := a.served.Activation()
		ack.Version, ack.Generation, ack.Epoch, ack.ContentHash = act.Version, act.Generation, act.Epoch, act.ContentHash
		ack.Activation = a.served.proof
	}
	a.pending = ack
	if why != nil {
		a.update(func(s *Status) { s.LastError = why })
	}
}

// Report has the agent acknowledge again soon: what it says beside what it serves has changed.
func (a *Agent) Report() {
	a.work.Lock()
	defer a.work.Unlock()
	a.reportAgain()
	a.nudge()
}

// reportAgain makes the state as it is pending, the last error included, unless something is pending already.
func (a *Agent) reportAgain() {
	if a.pending == nil {
		a.report(a.Status().LastError)
	}
}

func (a *Agent) sendAck(ctx context.Context) {
	a.work.Lock()
	defer a.work.Unlock()
	pending := a.pending
	if pending == nil {
		return
	}
	ack := *pending
	a.acks++
	ack.Sequence = a.acks
	ack.Freshness = a.fresh.word(a.cfg.Now())
	ack.Purged = a.purged()
	a.work.Unlock()
	if a.cfg.Pools != nil {
		ack.Pools = a.cfg.Pools()
	}
	err := a.cfg.Source.Ack(ctx, ack)
	a.work.Lock()
	if err != nil {
		a.log.Warn("acknowledgement not delivered; it is sent again", "error", err)
		return
	}
	if a.pending == pending {
		a.pending = nil
	}
	a.toldStale = ack.Freshness == "stale"
}
