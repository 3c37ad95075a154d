package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge/host"
)

// TestBridgeLadder puts changes of every kind to a cohort of real members on each store that members can share over a network.
func TestBridgeLadder(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t testing.TB) *bridgeCohort{
		"Postgres": func(t testing.TB) *bridgeCohort { return postgresBridge(t, nil) },
		"DynamoDB": dynamoBridge,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			c.start()
			c.reloads()
			c.refuses()
			c.cannotBuild()
			c.windows()
			heldOnce(t, c.plant, "gdn-plant")
		})
	}
}

// reloads: what a change does not touch stays connected, by the brokers' word.
func (c *bridgeCohort) reloads() {
	c.t.Helper()
	plant, cloud := c.plant.Mark(), c.cloud.Mark()
	d := c.doc
	d.rev++
	d.sessions = `, {id: aux, kind: mqtt, url: "mqtt://` + c.cloudAddr + `", client_id: "gdn-aux-{member}", credentials: "file:cloud.cred"}`
	d.routes = `, {id: aux, from: {session: aux, topic: "aux/#", share: g}, to: {session: cloud, topic: "x/{1}"}}`
	c.roll(c.members[1], d, barrier.Committed)
	for _, m := range c.members {
		m.judges("in step", "")
		if s := m.status(); s.Rung != host.Coordinated || len(s.Degraded) > 0 || len(s.Routes) != 3 {
			c.t.Errorf("%s is on rung %s, degraded by %q, with %d routes", m.id, s.Rung, s.Degraded, len(s.Routes))
		}
	}
	d.sessions, d.routes, d.window = "", "", trial
	c.roll(c.members[2], d, barrier.Committed) // on the terms of what ran before
	for _, line := range append(c.plant.Lines(plant, "isconnect"), c.plant.Lines(plant, "New client connected")...) {
		c.t.Errorf("the plant's broker saw %q", line)
	}
	for _, what := range []string{"isconnect", "New client connected"} {
		for _, line := range c.cloud.Lines(cloud, what) {
			if !strings.Contains(line, "gdn-aux-") {
				c.t.Errorf("the cloud's broker saw %q", line)
			}
		}
	}
	if n := c.cloud.Count(cloud, "New client connected", "gdn-aux-node-"); n != len(c.members) {
		c.t.Errorf("the new session was connected %d times", n)
	}
}

// refuses: what must not roll is refused before it is saved, naming class and field.
func (c *bridgeCohort) refuses() {
	c.t.Helper()
	c.await("the member has read what is committed", func() error {
		if v := c.members[0].status().Source.Version; v != c.row().Committed.Version {
			return fmt.Errorf("its source holds version %d", v)
		}
		return nil
	})
	before, generation := c.members[0].status(), c.row().Generation
	d := c.doc
	d.plantID = "gdn-works"
	c.file("works.yaml", d.text(c))
	out, err := c.command("bridge", "put", "works.yaml", "--url", "http://"+c.members[0].addr, "--if-match", `"`+itoa(before.Version)+`"`)
	for _, want := range []string{"replacement-required", "sessions.plant.client_id", "stop every member", "another --cohort"} {
		if err == nil || !strings.Contains(out, want) {
			c.t.Errorf("a refused change does not say %q: %v\n%s", want, err, out)
		}
	}
	if s := c.members[0].status(); s.Source.Version != before.Source.Version || c.row().Generation != generation {
		c.t.Errorf("something was changed: %+v", s.Source)
	}
}

// cannotBuild: a member that lacks a file votes against, and nobody changes anything.
func (c *bridgeCohort) cannotBuild() {
	c.t.Helper()
	cloud := c.cloud.Mark()
	for _, m := range c.members[:2] {
		m.secret("aux.cred", "username: "+m.id+"\npassword: "+m.id+"\n")
	}
	d := c.doc
	d.rev++
	d.sessions = `, {id: aux, kind: mqtt, url: "mqtt://` + c.cloudAddr + `", client_id: "gdn-aux-{member}", credentials: "file:aux.cred"}`
	ro := c.roll(c.members[0], d, barrier.Aborted)
	if !strings.Contains(ro.Reason, "node-c") || !strings.Contains(ro.Reason, "aux.cred") {
		c.t.Errorf("it was aborted: %s", ro.Reason)
	}
	if lines := c.cloud.Lines(cloud, "gdn-aux"); len(lines) > 0 {
		c.t.Errorf("somebody connected: %q", lines)
	}
	c.members[1].judges("refused", "save it again")
}

// windows: a broker that denies one member's new subscription has all three take it back; allowed, it is confirmed.
func (c *bridgeCohort) windows() {
	c.t.Helper()
	d := c.doc
	d.rev++
	d.window = trial
	d.routes = `, {id: new, from: {session: cloud, topic: "new/#", share: g}, to: {session: cloud, topic: "n/{1}"}}`
	plant := c.plant.Mark()
	version, generation := c.put(c.members[0], d)
	c.await("it is on trial on every member", func() error {
		for _, m := range c.members {
			if s := m.status(); s.Version != version && c.row().Rollout.Open() {
				return fmt.Errorf("%s runs version %d", m.id, s.Version)
			}
		}
		return nil
	})
	ro := c.ends(generation, barrier.Reverted)
	if !strings.Contains(ro.Reason, "node-c") {
		c.t.Errorf("it was reverted: %s", ro.Reason)
	}
	c.converged(c.row().Committed.Version)
	for _, m := range c.members {
		m.judges("refused", "save it again")
		if s := m.status(); s.Version != c.row().Committed.Version || len(s.Routes) != 2 {
			c.t.Errorf("%s runs version %d, %d routes, and %v is committed", m.id, s.Version, len(s.Routes), c.row().Committed)
		}
	}
	if lines := c.plant.Lines(plant, "isconnect"); len(lines) > 0 {
		c.t.Errorf("the other broker saw %q", lines)
	}
	c.allow()
	d.rev++
	c.roll(c.members[1], d, barrier.Confirmed)
	c.members[2].judges("in step", "")
	if s := c.members[2].status(); s.Rung != host.Window || len(s.Routes) != 3 || len(s.Degraded) > 0 {
		c.t.Errorf("node-c is on rung %s, degraded by %q", s.Rung, s.Degraded)
	}
}
