package barrier

import (
	"errors"
	"time"
)

// Result is what came of an Action. Err is nil when it was done.
type Result struct {
	Err         error
	Unavailable bool   // of Build: the bytes could not be fetched now; that is nobody's fault
	BuildDigest string // of Build
	Incarnation uint64 // of Join
	OnDisk      OnDisk // of Remember with an Err
}

// OnDisk is what became of a Memory whose Save failed: the write may have been done, and what makes it durable not.
type OnDisk int

// What a Load after the failure tells.
const (
	NotOnDisk   OnDisk = iota
	FoundOnDisk        // it is there all the same
	UnknownOnDisk
)

// Observe notes an answer of the store: v arrived when the monotonic clock showed at. Counted from the
// arrival, the deadman runs out late by the answer's way, never early.
func (s Situation) Observe(v View, at time.Duration) Situation {
	s.View = &v
	s.Local.Misses = 0
	switch reg := v.Registration; {
	case reg.Boot == s.Boot:
		s.Local.Incarnation = reg.Incarnation
	case s.Local.Incarnation > 0 && reg.Incarnation > s.Local.Incarnation:
		s.Local.Superseded = true
	}
	t := s.Memory.Trial
	switch {
	case t == nil:
		s.Local.Revert, s.Local.RevertFails = 0, 0
	case v.Rollout != nil && v.Rollout.Ref == t.Ref && v.Rollout.OnTrial():
		due := max(at+v.Rollout.RevertDue().Sub(v.Now), 1)
		if s.Local.Revert > 0 {
			// Each answer tells a moment that is not too early; the store's clock may have stepped back since.
			due = min(due, s.Local.Revert)
		}
		s.Local.Revert = due
	case v.Committed == t.Pointer, v.Previous != nil && v.Previous.Ref == t.Ref && v.Previous.State == Confirmed:
		// Nothing is left to guess, even if the disk does not take it yet and the store goes out of reach. What was to be left
		// and still runs is not left any more.
		s.Local.Revert = 0
		if t.TakenBack != "" && s.Local.Running == t.Pointer {
			kept := *t
			kept.TakenBack = ""
			s.Memory.Trial = &kept
		}
	}
	return s
}

// Missed notes that the store did not answer.
func (s Situation) Missed() Situation {
	s.View = nil
	s.Local.Misses++
	return s
}

// After notes what came of a. The row must be read again before the next Step.
func (s Situation) After(a Action, r Result) Situation {
	l := &s.Local
	switch a.Act {
	case ActJoin:
		if r.Err == nil {
			l.Incarnation = r.Incarnation
		}
	case ActBuild:
		s.built(a, r)
	case ActDiscard:
		l.Built = nil
	case ActRemember:
		// A trial that is left is left, even if the disk does not take it: a new process boots Confirmed anyway.
		left := a.Memory.Trial != nil && a.Memory.Trial.TakenBack != ""
		switch {
		case r.Err == nil:
			s.Memory, l.Unsure = a.Memory, Pointer{}
		case left:
			s.Memory = a.Memory
		default:
			switch {
			case r.OnDisk == FoundOnDisk:
				s.Memory, l.Unsure = a.Memory, Pointer{}
			case r.OnDisk == UnknownOnDisk && a.Memory.Confirmed.Generation > l.Unsure.Generation:
				l.Unsure = a.Memory.Confirmed
			}
			s.fail(a.Pointer, r.Err, true)
		}
	case ActSwap:
		l.Built = nil // used, whatever came of it
		if r.Err == nil {
			l.Running, l.Failure, l.Health = a.Pointer, Failure{}, Health{}
		} else {
			s.fail(a.Pointer, r.Err, true)
		}
	case ActAck, ActNack, ActConverge, ActWithdraw:
		// The row tells.
	case ActRevert:
		if r.Err != nil && Code(r.Err) == "" {
			l.RevertFails++
		} else {
			l.RevertFails = 0
		}
	}
	return s
}

func (s *Situation) built(a Action, r Result) {
	l := &s.Local
	switch {
	case r.Err == nil:
		l.Built = &Built{Ref: a.Ref, Pointer: a.Pointer, BuildDigest: r.BuildDigest}
		if l.Failure.Pointer == a.Pointer && l.Failure.Attempts == 0 {
			l.Failure = Failure{}
		}
	case r.Unavailable && !errors.Is(r.Err, ErrNoArtefact):
		l.Built = nil
		s.fail(a.Pointer, r.Err, false)
	case a.Candidate:
		l.Built = &Built{Ref: a.Ref, Pointer: a.Pointer, Refusal: r.Err.Error()}
	default:
		l.Built = nil
		s.fail(a.Pointer, r.Err, true)
	}
}

// fail puts the next attempt at p off, twice as long each time.
func (s *Situation) fail(p Pointer, err error, counts bool) {
	f := &s.Local.Failure
	if f.Pointer != p {
		*f = Failure{Pointer: p}
	}
	f.Reason = err.Error()
	pause := s.Timing.Poll
	if counts {
		f.Attempts++
		for i := 1; i < f.Attempts && pause < s.Timing.MaxBackoff; i++ {
			pause *= 2
		}
	}
	f.Again = s.Clock + min(pause, s.Timing.MaxBackoff)
	f.Terminal = f.Terminal || f.Attempts >= s.Timing.MaxAttempts
}
