package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// Control planes whose clocks are wrong take down what nodes say like any other, and what they wrote stands in the way of nothing
// when they are gone.
func TestWrongClocks(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.published(t)
		n := w.node(t, "fra1")
		hash := w.liveRow(t).ContentHash
		off := func(by time.Duration) *control.Service {
			svc := w.service(t, w.store, func(c *control.Config) { c.Now = func() time.Time { return time.Now().Add(by) } })
			stop := run(t, svc)
			t.Cleanup(stop)
			if err := svc.Ready(ctx); err != nil { // it has read the store
				t.Fatal(err)
			}
			return svc
		}
		ahead, behind, right := off(2*time.Hour), off(-24*time.Hour), off(0)
		steps := []struct {
			name     string
			by       *control.Service
			boot     string
			sequence uint64
			want     uint64 // sequence that is stored
		}{
			{"by the clock ahead", ahead, "a", 1, 1},
			{"the next, by the clock behind", behind, "a", 2, 2},
			{"the next, by the right clock", right, "a", 3, 3},
			{"one that was under way", ahead, "a", 2, 3},
			{"a new process, by the clock ahead", ahead, "b", 1, 1},
			{"the next, by the clock behind", behind, "b", 2, 2},
			{"a new process, by the clock behind", behind, "c", 1, 1},
			{"a new process, by the right clock", right, "d", 7, 7},
		}
		for i, s := range steps {
			a := nodeproto.Ack{Version: 1, Generation: 1, Epoch: 1, ContentHash: hash, Boot: strings.Repeat(s.boot, 32), Sequence: s.sequence}
			if err := s.by.Ack(ctx, n, a); err != nil {
				t.Fatal(err)
			}
			nodes, err := right.ListNodes(ctx, w.operator)
			if err != nil {
				t.Fatal(err)
			}
			got := nodes[0]
			if got.Acked.Sequence != s.want || got.Acked.Boot[:1] != s.boot {
				t.Errorf("%d %s: stored is %+v", i, s.name, got.Acked)
			}
			if late := time.Since(got.LastSeen); late < -time.Second || s.by == right && late > time.Minute || strings.HasPrefix(w.url, "postgres") && late > time.Minute {
				t.Errorf("%d %s: last seen %s ago", i, s.name, late)
			}
		}
		// The log is in the order of the deeds.
		for i, svc := range []*control.Service{ahead, behind, right} {
			if _, err := svc.CreateWorkspace(ctx, w.operator, fmt.Sprintf("w%d", i), "standard"); err != nil {
				t.Fatal(err)
			}
		}
		log, err := right.ListAudit(ctx, w.operator, true, control.Page{Limit: 3})
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range log.Items {
			if want := fmt.Sprintf("w%d", 2-i); a.Target != want {
				t.Errorf("entry %d is of %s, want %s", i, a.Target, want)
			}
		}
	})
}
