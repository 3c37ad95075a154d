package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// What a caller sees of a call that the network or the store's absence ate. Neither says whether it took effect.
var (
	errTimeout = errors.New("no answer in time")
	errRefused = errors.New("connection refused")
)

// sentEvents are calls that a fault can strike at.
var sentEvents = map[string]string{
	"commit": "commit-sent", "confirm": "confirm-sent", "revert": "revert-sent", "claim": "claim-sent",
	"converge": "converge-sent", "join": "join-sent",
}

// hold makes the next calls of a kind arrive late: the callers give up on them long before.
type hold struct {
	what string
	late time.Duration
	left int // calls
}

// call sends a request to the store: apply is what it does there, done what the caller does with the answer.
func call[T any](p *process, what string, apply func() (T, error), done func(T, error)) {
	w, life, open := p.w, p.life, true
	due := p.mono() + w.cfg.timeout
	finish := func(v T, err error) {
		if !open {
			return
		}
		open = false
		if err != nil && barrier.Code(err) == "" {
			p.missed++
			w.trace.add(w.now, p.name, "← %s: %v", what, err)
		}
		done(v, err)
	}
	var none T
	// A timer is set only once it is clear that it will be needed.
	giveUp := func() {
		if open && p.life == life {
			p.after(due-p.mono(), func() { finish(none, errTimeout) })
		}
	}
	if name, ok := sentEvents[what]; ok {
		w.event(name)
	}
	if p.cutOut {
		w.trace.add(w.now, p.name, "→ %s, cut off", what)
		giveUp()
		return
	}
	if w.store.down && w.chance(0.5) {
		p.after(time.Millisecond, func() { finish(none, errRefused) })
		return
	}
	chaotic := !w.healed
	arrive := func() {
		switch {
		case p.human && chaotic && w.healed:
			return
		case w.store.down:
			w.trace.add(w.now, "store", "away: %s of %s is lost", what, p.name)
			giveUp()
			return
		}
		v, err := apply()
		applied := w.now
		if w.trace.on {
			w.trace.add(w.now, "store", "%s of %s: %s", what, p.name, outcome(err))
		}
		back, ok := w.transit(p, what, "answer to ", 0)
		if !ok || back > w.cfg.timeout/2 {
			giveUp()
		}
		if !ok {
			return
		}
		w.at(w.now+back, func() {
			p.deliver(life, func() {
				if p.cutIn {
					giveUp()
					return
				}
				if open {
					p.missed = 0
					p.seen = max(p.seen, applied)
					finish(v, err)
				}
			})
		})
	}
	there, ok := w.transit(p, what, "", w.heldUp(what))
	if !ok || there > w.cfg.timeout/2 {
		giveUp()
	}
	if ok {
		w.at(w.now+there, arrive)
	}
	if !w.healed && w.chance(w.cfg.twice) {
		if there, ok := w.transit(p, what, "again ", 0); ok {
			w.at(w.now+there, arrive)
		}
	}
}

// heldUp is for how long the network holds up this call.
func (w *world) heldUp(what string) time.Duration {
	for i, h := range w.holds {
		if h.what == what {
			if w.holds[i].left--; w.holds[i].left == 0 {
				w.holds = slices.Delete(w.holds, i, i+1)
			}
			return h.late
		}
	}
	return 0
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// transit is how long a message takes; false when it is lost.
func (w *world) transit(p *process, what, which string, held time.Duration) (time.Duration, bool) {
	d := time.Millisecond + time.Duration(w.rng.Int64N(int64(10*time.Millisecond)))
	if w.healed {
		return d, true
	}
	if held > 0 {
		w.trace.add(w.now, p.name, "→ %s, held up for %v", what, held)
		return held, true
	}
	if w.chance(w.cfg.loss) {
		w.trace.add(w.now, p.name, "%s%s is lost", which, what)
		return 0, false
	}
	if w.chance(w.cfg.slow) {
		// Some are late, few very late.
		most := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}[w.rng.IntN(3)]
		d = w.between(100*time.Millisecond, most)
		w.trace.add(w.now, p.name, "%s%s takes %v", which, what, d)
	}
	return d, true
}
