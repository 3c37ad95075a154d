package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// checker keeps its own account of what was decided, and holds what happens against it. It takes nothing from
// package barrier but values.
type checker struct {
	w         *world
	violation *Violation

	records map[barrier.Ref]*record
	trials  map[barrier.Pointer]*record // that were on trial once
	finals  map[barrier.Pointer]*verdict
	ids     map[barrier.RolloutID]bool
	votes   map[vote]barrier.Vote

	highestClaim barrier.Token
	highestToken barrier.Token
	restores     int
}

// record is one rollout.
type record struct {
	ref     barrier.Ref
	pointer barrier.Pointer
	base    barrier.Pointer // committed when its window opened
	window  bool
	state   barrier.State
	acked   map[barrier.BootID]bool
	older   bool          // than a restored store: what runs has little to do with it
	ended   time.Duration // true time of its end
}

func (r *record) open() bool {
	return r.state == barrier.Proposed || r.state == barrier.Staging || r.state == barrier.Committed && r.window
}

// verdict is that a pointer was committed for good.
type verdict struct {
	at   time.Duration
	gone bool // a restored store knows nothing of it
}

type vote struct {
	ref    barrier.Ref
	member barrier.MemberID
	boot   barrier.BootID
}

func newChecker(w *world) *checker {
	return &checker{
		w: w, records: map[barrier.Ref]*record{}, trials: map[barrier.Pointer]*record{}, finals: map[barrier.Pointer]*verdict{},
		ids: map[barrier.RolloutID]bool{}, votes: map[vote]barrier.Vote{},
	}
}

// broken notes the first broken promise that is not ignored.
func (c *checker) broken(p Property, format string, args ...any) {
	if c.violation != nil || slices.Contains(c.w.opt.Ignore, p) {
		return
	}
	c.violation = &Violation{p, fmt.Sprintf(format, args...)}
	c.w.trace.add(c.w.now, "BROKEN", "%v", c.violation)
}

// must is for what cannot fail.
func (c *checker) must(err error) {
	if err != nil {
		c.broken(Progress, "the simulator's own: %v", err)
	}
}

// final notes that p is committed for good.
func (c *checker) final(p barrier.Pointer) { c.finals[p] = &verdict{at: c.w.now} }

// head checks a write of the head by a coordinator with token, or by somebody else.
func (c *checker) head(old, next barrier.Head, token barrier.Token) {
	ro := next.Rollout
	switch {
	case ro == nil:
	case old.Rollout == nil || old.Rollout.Ref != ro.Ref:
		c.proposed(*ro)
	case old.Rollout.State != ro.State:
		c.moved(old, next, token)
	}
	if next.Claim < old.Claim || next.Generation < old.Generation {
		c.broken(I3, "claim %d and generation %d, after %d and %d", next.Claim, next.Generation, old.Claim, old.Generation)
	}
	c.pointer(old, next)
}

// proposed checks S1 and Once.
func (c *checker) proposed(ro barrier.Rollout) {
	for _, r := range c.records {
		if r.open() {
			c.broken(S1, "%v is proposed, and %v is %s", ro.Ref, r.ref, r.state)
		}
	}
	if c.ids[ro.ID] {
		c.broken(Once, "%v is proposed, and its id was before", ro.Ref)
	}
	c.ids[ro.ID] = true
	c.records[ro.Ref] = &record{
		ref: ro.Ref, pointer: ro.Pointer(), window: ro.Window > 0, state: barrier.Proposed, acked: map[barrier.BootID]bool{},
	}
	c.w.cov.add(Proposals)
	c.w.trace.add(c.w.now, "store", "PROPOSED %v, window %v, by %s", ro.Pointer(), ro.Window, ro.Proposer)
	c.w.event("propose")
}

// follows is what may come after a state.
var follows = map[barrier.State][]barrier.State{
	barrier.Proposed:  {barrier.Staging, barrier.Aborted},
	barrier.Staging:   {barrier.Committed, barrier.Aborted},
	barrier.Committed: {barrier.Confirmed, barrier.Reverted},
}

