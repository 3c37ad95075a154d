package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// neverServed checks that no node ever served the generation.
func (c *cohortFleet) neverServed(generation uint64) func([]sample) {
	return func(samples []sample) {
		if got := served(samples)[generation]; got != nil {
			c.t.Errorf("generation %d was served by %v", generation, got)
		}
	}
}

// stop suspends the node, so that a vote is missing until it goes on or dies.
func (n *cohortNode) stop(c *cohortFleet) {
	c.t.Helper()
	n.down()
	c.signal(n.process, syscall.SIGSTOP)
}

func (c *cohortFleet) signal(p *process, s syscall.Signal) {
	c.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		c.t.Fatalf("%s: %v", p.name, err)
	}
}

// voted waits until so many nodes have acknowledged.
func (c *cohortFleet) voted(r *api.Rollout, want int) {
	c.t.Helper()
	c.f.await(fmt.Sprintf("%d votes", want), func() error {
		var votes int
		err := c.db.QueryRow(c.t.Context(), `SELECT count(*) FROM barrier.ballot WHERE generation = $1 AND vote = 'ack'`, r.Generation).Scan(&votes)
		if err == nil && votes != want {
			err = fmt.Errorf("%d have voted", votes)
		}
		return err
	})
}

// diesBeforeItsVote: with one vote missing for good nothing is decided but the end, at the deadline.
func (c *cohortFleet) diesBeforeItsVote() func([]sample) {
	c.next()
	n := c.members[3]
	n.stop(c)
	r := c.propose("--deadline", "10s", "--confirm-window", "20s", "--soak", "4s")
	c.voted(r, 4)
	n.kill()
	ended := c.ends(r.ID, exitAborted)
	if !strings.Contains(ended.Reason, n.name) && !strings.Contains(ended.Reason, n.id) || !ended.DecidedAt.After(ended.Deadline) {
		c.t.Errorf("aborted at %s, deadline %s: %s", ended.DecidedAt, ended.Deadline, ended.Reason)
	}
	n.start(c)
	n.up()
	c.settled()
	c.f.answers(strconv.Itoa(c.live))
	return c.neverServed(r.Generation)
}

// older is gdn as it would have been before expressions had the function glob, built once.
var older = sync.OnceValues(func() (string, error) {
	const source = "../expr/env.go"
	now, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	before := regexp.MustCompile(`(?m)^.*cel\.Function\("glob".*\n`).ReplaceAll(now, nil)
	if len(before) == len(now) {
		return "", errors.New("the function glob is not where it was in " + source)
	}
	dir := filepath.Dir(gdn)
	replaced, overlay, binary := filepath.Join(dir, "env.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "gdn-older")
	path, err := filepath.Abs(source)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: replaced}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(replaced, before, 0o600), os.WriteFile(overlay, text, 0o600)); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", binary, "github.com/guardyn-edge/guardyn/cmd/gdn").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build an older gdn: %w\n%s", err, out)
	}
	return binary, nil
})

