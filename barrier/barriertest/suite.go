package barriertest

import (
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Handles is one process's access to one cohort.
type Handles struct {
	Store     barrier.Store
	Leases    barrier.Leases
	Artefacts barrier.Artefacts
}

// Opener returns handles to the same cohort, each as another process would have them; they close with t.
type Opener func(t testing.TB) Handles

// clause is one sentence of the ports' documentation.
type clause struct {
	name  string
	run   func(c *cohort)
	waits bool // for the store's time to pass: runs beside others that do
	large bool // thousands of calls: plain only, since each of them is wrapped in other clauses
}

// clauses are all of them.
var clauses = []struct {
	group string // a port's or method's name
	list  []clause
}{
	{"Current", currentClauses},
	{"Look", lookClauses},
	{"Watch", watchClauses},
	{"Join", joinClauses},
	{"Ack", ackClauses},
	{"Nack", nackClauses},
	{"Converge", convergeClauses},
	{"Withdraw", withdrawClauses},
	{"Claim", claimClauses},
	{"Commit", commitClauses},
	{"Abort", abortClauses},
	{"Confirm", confirmClauses},
	{"Revert", revertClauses},
	{"Propose", proposeClauses},
	{"SetRoster", rosterClauses},
	{"AdoptBaseline", baselineClauses},
	{"Leases", leaseClauses},
	{"Artefacts", artefactClauses},
	{"Durable", durableClauses},
	{"Races", slices.Concat(decisionRaces, voteRaces, cohortRaces)},
}

// Run runs every clause on cohorts made by fresh: each call of fresh makes a new, empty cohort. It runs them
// plain, and then again with handles that are Faulty, but for the largest roster, which runs plain only. fresh and the
// Openers are called from several tests at once.
func Run(t *testing.T, fresh func(t testing.TB) Opener) {
	for _, mode := range []mode{plain, wrapped} {
		t.Run(string(mode), func(t *testing.T) {
			for _, g := range clauses {
				t.Run(g.group, func(t *testing.T) {
					for _, cl := range g.list {
						if cl.large && mode == wrapped {
							continue
						}
						t.Run(cl.name, func(t *testing.T) {
							if cl.waits {
								t.Parallel()
							}
							cl.on(t, fresh, mode, clauseTimeout)
						})
					}
				})
			}
		})
	}
}

// on runs the clause on a new cohort.
func (cl clause) on(t testing.TB, fresh func(testing.TB) Opener, m mode, timeout time.Duration) {
	c := newCohort(t, fresh, m, timeout)
	defer func() {
		if v := recover(); v != nil { // what it relied on is not in the row: the other clauses should run all the same
			c.Errorf("the clause could not go on: %v\n%s", v, debug.Stack())
		}
	}()
	cl.run(c)
	if c.ctx.Err() != nil {
		c.Errorf("the clause took more than %s", timeout)
	}
}

// mode is how a clause's calls reach the store.
type mode string

const (
	plain   mode = "plain"
	wrapped mode = "wrapped" // by Faulty handles; a call with unknown outcome is repeated
)
