package e2e_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
)

// watch starts clients, each of which asks its node every pace, and the sampler.
func (c *cohortFleet) watch(pace time.Duration) {
	c.t.Helper()
	c.traffic = startTraffic(c.root, c, pace)
	c.sampler = startSampler(c.root, c)
}

// soak runs once, or over and over for the duration that GUARDYN_TEST_SOAK names, until something fails.
func soak(t *testing.T, run func()) {
	t.Helper()
	length := time.Duration(0)
	if soak := os.Getenv("GUARDYN_TEST_SOAK"); soak != "" {
		var err error
		if length, err = time.ParseDuration(soak); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(length); ; {
		run()
		if t.Failed() || !time.Now().Before(end) {
			return
		}
	}
}

// scenario runs one with the fleet settled before and after it, and clients and a sampler all along.
func (c *cohortFleet) scenario(t *testing.T, name string, run func() (check func([]sample))) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		c.t, c.f.t = t, t
		c.settled()
		answered := c.traffic.count()
		c.sampler.begin(t)
		defer c.sampler.stop()
		check := run()
		c.settled()
		samples := c.sampler.end(t)
		if check != nil {
			check(samples)
		}
		c.traffic.check(t, answered)
	})
}

// TestCoordinated puts changes to a cohort of five nodes, with two control planes on one Postgres, while clients ask every node. It does so
// once, or for the duration that GUARDYN_TEST_SOAK names.
func TestCoordinated(t *testing.T) {
	t.Parallel()
	if _, err := older(); err != nil {
		t.Fatal(err)
	}
	c := newCohortFleet(t)
	c.watch(20 * time.Millisecond)
	soak(t, func() { c.scenarios(t) })
}

func (c *cohortFleet) scenarios(t *testing.T) {
	c.scenario(t, "without a window", c.withoutWindow)
	c.scenario(t, "a rollback", c.rolledBack)
	c.scenario(t, "confirmed", c.confirmed)
	c.scenario(t, "one never converges", c.neverConverges)
	c.scenario(t, "restarted in the window", c.restarted)
	c.scenario(t, "control planes and database gone", c.gone)
	c.scenario(t, "cut off through the confirm", c.cutOff)
	c.scenario(t, "killed before its vote", c.diesBeforeItsVote)
	c.scenario(t, "an older build", c.olderBuild)
	c.scenario(t, "a key that a node was not told of", c.newKey)
	c.scenario(t, "an origin that fails", c.fails)
	c.scenario(t, "drained, removed, and neither in a window", c.changesOfRoster)
	c.scenario(t, "one at a time", c.busy)
}

// withoutWindow: every node builds, all take it over together, and it is live.
func (c *cohortFleet) withoutWindow() func([]sample) {
	c.next()
	out, errs, exit := c.command("apply", "--coordinated", "--accept-disruption", "--wait", "-m", "together")
	if exit != exitGood || !strings.Contains(out, "committed") {
		c.t.Fatalf("exit code %d:\n%s%s", exit, out, errs)
	}
	r := c.rollout(api.CurrentRollout)
	if r.State != "committed" || r.Open || r.EpochSize != 5 {
		c.t.Errorf("the ledger has %+v", r)
	}
	for _, m := range r.Members {
		if m.Vote != "ack" || m.BuildDigest != r.Members[0].BuildDigest {
			c.t.Errorf("%s: %+v", m.Name, m)
		}
	}
	c.serve(r.Generation, c.members...)
	c.live = c.mark
	c.f.answers(strconv.Itoa(c.mark))
	return func(samples []sample) {
		if got := served(samples)[r.Generation]; len(got) != 5 {
			c.t.Errorf("generation %d was seen at %v", r.Generation, got)
		}
	}
}

// rolledBack: the way back is put to the cohort too.
func (c *cohortFleet) rolledBack() func([]sample) {
	back := c.live
	c.next()
	r := c.propose()
	c.ends(r.ID, exitGood)
	c.settled()
	out, errs, exit := c.command("rollback", "--coordinated", "--accept-disruption", "--wait", "-m", "back together")
	if exit != exitGood || !strings.Contains(out, "committed") {
		c.t.Fatalf("exit code %d:\n%s%s", exit, out, errs)
	}
	if r := c.rollout(api.CurrentRollout); r.Kind != "rollback" || r.State != "committed" {
		c.t.Errorf("the ledger has %+v", r)
	}
	c.f.answers(strconv.Itoa(back))
	return nil
}

// confirmed: the cohort tries it, proves that it works, and only then it is live.
func (c *cohortFleet) confirmed() func([]sample) {
	c.next()
	r := c.propose("--confirm-window", "1m", "--soak", "4s")
	ended := c.ends(r.ID, exitGood)
	if ended.State != "confirmed" {
		c.t.Errorf("it is %s", ended.State)
	}
	for _, m := range ended.Members {
		if m.ConvergedSince.IsZero() || ended.DecidedAt.Sub(m.ConvergedSince) < 2*time.Second || m.Detail == "" {
			c.t.Errorf("%s proved since %s of %s: %s", m.Name, m.ConvergedSince, ended.DecidedAt, m.Detail)
		}
	}
	c.settled()
	c.live = c.mark
	c.f.answers(strconv.Itoa(c.mark))
	return func(samples []sample) {
		together := 0
		for _, s := range samples {
			all := s.After.Generation < r.Generation && len(s.After.Rollouts) > 0 && s.After.Rollouts[0].onTrial()
			for _, n := range s.Nodes {
				all = all && n.Generation == r.Generation && n.Pending
			}
			if all {
				together++
			}
		}
		if together < 10 {
			c.t.Errorf("the cohort was seen on trial, and nothing else live yet, in %d samples", together)
		}
	}
}

// rollout asks for one.
func (c *cohortFleet) rollout(id string) *api.Rollout {
	c.t.Helper()
	r, err := c.c.Rollout(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}
