package barrier

import (
	"fmt"
	"time"
)

// guessAfter is how often the store must have failed to answer before a member whose deadman has run out takes a
// trial back without its word: one lost answer is no partition.
const guessAfter = 2

// Step is the member's whole judgement: its next act, given the row, its own memory and nothing else. The
// driver does the act, notes it with Local.After, reads the row again, and asks again.
func Step(s Situation) Action {
	if s.Local.Superseded {
		return s.superseded()
	}
	if s.View == nil {
		return s.alone()
	}
	if s.View.Registration.Boot != s.Boot {
		return Action{Act: ActJoin, Incarnation: s.View.Registration.Incarnation}
	}
	for _, part := range []func(Situation) (Action, bool){
		Situation.endTrial, Situation.follow, Situation.beginTrial, Situation.vote, Situation.tidy,
	} {
		if a, ok := part(s); ok {
			return a
		}
	}
	return s.wait("nothing to do")
}

// wait is until the next poll, or what is due before it.
func (s Situation) wait(reason string) Action {
	until := s.Clock + s.Timing.Poll
	if f := s.Local.Failure; f.Again > s.Clock {
		until = min(until, f.Again)
	}
	if r := s.Local.Revert; s.running() && r > s.Clock {
		until = min(until, r)
	}
	return Action{Act: ActWait, Reason: reason, Until: until}
}

// running tells whether the Host runs the trial that the member remembers.
func (s Situation) running() bool {
	t := s.Memory.Trial
	return t != nil && t.TakenBack == "" && s.Local.Running == t.Pointer
}

// Leaving tells whether the member is on its way back from a trial without the store's word. What it does then needs no answer, so
// a driver hardly waits for one between two acts: one that hangs would make each as late as a call may be. An answer that has
// come is observed before the next act all the same.
func (s Situation) Leaving() bool {
	t := s.Memory.Trial
	return s.View == nil && t != nil && t.TakenBack == ByGuess && s.Local.Running == t.Pointer
}

// takeBack remembers that the trial is left without the store's word, before it is.
func (s Situation) takeBack(why TakenBack) Action {
	t := *s.Memory.Trial
	t.TakenBack = why
	m := s.Memory
	m.Trial = &t
	return Action{Act: ActRemember, Pointer: m.Confirmed, Memory: m}
}

// run brings the Host to p, which Memory names or is about to; false when it runs p or cannot now.
func (s Situation) run(p Pointer) (Action, bool) {
	switch b := s.Local.Built; {
	case p.IsZero() || s.Local.Running == p || s.blocked(p):
		return Action{}, false
	case p.Generation < s.Local.Unsure.Generation && s.View == nil:
		return Action{}, false // the disk may name what is newer, and then this would go back behind it
	case p.Generation < s.Local.Unsure.Generation:
		// The store, which may have been restored since, says to run p all the same: first the disk names it for sure.
		return Action{Act: ActRemember, Pointer: p, Memory: s.Memory}, true
	case b != nil && b.Pointer == p && b.Refusal == "":
		return Action{Act: ActSwap, Ref: b.Ref, Pointer: p}, true
	}
	return Action{Act: ActBuild, Pointer: p}, true
}

// blocked tells whether the next attempt at p is not due yet.
func (s Situation) blocked(p Pointer) bool {
	return s.Local.Failure.Pointer == p && s.Clock < s.Local.Failure.Again
}

// failed returns why p could not be built or swapped to, or "".
func (s Situation) failed(p Pointer) string {
	if f := s.Local.Failure; f.Pointer == p && f.Attempts > 0 {
		return f.Reason
	}
	return ""
}

