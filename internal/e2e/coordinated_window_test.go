package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// neverConverges: a change adds a pool that the last node alone cannot reach. All take it over, all go back, and no client notices.
func (c *cohortFleet) neverConverges() func([]sample) {
	before := c.live
	// It may not connect to the pool's origin, as if no way led there.
	n := c.members[4]
	n.restart(c, "GUARDYN_ALLOWED_ORIGINS=127.0.0.1/32")
	c.settled()
	c.next()
	far := c.startOrigin(c.t, "127.0.0.2:0")
	c.f.gdn("pool", "set", "one.test", "far", c.f.file("far.yaml", "origins:\n  - {name: far, address: \""+far+"\"}\n"))
	r := c.propose("--confirm-window", "12s", "--soak", "4s")
	ended := c.ends(r.ID, exitReverted)
	if !strings.Contains(ended.Reason, n.name) && !strings.Contains(ended.Reason, n.id) {
		c.t.Errorf("the reason does not name the node: %s", ended.Reason)
	}
	for _, m := range ended.Members {
		if (m.Name == n.name) != m.ConvergedSince.IsZero() {
			c.t.Errorf("%s: converged since %s, %s", m.Name, m.ConvergedSince, m.Detail)
		}
	}
	c.f.gdn("pool", "rm", "one.test", "far")
	c.settled()
	n.restart(c)
	c.settled()
	c.f.answers(strconv.Itoa(before))
	return c.allTried(r.Generation)
}

// allTried checks that every node served the generation, and in the end none does.
func (c *cohortFleet) allTried(generation uint64) func([]sample) {
	return func(samples []sample) {
		if got := served(samples)[generation]; len(got) != len(c.members) {
			c.t.Errorf("generation %d was seen at %v", generation, got)
		}
		if got := served(samples[len(samples)-1:])[generation]; got != nil {
			c.t.Errorf("generation %d is still served by %v", generation, got)
		}
	}
}

// restarted: a node dies on trial and comes back, by what was confirmed. The cohort goes back at once, long before the time is up.
func (c *cohortFleet) restarted() func([]sample) {
	before := c.live
	c.next()
	r := c.propose("--confirm-window", "1m", "--soak", "30s")
	c.serve(r.Generation, c.members...)
	c.sampler.another()
	n := c.members[2]
	began := time.Now()
	n.restart(c)
	ended := c.ends(r.ID, exitReverted)
	if took := time.Since(began); took > 20*time.Second {
		c.t.Errorf("it was reverted %s after the restart", took)
	}
	if !strings.Contains(ended.Reason, "restart") || !strings.Contains(ended.Reason, n.name) && !strings.Contains(ended.Reason, n.id) {
		c.t.Errorf("the reason does not tell which node restarted: %s", ended.Reason)
	}
	c.settled()
	c.f.answers(strconv.Itoa(before))
	tried := c.allTried(r.Generation)
	return func(samples []sample) {
		tried(samples)
		for i, s := range samples {
			for _, o := range s.Nodes {
				if o.Name == n.name && o.Downs == n.downs.Load() && o.Generation == r.Generation {
					c.t.Fatalf("sample %d: the new process serves the trial", i)
				}
			}
		}
	}
}

// gone: from the commit on no control plane and no database answers. Every node goes back by itself; when they are back all agree.
func (c *cohortFleet) gone() func([]sample) {
	before := c.live
	c.next()
	flaps := c.flaps()
	r := c.propose("--confirm-window", "16s", "--soak", "8s")
	c.serve(r.Generation, c.members...)
	// One control plane dies; the other lives, and gets no answer from the database.
	c.data.cut()
	mend := sync.OnceFunc(c.data.mend)
	defer mend()
	c.planes[0].control.kill()
	c.f.await("every node went back by guess", func() error {
		for _, n := range c.members {
			if h, err := n.health(http.DefaultClient); err != nil || h.Rollout.TakenBack != "guess" || h.Generation >= r.Generation {
				return fmt.Errorf("%s: %+v %w", n.name, h, err)
			}
		}
		return nil
	})
	if s := c.reaches(r, "committed"); time.Now().Before(s.Rollouts[0].Due.Add(-time.Second)) {
		c.t.Errorf("they went back before %s", s.Rollouts[0].Due)
	}
	c.f.answers(strconv.Itoa(before))
	c.planes[1].control.kill()
	mend()
	for _, p := range c.planes {
		p.startControl()
	}
	c.ends(r.ID, exitReverted)
	c.settled()
	c.f.answers(strconv.Itoa(before))
	if now := c.flaps(); !slices.Equal(now, flaps) {
		c.t.Errorf("flaps: %v, %v before", now, flaps)
	}
	return c.allTried(r.Generation)
}

// cutOff: a node that has converged is cut off until the cohort has confirmed and the node's own time is over. It goes back by guess, and
// forward when the way is open again, which it counts.
func (c *cohortFleet) cutOff() func([]sample) {
	before := c.live
	c.next()
	n := c.members[1]
	flaps := c.flaps()
	flaps[1]++
	r := c.propose("--confirm-window", "20s", "--soak", "10s")
	// Evidence lives for half of the soak, and is renewed three times in that time: what holds for most of the soak lasts to its end.
	c.f.await("everybody has converged for a while", func() error {
		var converged int
		if err := c.db.QueryRow(c.t.Context(), `
			SELECT count(*) FROM barrier.ballot
			WHERE generation = $1 AND converged_since < clock_timestamp() - interval '8 s'`, r.Generation).Scan(&converged); err != nil {
			return err
		}
		if converged < len(c.members) {
			return fmt.Errorf("%d have", converged)
		}
		return nil
	})
	n.away.Store(true)
	n.gate.cut()
	mend := sync.OnceFunc(n.gate.mend)
	defer mend()
	c.ends(r.ID, exitGood)
	c.f.await(n.name+" goes back by guess", func() error {
		if h, err := n.health(http.DefaultClient); err != nil || h.Rollout.TakenBack != "guess" || h.Generation >= r.Generation {
			return fmt.Errorf("%+v %w", h, err)
		}
		return nil
	})
	if mark, err := askPage(http.DefaultClient, n.http); err != nil || mark != strconv.Itoa(before) {
		c.t.Errorf("%s serves mark %q, %v; want %d", n.name, mark, err, before)
	}
	mend()
	c.serve(r.Generation, c.members...)
	c.settled()
	c.live = c.mark
	n.away.Store(false)
	c.f.answers(strconv.Itoa(c.mark))
	if now := c.flaps(); !slices.Equal(now, flaps) {
		c.t.Errorf("flaps: %v, want %v", now, flaps)
	}
	return nil
}

// flaps is what every node counts.
func (c *cohortFleet) flaps() (all []float64) {
	for _, n := range c.members {
		all = append(all, n.metric(c.t, "guardyn_rollout_flaps_total"))
	}
	return all
}
