package sim

import (
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// machine is one member: its disk, and the processes that have run for it.
type machine struct {
	w     *world
	id    barrier.MemberID
	index int
	boots int
	disk  *disk
	proc  *member // the newest
	procs []*member
}

// living counts the member's processes.
func (m *machine) living() int {
	n := 0
	for _, p := range m.procs {
		if p.alive {
			n++
		}
	}
	return n
}

// current is the process that speaks for the member: an older one can have joined after the newest.
func (m *machine) current() *member {
	if p := m.w.boots[m.w.store.registrations[m.id].Boot]; p != nil && p.alive {
		return p
	}
	return m.proc
}

// start starts a process on d.
func (m *machine) start(d *disk) {
	m.boots++
	m.disk = d
	p := &member{machine: m, disk: d, boot: barrier.BootID(fmt.Sprintf("%s-b%d", m.id, m.boots))}
	p.process = newProcess(m.w, string(p.boot))
	p.host = host{w: m.w, machine: m.index}
	m.proc = p
	m.procs = append(m.procs, p)
	m.w.boots[p.boot] = p
	p.begin()
}

// member is one process of a member. It performs what barrier.Step says, as barrier.Member does.
type member struct {
	*process
	machine *machine
	disk    *disk
	boot    barrier.BootID
	host    host

	sit       barrier.Situation
	committed barrier.Pointer // the truth, as of the last answer
	newest    uint64          // the newest generation that it has seen
	told      bool            // how the trial that it runs ended
	unsure    bool            // a save failed, and may be there all the same
	beside    *aside          // the look under way, or not yet observed, while it goes back from a trial
	missed    int             // process.missed as of its last judgement
	acts      int
}

// told tells whether v says how t ended.
func told(v barrier.View, t *barrier.Trial) bool {
	if t == nil {
		return false
	}
	ro, last := v.Rollout, v.Previous
	return v.Committed == t.Pointer || ro != nil && ro.Ref == t.Ref && !ro.OnTrial() || last != nil && last.Ref == t.Ref
}

func (p *member) begin() {
	w := p.w
	memory := p.disk.memory
	w.check.loaded(p, memory)
	p.sit = barrier.Situation{
		Self: p.machine.id, Boot: p.boot, Memory: memory.Restarted(),
		Timing: barrier.Timing{Poll: w.cfg.poll, MaxAttempts: 3, MaxBackoff: 4 * time.Second},
	}
	p.wake = p.round
	p.rest(w.between(0, 200*time.Millisecond))
}

func (p *member) round() {
	p.acts = 0
	p.look()
}

func (p *member) look() {
	if p.acts++; p.acts > maxActs {
		p.rest(p.w.cfg.poll)
		return
	}
	if p.w.opt.Ablation == DeadmanAlone && p.overdue() {
		p.think(func() { p.do(p.takeBack()) })
		return
	}
	if t := p.sit.Memory.Trial; p.w.opt.Ablation == DeadmanAlone && t != nil && t.TakenBack == barrier.ByGuess && p.sit.Local.Running == t.Pointer {
		p.sit.Clock, p.sit.View = p.mono(), nil
		p.judge()
		return
	}
	id := p.machine.id
	ask := func() (*sight, error) { return p.w.store.look(id) }
	if p.sit.Leaving() {
		p.glance(ask)
		return
	}
	call(p.process, "look", ask, func(v *sight, err error) {
		p.beside = nil // it is older
		p.observe(v, err)
		p.judge()
	})
}

// maxGlance is the longest that a member on its way back by guess waits for an answer before each act, as barrier.Member does.
const maxGlance = 100 * time.Millisecond

// aside is a look that goes on beside the way back from a trial.
type aside struct {
	v     *sight
	err   error
	ended bool
	heard func() // who waits for it
}

// glance waits for the look beside, a new one if none is under way, for maxGlance.
func (p *member) glance(ask func() (*sight, error)) {
	b := p.beside
	if b == nil {
		b = &aside{}
		p.beside = b
		call(p.process, "look beside", ask, func(v *sight, err error) {
			b.v, b.err, b.ended = v, err, true
			if b.heard != nil {
				b.heard()
			}
		})
	}
	over := false
	heard := func() {
		if over {
			return
		}
		over, b.heard = true, nil
		if b.ended {
			p.beside = nil
			p.observe(b.v, b.err)
		} else {
			p.sit.Clock = p.mono()
		}
		p.judge()
	}
	if b.ended {
		heard()
		return
	}
	b.heard = heard
	p.after(maxGlance, heard)
}

// observe notes what a look got.
func (p *member) observe(v *sight, err error) {
	p.sit.Clock = p.mono()
	if err != nil {
		p.sit = p.sit.Missed()
		return
	}
	p.sit = p.sit.Observe(v.view, p.sit.Clock)
	p.committed = v.committed
	p.away(v.view)
	p.told = p.told || told(v.view, p.sit.Memory.Trial)
	if t := p.sit.Memory.Trial; t != nil && t.TakenBack == "" && p.sit.Local.Running == t.Pointer {
		p.sit.Local.Health = p.host.converged()
	}
}

// away counts that rollouts were decided while the process saw nothing.
func (p *member) away(v barrier.View) {
	if p.newest > 0 && v.Generation > p.newest+1 {
		p.w.cov.add(AwayDuringDecision)
	}
	p.newest = v.Generation
}

func (p *member) judge() {
	p.missed = p.process.missed // what arrives from now on is observed before the next act
	a := barrier.Step(p.sit)
	if p.w.opt.Ablation == DeadmanReads && a.Act == barrier.ActRevert && p.onTrial() {
		a = p.takeBack()
	}
	switch a.Act {
	case barrier.ActWait:
		p.w.check.settled(p)
		p.rest(a.Until - p.mono())
	case barrier.ActStop:
		p.w.trace.add(p.w.now, p.name, "stops: %s", a.Reason)
		p.w.cov.add(Superseded)
		p.die()
		if p.machine.living() == 0 {
			// What took its place had died before its join arrived; whoever looks after the machine starts it again.
			p.w.at(p.w.now+time.Second, p.machine.revive)
		}
	default:
		p.think(func() { p.do(a) })
	}
}

// onTrial tells whether the member remembers a trial that it has not left.
func (p *member) onTrial() bool {
	t := p.sit.Memory.Trial
	return t != nil && t.TakenBack == ""
}

// overdue tells whether the timer of its trial has run out.
func (p *member) overdue() bool {
	return p.onTrial() && p.sit.Local.Revert > 0 && p.mono() >= p.sit.Local.Revert
}

// takeBack is what a deadman does whom an ablation keeps from writing Revert first.
func (p *member) takeBack() barrier.Action {
	m := p.sit.Memory
	t := *m.Trial
	t.TakenBack = barrier.ByGuess
	m.Trial = &t
	return barrier.Action{Act: barrier.ActRemember, Pointer: m.Confirmed, Memory: m}
}

// did notes what came of a, and goes on.
func (p *member) did(a barrier.Action, r barrier.Result) {
	p.sit.Clock = p.mono()
	p.sit = p.sit.After(a, r)
	if p.w.trace.on {
		p.w.trace.add(p.w.now, p.name, "%s %v: %s", a.Act, a.Pointer, outcome(r.Err))
	}
	if r.Err != nil {
		switch a.Act {
		case barrier.ActJoin, barrier.ActAck, barrier.ActNack, barrier.ActConverge, barrier.ActWithdraw, barrier.ActRevert:
			p.rest(p.w.cfg.poll)
			return
		}
	}
	p.look()
}

// do performs one act.
func (p *member) do(a barrier.Action) {
	switch a.Act {
	case barrier.ActBuild:
		p.build(a)
		return
	case barrier.ActDiscard:
		p.did(a, barrier.Result{})
		return
	case barrier.ActRemember:
		p.remember(a)
		return
	case barrier.ActSwap:
		p.swap(a)
		return
	case barrier.ActJoin:
		s, id, boot := p.w.store, p.machine.id, p.boot
		call(p.process, "join", func() (barrier.Registration, error) { return s.join(id, boot, a.Incarnation) },
			func(reg barrier.Registration, err error) {
				p.did(a, barrier.Result{Err: err, Incarnation: reg.Incarnation})
			})
		return
	}
	if p.w.trace.on {
		p.w.trace.add(p.w.now, p.name, "→ %s %v %s", a.Act, a.Ref, a.Reason)
	}
	if a.Act == barrier.ActRevert {
		p.w.event("deadman-sent")
	}
	s, id, boot := p.w.store, p.machine.id, p.boot
	call(p.process, string(a.Act), func() (struct{}, error) {
		var err error
		switch a.Act {
		case barrier.ActAck:
			err = s.ack(a.Ref, id, boot, a.BuildDigest)
		case barrier.ActNack:
			err = s.nack(a.Ref, id, boot, a.Reason)
		case barrier.ActConverge:
			err = s.converge(a.Ref, id, boot, a.Reason)
		case barrier.ActWithdraw:
			err = s.withdraw(a.Ref, id, boot, a.Reason)
		case barrier.ActRevert:
			err = s.revertByDeadman(a.Ref, id, boot, a.Reason)
		}
		return struct{}{}, err
	}, func(_ struct{}, err error) { p.did(a, barrier.Result{Err: err}) })
}

// build takes the bytes from the disk or the store, prepares, and keeps them.
func (p *member) build(a barrier.Action) {
	d := a.Pointer.Digest
	p.sit.Local.Built = nil
	if p.disk.has(d) {
		p.prepare(a, d)
		return
	}
	call(p.process, "get", func() (barrier.Digest, error) { return p.w.store.get(d) }, func(got barrier.Digest, err error) {
		if err != nil {
			p.did(a, barrier.Result{Err: err, Unavailable: true})
			return
		}
		p.prepare(a, got)
	})
}

func (p *member) prepare(a barrier.Action, got barrier.Digest) {
	d := a.Pointer.Digest
	if got != d {
		p.did(a, barrier.Result{Err: errBytes})
		return
	}
	build, err := p.host.prepare(d, a.Candidate)
	if err != nil {
		p.did(a, barrier.Result{Err: err})
		return
	}
	p.after(p.w.between(1*time.Millisecond, 30*time.Millisecond), func() {
		if p.diskFails() && !p.disk.has(d) {
			p.did(a, barrier.Result{Err: errDisk})
			return
		}
		p.disk.keep(d)
		p.did(a, barrier.Result{BuildDigest: build})
	})
}

func (p *member) diskFails() bool { return !p.w.healed && p.w.chance(p.w.cfg.saveFails) }

// remember makes the memory durable in the middle of the call: a crash may fall before and after.
func (p *member) remember(a barrier.Action) {
	if p.diskFails() {
		// The rename was done, and what makes it durable said that it failed: either may be there.
		r := barrier.Result{Err: errDisk}
		if p.w.opt.Ablation == 0 && p.w.chance(0.3) {
			p.disk.memory = a.Memory
			p.unsure = true
			r.OnDisk = barrier.FoundOnDisk
		}
		if p.w.chance(0.3) {
			r.OnDisk = barrier.UnknownOnDisk
		}
		p.did(a, r)
		return
	}
	p.w.event("save")
	p.after(p.w.between(1*time.Millisecond, 10*time.Millisecond), func() {
		m := a.Memory
		if p.w.opt.Ablation == SaveLater {
			if p.disk.lazy != nil {
				p.disk.memory = *p.disk.lazy
			}
			p.disk.lazy = &m
		} else {
			p.disk.memory = m
		}
		p.disk.forget("")
		p.unsure = false
		p.w.check.saved(p, m)
		p.after(p.w.between(1*time.Millisecond, 10*time.Millisecond), func() {
			p.tally(a.Memory)
			p.did(a, barrier.Result{})
		})
	})
}

// tally counts what is about to be remembered.
func (p *member) tally(m barrier.Memory) {
	if m.Flaps > p.sit.Memory.Flaps {
		p.w.cov.add(FlapHealed)
	}
	if t := m.Trial; t != nil && t.TakenBack == barrier.ByGuess {
		p.w.cov.add(Guess)
	}
}

func (p *member) swap(a barrier.Action) {
	p.w.event("swap")
	from := p.host.running
	if err := p.host.swap(a.Pointer); err != nil {
		p.did(a, barrier.Result{Err: err})
		return
	}
	p.w.check.swapped(p, from, a.Pointer)
	p.told = false
	if p.w.opt.Ablation == SlotIsRunning {
		p.sit.Memory.Confirmed = a.Pointer
		p.disk.memory.Confirmed = a.Pointer
	}
	p.did(a, barrier.Result{})
}

// crash ends the process; what it had saved and was not durable is gone.
func (p *member) crash() {
	p.die()
	p.disk.lazy = nil
}
