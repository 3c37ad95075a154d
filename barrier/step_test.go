package barrier_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/barrier"
)

// situation is member a's, of the process a.1, which runs what is committed at generation 2, in a head of the state.
func situation(state string, changes ...func(*barrier.Situation)) barrier.Situation {
	s := barrier.Situation{
		Self: "a", Boot: "a.1", Timing: barrier.DefaultTiming, Clock: 100 * time.Second,
		Memory: barrier.Memory{Confirmed: was, Highest: 2},
		Local:  barrier.Local{Incarnation: 1, Running: was},
		View:   &barrier.View{Head: head(state), Registration: barrier.Registration{Boot: "a.1", Incarnation: 1, Joined: 2}, InEpoch: state != none, Now: start.Add(time.Second)},
	}
	switch state {
	case committed, aborted:
		s.View.Now = decided.Add(time.Second)
	case trial, confirmed, reverted:
		s.View.Now = decided.Add(20 * time.Second)
	}
	if state != none && state != proposed && state != staging {
		s.View.Ballot = seat("a", acked).Ballot
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

type change = func(*barrier.Situation)

func now(t time.Time) change { return func(s *barrier.Situation) { s.View.Now = t } }
func ballot(of func(*barrier.Seat)) change {
	return func(s *barrier.Situation) { s.View.Ballot = seat("a", of).Ballot }
}

// away is a store out of reach, for so many reads.
func away(misses int) change {
	return func(s *barrier.Situation) { s.View, s.Local.Misses = nil, misses }
}

// trying is a trial that the member remembers and runs; left is one that it has left, and runs the confirmed one.
func trying(s *barrier.Situation) {
	s.Memory.Trial, s.Memory.Highest = &barrier.Trial{Ref: ref, Pointer: next, Deadline: confirm}, 3
	s.Local.Running, s.Local.Health = next, barrier.Health{Converged: true, Detail: "works"}
}

func left(why barrier.TakenBack) change {
	return func(s *barrier.Situation) {
		trying(s)
		s.Memory.Trial.TakenBack, s.Local.Running = why, was
	}
}

func running(p barrier.Pointer) change { return func(s *barrier.Situation) { s.Local.Running = p } }
func built(p barrier.Pointer) change {
	return func(s *barrier.Situation) {
		s.Local.Built = &barrier.Built{Pointer: p, BuildDigest: "built"}
		if p == next {
			s.Local.Built.Ref = ref
		}
	}
}

func refused(s *barrier.Situation) {
	s.Local.Built = &barrier.Built{Ref: ref, Pointer: next, Refusal: "route 4 is broken"}
}

// failing is a failure of p, whose next attempt is due in so long.
func failing(p barrier.Pointer, in time.Duration) change {
	return func(s *barrier.Situation) {
		s.Local.Failure = barrier.Failure{Pointer: p, Attempts: 1, Reason: "port in use", Again: s.Clock + in}
	}
}

func unhealthy(s *barrier.Situation) { s.Local.Health = barrier.Health{Detail: "no origin"} }

func superseded(s *barrier.Situation) {
	s.Local.Superseded = true
	s.View.Registration = barrier.Registration{Boot: "a.2", Incarnation: 2, Joined: 3}
}

// elsewhere is a store that has committed p.
func elsewhere(p barrier.Pointer) change {
	return func(s *barrier.Situation) { s.View.Committed = p }
}

func withdrawnNow(s *barrier.Situation) { s.View.Ballot = seat("a", withdrawn).Ballot }

func TestStep(t *testing.T) {
	due := confirm.Add(grace)
	later := barrier.Pointer{Generation: 5, Digest: "t:d5"}
	restored := barrier.Pointer{Generation: 1, Digest: "t:old"}
	tests := []struct {
		name string
		s    barrier.Situation
		act  barrier.Act
		says string          // part of the reason
		p    barrier.Pointer // of Build, Swap
		then barrier.Memory  // of Remember
	}{
		// Joining.
		{name: "a process that has not joined", s: situation(none, func(s *barrier.Situation) { s.View.Registration = barrier.Registration{} }), act: barrier.ActJoin},
		{name: "with nothing to do", s: situation(none), act: barrier.ActWait, says: "nothing to do"},

		// Superseded.
		{name: "superseded", s: situation(none, superseded), act: barrier.ActStop, says: "another process"},
		{name: "superseded on trial", s: situation(trial, trying, superseded), act: barrier.ActRemember, then: remembering(trying, func(s *barrier.Situation) { s.Memory.Trial.TakenBack = barrier.BySupplant })},
		{name: "superseded, and running the trial that it left", s: situation(trial, left(barrier.BySupplant), running(next), superseded), act: barrier.ActBuild, p: was},
		{name: "superseded, and unable to go back", s: situation(trial, left(barrier.BySupplant), running(next), superseded, failing(was, time.Second)), act: barrier.ActWait, says: "cannot go back: port in use"},
		{name: "superseded on a trial that was confirmed", s: situation(confirmed, trying, superseded), act: barrier.ActRemember, then: barrier.Memory{Confirmed: next, Highest: 3}},
		{name: "superseded on a trial that was overtaken", s: situation(aborted, trying, superseded, elsewhere(later)), act: barrier.ActBuild, p: later},
		{name: "superseded on a trial that was overtaken, and unable to follow", s: situation(aborted, trying, superseded, elsewhere(later), failing(later, time.Second)), act: barrier.ActBuild, p: was},
		{name: "superseded, and the store away", s: situation(trial, trying, superseded, away(9)), act: barrier.ActWait, says: "out of reach"},

		// Alone.
		{name: "alone, from the beginning", s: situation(none, running(barrier.Pointer{}), away(1)), act: barrier.ActBuild, p: was},
		{name: "alone, with nothing confirmed", s: situation(none, func(s *barrier.Situation) { s.Memory, s.Local.Running = barrier.Memory{}, barrier.Pointer{} }, away(1)), act: barrier.ActWait, says: "out of reach"},
		{name: "alone, and the disk may confirm what is newer", s: situation(none, running(barrier.Pointer{}), away(1), func(s *barrier.Situation) { s.Local.Unsure = next }), act: barrier.ActWait, says: "out of reach"},
		{name: "the disk may confirm what is newer, and the store does not", s: situation(none, running(barrier.Pointer{}), func(s *barrier.Situation) { s.Local.Unsure = next }), act: barrier.ActRemember, p: was, then: barrier.Memory{Confirmed: was, Highest: 2}},
		{name: "alone, built", s: situation(none, running(barrier.Pointer{}), built(was), away(1)), act: barrier.ActSwap, p: was},
		{name: "alone on trial, in time", s: situation(trial, trying, away(9), func(s *barrier.Situation) { s.Local.Revert = s.Clock + 1 }), act: barrier.ActWait, says: "out of reach"},
		{name: "alone on trial, at D and grace", s: situation(trial, trying, away(2), func(s *barrier.Situation) { s.Local.Revert = s.Clock }), act: barrier.ActRemember, then: remembering(left(barrier.ByGuess))},
		{name: "alone on trial, at D and grace, after one miss", s: situation(trial, trying, away(1), func(s *barrier.Situation) { s.Local.Revert = s.Clock }), act: barrier.ActWait},
		{name: "alone on a trial whose row was never seen", s: situation(trial, trying, away(9)), act: barrier.ActWait},
		{name: "alone, after a guess", s: situation(trial, left(barrier.ByGuess), running(next), away(9)), act: barrier.ActBuild, p: was},

		// Votes.
		{name: "a proposal", s: situation(proposed), act: barrier.ActBuild, p: next},
		{name: "a proposal that a coordinator has taken up", s: situation(staging), act: barrier.ActBuild, p: next},
		{name: "built", s: situation(staging, built(next)), act: barrier.ActAck},
		{name: "refused", s: situation(staging, refused), act: barrier.ActNack, says: "route 4 is broken"},
		{name: "acked", s: situation(staging, built(next), ballot(acked)), act: barrier.ActWait},
		{name: "nacked", s: situation(staging, refused, ballot(nacked)), act: barrier.ActWait},
		{name: "not of the epoch", s: situation(staging, func(s *barrier.Situation) { s.View.InEpoch = false }), act: barrier.ActWait},
		{name: "joined late", s: situation(staging, func(s *barrier.Situation) { s.View.Registration.Joined = 3 }), act: barrier.ActWait},
		{name: "at the deadline", s: situation(staging, built(next), now(deadline)), act: barrier.ActAck},
		{name: "after the deadline", s: situation(staging, now(deadline.Add(1))), act: barrier.ActWait},
		{name: "an earlier process's vote", s: situation(staging, built(next), func(s *barrier.Situation) { s.View.Ballot = barrier.Ballot{Boot: "a.0", Vote: barrier.Acked} }), act: barrier.ActAck},
		{name: "the bytes could not be fetched a moment ago", s: situation(staging, failing(next, time.Second)), act: barrier.ActWait, says: "port in use"},
		{name: "the bytes could not be fetched, and it is time again", s: situation(staging, failing(next, 0)), act: barrier.ActBuild, p: next},
		{name: "a generation that was applied", s: situation(staging, func(s *barrier.Situation) { s.Memory.Highest = 3 }), act: barrier.ActNack, says: "not above 3"},
		{name: "does not run what is committed", s: situation(staging, running(restored), failing(was, time.Second)), act: barrier.ActWait, says: "does not run what is committed"},
		{name: "cannot run what is committed", s: situation(staging, running(restored), failing(was, time.Second), func(s *barrier.Situation) { s.Local.Failure.Terminal = true }), act: barrier.ActNack, says: "does not run generation 2, which is committed: port in use"},
		{name: "the store was restored", s: situation(staging, elsewhere(restored)), act: barrier.ActBuild, p: next},
		{name: "the store was restored, with a window", s: situation(staging, elsewhere(restored), func(s *barrier.Situation) { s.View.Rollout.Window = window }), act: barrier.ActNack, says: "was the store restored"},
		{name: "another store commits something else under the generation", s: situation(staging, elsewhere(barrier.Pointer{Generation: 2, Digest: "t:x"}), func(s *barrier.Situation) { s.View.Rollout.Window = window }), act: barrier.ActNack, says: "commits t:x under generation 2"},
		{name: "nothing was ever committed", s: situation(staging, elsewhere(barrier.Pointer{}), func(s *barrier.Situation) { s.Memory, s.Local.Running = barrier.Memory{}, barrier.Pointer{} }), act: barrier.ActBuild, p: next},

		// Following what is committed.
		{name: "committed", s: situation(committed, built(next)), act: barrier.ActRemember, then: barrier.Memory{Confirmed: next, Highest: 3}},
		{name: "committed, and remembered", s: situation(committed, built(next), func(s *barrier.Situation) { s.Memory = barrier.Memory{Confirmed: next, Highest: 3} }), act: barrier.ActSwap, p: next},
		{name: "committed, and not built", s: situation(committed), act: barrier.ActBuild, p: next},
		{name: "committed, and another thing built", s: situation(committed, built(was)), act: barrier.ActBuild, p: next},
		{name: "committed, and failed a moment ago", s: situation(committed, failing(next, time.Second)), act: barrier.ActWait},
		{name: "committed, at the start of a process", s: situation(committed, running(barrier.Pointer{})), act: barrier.ActBuild, p: was},
		{name: "committed, at the start of a process that cannot run what it has", s: situation(committed, running(barrier.Pointer{}), failing(was, time.Second)), act: barrier.ActBuild, p: next},
		{name: "committed, at the start of a process that can run neither", s: situation(committed, running(barrier.Pointer{}), failing(next, time.Second)), act: barrier.ActWait},
		{name: "committed, at the start of a process that has nothing", s: situation(committed, running(barrier.Pointer{}), func(s *barrier.Situation) { s.Memory = barrier.Memory{} }), act: barrier.ActBuild, p: next},
		{name: "committed, and running", s: situation(committed, func(s *barrier.Situation) {
			s.Memory, s.Local.Running = barrier.Memory{Confirmed: next, Highest: 3}, next
		}), act: barrier.ActWait},
		{name: "a restart, with nothing decided since", s: situation(aborted, running(barrier.Pointer{})), act: barrier.ActBuild, p: was},
		{name: "the store was restored, and nothing is proposed", s: situation(none, elsewhere(restored)), act: barrier.ActWait, says: "nothing to do"},

		// Tidying.
		{name: "aborted", s: situation(aborted, built(next)), act: barrier.ActDiscard},
		{name: "aborted, refused before", s: situation(aborted, refused), act: barrier.ActDiscard},
		{name: "withdrawn before the swap", s: situation(trial, built(next), withdrawnNow), act: barrier.ActDiscard},
		{name: "built for another rollout", s: situation(staging, ballot(acked), func(s *barrier.Situation) {
			s.Local.Built = &barrier.Built{Ref: barrier.Ref{ID: "r2", Generation: 2}, Pointer: next}
		}), act: barrier.ActDiscard},

		// Into a trial.
		{name: "on trial", s: situation(trial, built(next)), act: barrier.ActRemember, then: remembering(trying)},
		{name: "on trial, not of the epoch", s: situation(trial, func(s *barrier.Situation) { s.View.InEpoch = false }), act: barrier.ActWait},
		{name: "on trial, without an ack of this process", s: situation(trial, func(s *barrier.Situation) { s.View.Ballot.Boot = "a.0" }), act: barrier.ActWait},
		{name: "on trial, lost what was built", s: situation(trial), act: barrier.ActBuild, p: next},
		{name: "on trial, could not remember it", s: situation(trial, built(next), failing(next, 0)), act: barrier.ActWithdraw, says: "port in use"},
		{name: "on trial, with the soak left", s: situation(trial, built(next), now(confirm.Add(-soak))), act: barrier.ActRemember, then: remembering(trying)},
		{name: "on trial, with less left", s: situation(trial, built(next), now(confirm.Add(-soak+1))), act: barrier.ActWithdraw, says: "less than the soak of 10s"},
		{name: "on trial, after D", s: situation(trial, built(next), now(confirm.Add(1))), act: barrier.ActWithdraw, says: "only 0s"},
		{name: "on trial, after D and grace", s: situation(trial, built(next), now(due.Add(1))), act: barrier.ActRevert, says: "a: not confirmed in time"},
		{name: "on trial, of a generation that was applied", s: situation(trial, built(next), func(s *barrier.Situation) { s.Memory.Highest = 3 }), act: barrier.ActWithdraw, says: "not above 3"},
		{name: "on trial, withdrawn", s: situation(trial, withdrawnNow), act: barrier.ActWait},

		// In a trial.
		{name: "remembered", s: situation(trial, trying, running(was), built(next)), act: barrier.ActSwap, p: next},
		{name: "remembered, and too late", s: situation(trial, trying, running(was), built(next), now(confirm.Add(-time.Second))), act: barrier.ActWithdraw, says: "only 1s"},
		{name: "remembered, and the swap failed", s: situation(trial, trying, running(was), failing(next, time.Second)), act: barrier.ActWithdraw, says: "port in use"},
		{name: "remembered, and withdrawn", s: situation(trial, trying, running(was), withdrawnNow), act: barrier.ActWait, says: "withdrawn: broken"},
		{name: "remembered, and the bytes cannot be fetched", s: situation(trial, trying, running(was), func(s *barrier.Situation) {
			s.Local.Failure = barrier.Failure{Pointer: next, Reason: "no route", Again: s.Clock + 1}
		}), act: barrier.ActWait, says: "no route"},
		{name: "healthy", s: situation(trial, trying), act: barrier.ActConverge, says: "works"},
		{name: "healthy, and said a moment ago", s: situation(trial, trying, ballot(converged(decided.Add(20*time.Second)))), act: barrier.ActWait, says: "converged"},
		{name: "healthy, and a third of the evidence's time has passed", s: situation(trial, trying, ballot(converged(decided.Add(20*time.Second-ttl/3)))), act: barrier.ActConverge},
		{name: "healthy, and the store's clock stepped back", s: situation(trial, trying, ballot(converged(decided.Add(20*time.Second+ttl+1)))), act: barrier.ActConverge},
		{name: "healthy, and the store's clock stepped back a little", s: situation(trial, trying, ballot(converged(decided.Add(20*time.Second+ttl)))), act: barrier.ActWait, says: "converged"},
		{name: "not healthy yet", s: situation(trial, trying, unhealthy), act: barrier.ActWait, says: "not converged: no origin"},
		{name: "not healthy, and it could not be proved in time any more", s: situation(trial, trying, unhealthy, now(confirm.Add(1-soak))), act: barrier.ActWithdraw, says: "less than the soak of"},
		{name: "not healthy, and just enough of the window remains", s: situation(trial, trying, unhealthy, now(confirm.Add(-soak))), act: barrier.ActWait, says: "not converged: no origin"},
		{name: "no longer healthy", s: situation(trial, trying, unhealthy, ballot(converged(decided.Add(19*time.Second)))), act: barrier.ActWithdraw, says: "no origin"},
		{name: "no longer healthy, for no reason", s: situation(trial, trying, func(s *barrier.Situation) { s.Local.Health = barrier.Health{} }, ballot(converged(decided.Add(19*time.Second)))), act: barrier.ActWithdraw, says: "no longer converged"},
		{name: "withdrawn", s: situation(trial, trying, withdrawnNow), act: barrier.ActWait, says: "withdrawn: broken"},
		{name: "at D and grace", s: situation(trial, trying, now(due)), act: barrier.ActConverge},
		{name: "after D and grace", s: situation(trial, trying, now(due.Add(1))), act: barrier.ActRevert, says: "a: not confirmed in time"},
		{name: "after D and grace, one Revert unanswered", s: situation(trial, trying, now(due.Add(1)), func(s *barrier.Situation) { s.Local.RevertFails = 1 }), act: barrier.ActRevert},
		{name: "after D and grace, two Reverts unanswered", s: situation(trial, trying, now(due.Add(1)), func(s *barrier.Situation) { s.Local.RevertFails = 2 }), act: barrier.ActRemember, then: remembering(left(barrier.ByGuess))},

		// Out of a trial that was left.
		{name: "left, and still running it", s: situation(trial, left(barrier.ByGuess), running(next)), act: barrier.ActBuild, p: was},
		{name: "left by guess, and the store is back", s: situation(trial, left(barrier.ByGuess)), act: barrier.ActWithdraw, says: "taken back while the store was out of reach"},
		{name: "left by guess, and said so", s: situation(trial, left(barrier.ByGuess), withdrawnNow), act: barrier.ActWait, says: "withdrawn: broken"},
		{name: "left by guess, and late", s: situation(trial, left(barrier.ByGuess), now(due.Add(1))), act: barrier.ActRevert, says: "left (guess)"},
		{name: "left by a restart", s: situation(trial, left(barrier.ByRestart)), act: barrier.ActWait, says: "the trial was left: restart"},

		// The end of a trial.
		{name: "confirmed", s: situation(confirmed, trying), act: barrier.ActRemember, then: barrier.Memory{Confirmed: next, Highest: 3}},
		{name: "confirmed, after a guess", s: situation(confirmed, left(barrier.ByGuess)), act: barrier.ActRemember, then: barrier.Memory{Confirmed: next, Highest: 3, Flaps: 1}},
		{name: "confirmed, after a restart", s: situation(confirmed, left(barrier.ByRestart)), act: barrier.ActRemember, then: barrier.Memory{Confirmed: next, Highest: 3}},
		{name: "confirmed, and the disk is full", s: situation(confirmed, trying, failing(next, time.Second)), act: barrier.ActWait, says: "port in use"},
		{name: "reverted", s: situation(reverted, trying), act: barrier.ActBuild, p: was},
		{name: "reverted, and built", s: situation(reverted, trying, built(was)), act: barrier.ActSwap, p: was},
		{name: "reverted, and swapped", s: situation(reverted, trying, running(was)), act: barrier.ActRemember, then: barrier.Memory{Confirmed: was, Highest: 3}},
		{name: "reverted, and unable to go back", s: situation(reverted, trying, failing(was, time.Second)), act: barrier.ActWait, says: "cannot go back: port in use"},
		{name: "another rollout since, and the pointer on the trial", s: situation(aborted, trying, elsewhere(next), other), act: barrier.ActRemember, then: barrier.Memory{Confirmed: next, Highest: 3}},
		{name: "another rollout since, and the pointer where it was", s: situation(aborted, trying, other), act: barrier.ActBuild, p: was},
		{name: "another rollout since, and the pointer beyond", s: situation(aborted, trying, elsewhere(later), other), act: barrier.ActBuild, p: later},
		{name: "another rollout since, and beyond built", s: situation(aborted, trying, elsewhere(later), other, built(later)), act: barrier.ActRemember, then: barrier.Memory{Confirmed: later, Highest: 5}},
		{name: "another store, with the generation confirmed for another digest", s: situation(none, trying, elsewhere(barrier.Pointer{Generation: 3, Digest: "t:x"})), act: barrier.ActBuild, p: was},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := barrier.Step(tt.s)
			if a.Act != tt.act || !strings.Contains(a.Reason, tt.says) {
				t.Fatalf("%+v, want %s (%q)", a, tt.act, tt.says)
			}
			switch a.Act {
			case barrier.ActBuild, barrier.ActSwap:
				if a.Pointer != tt.p {
					t.Errorf("of %v, want %v", a.Pointer, tt.p)
				}
				if candidate := a.Act == barrier.ActBuild && a.Pointer == next && tt.s.View.Rollout.Voting(); a.Candidate != candidate {
					t.Errorf("candidate: %t", a.Candidate)
				}
			case barrier.ActRemember:
				if d := cmp.Diff(tt.then, a.Memory); d != "" {
					t.Errorf("memory (-want +got):\n%s", d)
				}
			case barrier.ActWait:
				if a.Until <= tt.s.Clock || a.Until > tt.s.Clock+tt.s.Timing.Poll {
					t.Errorf("until %v, and the clock shows %v", a.Until, tt.s.Clock)
				}
			case barrier.ActAck:
				if a.BuildDigest != "built" || a.Ref != ref {
					t.Errorf("%+v", a)
				}
			case barrier.ActNack, barrier.ActConverge, barrier.ActWithdraw, barrier.ActRevert:
				if a.Ref != ref {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}

// remembering is what a situation on trial remembers, changed by changes.
func remembering(changes ...change) barrier.Memory { return situation(trial, changes...).Memory }

// other puts another rollout in the place of the trial.
func other(s *barrier.Situation) {
	s.View.Rollout.Ref = barrier.Ref{ID: "r4", Generation: 4}
	s.View.InEpoch = false
}

func TestWaitsUntilWhatIsDue(t *testing.T) {
	for name, tt := range map[string]struct {
		s    barrier.Situation
		want time.Duration
	}{
		"nothing":                {situation(none), time.Second},
		"an attempt":             {situation(committed, failing(next, 300*time.Millisecond)), 300 * time.Millisecond},
		"an attempt far away":    {situation(committed, failing(next, time.Minute)), time.Second},
		"D and grace":            {situation(trial, trying, away(1), func(s *barrier.Situation) { s.Local.Revert = s.Clock + 200*time.Millisecond }), 200 * time.Millisecond},
		"a renewal":              {situation(trial, trying, ballot(converged(decided.Add(19*time.Second))), func(s *barrier.Situation) { s.View.Rollout.EvidenceTTL = 6 * time.Second }), time.Second},
		"a renewal of short use": {situation(trial, trying, ballot(converged(decided.Add(20*time.Second))), func(s *barrier.Situation) { s.View.Rollout.EvidenceTTL = 300 * time.Millisecond }), 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if a := barrier.Step(tt.s); a.Act != barrier.ActWait || a.Until-tt.s.Clock != tt.want {
				t.Errorf("%+v, want to wait for %v", a, tt.want)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	const at = 40 * time.Second
	view := func(state string, changes ...change) barrier.View { return *situation(state, changes...).View }
	t.Run("an answer ends the misses", func(t *testing.T) {
		s := situation(none, away(3)).Observe(view(none), at)
		if s.Local.Misses != 0 || s.View == nil {
			t.Errorf("%+v", s.Local)
		}
	})
	t.Run("a miss", func(t *testing.T) {
		if s := situation(none).Missed().Missed(); s.Local.Misses != 2 || s.View != nil {
			t.Errorf("%+v", s.Local)
		}
	})
	t.Run("a join whose answer was lost", func(t *testing.T) {
		s := situation(none, func(s *barrier.Situation) { s.Local.Incarnation = 0 }).Observe(view(none), at)
		if s.Local.Incarnation != 1 || s.Local.Superseded {
			t.Errorf("%+v", s.Local)
		}
	})
	later := barrier.Registration{Boot: "a.2", Incarnation: 2}
	t.Run("another process since", func(t *testing.T) {
		s := situation(none).Observe(view(none, func(s *barrier.Situation) { s.View.Registration = later }), at)
		if !s.Local.Superseded {
			t.Error("not superseded")
		}
	})
	t.Run("another process before this one has joined", func(t *testing.T) {
		s := situation(none, func(s *barrier.Situation) { s.Local.Incarnation = 0 }).Observe(view(none, func(s *barrier.Situation) { s.View.Registration = later }), at)
		if s.Local.Superseded {
			t.Error("superseded by a process that came first")
		}
	})
	t.Run("a store that forgot the registration", func(t *testing.T) {
		s := situation(none).Observe(view(none, func(s *barrier.Situation) { s.View.Registration = barrier.Registration{} }), at)
		if s.Local.Superseded || barrier.Step(s).Act != barrier.ActJoin {
			t.Error("does not join anew")
		}
	})
	t.Run("the deadman counts from the answer", func(t *testing.T) {
		s := situation(trial, trying).Observe(view(trial), at)
		if want := at + window + grace - 20*time.Second; s.Local.Revert != want {
			t.Errorf("runs out at %v, want %v", s.Local.Revert, want)
		}
	})
	t.Run("a deadman that has long run out", func(t *testing.T) {
		s := situation(trial, trying).Observe(view(trial, now(confirm.Add(time.Hour))), at)
		if s.Local.Revert != 1 {
			t.Errorf("runs out at %v, want the first instant", s.Local.Revert)
		}
	})
	t.Run("a trial that was confirmed is nothing to guess about", func(t *testing.T) {
		s := situation(trial, trying).Observe(view(trial), at).Observe(view(confirmed), at)
		if s.Local.Revert != 0 {
			t.Errorf("runs out at %v", s.Local.Revert)
		}
	})
	t.Run("a confirmed trial that was to be left and still runs is not left any more", func(t *testing.T) {
		for _, why := range []barrier.TakenBack{barrier.ByGuess, barrier.BySupplant} {
			was := situation(trial, left(why), running(next), built(was))
			s := was.Observe(view(confirmed), at)
			if got := s.Memory.Trial.TakenBack; got != "" || s.Local.Revert != 0 {
				t.Errorf("left (%s), runs out at %v", got, s.Local.Revert)
			}
			if was.Memory.Trial.TakenBack != why {
				t.Error("what was remembered before was changed")
			}
			// The disk does not take it, and the store goes out of reach again.
			s = s.After(barrier.Step(s), barrier.Result{Err: errors.New("no space left on device")}).Missed().Missed()
			if a := barrier.Step(s); a.Act != barrier.ActWait {
				t.Errorf("takes back what is confirmed: %s %v", a.Act, a.Pointer)
			}
		}
	})
	t.Run("a confirmed trial that was left stays so until it is remembered", func(t *testing.T) {
		if s := situation(trial, left(barrier.ByGuess)).Observe(view(confirmed), at); s.Memory.Trial.TakenBack != barrier.ByGuess {
			t.Errorf("left (%s)", s.Memory.Trial.TakenBack)
		}
	})
	t.Run("without a trial there is no deadman", func(t *testing.T) {
		s := situation(trial, func(s *barrier.Situation) { s.Local.Revert, s.Local.RevertFails = 5, 2 }).Observe(view(trial), at)
		if s.Local.Revert != 0 || s.Local.RevertFails != 0 {
			t.Errorf("%+v", s.Local)
		}
	})
}

func TestAfter(t *testing.T) {
	bad, gone := errors.New("bad"), errors.New("no route")
	act := func(a barrier.Act) barrier.Action { return barrier.Action{Act: a, Ref: ref, Pointer: next} }
	remember := func(m barrier.Memory) barrier.Action {
		return barrier.Action{Act: barrier.ActRemember, Pointer: next, Memory: m}
	}
	candidate := act(barrier.ActBuild)
	candidate.Candidate = true
	failure := func(attempts int, reason string, in time.Duration) barrier.Failure {
		return barrier.Failure{Pointer: next, Attempts: attempts, Reason: reason, Again: 100*time.Second + in}
	}
	tests := []struct {
		name string
		s    barrier.Situation
		a    barrier.Action
		r    barrier.Result
		want func(*barrier.Situation)
	}{
		{"joined", situation(none, func(s *barrier.Situation) { s.Local.Incarnation = 0 }), act(barrier.ActJoin), barrier.Result{Incarnation: 4}, func(s *barrier.Situation) { s.Local.Incarnation = 4 }},
		{"not joined", situation(none), act(barrier.ActJoin), barrier.Result{Err: bad, Incarnation: 4}, nil},
		{"built", situation(staging), candidate, barrier.Result{BuildDigest: "x"}, func(s *barrier.Situation) {
			s.Local.Built = &barrier.Built{Ref: ref, Pointer: next, BuildDigest: "x"}
		}},
		{"built, after the bytes were out of reach", situation(staging, func(s *barrier.Situation) { s.Local.Failure = failure(0, "no route", 0) }), candidate, barrier.Result{}, func(s *barrier.Situation) {
			s.Local.Failure, s.Local.Built = barrier.Failure{}, &barrier.Built{Ref: ref, Pointer: next}
		}},
		{"built, after a swap failed", situation(committed, func(s *barrier.Situation) { s.Local.Failure = failure(2, "port in use", 0) }), act(barrier.ActBuild), barrier.Result{}, func(s *barrier.Situation) {
			s.Local.Built = &barrier.Built{Ref: ref, Pointer: next}
		}},
		{"a candidate that cannot be built", situation(staging), candidate, barrier.Result{Err: bad}, func(s *barrier.Situation) {
			s.Local.Built = &barrier.Built{Ref: ref, Pointer: next, Refusal: "bad"}
		}},
		{"what is decided cannot be built", situation(committed, built(was)), act(barrier.ActBuild), barrier.Result{Err: bad}, func(s *barrier.Situation) {
			s.Local.Built, s.Local.Failure = nil, failure(1, "bad", time.Second)
		}},
		{"the bytes are out of reach", situation(staging), candidate, barrier.Result{Err: gone, Unavailable: true}, func(s *barrier.Situation) {
			s.Local.Failure = failure(0, "no route", time.Second)
		}},
		{"there are no bytes for a candidate", situation(staging), candidate, barrier.Result{Err: barrier.ErrNoArtefact, Unavailable: true}, func(s *barrier.Situation) {
			s.Local.Built = &barrier.Built{Ref: ref, Pointer: next, Refusal: barrier.ErrNoArtefact.Error()}
		}},
		{"there are no bytes of what is decided", situation(committed), act(barrier.ActBuild), barrier.Result{Err: barrier.ErrNoArtefact, Unavailable: true}, func(s *barrier.Situation) {
			s.Local.Failure = failure(1, barrier.ErrNoArtefact.Error(), time.Second)
		}},
		{"discarded", situation(aborted, built(next)), act(barrier.ActDiscard), barrier.Result{}, func(s *barrier.Situation) { s.Local.Built = nil }},
		{"remembered", situation(trial), remember(remembering(trying)), barrier.Result{}, func(s *barrier.Situation) { s.Memory = remembering(trying) }},
		{"not remembered", situation(trial), remember(remembering(trying)), barrier.Result{Err: bad}, func(s *barrier.Situation) { s.Local.Failure = failure(1, "bad", time.Second) }},
		{"not remembered, it is said, and found there", situation(trial, func(s *barrier.Situation) { s.Local.Unsure = next }), remember(remembering(trying)), barrier.Result{Err: bad, OnDisk: barrier.FoundOnDisk}, func(s *barrier.Situation) {
			s.Memory, s.Local.Unsure, s.Local.Failure = remembering(trying), barrier.Pointer{}, failure(1, "bad", time.Second)
		}},
		{"perhaps remembered", situation(confirmed, trying), remember(barrier.Memory{Confirmed: next, Highest: 3}), barrier.Result{Err: bad, OnDisk: barrier.UnknownOnDisk}, func(s *barrier.Situation) {
			s.Local.Unsure, s.Local.Failure = next, failure(1, "bad", time.Second)
		}},
		{"remembered at last", situation(confirmed, trying, func(s *barrier.Situation) { s.Local.Unsure = next }), remember(barrier.Memory{Confirmed: next, Highest: 3}), barrier.Result{}, func(s *barrier.Situation) {
			s.Memory, s.Local.Unsure = barrier.Memory{Confirmed: next, Highest: 3}, barrier.Pointer{}
		}},
		{"left, though it is not remembered", situation(trial, trying), remember(remembering(left(barrier.ByGuess))), barrier.Result{Err: bad}, func(s *barrier.Situation) {
			s.Memory = remembering(left(barrier.ByGuess))
		}},
		{"swapped", situation(committed, built(next), func(s *barrier.Situation) { s.Local.Failure = failure(2, "bad", 0) }), act(barrier.ActSwap), barrier.Result{}, func(s *barrier.Situation) {
			s.Local.Built, s.Local.Failure, s.Local.Running = nil, barrier.Failure{}, next
		}},
		{"not swapped", situation(committed, built(next)), act(barrier.ActSwap), barrier.Result{Err: bad}, func(s *barrier.Situation) {
			s.Local.Built, s.Local.Failure = nil, failure(1, "bad", time.Second)
		}},
		{"acked", situation(staging), act(barrier.ActAck), barrier.Result{}, nil},
		{"not converged", situation(trial), act(barrier.ActConverge), barrier.Result{Err: bad}, nil},
		{"a Revert that was not answered", situation(trial), act(barrier.ActRevert), barrier.Result{Err: bad}, func(s *barrier.Situation) { s.Local.RevertFails = 1 }},
		{"a Revert that was refused", situation(trial, func(s *barrier.Situation) { s.Local.RevertFails = 1 }), act(barrier.ActRevert), barrier.Result{Err: barrier.ErrEarly}, func(s *barrier.Situation) { s.Local.RevertFails = 0 }},
		{"reverted", situation(trial, func(s *barrier.Situation) { s.Local.RevertFails = 1 }), act(barrier.ActRevert), barrier.Result{}, func(s *barrier.Situation) { s.Local.RevertFails = 0 }},
		{"a failure of something else before", situation(committed, failing(was, time.Second)), act(barrier.ActSwap), barrier.Result{Err: bad}, func(s *barrier.Situation) {
			s.Local.Failure = failure(1, "bad", time.Second)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.s
			if tt.want != nil {
				tt.want(&want)
			}
			if d := cmp.Diff(want, tt.s.After(tt.a, tt.r)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestAttemptsComeLaterAndLater(t *testing.T) {
	s := situation(committed)
	a := barrier.Action{Act: barrier.ActSwap, Pointer: next}
	var pauses []time.Duration
	for range 9 {
		s = s.After(a, barrier.Result{Err: errors.New("bad")})
		pauses = append(pauses, s.Local.Failure.Again-s.Clock)
		if terminal := len(pauses) >= s.Timing.MaxAttempts; s.Local.Failure.Terminal != terminal {
			t.Errorf("after %d attempts terminal is %t", len(pauses), s.Local.Failure.Terminal)
		}
	}
	const sec = time.Second
	if d := cmp.Diff([]time.Duration{sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec, 32 * sec, time.Minute, time.Minute, time.Minute}, pauses); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRestarted(t *testing.T) {
	if m := remembering(trying).Restarted(); m.Trial.TakenBack != barrier.ByRestart {
		t.Errorf("%+v", m.Trial)
	}
	if m := remembering(left(barrier.ByGuess)).Restarted(); m.Trial.TakenBack != barrier.ByGuess {
		t.Errorf("a guess is forgotten: %+v", m.Trial)
	}
	if m := (barrier.Memory{}).Restarted(); m.Trial != nil {
		t.Errorf("%+v", m)
	}
	if m := remembering(trying); !m.Names(was.Digest) || !m.Names(next.Digest) || m.Names("t:x") || (barrier.Memory{}).Names("t:x") {
		t.Error("Names")
	}
}
