package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// maxStepBack bounds how far the store's clock steps back in a schedule without ClockBack: grace covers it; see Proposal.Grace.
const maxStepBack = 800 * time.Millisecond

// kind is a kind of fault.
type kind string

const (
	crashMember      kind = "crash member"
	crashAll         kind = "crash every member"
	loseDisk         kind = "lose the disk of member"
	secondProcess    kind = "second process beside member"
	pauseMember      kind = "pause member"
	suspendMember    kind = "suspend member"
	cutMember        kind = "cut off member"
	crashCoordinator kind = "crash coordinator"
	pauseCoordinator kind = "pause coordinator"
	cutCoordinator   kind = "cut off coordinator"
	pauseProposer    kind = "pause proposer"
	storeAway        kind = "store away"
	storeForward     kind = "store's clock forward"
	storeBack        kind = "store's clock back"
	holdCall         kind = "hold up"
	operate          kind = "operator ends the rollout"
	changeRoster     kind = "operator changes the roster"
	backUp           kind = "back the store up"
	restore          kind = "restore the store"
)

// weights is how often each kind is drawn. Backups and restores have worlds of their own.
var weights = []struct {
	kind kind
	n    int
}{
	{crashMember, 6},
	{crashAll, 1},
	{loseDisk, 1},
	{secondProcess, 3},
	{pauseMember, 5},
	{suspendMember, 2},
	{cutMember, 7},
	{crashCoordinator, 4},
	{pauseCoordinator, 4},
	{cutCoordinator, 2},
	{pauseProposer, 1},
	{storeAway, 4},
	{storeForward, 1},
	{storeBack, 1},
	{holdCall, 6},
	{operate, 2},
	{changeRoster, 3},
}

// moments are events of the protocol at which a fault is likelier to hurt than at any other time.
var moments = []string{
	"propose", "staging", "committed", "confirmed", "reverted", "aborted", "ack", "evidence",
	"verdict", "verdict", "commit-sent", "confirm-sent", "revert-sent", "claim-sent", "converge-sent", "join-sent", "save", "swap",
}

// held are the calls that can be held up.
var heldCalls = []string{"commit", "confirm", "confirm+revert", "confirm+revert", "abort", "revert", "claim", "join", "ack", "converge", "withdraw", "propose"}

// fault is one thing that goes wrong: at a time, or so long after the nth time that something has happened.
type fault struct {
	w       *world
	kind    kind
	at      time.Duration
	on      string
	nth     int
	target  int
	lasts   time.Duration
	what    string // the calls that are held up
	calls   int    // and how many of each
	way     int    // of a partition
	dropped bool
}

func (f *fault) String() string {
	when := fmt.Sprintf("at %v", f.at)
	if f.on != "" {
		when = fmt.Sprintf("%v after %s no. %d", f.at, f.on, f.nth)
	}
	s := fmt.Sprintf("%s: %s", when, f.kind)
	switch f.kind {
	case holdCall:
		s += fmt.Sprintf(" the next %d of %s, for %v", f.calls, f.what, f.lasts)
	case cutMember, cutCoordinator:
		s += fmt.Sprintf(" %d, %s, for %v", f.target+1, []string{"both ways", "requests", "answers"}[f.way], f.lasts)
	default:
		s += fmt.Sprintf(" %d, for %v", f.target+1, f.lasts)
	}
	return s
}

