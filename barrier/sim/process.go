package sim

import "time"

// process is one process: its life, its clocks, and whether it is running just now.
type process struct {
	w    *world
	name string

	life  int // grows when it dies: what it had begun is for nobody then
	alive bool

	// A paused process does nothing; what would have happened happens when it goes on, in order.
	paused   bool
	deferred []func()

	// The monotonic clock runs at rate, and not while the process is suspended. The wall clock is the store's, off by skew;
	// nothing but an ablation reads it.
	rate   float64
	origin time.Duration // true time at which the monotonic clock showed 0
	frozen time.Duration
	skew   time.Duration

	// A partition: requests out, or answers in, do not pass.
	cutOut, cutIn bool

	human bool // a proposer or an operator: what it has sent and has not arrived is lost when the world is healed

	sleeping bool
	sleep    int // which sleep it is
	wake     func()

	// For properties: the latest instant of which it has seen the store's answer, and how many calls to the store have failed
	// since.
	seen   time.Duration
	missed int
}

func newProcess(w *world, name string) *process {
	p := &process{
		w: w, name: name, alive: true, origin: w.now,
		rate: 1 + 0.01*(w.rng.Float64()-0.5), skew: w.between(-50*time.Millisecond, 50*time.Millisecond),
	}
	w.processes = append(w.processes, p)
	return p
}

// mono is what the monotonic clock shows.
func (p *process) mono() time.Duration {
	return time.Duration(float64(p.w.now-p.origin-p.frozen) * p.rate)
}

// after does do when d has passed on the process's monotonic clock, if it still lives.
func (p *process) after(d time.Duration, do func()) {
	life, due := p.life, p.mono()+d
	var fire func()
	fire = func() {
		if left := due - p.mono(); left > time.Microsecond {
			p.w.at(p.w.now+left, func() { p.deliver(life, fire) })
			return
		}
		do()
	}
	p.w.at(p.w.now+time.Duration(float64(d)/p.rate), func() { p.deliver(life, fire) })
}

// deliver does do now, or when the process goes on; never in another life.
func (p *process) deliver(life int, do func()) {
	switch {
	case p.life != life:
	case p.paused:
		p.deferred = append(p.deferred, func() { p.deliver(life, do) })
	default:
		do()
	}
}

// think takes the moment between knowing and doing, in which a process can be paused or die.
func (p *process) think(do func()) {
	d := time.Duration(p.w.rng.Int64N(int64(2 * time.Millisecond)))
	if !p.w.healed && p.w.chance(p.w.cfg.longThought) {
		d = p.w.between(100*time.Millisecond, 20*time.Second)
	}
	p.after(d, do)
}

// rest sleeps for d, or until a hint.
func (p *process) rest(d time.Duration) {
	p.sleeping = true
	p.sleep++
	sleep := p.sleep
	p.after(max(d, time.Millisecond), func() {
		if p.sleeping && p.sleep == sleep {
			p.sleeping = false
			p.wake()
		}
	})
}

// hint wakes a sleeper.
func (p *process) hint() {
	p.deliver(p.life, func() {
		if p.sleeping {
			p.sleeping = false
			p.wake()
		}
	})
}

func (p *process) die() {
	p.life++
	p.alive, p.paused, p.sleeping, p.deferred = false, false, false, nil
	p.cutOut, p.cutIn = false, false
}

// pause stops it for d; a suspended one's monotonic clock stops too.
func (p *process) pause(d time.Duration, suspend bool) {
	if p.paused {
		return
	}
	p.paused = true
	life := p.life
	p.w.at(p.w.now+d, func() {
		if p.life == life && p.paused {
			if suspend {
				p.frozen += d
			}
			p.resume()
		}
	})
}

func (p *process) resume() {
	p.paused = false
	deferred := p.deferred
	p.deferred = nil
	for _, do := range deferred {
		do()
	}
}
