package dynamo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// TestAClockMinutesOff: a process whose clock is off by far more than ClockSkew makes changes fail, and never one succeed that was not proven: what it
// proves does not count for others, nor what they prove for it, and nobody votes for what it proposes behind its time.
func TestAClockMinutesOff(t *testing.T) {
	table := newTable(t)
	for name, off := range map[string]time.Duration{"ahead": 5 * time.Minute, "behind": -5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			o := options(table)
			right := open(t, o)
			o.Now = func() time.Time { return time.Now().Add(off) }
			wrong := open(t, o)
			roster := members(t, right, 2)
			baseline(t, right)
			p := windowed(roster)
			p.Window, p.EvidenceTTL, p.Deadline = time.Hour, 30*time.Second, 10*time.Minute
			ro := must(right.Propose(t.Context(), p))(t)
			ok(t, right.Claim(t.Context(), 1))
			ack(t, right, ro.Ref, roster.Members[0])
			ack(t, wrong, ro.Ref, roster.Members[1])
			ok(t, right.Commit(t.Context(), ro.Ref, 1))
			ok(t, right.Converge(t.Context(), ro.Ref, roster.Members[0], bootOf(roster.Members[0]), "works"))
			ok(t, wrong.Converge(t.Context(), ro.Ref, roster.Members[1], bootOf(roster.Members[1]), "works"))
			if err := right.Confirm(t.Context(), ro.Ref, 1); !errors.Is(err, barrier.ErrNotConverged) {
				t.Errorf("confirmed by the right clock: %v", err)
			}
			if err := wrong.Confirm(t.Context(), ro.Ref, 1); !errors.Is(err, barrier.ErrNotConverged) {
				t.Errorf("confirmed by the wrong clock: %v", err)
			}
			ok(t, right.Revert(t.Context(), ro.Ref, barrier.ByClaim(1), "not confirmed"))

			// One that the wrong clock proposes, with less time than it is off.
			p = after(t, right, windowed(roster))
			p.Window, p.EvidenceTTL, p.Deadline = time.Minute, 20*time.Second, time.Minute
			ro = must(wrong.Propose(t.Context(), p))(t)
			err := right.Ack(t.Context(), ro.Ref, roster.Members[0], bootOf(roster.Members[0]), "built")
			if late := errors.Is(err, barrier.ErrLate); late != (off < 0) || err != nil && !late {
				t.Errorf("acknowledged by the right clock: %v", err)
			}
		})
	}
}
