package failpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/internal/testpg"
)

// Every point has a name of its own.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range failpoint.All() {
		if name := p.String(); name == "" || seen[name] || strings.ContainsAny(name, "= ") {
			t.Errorf("point %d is called %q", p, name)
		}
		seen[p.String()] = true
	}
}

// A build without the tag holds no point and passes over what would arm one.
func TestPlainBuildHasNone(t *testing.T) {
	binary, err := os.ReadFile(plain)
	must(t, "read", err)
	armed, err := os.ReadFile(gdn)
	must(t, "read", err)
	words := []string{"GUARDYN_TEST_FAILPOINT"}
	for _, p := range failpoint.All() {
		words = append(words, p.String())
	}
	for _, word := range words {
		if bytes.Contains(binary, []byte(word)) {
			t.Errorf("the plain build holds %s", word)
		}
		if !bytes.Contains(armed, []byte(word)) {
			t.Errorf("the build with the tag does not hold %s", word)
		}
	}
	symbols, err := exec.Command("go", "tool", "nm", plain).Output()
	must(t, "go tool nm", err)
	if bytes.Contains(symbols, []byte("internal/failpoint.")) {
		t.Error("the plain build calls into failpoint")
	}
}

// TestEveryPoint ends the control plane, or fails its step, at every point, and looks at what is left: all of the
// deed or nothing of it, one live row, an audit log that agrees, one answer under one idempotency key, one line of
// generations; and the next apply works.
func TestEveryPoint(t *testing.T) {
	// These are of one database alone.
	elsewhere := map[string]failpoint.Point{"SQLite": failpoint.Restored, "Postgres": failpoint.FileCleared}
	for _, db := range []struct {
		name string
		url  func(t *testing.T) string
	}{
		{"SQLite", func(*testing.T) string { return "" }},
		{"Postgres", func(t *testing.T) string { return testpg.URL(t) }},
	} {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, db.url(t))
			failed := map[failpoint.Point]bool{}
			for _, d := range w.deeds() {
				for _, p := range d.points {
					for _, action := range []string{kill, fault} {
						if action == fault && failed[p] {
							continue // in another deed
						}
						failed[p] = failed[p] || action == fault
						t.Run(fmt.Sprintf("%s/%s=%s", d.name, p, action), func(t *testing.T) { w.in(t).round(d, p, action) })
						if t.Failed() {
							return // what follows would stand on what failed
						}
					}
				}
			}
			w.bootstraps(t, db.url)
			w.backups(t, db.url)
			for _, p := range failpoint.All() {
				// Those of rollouts have their tests in control.
				if !w.reached[p] && p != elsewhere[db.name] && !slices.Contains(failpoint.OfRollouts(), p) {
					t.Errorf("%s was never reached", p)
				}
			}
		})
	}
}

// in is the world in a subtest.
func (w *world) in(t *testing.T) *world {
	w.t = t
	return w
}

// round is one deed on a control plane that is armed at p, and the look at what is left of it.
func (w *world) round(d deed, p failpoint.Point, action string) {
	w.t.Helper()
	w.start(fmt.Sprintf("%s=%s", p, action))
	before := w.history()
	try := d.prepare(w, p)
	err := try.do()
	var refused *api.Error
	if action == kill && err != nil && !errors.As(err, &refused) {
		w.died()
	} else {
		w.stop()
	}
	if !strings.Contains(w.output.String(), fmt.Sprintf("failpoint %s: %s\n", p, action)) {
		w.t.Fatalf("%s was not reached: %v\n%s", p, err, w.output)
	}
	w.reached[p] = true
	if action == kill && err == nil {
		w.t.Fatal("a control plane that died answered")
	}
	w.start("")
	happened := slices.Contains(d.after, p)
	if !happened && !d.edits {
		if diff := cmp.Diff(before, w.history()); diff != "" {
			w.t.Errorf("history is changed by half a deed (-before +after):\n%s", diff)
		}
	}
	try.look(happened)
	w.consistent()
	w.publish() // which the next round finds consistent
	w.stop()
}