// moved checks S3, I3, I8 and what the new state promises.
func (c *checker) moved(old, next barrier.Head, token barrier.Token) {
	ro := *next.Rollout
	r := c.records[ro.Ref]
	if !r.open() || !slices.Contains(follows[r.state], ro.State) {
		c.broken(S3, "%v was %s and is %s", ro.Ref, r.state, ro.State)
	}
	if token != 0 && token != c.highestClaim {
		c.broken(I3, "%v is %s by the coordinator with token %d, and the claim is %d", ro.Ref, ro.State, token, c.highestClaim)
	}
	now := c.w.store.now()
	if strings.HasPrefix(ro.DecidedBy, "deadman") && !now.After(ro.ConfirmDeadline.Add(ro.Grace)) {
		c.broken(I8, "%v is reverted by %s before D + grace", ro.Ref, ro.DecidedBy)
	}
	r.state = ro.State
	switch ro.State {
	case barrier.Committed:
		c.commit(ro, now)
		r.base = old.Committed
		if r.window {
			c.trials[r.pointer] = r
			for _, s := range c.w.store.seats() {
				r.acked[s.Ballot.Boot] = true
			}
		} else {
			c.final(r.pointer)
		}
	case barrier.Confirmed:
		c.confirm(ro, now)
		if !r.older {
			c.running(ro)
		}
		c.final(r.pointer)
	}
	if !r.open() {
		r.ended = c.w.now
	}
	c.covered(ro)
	c.w.trace.add(c.w.now, "store", "%s %v by %s: %s", strings.ToUpper(string(ro.State)), ro.Ref, ro.DecidedBy, ro.Reason)
	c.w.event(string(ro.State))
}

// commit checks S9.
func (c *checker) commit(ro barrier.Rollout, now time.Time) {
	seats := c.w.store.seats()
	if len(seats) != ro.EpochSize || c.w.store.roster.Revision != ro.RosterRevision {
		c.broken(S9, "%v is committed by %d of %d under roster %d, not %d", ro.Ref, len(seats), ro.EpochSize, c.w.store.roster.Revision, ro.RosterRevision)
	}
	if now.After(ro.Deadline) {
		c.broken(S9, "%v is committed %v after its deadline", ro.Ref, now.Sub(ro.Deadline))
	}
	for _, s := range seats {
		b, reg := s.Ballot, s.Registration
		switch {
		case b.Vote != barrier.Acked || b.Boot != reg.Boot || reg.Joined >= ro.Generation:
			c.broken(S9, "%v is committed with the %q of %s's %q; its process is %q, joined at %d", ro.Ref, b.Vote, s.Member, b.Boot, reg.Boot, reg.Joined)
		case b.BuildDigest != seats[0].Ballot.BuildDigest:
			c.broken(S9, "%v is committed with two builds", ro.Ref)
		case b.VotedAt.After(ro.Deadline):
			c.broken(S9, "%v is committed with a vote of %s after the deadline", ro.Ref, s.Member)
		}
	}
}

// confirm checks I7.
func (c *checker) confirm(ro barrier.Rollout, now time.Time) {
	if now.After(ro.ConfirmDeadline) {
		c.broken(I7, "%v is confirmed %v after D", ro.Ref, now.Sub(ro.ConfirmDeadline))
	}
	seats := c.w.store.seats()
	if len(seats) != ro.EpochSize {
		c.broken(I7, "%v is confirmed by %d of %d", ro.Ref, len(seats), ro.EpochSize)
	}
	for _, s := range seats {
		b := s.Ballot
		switch {
		case b.Boot != s.Registration.Boot:
			c.broken(I7, "%v is confirmed with evidence of %s; %s's process is %s", ro.Ref, b.Boot, s.Member, s.Registration.Boot)
		case b.Withdrawn != "" || b.RenewedAt.IsZero():
			c.broken(I7, "%v is confirmed without evidence of %s", ro.Ref, s.Member)
		case now.Sub(b.RenewedAt) > ro.EvidenceTTL:
			c.broken(I7, "%v is confirmed with evidence of %s that expired", ro.Ref, s.Member)
		// A clock that steps back makes a window longer by as much.
		case b.RenewedAt.Sub(b.ConvergedSince) > ro.ConfirmDeadline.Sub(ro.CommittedAt)+c.w.store.stepped, now.Sub(b.ConvergedSince) < ro.Soak:
			c.broken(I7, "%v is confirmed with evidence of %s that has not held for soak", ro.Ref, s.Member)
		}
	}
}

// running checks S4. A process that has died since its last evidence is no objection: who starts after a confirm
// goes to what was confirmed (S7).
func (c *checker) running(ro barrier.Rollout) {
	for _, s := range c.w.store.seats() {
		p := c.w.boots[s.Ballot.Boot]
		if p == nil || !p.alive {
			// Whoever has taken its place and has reached the store has made its evidence void.
			if reg := s.Registration; reg.Boot != s.Ballot.Boot {
				c.broken(S4, "%v is confirmed, and %s restarted as %s", ro.Ref, s.Member, reg.Boot)
			}
			continue
		}
		if t := p.sit.Memory.Trial; p.host.running != ro.Pointer() || t == nil || t.Ref != ro.Ref || t.TakenBack != "" {
			c.broken(S4, "%v is confirmed, and %s runs %v", ro.Ref, p.name, p.host.running)
		}
	}
}

