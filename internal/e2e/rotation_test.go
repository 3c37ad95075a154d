package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/seal"
)

// unrefused fails the test when any node refused an artefact at any time: each refusal is in the log.
func (f *fleet) unrefused() {
	f.t.Helper()
	if log := f.gdn("audit", "--all", "--limit", "0"); strings.Contains(log, "config.node_rejected") {
		f.t.Errorf("a node refused an artefact:\n%s", log)
	}
	if nodes := f.gdn("node", "list", "--json"); strings.Contains(nodes, `"last_error"`) {
		f.t.Errorf("a node has an error:\n%s", nodes)
	}
}

// trustedBy waits until that many nodes, as in "2 nodes", have told that they trust the key.
func (f *fleet) trustedBy(key seal.SigningKey, want string) {
	f.t.Helper()
	f.await(want+" trusts the key", func() error {
		out := f.gdn("node", "list", "--json")
		if got := strings.Count(out, `"`+string(key.ID())+`"`); fmt.Sprintf("%d nodes", got) != want {
			return fmt.Errorf("%d nodes trust %s", got, key.ID())
		}
		return nil
	})
}

// The signing key is rotated as docs/operations/key-rotation.md says: both keys are trusted, the control plane
// switches, what is live is sealed anew, the old key is dropped. At no moment does a node refuse anything.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	for _, db := range []struct {
		name string
		url  func(t *testing.T) string
	}{
		{"SQLite", func(*testing.T) string { return "" }},
		{"Postgres", func(t *testing.T) string { return testpg.URL(t) }},
	} {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, db.url(t), 3)
			f.gdn("zone", "create", "example.com")
			f.gdn("record", "add", "example.com", "v", "TXT", "one")
			f.gdn("apply", "-m", "one", "--wait")
			f.gdn("record", "add", "example.com", "w", "TXT", "two")
			f.gdn("apply", "-m", "two", "--wait")
			before := f.key
			next, err := seal.GenerateSigningKey()
			if err != nil {
				t.Fatal(err)
			}
			if out := f.refused("keys", "check", next.Public().String()); !strings.Contains(out, "3 of 3 nodes do not trust key "+string(next.ID())) {
				t.Errorf("before the rotation:\n%s", out)
			}

			// 1. Every node trusts both, one after the other. What they serve is the old key's all the while.
			f.trusted = before.Public().String() + "," + next.Public().String()
			for i, n := range f.nodes {
				n.kill()
				n.start()
				f.trustedBy(next, fmt.Sprintf("%d nodes", i+1))
			}
			f.gdn("keys", "check", string(next.ID()))
			f.serving(2)
			f.unrefused()

			// 2. The control plane signs with the new key. Edits go on; what is live is still the old key's.
			f.control.kill()
			f.key = next
			f.startControl()
			if out := f.gdn("keys", "check"); !strings.Contains(out, "key "+string(next.ID())+"; what is live is sealed with "+string(before.ID())) {
				t.Errorf("after the switch:\n%s", out)
			}
			f.unrefused()

			// 3. What is live is sealed anew, although nothing changed.
			if out := f.gdn("apply", "--reseal", "-m", "rotation", "--wait"); !strings.Contains(out, "✓ applied v3 — 1 zone(s)") {
				t.Errorf("reseal:\n%s", out)
			}
			f.serving(3)
			if out := f.gdn("keys", "check"); !strings.Contains(out, "what is live is sealed with it") {
				t.Errorf("after the reseal:\n%s", out)
			}
			f.unrefused()

			// 4. The old key is dropped, on the nodes and on the control plane.
			f.trusted = ""
			for _, n := range f.nodes {
				n.kill()
				n.start()
			}
			f.trustedBy(before, "0 nodes")
			f.control.kill()
			f.startControl()
			f.serving(3)
			f.unrefused()

			// A version from before the rotation is still one to go back to: it is sealed anew.
			out := f.gdn("rollback", "1", "--accept-disruption", "--wait")
			if !strings.Contains(out, "✓ rolled back to v1 (generation 4) — 1 zone(s)") || !strings.Contains(out, "sealed anew") {
				t.Errorf("rollback:\n%s", out)
			}
			f.serving(1)
			f.unrefused()
		})
	}
}

// A control plane that is restored from an old backup refuses to publish what nodes would refuse, until its epoch
// is raised. Nodes serve all the while.
func TestRestoreAndRecover(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", 2)
	f.gdn("zone", "create", "example.com")
	f.gdn("record", "add", "example.com", "v", "TXT", "one")
	f.gdn("apply", "-m", "one", "--wait")
	backup := filepath.Join(f.dir, "monday.backup")
	f.run([]string{"GUARDYN_DATABASE_URL=" + f.database}, "backup", backup)
	for _, v := range []string{"two", "three"} {
		f.gdn("record", "add", "example.com", v, "TXT", v)
		f.gdn("apply", "-m", v, "--wait")
	}

	// The database is lost; the backup knows version 1.
	f.control.kill()
	f.database = "sqlite:" + filepath.Join(f.dir, "restored.db")
	f.run([]string{"GUARDYN_DATABASE_URL=" + f.database}, "restore", backup)
	f.startControl()
	f.serving(3)

	f.gdn("record", "add", "example.com", "after", "TXT", "four")
	f.await("the control plane refuses to sign", func() error {
		if log := f.gdn("audit", "--all"); !strings.Contains(log, "ahead") {
			return fmt.Errorf("no node has proven that it is ahead:\n%s", log)
		}
		return nil
	})
	if warned := f.gdnBoth("plan"); !strings.Contains(warned, "newer than this database knows") {
		t.Errorf("plan:\n%s", warned)
	}
	if list := f.gdnBoth("node", "list"); !strings.Contains(list, " AHEAD ") || !strings.Contains(list, "nothing is signed until gdn recover --bump-epoch") {
		t.Errorf("node list:\n%s", list)
	}
	refused := f.refused("apply", "--accept-disruption")
	if !strings.Contains(refused, "newer than all that its database knows") || !strings.Contains(refused, "hint: if the database was restored from a backup, gdn recover --bump-epoch") {
		t.Errorf("apply:\n%s", refused)
	}
	f.serving(3)

	out := f.gdn("recover", "--bump-epoch", "-m", "restored from Monday")
	if !strings.Contains(out, "✓ epoch 1 → 2") || !strings.Contains(out, "serves version 3") {
		t.Errorf("recover:\n%s", out)
	}
	// Versions that nodes saw are not given out again.
	out = f.gdn("apply", "--accept-disruption", "-m", "after the restore", "--wait")
	if !strings.Contains(out, "✓ applied v4 — 1 zone(s)") {
		t.Errorf("apply:\n%s", out)
	}
	f.serving(4)
	if list := f.gdnBoth("node", "list"); strings.Contains(list, "AHEAD") || strings.Contains(list, "recover") {
		t.Errorf("node list after the recovery:\n%s", list)
	}
}