// superseded is the end of a process that another one has taken the place of: it is out of any trial and stops. A trial that
// was confirmed before is none any more: it stays.
func (s Situation) superseded() Action {
	if s.View == nil {
		return s.alone()
	}
	if t := s.Memory.Trial; t != nil {
		switch s.fate(*t) {
		case confirmed:
			if a, ok := s.endTrial(); ok {
				return a
			}
		case overtaken:
			if a, ok := s.follow(); ok {
				return a
			}
		default:
			if t.TakenBack == "" {
				return s.takeBack(BySupplant)
			}
		}
	}
	if a, ok := s.run(s.Memory.Confirmed); ok {
		return a
	}
	if t := s.Memory.Trial; t != nil && s.Local.Running == t.Pointer {
		return s.wait("cannot go back: " + s.Local.Failure.Reason)
	}
	return Action{Act: ActStop, Reason: "another process of this member has joined"}
}

// alone is without the store: boot what is confirmed, and leave a trial whose time is over.
func (s Situation) alone() Action {
	overdue := s.Local.Revert > 0 && s.Clock >= s.Local.Revert && s.Local.Misses >= guessAfter
	if t := s.Memory.Trial; t != nil && t.TakenBack == "" && overdue {
		return s.takeBack(ByGuess)
	}
	if !s.running() {
		if a, ok := s.run(s.Memory.Confirmed); ok {
			return a
		}
	}
	return s.wait("the store is out of reach")
}

// fate is what became of a trial.
type fate int

const (
	undecided fate = iota
	confirmed
	reverted
	overtaken // something newer is committed
)

// fate reads it from the rollout itself or, when another one has come since, from the committed pointer.
func (s Situation) fate(t Trial) fate {
	if ro := s.View.Rollout; ro != nil && ro.Ref == t.Ref && ro.OnTrial() {
		return undecided
	}
	switch c := s.View.Committed; {
	case c.Generation == t.Pointer.Generation && c.Digest == t.Pointer.Digest:
		return confirmed
	case c.Generation > t.Pointer.Generation:
		return overtaken
	default:
		return reverted
	}
}

// endTrial goes on with the trial that the member remembers, to its end.
func (s Situation) endTrial() (Action, bool) {
	if s.Memory.Trial == nil {
		return Action{}, false
	}
	t := *s.Memory.Trial
	m := s.Memory
	m.Trial = nil
	switch s.fate(t) {
	case undecided:
		return s.onTrial(t, *s.View.Rollout), true
	case confirmed:
		m.Confirmed = t.Pointer
		if t.TakenBack == ByGuess {
			m.Flaps++
		}
		return s.remember(m)
	case reverted:
		// The slot is what was committed before the trial (see vote), so it is what the Revert points to.
		if s.Local.Running == t.Pointer {
			if a, ok := s.run(m.Confirmed); ok {
				return a, true
			}
			return s.wait("cannot go back: " + s.Local.Failure.Reason), true
		}
		return s.remember(m)
	default:
		return Action{}, false // follow forgets the trial
	}
}

// remember saves m, unless that failed a moment ago.
func (s Situation) remember(m Memory) (Action, bool) {
	if s.blocked(m.Confirmed) {
		return s.wait(s.Local.Failure.Reason), true
	}
	return Action{Act: ActRemember, Pointer: m.Confirmed, Memory: m}, true
}

