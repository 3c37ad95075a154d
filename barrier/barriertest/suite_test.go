package barriertest

import (
	"strings"
	"testing"
	"time"
)

func freshBent(rule string) func(testing.TB) Opener {
	shared := newBent(rule)
	return func(testing.TB) Opener {
		b := newBent(rule)
		return func(testing.TB) Handles {
			switch rule {
			case "a new process sees nothing":
				b = newBent(rule)
			case "cohorts share their row":
				b = shared
			}
			return Handles{Store: b, Leases: b, Artefacts: b}
		}
	}
}

// hang are the rules whose breaking keeps a clause from ending: its time is what fails it.
var hang = map[string]bool{"the time stands still": true, "a watch never closes": true, "a watch holds writers up": true}

// TestABrokenStoreFails shows that the suite can fail: each clause turns red on a store that breaks its rule.
func TestABrokenStoreFails(t *testing.T) {
	named := map[string]bool{}
	for _, bend := range bends {
		named[bend.clause] = true
		t.Run(bend.rule+"/"+bend.clause, func(t *testing.T) {
			group, name, _ := strings.Cut(bend.clause, "/")
			cl, timeout := find(t, group, name), clauseTimeout
			if hang[bend.rule] {
				timeout = time.Second
			}
			failures := record(t, func(tb testing.TB) { cl.on(tb, freshBent(bend.rule), plain, timeout) })
			if len(failures) == 0 {
				t.Error("the clause passes")
			} else {
				t.Logf("%.300s", strings.Join(failures, "; "))
			}
		})
	}
	for _, g := range clauses {
		for _, cl := range g.list {
			if !named[g.group+"/"+cl.name] {
				t.Errorf("no broken store shows that %s/%s can fail", g.group, cl.name)
			}
		}
	}
}

func find(t *testing.T, group, name string) clause {
	for _, g := range clauses {
		for _, cl := range g.list {
			if g.group == group && cl.name == name {
				return cl
			}
		}
	}
	t.Fatalf("there is no clause %s/%s", group, name)
	return clause{}
}

// TestAnUnbrokenStorePasses shows that the bends, and not bent itself, make it fail.
func TestAnUnbrokenStorePasses(t *testing.T) { Run(t, freshBent("")) }
