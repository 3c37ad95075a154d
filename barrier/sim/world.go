package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Options choose a schedule.
type Options struct {
	Seed     uint64
	Ablation Ablation   // 0: the protocol as it is
	Ignore   []Property // broken or not, the schedule goes on
	Without  []int      // faults of the schedule's plan that do not happen, by number
	// ClockBack lets the store's clock step back by many seconds, more than a grace covers.
	ClockBack bool
	// Classes are a host's, which the artefacts then have; nil: every change is of a class that may roll.
	Classes Classes
	Trace   bool // whether Result.Trace is wanted
}

// Classes stand for the changes between a host's artefacts, of which the simulator knows the names alone, "sim:1" and up; "" is none.
type Classes interface {
	// Refuses tells whether a member that runs one artefact refuses to vote for another.
	Refuses(running, candidate barrier.Digest) bool

	// Committed is told when one artefact takes another's place for good, in a store that was never restored.
	Committed(before, after barrier.Digest)
}

// Result is what came of a schedule.
type Result struct {
	Violation *Violation // nil: every promise was kept
	Coverage  Coverage
	Faults    []string // the plan, Without's too
	Trace     []string // its beginning and its end
	Took      time.Duration
}

// Run runs one schedule.
func Run(o Options) Result {
	w := newWorld(o)
	w.start()
	w.until(w.cfg.chaos, func() bool { return false })
	w.heal()
	r := Result{Violation: w.check.violation, Coverage: w.cov, Took: w.now}
	for _, f := range w.plan {
		r.Faults = append(r.Faults, f.String())
	}
	r.Trace = w.trace.lines()
	return r
}

// world is one schedule under way. Nothing in it is shared with another.
type world struct {
	opt Options
	cfg config
	rng *rand.Rand // of what happens by chance; the plan has its own

	now   time.Duration // true time since the start
	queue queue
	steps int

	store        *store
	machines     []*machine
	coordinators []*coordinator
	proposers    []*proposer
	operator     *operator
	processes    []*process
	boots        map[barrier.BootID]*member
	artefacts    map[barrier.Digest]*artefact

	plan   []*fault
	seen   map[string]int // how often each event has happened
	holds  []hold         // calls that the network is about to hold up
	healed bool
	late   int // proposals of heal that a late change of the roster has aborted

	check *checker
	cov   Coverage
	trace *trace
}

// config is what kind of world it is.
type config struct {
	machines, roster, coordinators, proposers int

	poll, lease, timeout time.Duration
	chaos                time.Duration // how long faults go on

	hint                          float64 // how often a change is told at once
	loss, slow, twice             float64 // of each message
	prepareFails, swapFails       float64
	saveFails, flaps, longThought float64
	windowed                      float64 // how many proposals have a confirm window
	baseline                      bool
}

func newWorld(o Options) *world {
	w := &world{
		opt: o, rng: rand.New(rand.NewPCG(o.Seed, 1)),
		boots: map[barrier.BootID]*member{}, artefacts: map[barrier.Digest]*artefact{}, seen: map[string]int{},
		trace: newTrace(o.Trace),
	}
	w.cfg = w.configure()
	w.check = newChecker(w)
	w.store = newStore(w)
	w.plan = planFaults(w, rand.New(rand.NewPCG(o.Seed, 2)))
	for _, i := range o.Without {
		w.plan[i].dropped = true
	}
	return w
}

func (w *world) configure() config {
	// A quarter of the worlds has a fault-free network: what faults of processes alone can do is seen better there.
	quiet := w.chance(0.25)
	often := func(most float64) float64 {
		if quiet {
			return 0
		}
		return most * w.rng.Float64()
	}
	c := config{
		machines: 2 + w.rng.IntN(3), coordinators: 2 + w.rng.IntN(2), proposers: 1 + w.rng.IntN(2),
		poll: w.between(500*time.Millisecond, time.Second), lease: w.between(2*time.Second, 5*time.Second),
		timeout: w.between(400*time.Millisecond, time.Second), chaos: w.between(25*time.Second, 60*time.Second),
		hint: []float64{0, 0.5, 1}[w.rng.IntN(3)],
		loss: often(0.06), slow: often(0.04), twice: often(0.04),
		prepareFails: often(0.03), swapFails: often(0.06), saveFails: often(0.04), flaps: often(0.03), longThought: often(0.01),
		windowed: 0.3 + 0.7*w.rng.Float64(),
		baseline: !w.chance(0.1),
	}
	c.roster = 1 + w.rng.IntN(c.machines)
	if c.roster < 2 && w.chance(0.8) {
		c.roster = 2
	}
	return c
}

// start begins with a roster and, in most worlds, a baseline.
func (w *world) start() {
	var roster []barrier.MemberID
	for i := range w.cfg.machines {
		m := &machine{w: w, id: barrier.MemberID(fmt.Sprintf("m%d", i+1)), index: i}
		w.machines = append(w.machines, m)
		if i < w.cfg.roster {
			roster = append(roster, m.id)
		}
	}
	w.store.begin(roster)
	for _, m := range w.machines {
		m.start(newDisk())
	}
	for i := range w.cfg.coordinators {
		w.coordinators = append(w.coordinators, newCoordinator(w, i))
	}
	for i := range w.cfg.proposers {
		w.proposers = append(w.proposers, newProposer(w, i))
	}
	w.operator = newOperator(w)
	for _, f := range w.plan {
		if f.on == "" && !f.dropped {
			w.at(f.at, f.strike)
		}
	}
}

// until runs events until end, or until done says so, or a promise is broken; true when done said so.
func (w *world) until(end time.Duration, done func() bool) bool {
	const most = 300_000
	for w.check.violation == nil {
		if done() {
			return true
		}
		e, ok := w.queue.pop(end)
		if !ok {
			w.now = end
			return false
		}
		w.now = e.at
		e.do()
		if w.steps++; w.steps > most {
			w.check.broken(Progress, "nothing comes to rest: more than %d events", most)
		}
	}
	return false
}

func (w *world) at(t time.Duration, do func()) { w.queue.push(max(t, w.now), do) }

func (w *world) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }

// between returns whole milliseconds.
func (w *world) between(low, high time.Duration) time.Duration { return between(w.rng, low, high) }

func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64((high-low)/time.Millisecond)+1))*time.Millisecond
}

// event tells the plan that something happened, so that faults can strike at the moments that matter.
func (w *world) event(name string) {
	w.seen[name]++
	if w.healed {
		return
	}
	for _, f := range w.plan {
		if f.on == name && f.nth == w.seen[name] && !f.dropped {
			w.at(w.now+f.at, f.strike)
		}
	}
}

// queue is a heap of events by time, then by when they were made.
type queue struct {
	heap []event
	made uint64
}

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

func (a event) before(b event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (q *queue) push(at time.Duration, do func()) {
	q.made++
	q.heap = append(q.heap, event{at, q.made, do})
	h := q.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// pop takes the first event, if it is not after end.
func (q *queue) pop(end time.Duration) (event, bool) {
	h := q.heap
	if len(h) == 0 || h[0].at > end {
		return event{}, false
	}
	first, last := h[0], len(h)-1
	h[0], h[last] = h[last], event{}
	h = h[:last]
	q.heap = h
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return first, true
		}
		if down+1 < last && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(h[i]) {
			return first, true
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
}
