package barrier

import (
	"errors"
	"testing"
	"time"
)

// trialOf is a member's process that runs a trial of generation 2, over generation 1.
func trialOf() (Situation, View) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ro := Rollout{
		Ref: Ref{ID: "r2", Generation: 2}, Digest: "t:2", State: Committed, EpochSize: 1,
		Window: time.Minute, Soak: time.Second, Grace: time.Second, EvidenceTTL: time.Second, ConfirmDeadline: now.Add(time.Minute),
	}
	old := Pointer{Generation: 1, Digest: "t:1"}
	s := Situation{
		Self: "m", Boot: "a", Timing: DefaultTiming,
		Memory: Memory{Confirmed: old, Trial: &Trial{Ref: ro.Ref, Pointer: ro.Pointer(), Deadline: ro.ConfirmDeadline}, Highest: 2},
		Local:  Local{Incarnation: 1, Running: ro.Pointer()},
	}
	v := View{
		Head: Head{Generation: 2, Committed: old, Rollout: &ro}, InEpoch: true, Now: now,
		Registration: Registration{Boot: "a", Incarnation: 1, Joined: 1},
		Ballot:       Ballot{Boot: "a", Vote: Acked},
	}
	return s, v
}

func (v View) with(change func(*Head)) View {
	ro := *v.Rollout
	v.Rollout = &ro
	change(&v.Head)
	return v
}

func confirm(h *Head) { h.Rollout.State, h.Committed = Confirmed, h.Rollout.Pointer() }

func overtake(h *Head) {
	h.Previous = &Outcome{Ref: h.Rollout.Ref, Digest: h.Rollout.Digest, State: Confirmed}
	h.Rollout.Ref, h.Rollout.Digest, h.Rollout.State, h.Rollout.Window = Ref{ID: "r3", Generation: 3}, "t:3", Committed, 0
	h.Generation, h.Committed = 3, h.Rollout.Pointer()
}

// A process that is superseded leaves an open trial, and never one that was confirmed.
func TestSupersededStaysOnWhatWasConfirmed(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Head)
		want   Act
		goesTo Pointer // Remember's Confirmed
		trial  bool    // still remembered
	}{
		{"open", func(*Head) {}, ActRemember, Pointer{Generation: 1, Digest: "t:1"}, true},
		{"confirmed", confirm, ActRemember, Pointer{Generation: 2, Digest: "t:2"}, false},
		{"overtaken", overtake, ActBuild, Pointer{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, v := trialOf()
			v = v.with(tt.change)
			v.Registration = Registration{Boot: "b", Incarnation: 2, Joined: 2}
			a := Step(s.Observe(v, 0))
			if a.Act != tt.want || a.Memory.Confirmed != tt.goesTo || (a.Memory.Trial != nil) != tt.trial {
				t.Errorf("step = %+v, want %s to %v", a, tt.want, tt.goesTo)
			}
		})
	}
	t.Run("out of reach", func(t *testing.T) {
		s, v := trialOf()
		v.Registration = Registration{Boot: "b", Incarnation: 2, Joined: 2}
		if a := Step(s.Observe(v, 0).Missed()); a.Act != ActWait {
			t.Errorf("step = %+v, want wait: how the trial ended is not known", a)
		}
	})
}

// A member that has learned of Confirm and could not save it has nothing to guess when the store goes away.
func TestNoGuessAfterConfirmIsKnown(t *testing.T) {
	for name, change := range map[string]func(*Head){"confirmed": confirm, "overtaken": overtake} {
		t.Run(name, func(t *testing.T) {
			s, v := trialOf()
			s = s.Observe(v, 0)
			if s.Local.Revert == 0 {
				t.Fatal("the deadman is not armed in the window")
			}
			s = s.Observe(v.with(change), time.Second)
			s = s.After(Step(s), Result{Err: errors.New("no space left on device")})
			for s.Clock = 2 * time.Minute; s.Local.Misses < 2*guessAfter; {
				s = s.Missed()
			}
			if a := Step(s); a.Act != ActWait {
				t.Errorf("step = %+v, want wait", a)
			}
		})
	}
}