// olderBuild: a change needs what the build of one node does not know. Nobody takes it over until that node is upgraded.
func (c *cohortFleet) olderBuild() func([]sample) {
	binary, err := older()
	if err != nil {
		c.t.Fatal(err)
	}
	n := c.members[4]
	n.binary = binary
	n.restart(c)
	c.settled()
	c.next()
	rules := api.Ruleset{Rules: []zone.Rule{{
		Expression: `glob(http.host, "*.one.test")`, Action: zone.ActionSetHeader,
		Parameters: zone.Parameters{Name: "x-mark", Value: strconv.Itoa(c.mark)},
	}}}
	if _, _, err := c.c.PutRuleset(c.t.Context(), "one.test", "transform_response", rules, api.WriteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	r := c.propose("--deadline", "40s")
	c.refusedBy(n, r, "glob")
	n.binary = gdn
	n.restart(c)
	c.settled()
	again := c.propose()
	c.ends(again.ID, exitGood)
	c.settled()
	c.live = c.mark
	c.f.answers(strconv.Itoa(c.live))
	return c.neverServed(r.Generation)
}

// refusedBy checks that the rollout is aborted at once since one node refuses it.
func (c *cohortFleet) refusedBy(n *cohortNode, r *api.Rollout, why string) {
	c.t.Helper()
	ended := c.ends(r.ID, exitAborted)
	if !strings.Contains(ended.Reason, why) || ended.DecidedAt.After(ended.Deadline) {
		c.t.Errorf("aborted at %s, deadline %s: %s", ended.DecidedAt, ended.Deadline, ended.Reason)
	}
	for _, m := range ended.Members {
		if (m.Name == n.name) != (m.Vote == "nack") {
			c.t.Errorf("%s voted %q: %s", m.Name, m.Vote, m.Reason)
		}
	}
	c.f.answers(strconv.Itoa(c.live))
}

// newKey: the control planes sign with a new key that the last node was not told of. It refuses what it cannot verify, so nobody takes it
// over; once it trusts the key the same change goes through.
func (c *cohortFleet) newKey() func([]sample) {
	old, key := c.planes[0].key, c.spare
	c.spare = old
	n := c.members[4]
	n.restart(c, "GUARDYN_CONFIG_PUBLIC_KEYS="+old.Public().String())
	for _, p := range c.planes {
		c.signal(p.control, syscall.SIGTERM)
		<-p.control.ended
		p.key = key
		p.startControl()
	}
	c.settled()
	c.next()
	r := c.propose("--deadline", "40s")
	c.refusedBy(n, r, string(key.ID()))
	n.restart(c)
	c.settled()
	again := c.propose()
	c.ends(again.ID, exitGood)
	c.settled()
	c.live = c.mark
	c.f.answers(strconv.Itoa(c.live))
	return c.neverServed(r.Generation)
}

// fails: an origin answers 5xx to what the change makes of requests; not to the probes, which ask for its front page. The share of failures
// takes the change back.
func (c *cohortFleet) fails() func([]sample) {
	c.next()
	c.breaks.Store(strconv.Itoa(c.mark))
	r := c.propose("--confirm-window", "1m", "--soak", "20s", "--margin", "5%")
	ended := c.ends(r.ID, exitReverted)
	if !strings.Contains(ended.Reason, "were answered 5xx") || !ended.DecidedAt.Before(ended.ConfirmDeadline) {
		c.t.Errorf("reverted at %s, D %s: %s", ended.DecidedAt, ended.ConfirmDeadline, ended.Reason)
	}
	c.settled()
	broken := c.traffic.broken.Load()
	c.f.answers(strconv.Itoa(c.live))
	if broken < 100 {
		c.t.Errorf("%d requests were failed", broken)
	}
	return c.allTried(r.Generation)
}

// changesOfRoster: a dead node holds everything up until it is drained; one that is removed ends the vote; nobody comes or goes in a window.
func (c *cohortFleet) changesOfRoster() func([]sample) {
	c.next()
	dead, drained := c.members[3], c.members[2]
	dead.down()
	dead.kill()
	stuck := c.propose("--deadline", "3s")
	c.ends(stuck.ID, exitAborted)
	c.f.gdn("node", "drain", dead.name)
	through := c.propose()
	if got := c.ends(through.ID, exitGood); got.EpochSize != 4 {
		c.t.Errorf("%d nodes had to agree", got.EpochSize)
	}
	c.settled()
	c.live = c.mark

	// Removed while its vote is missing.
	c.f.gdn("node", "undrain", dead.name)
	c.next()
	voting := c.propose("--deadline", "1m")
	c.voted(voting, 4)
	c.f.gdn("node", "rm", dead.name)
	if ended := c.ends(voting.ID, exitAborted); !strings.Contains(ended.Reason, "roster") || ended.DecidedAt.After(ended.Deadline) {
		c.t.Errorf("aborted: %s", ended.Reason)
	}

	// In a window the roster stands. A node that was drained before serves what is live all along.
	c.f.gdn("node", "drain", drained.name)
	c.settled()
	trial := c.propose("--confirm-window", "1m", "--soak", "30s")
	c.serve(trial.Generation, c.members[0], c.members[1], c.members[4])
	for _, args := range [][]string{
		{"node", "drain", "edge-1"}, {"node", "undrain", drained.name}, {"node", "rm", "edge-2"}, {"node", "add", "edge-9", "--cohort"},
	} {
		out, errs, exit := c.command(args...)
		if exit != 1 || !strings.Contains(out+errs, trial.ID) {
			c.t.Errorf("gdn %v in a window: exit code %d\n%s%s", args, exit, out, errs)
		}
	}
	c.f.gdn("rollout", "revert", "-m", "enough seen")
	c.ends(trial.ID, exitReverted)
	c.f.gdn("node", "undrain", drained.name)

	// The dead one's place is taken by a new node.
	c.replace(dead)
	c.settled()
	c.f.answers(strconv.Itoa(c.live))
	return func(samples []sample) {
		c.neverServed(stuck.Generation)(samples)
		c.neverServed(voting.Generation)(samples)
		if got := served(samples)[trial.Generation]; len(got) != 3 {
			c.t.Errorf("the trial was served by %v", got)
		}
	}
}

// busy: while a rollout is open nothing else is published, and who tries is told which one it is. It is ended, and then the urgent fix goes
// out.
func (c *cohortFleet) busy() func([]sample) {
	refuses := func(r *api.Rollout) {
		c.t.Helper()
		for _, args := range [][]string{
			{"apply", "--accept-disruption"},
			{"apply", "--coordinated", "--accept-disruption"},
			{"rollback", "--accept-disruption"},
			{"rollback", "--coordinated", "--accept-disruption"},
		} {
			out, errs, exit := c.command(append(args, "--json")...)
			if exit != 1 || !strings.Contains(out+errs, r.ID) || !strings.Contains(out+errs, "rollout_open") {
				c.t.Errorf("gdn %v while one is open: exit code %d\n%s%s", args, exit, out, errs)
			}
		}
	}
	n := c.members[0]
	c.next()
	n.stop(c)
	voting := c.propose("--deadline", "1m")
	c.reaches(voting, "staging")
	c.next()
	refuses(voting)
	c.f.gdn("rollout", "abort", "-m", "something urgent")
	if ended := c.ends(voting.ID, exitAborted); !strings.Contains(ended.Reason, "something urgent") {
		c.t.Errorf("aborted: %s", ended.Reason)
	}
	c.signal(n.process, syscall.SIGCONT)
	c.f.await("the node answers again", func() error { return httpOK("http://" + n.admin + "/healthz") })
	n.up()
	c.settled()

	trial := c.propose("--confirm-window", "1m", "--soak", "30s")
	c.serve(trial.Generation, c.members...)
	c.next()
	refuses(trial)
	began := time.Now()
	c.f.gdn("rollout", "revert", "-m", "something urgent")
	c.f.gdn("apply", "--accept-disruption", "-m", "the urgent fix")
	c.live = c.mark
	c.settled()
	c.t.Logf("revert, apply, and served everywhere: %s", time.Since(began).Round(time.Millisecond))
	c.f.answers(strconv.Itoa(c.live))
	if ended := c.ends(trial.ID, exitReverted); !strings.Contains(ended.Reason, "something urgent") {
		c.t.Errorf("reverted: %s", ended.Reason)
	}
	return c.neverServed(voting.Generation)
}