type state struct {
	history []api.HistoryEntry
	audit   []api.AuditEntry
}

func (w *world) history() (entries []api.HistoryEntry) {
	w.t.Helper()
	for e, err := range api.All(w.t.Context(), w.client.History) {
		must(w.t, "history", err)
		entries = append(entries, e)
	}
	return entries
}

func (w *world) state() (s state) {
	w.t.Helper()
	s.history = w.history()
	for o := (api.AuditOptions{All: true, PageOptions: api.PageOptions{Limit: 1000}}); ; {
		page, err := w.client.Audit(w.t.Context(), o)
		must(w.t, "audit", err)
		s.audit = append(s.audit, page.Items...)
		if o.Cursor = page.Next; o.Cursor == "" {
			return s
		}
	}
}

// consistent judges the whole history and the whole audit log.
func (w *world) consistent() {
	w.t.Helper()
	s := w.state()
	made := map[uint64]uint64{} // generation → version
	versions := map[uint64]bool{0: true}
	for _, e := range s.history {
		if versions[e.Version] {
			w.t.Errorf("version %d stands twice", e.Version)
		}
		versions[e.Version] = true
		for _, g := range e.Generations {
			if other, twice := made[g]; twice {
				w.t.Errorf("generation %d made versions %d and %d live", g, other, e.Version)
			}
			made[g] = e.Version
		}
	}
	last := slices.Max(append(slices.Collect(maps.Keys(made)), 0))
	for g := range last {
		if made[g+1] == 0 && !w.skipped[g+1] {
			w.t.Errorf("generation %d is missing of %d", g+1, last)
		}
	}
	live := 0
	for _, e := range s.history {
		if !versions[e.ParentVersion] {
			w.t.Errorf("version %d has parent %d, which does not exist", e.Version, e.ParentVersion)
		}
		if len(e.Generations) == 0 {
			w.t.Errorf("version %d stands and was never live", e.Version)
		}
		if !e.ActivatedAt.IsZero() {
			live++
			if made[last] != e.Version {
				w.t.Errorf("version %d is live, generation %d made %d so", e.Version, last, made[last])
			}
		}
	}
	if live != 1 {
		w.t.Errorf("%d rows are live", live)
	}
	w.auditAgrees(s, made)
	if w.node != nil && w.node.act.Generation != 0 {
		if w.node.act.Generation != last || made[last] != w.node.act.Version {
			w.t.Errorf("the node serves generation %d, version %d; generation %d made %d live",
				w.node.act.Generation, w.node.act.Version, last, made[last])
		}
		w.node.ack(w)
	}
}

// auditAgrees: one entry for each activation, recovery and proof that took place, none for others.
func (w *world) auditAgrees(s state, made map[uint64]uint64) {
	w.t.Helper()
	published := map[uint64]string{}
	recovered, proven := 0, 0
	for _, a := range s.audit {
		switch {
		case a.Outcome == "ok" && (a.Action == "config.apply" || a.Action == "config.rollback"):
			g := number(a.Detail, "generation")
			if published[g] != "" {
				w.t.Errorf("the audit log has generation %d twice", g)
			}
			published[g] = a.Target
		case a.Outcome == "ok" && a.Action == "config.recover":
			recovered++
		case a.Action == "config.signing_stopped":
			proven++
		}
	}
	for g, v := range made {
		if want := fmt.Sprintf("version %d", v); published[g] != want {
			w.t.Errorf("the audit log says of generation %d %q, want %q", g, published[g], want)
		}
	}
	if len(published) != len(made) {
		w.t.Errorf("the audit log has %d publications of %d", len(published), len(made))
	}
	if want := int(w.epoch) - 1; recovered != want {
		w.t.Errorf("the audit log has %d recoveries of %d", recovered, want)
	}
	if proven != w.ahead {
		w.t.Errorf("the audit log has %d proofs of %d", proven, w.ahead)
	}
}

// isCode tells whether the control plane refused with this code.
func isCode(err error, code string) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == code
}
