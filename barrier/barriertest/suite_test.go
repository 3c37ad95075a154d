package barriertest

import (
	"context"
	"strings"
	"testing"
	"time"
)

// bends are rules that a store can break, each with the groups of which a clause must fail.
var bends = []struct{ rule, group string }{
	{"a row is read in two steps", "Races"},
	{"reads share the store's memory", "Current"},
	{"reads are behind", "Current"},
	{"the time stands still", "Current"},
	{"everybody is in the epoch", "Look"},
	{"a watch never closes", "Watch"},
	{"ids are not checked", "Join"},
	{"a join of any incarnation", "Join"},
	{"a join leaves the head", "Join"},
	{"a join takes the old votes over", "Join"},
	{"a join is written without a condition", "Races"},
	{"a late joiner may vote", "Ack"},
	{"strangers may vote", "Ack"},
	{"late votes count", "Nack"},
	{"a second vote overwrites", "Ack"},
	{"votes count after the decision", "Ack"},
	{"a refused vote is written", "Nack"},
	{"votes are written without a condition", "Races"},
	{"a lost vote", "Races"},
	{"any build digest", "Ack"},
	{"reasons are not cut", "Nack"},
	{"only the generation is compared", "Ack"},
	{"the rollout is not compared", "Commit"},
	{"processes are not compared", "Join"},
	{"evidence after a withdrawal", "Converge"},
	{"broken evidence holds on", "Converge"},
	{"renewed evidence begins anew", "Converge"},
	{"a second withdrawal overwrites", "Withdraw"},
	{"a withdrawal leaves the head", "Withdraw"},
	{"a withdrawal is written without a condition", "Races"},
	{"a lower claim is taken", "Claim"},
	{"a claim does not take up", "Claim"},
	{"a claim takes up by a new token only", "Claim"},
	{"commit counts voided acks", "Join"},
	{"commit counts nacks", "Commit"},
	{"commit by most votes", "Commit"},
	{"commit without a token", "Claim"},
	{"commit after the deadline", "Commit"},
	{"commit from proposed", "Commit"},
	{"commit moves the pointer in spite of a window", "Commit"},
	{"commit does not move the pointer", "Commit"},
	{"a decision again has an effect", "Commit"},
	{"decisions are written without a condition", "Races"},
	{"abort without a token", "Abort"},
	{"a final state is overwritten", "Abort"},
	{"confirm after D", "Confirm"},
	{"confirm before soak", "Confirm"},
	{"confirm with expired evidence", "Confirm"},
	{"confirm counts restarted members", "Join"},
	{"confirm without a token", "Confirm"},
	{"confirm does not move the pointer", "Confirm"},
	{"a deadman reverts early", "Revert"},
	{"a deadman knows no grace", "Revert"},
	{"strangers revert", "Revert"},
	{"revert without a token", "Revert"},
	{"revert takes a confirmed rollout back", "Revert"},
	{"propose while one is open", "Propose"},
	{"propose to any roster", "Propose"},
	{"propose again opens another", "Propose"},
	{"propose keeps no outcome", "Propose"},
	{"proposals are written without a condition", "Races"},
	{"aborted generations come again", "Propose"},
	{"ballots outlive their rollout", "Look"},
	{"errors are bare", "Propose"},
	{"errors have no names", "Propose"},
	{"the epoch follows the roster", "Current"},
	{"a roster of any revision", "SetRoster"},
	{"the roster changes in a window", "SetRoster"},
	{"a roster change aborts nothing", "SetRoster"},
	{"a roster of 999 at most", "SetRoster"},
	{"a roster is written without a condition", "Races"},
	{"a baseline rewinds", "AdoptBaseline"},
	{"a held lease is given away", "Leases"},
	{"a lease is renewed with a new token", "Leases"},
	{"a lease is written without a condition", "Races"},
	{"tokens stay the same", "Leases"},
	{"a released lease is deleted", "Leases"},
	{"a lost lease is renewed", "Leases"},
	{"renewing does nothing", "Leases"},
	{"anybody releases", "Leases"},
	{"artefacts of any size", "Artefacts"},
	{"artefacts are overwritten", "Artefacts"},
	{"artefacts are shared", "Artefacts"},
	{"a missing artefact is empty", "Artefacts"},
	{"a new process sees nothing", "Durable"},
}

func freshBent(rule string) func(testing.TB) Opener {
	return func(testing.TB) Opener {
		b := newBent(rule)
		return func(testing.TB) Handles {
			if rule == "a new process sees nothing" {
				b = newBent(rule)
			}
			return Handles{Store: b, Leases: b, Artefacts: b}
		}
	}
}

// bentTimeout bounds a clause that a broken store keeps from ending.
const bentTimeout = 5 * time.Second

// TestABrokenStoreFails shows that the suite can fail: it turns red for each rule that a store breaks.
func TestABrokenStoreFails(t *testing.T) {
	for _, bend := range bends {
		t.Run(bend.rule, func(t *testing.T) {
			if name, failures := firstRed(t, bend.rule, bend.group); name == "" {
				t.Errorf("no clause of %s fails", bend.group)
			} else {
				t.Logf("%s/%s: %.300s", bend.group, name, strings.Join(failures, "; "))
			}
		})
	}
}

// firstRed returns the first clause of group that fails on a store that breaks rule.
func firstRed(t *testing.T, rule, group string) (string, []string) {
	for _, g := range clauses {
		if g.group != group {
			continue
		}
		for _, cl := range g.list {
			failures := record(t, func(tb testing.TB) {
				c := newCohort(tb, freshBent(rule), plain)
				ctx, cancel := context.WithTimeout(c.ctx, bentTimeout)
				defer cancel()
				c.ctx = ctx
				cl.run(c)
			})
			if len(failures) > 0 {
				return cl.name, failures
			}
		}
	}
	return "", nil
}

// TestAnUnbrokenStorePasses shows that the bends, and not bent itself, make it fail.
func TestAnUnbrokenStorePasses(t *testing.T) { Run(t, freshBent("")) }