// pointer checks Pointers.
func (c *checker) pointer(old, next barrier.Head) {
	decided := next.Rollout != nil && (old.Rollout == nil || old.Rollout.State != next.Rollout.State) &&
		(next.Rollout.State == barrier.Confirmed || next.Rollout.State == barrier.Committed && next.Rollout.Window == 0)
	if classes := c.w.opt.Classes; classes != nil && decided && c.restores == 0 && !c.w.healed {
		classes.Committed(old.Committed.Digest, next.Committed.Digest)
	}
	switch {
	case decided && next.Committed != next.Rollout.Pointer():
		c.broken(Pointers, "%v is %s and the pointer stays at %v", next.Rollout.Ref, next.Rollout.State, next.Committed)
	case !decided && next.Committed != old.Committed:
		c.broken(Pointers, "the pointer moves to %v without a decision", next.Committed)
	}
}

// claim and token check I3 and S8.
func (c *checker) claim(t barrier.Token) {
	if t < c.highestClaim {
		c.broken(I3, "the claim falls from %d to %d", c.highestClaim, t)
	}
	c.highestClaim = t
}

func (c *checker) token(t barrier.Token) {
	if t <= c.highestToken {
		c.broken(S8, "token %d after %d", t, c.highestToken)
	}
	c.highestToken = t
}

// repeated checks I4.
func (c *checker) repeated(r barrier.Ref, t barrier.Token, to barrier.State, old, next barrier.Head, err error) {
	rec := c.records[r]
	if rec == nil || old.Rollout == nil || old.Rollout.Ref != r || rec.state != to || t != c.highestClaim {
		return
	}
	if err != nil || next.Revision != old.Revision {
		c.broken(I4, "%v is %s, and deciding so again: %v", r, to, err)
	}
}

// ballot checks I5.
func (c *checker) ballot(h barrier.Head, m barrier.MemberID, boot barrier.BootID, old, b barrier.Ballot) {
	if reg := c.w.store.registrations[m]; b.Boot != boot || reg.Boot != boot {
		c.broken(I5, "%s writes the ballot of %s, whose process is %s", boot, m, reg.Boot)
	}
	key := vote{h.Rollout.Ref, m, boot}
	if cast, ok := c.votes[key]; ok && cast != b.Vote {
		c.broken(I5, "%s voted %q and then %q", boot, cast, b.Vote)
	}
	c.votes[key] = b.Vote
	if b.Vote == barrier.Acked && old.Vote != barrier.Acked {
		c.w.event("ack")
	}
	if !b.ConvergedSince.IsZero() && old.ConvergedSince.IsZero() {
		c.w.event("evidence")
	}
	if strings.HasPrefix(b.Withdrawn, "only ") && old.Withdrawn == "" {
		c.w.cov.add(LateSwapRefused)
	}
}

// bytesMissing checks Bytes: somebody asked for bytes that are not there.
func (c *checker) bytesMissing(d barrier.Digest) {
	// A restored store may have lost bytes and be given the proposal that names them a moment later.
	if c.w.store.head.Committed.Digest == d && c.restores == 0 {
		c.broken(Bytes, "of %s", d)
	}
}

// restored begins anew with what a backup says. What is known to be lost is told apart: tokens and generations
// come again, and what was decided after the backup was not.
func (c *checker) restored(h barrier.Head) {
	c.restores++
	c.w.trace.add(c.w.now, "store", "RESTORED to generation %d, committed %v", h.Generation, h.Committed)
	for ref, r := range c.records {
		r.older = true
		switch {
		case h.Rollout != nil && h.Rollout.Ref == ref:
			r.state = h.Rollout.State
		case ref.Generation > h.Generation:
			r.state = barrier.Aborted
		}
	}
	for p, v := range c.finals {
		v.gone = v.gone || p.Generation > h.Committed.Generation
	}
	clear(c.ids)
	clear(c.votes)
	c.highestClaim, c.highestToken = h.Claim, c.w.store.token
}

func (c *checker) covered(ro barrier.Rollout) {
	cov := &c.w.cov
	switch ro.State {
	case barrier.Committed:
		if ro.Window > 0 {
			cov.add(CommittedOnTrial)
		} else {
			cov.add(CommittedPlain)
		}
	case barrier.Confirmed:
		cov.add(ConfirmedCase)
	case barrier.Reverted:
		cov.add(RevertedCase)
	case barrier.Aborted:
		cov.add(AbortedCase)
		switch {
		case strings.HasPrefix(ro.Reason, "refused by"):
			cov.add(AbortedByNack)
		case strings.HasPrefix(ro.Reason, "the deadline passed"):
			cov.add(AbortedByDeadline)
		case strings.Contains(ro.Reason, " built "):
			cov.add(AbortedByBuild)
		}
	}
}