// onTrial is the confirm window.
func (s Situation) onTrial(t Trial, ro Rollout) Action {
	overdue := s.View.Now.After(ro.RevertDue())
	if t.TakenBack != "" {
		if a, ok := s.run(s.Memory.Confirmed); ok {
			return a
		}
		if overdue {
			return s.revert(ro, fmt.Sprintf("not confirmed in time, and left (%s)", t.TakenBack))
		}
		if t.TakenBack == ByGuess {
			return s.withdraw(ro, "the trial was taken back while the store was out of reach")
		}
		return s.wait("the trial was left: " + string(t.TakenBack))
	}
	if overdue {
		if s.Local.RevertFails >= guessAfter {
			return s.takeBack(ByGuess)
		}
		return s.revert(ro, "not confirmed in time")
	}
	if s.Local.Running != t.Pointer {
		return s.swapTo(t.Pointer, ro)
	}
	b := s.View.Ballot
	age := s.View.Now.Sub(b.RenewedAt) // below zero when the store's clock stepped back
	switch h := s.Local.Health; {
	case b.Withdrawn != "":
		return s.wait("withdrawn: " + b.Withdrawn)
	case !h.Converged && !b.ConvergedSince.IsZero():
		return s.withdraw(ro, h.Detail)
	case !h.Converged && ro.ConfirmDeadline.Sub(s.View.Now) < ro.Soak:
		// It cannot be confirmed any more: the others need not wait for D, and the reason is told.
		return s.withdraw(ro, fmt.Sprintf("not converged, and less than the soak of %s remains: %s", ro.Soak, h.Detail))
	case !h.Converged:
		return s.wait("not converged: " + h.Detail)
	case age < ro.EvidenceTTL/3 && age >= -ro.EvidenceTTL:
		a := s.wait("converged")
		a.Until = min(a.Until, s.Clock+ro.EvidenceTTL/3-age)
		return a
	default:
		return Action{Act: ActConverge, Ref: ro.Ref, Reason: h.Detail}
	}
}

// swapTo runs the trial, unless too little of the window remains to prove anything.
func (s Situation) swapTo(p Pointer, ro Rollout) Action {
	if s.View.Ballot.Withdrawn != "" {
		return s.wait("withdrawn: " + s.View.Ballot.Withdrawn)
	}
	if left := ro.ConfirmDeadline.Sub(s.View.Now); left < ro.Soak {
		return s.withdraw(ro, fmt.Sprintf("only %s of the confirm window remained, less than the soak of %s", max(left, 0).Round(time.Millisecond), ro.Soak))
	}
	if why := s.failed(p); why != "" {
		return s.withdraw(ro, why)
	}
	if a, ok := s.run(p); ok {
		return a
	}
	return s.wait(s.Local.Failure.Reason)
}

func (s Situation) revert(ro Rollout, why string) Action {
	return Action{Act: ActRevert, Ref: ro.Ref, Reason: fmt.Sprintf("%s: %s", s.Self, why)}
}

// withdraw says once that the trial has failed here.
func (s Situation) withdraw(ro Rollout, why string) Action {
	if w := s.View.Ballot.Withdrawn; w != "" {
		return s.wait("withdrawn: " + w)
	}
	if why == "" {
		why = "no longer converged"
	}
	return Action{Act: ActWithdraw, Ref: ro.Ref, Reason: why}
}

// diverged says why the committed pointer cannot be followed, or "": the store is older than the member (I9).
func (s Situation) diverged() string {
	c, m := s.View.Committed, s.Memory
	switch {
	case c.IsZero() || c == m.Confirmed:
		return ""
	case !m.Confirmed.IsZero() && c.Generation == m.Confirmed.Generation && c.Digest != m.Confirmed.Digest:
		return fmt.Sprintf("the store commits %s under generation %d, and this member has confirmed %s under it", c.Digest, c.Generation, m.Confirmed.Digest)
	case c.Generation < m.Highest || c.Generation < m.Confirmed.Generation:
		return fmt.Sprintf("the store's committed generation %d is lower than %d, which this member has applied: was the store restored? Roll out anew above it",
			c.Generation, max(m.Highest, m.Confirmed.Generation))
	}
	return ""
}

// follow runs what is committed: prepared, then remembered, then swapped to.
func (s Situation) follow() (Action, bool) {
	c := s.View.Committed
	if c.IsZero() || c == s.Memory.Confirmed || s.diverged() != "" {
		return s.run(s.Memory.Confirmed)
	}
	if s.Local.Running.IsZero() && s.Local.Failure.Pointer != c {
		// A new process serves what it has before it goes on: what is committed may fail to start here.
		if a, ok := s.run(s.Memory.Confirmed); ok {
			return a, true
		}
	}
	if s.blocked(c) {
		return Action{}, false
	}
	if b := s.Local.Built; b == nil || b.Pointer != c || b.Refusal != "" {
		return Action{Act: ActBuild, Pointer: c}, true
	}
	m := s.Memory
	m.Confirmed, m.Trial, m.Highest = c, nil, max(m.Highest, c.Generation)
	return Action{Act: ActRemember, Pointer: c, Memory: m}, true
}

