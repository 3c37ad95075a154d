package node

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/seal"
)

const (
	// freshInterval between proofs that the control plane's answers are not recordings.
	freshInterval = time.Hour
	// staleAfter is how long without a proof raises the alarm.
	staleAfter = 3 * freshInterval
	// codeFreshnessMissing refuses what nothing proves to be live.
	codeFreshnessMissing = "freshness_missing"
)

// freshness keeps what a node knows of how current its control plane's answers are. The agent's lock
// guards it.
type freshness struct {
	since time.Time // of the last proof, or of the agent's start
	heard bool      // a proof since the start
	// named is what the statement of the poll under way says is live, nil when it brought none.
	named *seal.FreshnessStatement
}

// nonce returns a new nonce when a proof is due, else "".
func (f *freshness) nonce(a *Agent) string {
	f.named = nil
	if f.heard && a.cfg.Now().Sub(f.since) < freshInterval && !a.unproven() {
		return ""
	}
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		a.log.Warn("no nonce", "error", err)
		return ""
	}
	return hex.EncodeToString(b[:])
}

// hear takes the statement of an answer. offered tells whether the answer brought an artefact: without one
// the statement must name what is served, or what the node goes back to from a trial.
func (f *freshness) hear(a *Agent, nonce, header string, offered bool) {
	if nonce == "" || header == "" {
		return
	}
	st, _, err := seal.VerifyFreshness(header, a.cfg.Keys, nonce)
	if err != nil {
		a.log.Warn("freshness statement refused", "error", err)
		return
	}
	if a.home != nil {
		act := a.home.Activation()
		newer := st.Epoch > act.Epoch || st.Epoch == act.Epoch && st.Generation > act.Generation
		// On trial the control plane may name what is live for everybody else, or the trial.
		same := a.home.named(st) || a.served.named(st)
		if !same && (!newer || !offered) {
			a.log.Warn("freshness statement names another activation than the answer",
				"epoch", st.Epoch, "generation", st.Generation)
			return
		}
		if same && a.state.Rebuilt {
			next := a.state
			next.Rebuilt = false
			if err := a.save(next); err != nil {
				a.log.Error("proof of what is served not kept", "error", err)
			}
		}
	}
	f.named, f.since, f.heard = &st, a.cfg.Now(), true
}

// named tells whether st is of i.
func (i *installed) named(st seal.FreshnessStatement) bool {
	act := i.Activation()
	return st.Epoch == act.Epoch && st.Generation == act.Generation && st.ContentHash == act.ContentHash
}

// allows refuses an activation that nothing proves to be live: on a node whose trusted keys have no mark, or one
// that was rebuilt, only the statement of the same answer does.
func (f *freshness) allows(a *Agent, act seal.Activation) error {
	if !a.unproven() {
		return nil
	}
	if f.named == nil {
		return &seal.Refusal{Code: codeFreshnessMissing, Message: "this node has no state that would tell an old " +
			"configuration from the live one, and the answer brought no valid freshness statement"}
	}
	if n := f.named; n.Epoch != act.Epoch || n.Generation != act.Generation || n.ContentHash != act.ContentHash {
		return &seal.Refusal{Code: codeFreshnessMissing, Message: fmt.Sprintf(
			"the freshness statement names generation %d of epoch %d, the offered activation is generation %d of epoch %d",
			n.Generation, n.Epoch, act.Generation, act.Epoch)}
	}
	return nil
}

func (f *freshness) stale(now time.Time) bool { return now.Sub(f.since) > staleAfter }

// word is how an acknowledgement puts it.
func (f *freshness) word(now time.Time) string {
	switch {
	case f.stale(now):
		return "stale"
	case f.heard:
		return "fresh"
	default:
		return ""
	}
}

// unproven reports whether no key that is trusted now is known to have signed something that passed here, or
// perhaps not the last that did.
func (a *Agent) unproven() bool {
	_, ok := a.state.Marks.Highest(a.cfg.Keys)
	return !ok || a.state.Rebuilt
}
