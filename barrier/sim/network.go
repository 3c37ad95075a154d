package sim

import (
	"errors"
	"slices"
	"time"
)

// What a caller sees of a call that the network or the store's absence ate. Neither says whether it took effect.
var (
	errTimeout = errors.New("no answer in time")
	errRefused = errors.New("connection refused")
)

// hold makes the next call of a kind arrive late: the caller gives up on it long before.
type hold struct {
	what string
	late time.Duration
}

// call sends a request to the store: apply is what it does there, done what the caller does with the answer.
func call[T any](p *process, what string, apply func() (T, error), done func(T, error)) {
	w, life, open := p.w, p.life, true
	var none T
	answer := func(v T, err error) {
		if open {
			open = false
			done(v, err)
		}
	}
	fail := func(err error) {
		p.missed++
		w.trace.add(w.now, p.name, "← %s: %v", what, err)
		answer(none, err)
	}
	w.event(what + "-sent")
	p.after(w.cfg.timeout, func() {
		if open {
			fail(errTimeout)
		}
	})
	if p.cutOut {
		w.trace.add(w.now, p.name, "→ %s, cut off", what)
		return
	}
	if w.store.down && w.chance(0.5) {
		p.after(time.Millisecond, func() {
			if open {
				fail(errRefused)
			}
		})
		return
	}
	chaotic := !w.healed
	arrive := func() {
		if p.human && chaotic && w.healed {
			return
		}
		if w.store.down {
			w.trace.add(w.now, "store", "away: %s of %s is lost", what, p.name)
			return
		}
		v, err := apply()
		applied := w.now
		if w.trace.on {
			w.trace.add(w.now, "store", "%s of %s: %s", what, p.name, outcome(err))
		}
		back, ok := w.transit(p, "answer to "+what, 0)
		if !ok {
			return
		}
		w.at(w.now+back, func() {
			p.deliver(life, func() {
				if p.cutIn || !open {
					return
				}
				p.missed = 0
				p.seen = max(p.seen, applied)
				answer(v, err)
			})
		})
	}
	var held time.Duration
	for i, h := range w.holds {
		if h.what == what {
			held = h.late
			w.holds = slices.Delete(w.holds, i, i+1)
			break
		}
	}
	if there, ok := w.transit(p, what, held); ok {
		w.at(w.now+there, arrive)
	}
	if !w.healed && w.chance(w.cfg.twice) {
		if there, ok := w.transit(p, what+" again", 0); ok {
			w.at(w.now+there, arrive)
		}
	}
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// transit is how long a message takes; false when it is lost.
func (w *world) transit(p *process, what string, held time.Duration) (time.Duration, bool) {
	d := time.Millisecond + time.Duration(w.rng.Int64N(int64(10*time.Millisecond)))
	if w.healed {
		return d, true
	}
	if held > 0 {
		w.trace.add(w.now, p.name, "→ %s, held up for %v", what, held)
		return held, true
	}
	if w.chance(w.cfg.loss) {
		w.trace.add(w.now, p.name, "%s is lost", what)
		return 0, false
	}
	if w.chance(w.cfg.slow) {
		// Some are late, few very late.
		most := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}[w.rng.IntN(3)]
		d = w.between(100*time.Millisecond, most)
		w.trace.add(w.now, p.name, "%s takes %v", what, d)
	}
	return d, true
}
