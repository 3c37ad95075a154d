package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
)

// failing is gdn built with the failpoints, once.
var failing = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(filepath.Dir(gdn), "gdn-failpoint")
	out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", binary, "github.com/guardyn-edge/guardyn/cmd/gdn").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build gdn with failpoints: %w\n%s", err, out)
	}
	return binary, err
})

// TestCoordinatorsDie kills and suspends whoever coordinates, at each step of a rollout with a window: between two decisions, and within
// the transaction of one. The other control plane goes on once the lease is over, nothing is decided twice, and one that wakes decides
// nothing.
func TestCoordinatorsDie(t *testing.T) {
	t.Parallel()
	if _, err := failing(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
		run    func(*cohortFleet, syscall.Signal) func([]sample)
	}{
		{"killed between decisions", syscall.SIGKILL, (*cohortFleet).diesBetween},
		{"suspended between decisions", syscall.SIGSTOP, (*cohortFleet).diesBetween},
		{"killed within decisions", syscall.SIGKILL, (*cohortFleet).diesWithin},
		{"suspended within decisions", syscall.SIGSTOP, (*cohortFleet).diesWithin},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// They wait for leases nearly all of the time.
			t.Parallel()
			c := newCohortFleet(t)
			c.watch(100 * time.Millisecond)
			soak(t, func() {
				c.scenario(t, "rollout", func() func([]sample) { return tt.run(c, tt.signal) })
			})
		})
	}
}

// hit kills or suspends a control plane; the way to the control planes leads to the other one from now on.
func (c *cohortFleet) hit(plane int, with syscall.Signal) {
	c.t.Helper()
	c.signal(c.planes[plane].control, with)
	c.fallen(plane, with)
}

// fallen is hit for a control plane that a failpoint killed or suspended.
func (c *cohortFleet) fallen(plane int, with syscall.Signal) {
	c.t.Helper()
	if with == syscall.SIGKILL {
		<-c.planes[plane].control.ended
	}
	c.front.use(c.planes[1-plane].apiAddr)
}

// revive starts a control plane again, or has it go on.
func (c *cohortFleet) revive(plane int, after syscall.Signal) {
	c.t.Helper()
	p := c.planes[plane]
	if after == syscall.SIGKILL {
		p.startControl()
	} else {
		c.signal(p.control, syscall.SIGCONT)
		c.f.await("the control plane answers again", func() error { return httpOK("http://" + p.apiAddr + "/readyz") })
	}
	c.front.use(c.planes[0].apiAddr, c.planes[1].apiAddr)
}

// slowly is a window that two successions fit into.
var slowly = []string{"--deadline", "80s", "--confirm-window", "80s", "--soak", "4s"}

// diesBetween: who coordinates falls while a vote is missing; then its successor falls while the change is on trial.
func (c *cohortFleet) diesBetween(with syscall.Signal) func([]sample) {
	c.next()
	late := c.members[3]
	late.stop(c)
	r := c.propose(slowly...)
	c.voted(r, 4)
	c.reaches(r, "staging")
	first := c.coordinator()
	c.hit(first, with)
	c.signal(late.process, syscall.SIGCONT)
	c.f.await(late.name+" answers again", func() error { return httpOK("http://" + late.admin + "/healthz") })
	late.up()
	c.reaches(r, "committed")
	if at := c.coordinator(); at == first {
		c.t.Error("the fallen one coordinates")
	}
	c.revive(first, with)
	c.serve(r.Generation, c.members...)
	c.hit(1-first, with)
	c.confirmedOnce(r)
	c.revive(1-first, with)
	return nil
}

// diesWithin: who coordinates falls in the transaction that commits the change to its trial; then its successor in the one that confirms it.
func (c *cohortFleet) diesWithin(with syscall.Signal) func([]sample) {
	action := map[syscall.Signal]string{syscall.SIGKILL: "kill", syscall.SIGSTOP: "stop"}[with]
	for _, p := range c.planes {
		c.signal(p.control, syscall.SIGTERM)
		<-p.control.ended
	}
	points := []string{"store.decide.provisional", "store.decide.published"}
	for i, p := range c.planes {
		p.arm(c, points[i]+"="+action)
		if i == 0 && c.coordinator() != 0 {
			c.t.Fatal("another one coordinates")
		}
	}
	falls := func(plane int) {
		c.t.Helper()
		c.f.await("the failpoint", func() error {
			if out := c.planes[plane].control.output.String(); !strings.Contains(out, "failpoint "+points[plane]) {
				return fmt.Errorf("not reached")
			}
			return nil
		})
		c.fallen(plane, with)
	}
	c.next()
	r := c.propose(slowly...)
	falls(0)
	c.f.await("a successor", func() error {
		if at := c.coordinator(); at != 1 {
			return fmt.Errorf("%d coordinates", at)
		}
		return nil
	})
	c.revive(0, with)
	falls(1)
	c.confirmedOnce(r)
	c.revive(1, with)
	return nil
}

// arm starts the control plane with a failpoint.
func (p *plainControl) arm(c *cohortFleet, point string) {
	c.t.Helper()
	binary, err := failing()
	if err != nil {
		c.t.Fatal(err)
	}
	p.control = startBinary(c.root, binary, "control plane with a failpoint", append(p.controlEnv(), "GUARDYN_TEST_FAILPOINT="+point), "serve")
	c.f.await("control plane ready", func() error { return httpOK("http://" + p.apiAddr + "/readyz") })
}

// confirmedOnce waits until the rollout is confirmed, and checks that each of its steps was taken once.
func (c *cohortFleet) confirmedOnce(r *api.Rollout) {
	c.t.Helper()
	c.ends(r.ID, exitGood)
	c.live = c.mark
	var steps []string
	err := c.db.QueryRow(c.t.Context(), `
		SELECT array_agg(action ORDER BY action) FROM edge.audit WHERE target = 'rollout ' || $1`, r.ID).Scan(&steps)
	if want := []string{"rollout.commit", "rollout.confirm", "rollout.propose", "rollout.stage"}; err != nil || !slices.Equal(steps, want) {
		c.t.Errorf("its steps: %v, want %v (%v)", steps, want, err)
	}
}