// beginTrial takes part in a window that opened after this process acknowledged.
func (s Situation) beginTrial() (Action, bool) {
	ro, b := s.View.Rollout, s.View.Ballot
	if ro == nil || !ro.OnTrial() || !s.View.InEpoch || s.Memory.Trial != nil {
		return Action{}, false
	}
	if s.View.Now.After(ro.RevertDue()) {
		// Whatever this process has to do with it: the others wait for the word.
		return s.revert(*ro, "not confirmed in time"), true
	}
	if b.Boot != s.Boot || b.Vote != Acked || b.Withdrawn != "" {
		return Action{}, false
	}
	if ro.Generation <= s.Memory.Highest {
		return s.withdraw(*ro, s.lowGeneration(*ro)), true
	}
	p := ro.Pointer()
	if b := s.Local.Built; b == nil || b.Pointer != p || b.Refusal != "" || s.failed(p) != "" || ro.ConfirmDeadline.Sub(s.View.Now) < ro.Soak {
		return s.swapTo(p, *ro), true
	}
	m := s.Memory
	m.Trial = &Trial{Ref: ro.Ref, Pointer: p, Deadline: ro.ConfirmDeadline}
	m.Highest = ro.Generation
	return Action{Act: ActRemember, Pointer: p, Memory: m}, true
}

func (s Situation) lowGeneration(ro Rollout) string {
	return fmt.Sprintf("generation %d is not above %d, which this member has applied: was the store restored? Propose above it", ro.Generation, s.Memory.Highest)
}

// vote answers a rollout that waits for this process's vote.
func (s Situation) vote() (Action, bool) {
	ro, b := s.View.Rollout, s.View.Ballot
	switch {
	case ro == nil || !ro.Voting() || !s.View.InEpoch,
		b.Boot == s.Boot && b.Vote != NoVote,
		s.View.Registration.Joined >= ro.Generation,
		s.View.Now.After(ro.Deadline):
		return Action{}, false
	}
	nack := func(why string) (Action, bool) { return Action{Act: ActNack, Ref: ro.Ref, Reason: why}, true }
	if ro.Generation <= s.Memory.Highest {
		return nack(s.lowGeneration(*ro))
	}
	if why := s.diverged(); why != "" && ro.Window > 0 {
		// What it would go back to is not what the others would.
		return nack(why + "; without a confirm window")
	} else if c := s.View.Committed; why == "" && !c.IsZero() && s.Local.Running != c {
		if f := s.Local.Failure; f.Pointer == c && f.Terminal {
			return nack(fmt.Sprintf("does not run generation %d, which is committed: %s", c.Generation, f.Reason))
		}
		return s.wait("does not run what is committed yet"), true
	}
	p := ro.Pointer()
	switch built := s.Local.Built; {
	case built != nil && built.Ref == ro.Ref && built.Refusal != "":
		return nack(built.Refusal)
	case built != nil && built.Ref == ro.Ref:
		return Action{Act: ActAck, Ref: ro.Ref, BuildDigest: built.BuildDigest}, true
	case s.blocked(p):
		return s.wait(s.Local.Failure.Reason), true
	}
	return Action{Act: ActBuild, Ref: ro.Ref, Pointer: p, Candidate: true}, true
}

// tidy discards what was built for nothing.
func (s Situation) tidy() (Action, bool) {
	b := s.Local.Built
	if b == nil {
		return Action{}, false
	}
	if ro := s.View.Rollout; ro != nil && ro.Open() && ro.Ref == b.Ref && s.View.Ballot.Withdrawn == "" {
		return Action{}, false
	}
	return Action{Act: ActDiscard}, true
}
