package sim

import (
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// heal ends all faults and checks that the cohort comes to rest, and goes on.
func (w *world) heal() {
	if w.check.violation != nil {
		return
	}
	w.trace.add(w.now, "fault", "all faults are over")
	w.healed = true
	w.store.down = false
	w.holds = nil
	for _, p := range w.processes {
		p.cutOut, p.cutIn = false, false
		if p.alive && p.paused {
			p.resume()
		}
	}
	for _, m := range w.machines {
		m.revive()
	}
	for _, c := range w.coordinators {
		c.revive()
	}
	if !w.until(w.now+w.bound(), w.decided) {
		w.check.broken(Progress, "%v is %s", w.store.head.Rollout.Ref, w.store.head.Rollout.State)
		return
	}
	w.follow()
	// Whoever is ahead of a restored store takes part in what is above it and has no window.
	w.propose("heal-1", 0)
	w.propose("heal-2", 6*time.Second)
}

// bound is how long the open rollout may take: its own time, an election with its lock delay, a few polls, and what processes
// were in the middle of.
func (w *world) bound() time.Duration {
	var due time.Duration
	if ro := w.store.head.Rollout; ro != nil && ro.Open() {
		end := ro.Deadline
		if ro.OnTrial() {
			end = ro.RevertDue()
		}
		due = max(0, end.Sub(w.store.now()))
	}
	return due + 2*w.cfg.lease + 4*w.cfg.poll + 4*w.cfg.timeout + w.midst()
}

func (w *world) midst() time.Duration {
	if w.cfg.longThought > 0 {
		return 20 * time.Second
	}
	return 0
}

func (w *world) decided() bool { return w.store.head.Rollout == nil || !w.store.head.Rollout.Open() }

// follow waits until every member runs what is committed.
func (w *world) follow() {
	if w.check.violation != nil {
		return
	}
	// Backoff is at most 4 s, of building and of swapping.
	if w.until(w.now+10*time.Second+6*w.cfg.poll+4*w.cfg.timeout+w.midst(), w.followed) || w.check.violation != nil {
		return
	}
	for _, m := range w.machines {
		if p := m.current(); !w.follows(p) {
			w.check.broken(Follows, "%s runs %v, and %v is committed", p.name, p.host.running, w.store.head.Committed)
		}
	}
}

func (w *world) followed() bool {
	for _, m := range w.machines {
		if !w.follows(m.current()) {
			return false
		}
	}
	return true
}

// follows tells whether p alone speaks for its member and runs what is committed, or cannot, having to do with a restored store.
func (w *world) follows(p *member) bool {
	if p.machine.living() != 1 || !p.alive || w.store.registrations[p.machine.id].Boot != p.boot {
		return false
	}
	c := w.store.head.Committed
	if w.check.restores > 0 && (c.Generation < p.sit.Memory.Highest || c.Generation <= p.sit.Memory.Confirmed.Generation && c != p.sit.Memory.Confirmed) {
		return true
	}
	if w.check.restores > 0 && !w.store.artefacts[c.Digest] && !p.disk.has(c.Digest) {
		return true // a restore took the bytes before their proposal came: the next rollout brings others
	}
	t := p.sit.Memory.Trial
	return p.host.running == c && (t == nil || t.TakenBack != "" && !w.decided())
}

// maxLate is how many changes of the roster may come from people who began before the faults were over.
const maxLate = 4

// propose puts a healthy change to the healed cohort: it must go through.
func (w *world) propose(id string, window time.Duration) {
	if w.check.violation != nil {
		return
	}
	if !w.until(w.now+30*time.Second, w.decided) { // somebody's late one
		w.check.broken(Progress, "%v does not end", w.store.head.Rollout.Ref)
		return
	}
	p := barrier.Proposal{
		ID: barrier.RolloutID(id), Proposer: "the simulator", Digest: w.newArtefact(healthy).digest,
		RosterRevision: w.store.roster.Revision, Seen: w.store.head.Generation, Deadline: 30 * time.Second,
	}
	for _, m := range w.machines {
		memory := m.current().sit.Memory
		p.After = max(p.After, memory.Highest, memory.Confirmed.Generation)
	}
	want := barrier.Committed
	if window > 0 {
		p.Window, p.Soak, p.Grace, p.EvidenceTTL = window, time.Second, 3*time.Second, 3*time.Second
		want = barrier.Confirmed
	}
	w.check.must(w.store.put(p.Digest))
	if _, err := w.store.propose(p); err != nil {
		w.check.broken(Goes, "%v", err)
		return
	}
	limit := w.now + 30*time.Second + window + 4*time.Second
	if !w.until(limit, w.decided) || w.check.violation != nil {
		w.check.broken(Progress, "%s does not end", id)
		return
	}
	ro := w.store.head.Rollout
	if ro.State == barrier.Aborted && ro.DecidedBy == "roster change" && w.late < maxLate {
		w.late++ // an operator who thought about it for long: it was his right
		w.propose(id+"-again", window)
		return
	}
	if ro.State != want {
		w.check.broken(Goes, "%s", fmt.Sprintf("%v is %s: %s", ro.Ref, ro.State, ro.Reason))
		return
	}
	w.follow()
}
