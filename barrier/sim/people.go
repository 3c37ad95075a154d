package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// proposer puts changes to the cohort, one after the other, and tries again with the same id when it does not
// know what came of it, as barrier.Proposer does.
type proposer struct {
	*process
	made int
}

const proposeAttempts = 3

func newProposer(w *world, i int) *proposer {
	p := &proposer{process: newProcess(w, fmt.Sprintf("p%d", i+1))}
	p.human = true
	p.wake = p.round
	p.rest(w.between(0, 4*time.Second))
	return p
}

func (p *proposer) later() { p.rest(p.w.between(500*time.Millisecond, 12*time.Second)) }

func (p *proposer) round() {
	if p.w.healed {
		return
	}
	call(p.process, "current", p.w.store.row, func(row *barrier.Row, err error) {
		if err != nil || row.Rollout != nil && row.Rollout.Open() && p.w.chance(0.8) {
			p.later()
			return
		}
		p.made++
		a := p.choose(row)
		proposal := p.proposal(row, a.digest)
		s := p.w.store
		call(p.process, "put", func() (struct{}, error) { return struct{}{}, s.put(a.digest) }, func(_ struct{}, err error) {
			if err != nil {
				p.later()
				return
			}
			p.think(func() { p.send(proposal, 1) })
		})
	})
}

func (p *proposer) send(proposal barrier.Proposal, attempt int) {
	s := p.w.store
	call(p.process, "propose", func() (barrier.Rollout, error) { return s.propose(proposal) }, func(_ barrier.Rollout, err error) {
		if err != nil && barrier.Code(err) == "" && attempt < proposeAttempts {
			p.send(proposal, attempt+1)
			return
		}
		p.later()
	})
}

// choose is something new, most often, or what is committed once more.
func (p *proposer) choose(row *barrier.Row) *artefact {
	w := p.w
	if a, ok := w.artefacts[row.Committed.Digest]; ok && w.chance(0.1) {
		return a
	}
	n := []nature{
		healthy, healthy, healthy, healthy, healthy, healthy, refusedBy, sickOn, sickOn, flapsOn, flapsOn, builtOther,
	}[w.rng.IntN(12)]
	return w.newArtefact(n)
}

func (p *proposer) proposal(row *barrier.Row, d barrier.Digest) barrier.Proposal {
	w := p.w
	q := barrier.Proposal{
		ID: barrier.RolloutID(fmt.Sprintf("%s-%d", p.name, p.made)), Proposer: p.name, Digest: d, Version: uint64(len(w.artefacts)),
		RosterRevision: row.Roster.Revision, Seen: row.Generation, Deadline: w.between(4*time.Second, 15*time.Second),
	}
	if w.chance(0.1) {
		q.After = row.Generation + uint64(w.rng.IntN(3))
	}
	if w.chance(w.cfg.windowed) {
		q.Soak = w.between(500*time.Millisecond, 3*time.Second)
		q.Window = 2*q.Soak + w.between(time.Second, 10*time.Second)
		// A poll, and what clocks may be off by: the store's own steps back and the drift over the longest window.
		q.Grace = w.cfg.poll + maxStepBack + w.between(300*time.Millisecond, time.Second)
		q.EvidenceTTL = 2*w.cfg.poll + w.between(time.Second, 2*time.Second)
	}
	return q
}

// operator is a person who aborts, reverts and changes the roster, with a network between.
type operator struct{ *process }

func newOperator(w *world) *operator {
	o := &operator{process: newProcess(w, "olga")}
	o.human = true
	return o
}

// decide ends what is open.
func (o *operator) decide() {
	call(o.process, "current", o.w.store.row, func(row *barrier.Row, err error) {
		if err != nil || row.Rollout == nil || !row.Rollout.Open() {
			return
		}
		ref, verb := row.Rollout.Ref, barrier.Abort
		if row.Rollout.OnTrial() {
			verb = barrier.Revert
		}
		o.think(func() {
			call(o.process, "operate", func() (struct{}, error) { return struct{}{}, o.w.store.operate(ref, verb) }, func(struct{}, error) {})
		})
	})
}

// changeRoster takes a member in or out.
func (o *operator) changeRoster() {
	call(o.process, "current", o.w.store.row, func(row *barrier.Row, err error) {
		if err != nil {
			return
		}
		members := slices.Clone(row.Roster.Members)
		m := o.w.machines[o.w.rng.IntN(len(o.w.machines))].id
		if i := slices.Index(members, m); i < 0 {
			members = append(members, m)
		} else if len(members) > 1 {
			members = slices.Delete(members, i, i+1)
		}
		o.think(func() {
			call(o.process, "set roster", func() (barrier.Roster, error) { return o.w.store.setRoster(row.Roster.Revision, members) },
				func(barrier.Roster, error) {})
		})
	})
}