// planFaults draws the plan from a source of its own, so that dropping a fault leaves the others what they are.
func planFaults(w *world, rng *rand.Rand) []*fault {
	total := 0
	for _, k := range weights {
		total += k.n
	}
	draw := func() kind {
		n := rng.IntN(total)
		for _, k := range weights {
			if n -= k.n; n < 0 {
				return k.kind
			}
		}
		panic("unreachable")
	}
	var plan []*fault
	for range 1 + rng.IntN(10) {
		f := &fault{w: w, kind: draw(), target: rng.IntN(12), way: rng.IntN(3), what: heldCalls[rng.IntN(len(heldCalls))]}
		f.calls = []int{1, 1, 8, 20}[rng.IntN(4)]
		most := []time.Duration{time.Second, 8 * time.Second, 30 * time.Second}[rng.IntN(3)]
		f.lasts = between(rng, 50*time.Millisecond, most)
		if rng.IntN(3) > 0 {
			f.on, f.nth = moments[rng.IntN(len(moments))], 1+rng.IntN(6)
			f.at = between(rng, 0, []time.Duration{10 * time.Millisecond, 500 * time.Millisecond, 4 * time.Second}[rng.IntN(3)])
		} else {
			f.at = between(rng, 0, w.cfg.chaos)
		}
		if f.kind == storeBack && rng.IntN(2) == 0 {
			f.on, f.nth, f.at = "deadman-sent", 1, 0
		}
		if f.kind == holdCall && f.what == "confirm+revert" {
			// Until after D + grace: what was sent in time arrives when members have had to help themselves.
			f.on, f.calls, f.lasts = "committed", 20, between(rng, 5*time.Second, 30*time.Second)
		}
		plan = append(plan, f)
	}
	if rng.IntN(25) == 0 {
		at := between(rng, 0, w.cfg.chaos)
		plan = append(plan,
			&fault{w: w, kind: backUp, at: at},
			&fault{w: w, kind: restore, at: between(rng, at, w.cfg.chaos)})
	}
	return plan
}

// strike makes it happen.
func (f *fault) strike() {
	w := f.w
	if w.healed || w.check.violation != nil {
		return
	}
	w.trace.add(w.now, "fault", "%v", f)
	m := w.machines[f.target%len(w.machines)]
	c := w.coordinators[f.target%len(w.coordinators)]
	switch f.kind {
	case crashMember:
		f.crash(m, false)
	case crashAll:
		for _, m := range w.machines {
			f.crash(m, false)
		}
	case loseDisk:
		f.crash(m, true)
	case secondProcess:
		w.cov.add(SecondProcess)
		m.start(newDisk())
	case pauseMember:
		m.proc.pause(f.lasts, false)
	case suspendMember:
		m.proc.pause(f.lasts, true)
	case cutMember:
		f.cut(m.proc.process)
	case crashCoordinator:
		if c.alive {
			c.die()
			w.at(w.now+f.lasts, c.revive)
		}
	case pauseCoordinator:
		c.pause(f.lasts, f.way == 0)
	case cutCoordinator:
		f.cut(c.process)
	case pauseProposer:
		w.proposers[f.target%len(w.proposers)].pause(f.lasts, false)
	case storeAway:
		w.store.down = true
		w.at(w.now+f.lasts, func() { w.store.down = false })
	case storeForward:
		w.store.step += f.lasts * 10
	case storeBack:
		w.store.back(f.lasts)
	case holdCall:
		for what := range strings.SplitSeq(f.what, "+") {
			w.holds = append(w.holds, hold{what, f.lasts, f.calls})
		}
	case operate:
		w.operator.decide()
	case changeRoster:
		w.operator.changeRoster()
	case backUp:
		w.store.save()
	case restore:
		if w.store.restore() {
			w.cov.add(Restored)
		}
	}
}

// back steps the clock back, never by more than maxStepBack over the whole schedule.
func (s *store) back(d time.Duration) {
	most := maxStepBack
	if s.w.opt.ClockBack {
		most, d = time.Minute, d+5*time.Second
	}
	d = min(d, most-s.stepped)
	s.stepped += d
	s.step -= d
}

func (f *fault) crash(m *machine, disk bool) {
	p := m.proc
	if p.alive {
		p.crash()
	}
	d := p.disk
	if disk {
		f.w.cov.add(DiskLost)
		d = newDisk()
	}
	m.disk = d
	f.w.at(f.w.now+f.lasts, m.revive)
}

// revive starts a process on the member's disk, if none speaks for it.
func (m *machine) revive() {
	if !m.current().alive {
		m.start(m.disk)
	}
}

func (c *coordinator) revive() {
	if !c.alive {
		c.start()
	}
}

func (f *fault) cut(p *process) {
	out, in := f.way != 2, f.way != 1
	p.cutOut, p.cutIn = p.cutOut || out, p.cutIn || in
	life := p.life
	f.w.at(f.w.now+f.lasts, func() {
		if p.life == life {
			p.cutOut, p.cutIn = p.cutOut && !out, p.cutIn && !in
		}
	})
}
