package barrier

import (
	"errors"
	"testing"
	"time"
)

// What no adapter can hold is refused where it must stay as it is, and replaced where it is for people.
func TestText(t *testing.T) {
	now := time.Unix(1, 0)
	seat := &Seat{Member: "m", Registration: Registration{Boot: "b", Incarnation: 1}}
	ro := Rollout{Ref: Ref{ID: "r", Generation: 1}, State: Staging, Deadline: now, EpochSize: 1}
	h := Head{Generation: 1, Claim: 1, Rollout: &ro}
	for name, bad := range map[string]string{"NUL": "a\x00b", "not UTF-8": "a\xffb"} {
		t.Run(name, func(t *testing.T) {
			p := Proposal{ID: "r", Proposer: bad, Digest: "s:v"}
			for what, err := range map[string]error{
				"proposer":     p.Check(),
				"build digest": func() error { _, err := h.Ack(ro.Ref, seat, "b", bad, now); return err }(),
				"operator":     func() error { _, err := h.Abort(ro.Ref, ByOperator(bad), "", now); return err }(),
				"lease holder": CheckLease(bad, time.Second),
			} {
				if !errors.Is(err, ErrInvalid) {
					t.Errorf("%s: got %v", what, err)
				}
			}
			if b, err := h.Nack(ro.Ref, seat, "b", bad, now); err != nil || b.Reason != "a\uFFFDb" {
				t.Errorf("reason: got %q, %v", b.Reason, err)
			}
		})
	}
}
