package node

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// outcome is how one poll ended.
type outcome int

const (
	outcomeCurrent   outcome = iota // nothing newer
	outcomeInstalled                // serving something else now
	outcomeSkipped                  // the offer is one that was refused before
	outcomeRejected                 // refused
	outcomeFailed                   // no answer, or a disk that cannot be written
)

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
		}
		stale := a.fresh.stale(a.cfg.Now())
		a.update(func(s *Status) { s.Failures, s.Stale = failures, stale })
		if stale != a.toldStale {
			a.reportAgain()
		}
		a.sendAck(ctx) // now, not after the pause
		if pause == 0 {
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
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

func (a *Agent) poll(ctx context.Context) outcome {
	ask := nodeproto.Poll{TrustedKeys: a.cfg.Keys.IDs(), Rejected: a.rejected}
	if a.served != nil {
		act := a.served.Activation()
		ask.Have, ask.Generation, ask.Epoch = act.Version, act.Generation, act.Epoch
	}
	ask.Nonce = a.fresh.nonce(a)
	// Nothing may wait while there is something to report.
	if a.pending == nil {
		ask.Wait = a.cfg.Wait
	}
	answer, err := a.cfg.Source.Poll(ctx, ask)
	if ctx.Err() != nil {
		return outcomeFailed
	}
	ahead := errors.Is(err, nodeproto.ErrAhead)
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
	a.fresh.hear(a, ask.Nonce, answer.Freshness, answer.Artefact != nil)
	if answer.Skipped {
		return outcomeSkipped
	}
	if answer.Artefact == nil {
		return outcomeCurrent
	}
	err = a.install(ctx, answer.Artefact)
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
	why := refusal(err, answer.Artefact.Version)
	a.log.Error("configuration refused; serving goes on", "code", why.Code, "error", why.Message, "version", why.Version)
	a.report(why)
	var disk *diskError
	if errors.As(err, &disk) {
		return outcomeFailed
	}
	a.reject(answer.Artefact, why.Code)
	return outcomeRejected
}

// reject remembers an offer so that its payload is not fetched again, unless it may be what is live: nothing was
// wrong with it but that its proof was missing, or a genuine activation came with other bytes than it promises, which
// were damaged on the way.
func (a *Agent) reject(art *seal.Artefact, code string) {
	if code == codeFreshnessMissing {
		return
	}
	if act, _, err := seal.VerifyActivation(art.Activation, a.cfg.Keys); err == nil {
		if sum := blake3.Sum256(art.Payload); act.PayloadBLAKE3 != hex.EncodeToString(sum[:]) {
			return
		}
	}
	a.rejected = nodeproto.Fingerprint(art)
}

// report makes an acknowledgement pending; the newest replaces one that was not sent.
func (a *Agent) report(why *nodeproto.AckError) {
	ack := &nodeproto.Ack{Boot: a.boot, TrustedKeys: a.cfg.Keys.IDs(), Error: why}
	if a.served != nil {
		act := a.served.Activation()
		ack.Version, ack.Generation, ack.Epoch, ack.ContentHash = act.Version, act.Generation, act.Epoch, act.ContentHash
		ack.Activation = a.proof
	}
	a.pending = ack
	if why != nil {
		a.update(func(s *Status) { s.LastError = why })
	}
}

// reportAgain makes the state as it is pending, the last error included, unless something is pending already.
func (a *Agent) reportAgain() {
	if a.pending == nil {
		a.report(a.Status().LastError)
	}
}

func (a *Agent) sendAck(ctx context.Context) {
	if a.pending == nil {
		return
	}
	ack := *a.pending
	ack.Freshness = a.fresh.word(a.cfg.Now())
	if err := a.cfg.Source.Ack(ctx, ack); err != nil {
		a.log.Warn("acknowledgement not delivered; it is sent again", "error", err)
		return
	}
	a.pending = nil
	a.toldStale = ack.Freshness == "stale"
}

func servedSnapshot(v *seal.Verified) *snapshot.Snapshot {
	if v == nil {
		return nil
	}
	return v.Snapshot()
}
