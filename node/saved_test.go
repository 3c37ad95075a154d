package node

import (
	"testing"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/seal"
)

// TestLoadAfterAFailedSave: the write of a state may have been done although it failed. What a member is told then is what
// the file has, and the node goes on from it.
func TestLoadAfterAFailedSave(t *testing.T) {
	dir, err := durable.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	before := barrier.Memory{Confirmed: barrier.Pointer{Generation: 1, Digest: "content:a", Version: 1}, Highest: 1}
	after := barrier.Memory{Confirmed: barrier.Pointer{Generation: 2, Digest: "content:b", Version: 2}, Highest: 2}
	a := &Agent{cfg: Config{Dir: dir}, state: state{Marks: seal.Marks{}, Rollout: before}}
	c := &cohort{a: a}
	if err := writeState(dir, state{Marks: seal.Marks{}, Rollout: after}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		unsaved bool
		want    barrier.Memory
	}{{"saved", false, before}, {"perhaps saved", true, after}} {
		a.unsaved = tc.unsaved
		got, err := c.Load(t.Context())
		if err != nil || got != tc.want || a.state.Rollout != tc.want {
			t.Errorf("%s: %+v %v, and the node goes on from %+v; want %+v", tc.name, got, err, a.state.Rollout, tc.want)
		}
	}
}
