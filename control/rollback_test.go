package control_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
)

// versions publishes n versions of example.com, the record www of each with the version as last octet.
func (w *world) versions(t testing.TB, n int) {
	t.Helper()
	w.zone(t, w.editor, "example.com")
	r := w.record(t, w.editor, "example.com", "www", "A", "192.0.2.1")
	for v := 1; v <= n; v++ {
		if v > 1 {
			w.address(t, r.ID, v)
		}
		if res := w.apply(t, control.ApplyRequest{AcceptDisruption: true}); !res.Applied || res.Version != uint64(v) {
			t.Fatalf("apply %d: %+v", v, res)
		}
	}
}

// address edits the one record of example.com.
func (w *world) address(t testing.TB, id string, octet int) {
	t.Helper()
	_, err := w.svc.UpdateRecord(context.Background(), w.editor, "example.com", id, control.RecordInput{
		Name: "www", Type: "A", Content: fmt.Sprintf("192.0.2.%d", octet),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) rollback(t testing.TB, r control.RollbackRequest) control.RollbackResult {
	t.Helper()
	res, err := w.svc.Rollback(context.Background(), w.operator, r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// liveRow reads what is live past every memory.
func (w *world) liveRow(t testing.TB) control.SnapshotRow {
	t.Helper()
	row, err := w.store.Live(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// opens holds that a node with these keys takes what is live.
func (w *world) opens(t testing.TB, keys seal.TrustedKeys) *seal.Verified {
	t.Helper()
	row := w.liveRow(t)
	sealed, err := w.store.Sealed(context.Background(), row.Version)
	if err != nil {
		t.Fatal(err)
	}
	v, err := seal.Open(seal.Artefact{Sealed: sealed, Activation: row.Activation}, keys, nil)
	if err != nil {
		t.Fatalf("a node refuses what is live: %v", err)
	}
	return v
}

func trust(t testing.TB, keys ...seal.SigningKey) seal.TrustedKeys {
	t.Helper()
	public := make([]seal.PublicKey, len(keys))
	for i, k := range keys {
		public[i] = k.Public()
	}
	trusted, err := seal.Trust(public...)
	if err != nil {
		t.Fatal(err)
	}
	return trusted
}

func TestRollbackGoesToTheRecordedParent(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.versions(t, 3)
		dry := w.rollback(t, control.RollbackRequest{DryRun: true})
		if dry.RolledBack || dry.Version != 2 || dry.Generation != 3 || !dry.Plan.Disruptive || w.liveRow(t).Version != 3 {
			t.Fatalf("dry run: %+v", dry)
		}
		if got := dry.Plan.Text(false); !strings.Contains(got, "192.0.2.3") || !strings.Contains(got, "192.0.2.2") {
			t.Errorf("plan:\n%s", got)
		}
		var disruptive *control.DisruptiveError
		if _, err := w.svc.Rollback(ctx, w.operator, control.RollbackRequest{}); !errors.As(err, &disruptive) || disruptive.Plan.ContentHash != dry.ContentHash {
			t.Fatalf("without consent: %v", err)
		}
		var changed *control.PlanChangedError
		if _, err := w.svc.Rollback(ctx, w.operator, control.RollbackRequest{
			AcceptDisruption: true, ExpectedContentHash: strings.Repeat("0", 64),
		}); !errors.As(err, &changed) || changed.Plan.ContentHash != dry.ContentHash {
			t.Fatalf("another hash: %v", err)
		}
		changed = nil
		if _, err := w.svc.Rollback(ctx, w.operator, control.RollbackRequest{
			AcceptDisruption: true, Version: 1, ExpectedGeneration: dry.Generation - 1,
		}); !errors.As(err, &changed) {
			t.Fatalf("compared with another generation: %v", err)
		}
		r := control.RollbackRequest{
			AcceptDisruption: true, ExpectedContentHash: dry.ContentHash, ExpectedGeneration: dry.Generation, Message: "bad",
		}
		if res := w.rollback(t, r); !res.RolledBack || res.Version != 2 || res.Generation != 4 || res.Resealed || res.Zones != 1 {
			t.Errorf("rollback: %+v", res)
		}
		act := w.opens(t, trust(t, w.key)).Activation()
		if act.Kind != seal.KindRollback || act.Generation != 4 || act.ParentGeneration != 3 || act.Version != 2 {
			t.Errorf("activation %+v", act)
		}
		// Again: the parent of what is live now, not what was live before.
		if res := w.rollback(t, control.RollbackRequest{AcceptDisruption: true}); res.Version != 1 || res.Generation != 5 {
			t.Errorf("second rollback: %+v", res)
		}
		// The next version's parent is what was live.
		w.address(t, w.onlyRecord(t), 9)
		w.apply(t, control.ApplyRequest{AcceptDisruption: true})
		if row := w.liveRow(t); row.Version != 4 || row.ParentVersion != 1 {
			t.Errorf("after it: %+v", row)
		}
		if res := w.rollback(t, control.RollbackRequest{AcceptDisruption: true}); res.Version != 1 {
			t.Errorf("third rollback: %+v", res)
		}
		if res := w.rollback(t, control.RollbackRequest{AcceptDisruption: true, Version: 3}); res.Version != 3 || res.Generation != 8 {
			t.Errorf("forward again: %+v", res)
		}
	})
}

func (w *world) onlyRecord(t testing.TB) string {
	t.Helper()
	l, err := w.svc.ListRecords(context.Background(), w.viewer, "example.com", control.RecordQuery{Name: "www"}, control.Page{})
	if err != nil || len(l.Items) != 1 {
		t.Fatalf("records: %+v, %v", l, err)
	}
	return l.Items[0].ID
}

func TestRollbackWithNowhereToGo(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		refused := func(version uint64, code string) {
			t.Helper()
			var target *control.TargetError
			for _, dry := range []bool{true, false} {
				_, err := w.svc.Rollback(t.Context(), w.operator, control.RollbackRequest{Version: version, DryRun: dry, AcceptDisruption: true})
				if !errors.As(err, &target) || target.Code != code {
					t.Errorf("to version %d: %v, want %s", version, err, code)
				}
			}
			entries := w.audited(t, "config.rollback")
			if len(entries) == 0 || entries[0].Outcome != code {
				t.Errorf("audited %+v, want outcome %s", entries, code)
			}
		}
		refused(0, control.CodeNoParent)
		refused(1, control.CodeNoParent)
		w.versions(t, 1)
		refused(0, control.CodeNoParent)
		refused(1, control.CodeVersionLive)
		refused(2, control.CodeVersionUnknown)
		refused(1<<63+1, control.CodeVersionUnknown)
		for name, p := range map[string]control.Principal{"admin": w.stranger, "editor": w.editor, "node": w.node(t, "fra1")} {
			_, err := w.svc.Rollback(t.Context(), p, control.RollbackRequest{})
			wantError(t, name, err, control.ErrNoRoute)
		}
		if row := w.liveRow(t); len(row.Generations) != 1 {
			t.Errorf("refusals moved the live row: %+v", row)
		}
		bad := control.RollbackRequest{Message: "a\x00b", ExpectedContentHash: "A", IdempotencyKey: "a b"}
		_, err := w.svc.Rollback(t.Context(), w.operator, bad)
		if ps := problems(t, "malformed", err); len(ps) != 3 {
			t.Errorf("problems: %+v", ps)
		}
	})
}

// A version may be stored without ever having been live. It was built and signed here: going to it is allowed.
func TestRollbackToAVersionThatNeverWasLive(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		w.versions(t, 2)
		driver, name, table := "sqlite", "file:"+strings.TrimPrefix(w.url, "sqlite:"), "snapshot"
		if strings.HasPrefix(w.url, "postgres") {
			driver, name, table = "pgx", w.url, "edge.snapshot"
		}
		db, err := sql.Open(driver, name)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		// Version 7 is version 1 as another process would have sealed and not activated it.
		sealed, err := w.store.Sealed(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := seal.OpenSealed(sealed, trust(t, w.key))
		if err != nil {
			t.Fatal(err)
		}
		meta := snap.Meta()
		meta.Version, meta.ParentVersion = 7, 2
		if sealed, err = seal.Seal(w.key, snap.WithMeta(meta)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), `INSERT INTO `+table+` (version, parent_version, content_hash, created_by, message, created_at,
			zones, bytes, key_id, payload_blake3, signature, payload)
			SELECT 7, 2, content_hash, created_by, message, created_at, zones, $1, key_id, $2, $3, $4 FROM `+table+` WHERE version = 1`,
			len(sealed.Payload), sealed.PayloadBLAKE3, sealed.Signature, sealed.Payload); err != nil {
			t.Fatal(err)
		}
		if res := w.rollback(t, control.RollbackRequest{Version: 7, AcceptDisruption: true}); !res.RolledBack || res.Version != 7 || res.Generation != 3 {
			t.Errorf("rollback: %+v", res)
		}
		w.opens(t, trust(t, w.key))
		if a := w.audited(t, "config.rollback")[0]; a.Outcome != "ok" || !strings.Contains(a.Detail, `"never_active":true`) {
			t.Errorf("audited %+v", a)
		}
		if res := w.rollback(t, control.RollbackRequest{AcceptDisruption: true}); res.Version != 2 {
			t.Errorf("its parent: %+v", res)
		}
	})
}

// Rotation, and then a rollback over it: what a dropped key sealed gets the present one's seal.
func TestRollbackReseals(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		w.versions(t, 2)
		before, err := w.store.SnapshotByVersion(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		next, err := seal.GenerateSigningKey()
		if err != nil {
			t.Fatal(err)
		}
		w.key = next
		for i, trusted := range []seal.TrustedKeys{{}, trust(t, next)} { // the second time the old key is long gone
			w.svc = w.service(t, w.open(t), func(c *control.Config) { c.TrustedKeys = trusted })
			version := uint64(1 + i)
			res := w.rollback(t, control.RollbackRequest{Version: version, AcceptDisruption: true})
			if !res.Resealed || res.Version != version {
				t.Fatalf("rollback: %+v", res)
			}
			v := w.opens(t, trust(t, next))
			if v.KeyID() != next.ID() || v.Snapshot().ContentHash() != res.ContentHash {
				t.Errorf("what is live is of key %s, content %s", v.KeyID(), v.Snapshot().ContentHash())
			}
		}
		after, err := w.store.SnapshotByVersion(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if after.ContentHash != before.ContentHash || after.ParentVersion != before.ParentVersion || after.Message != before.Message ||
			after.KeyID != next.ID() || !after.CreatedAt.Equal(before.CreatedAt) {
			t.Errorf("version 1 was %+v and is %+v", before, after)
		}
		if res := w.rollback(t, control.RollbackRequest{Version: 1, AcceptDisruption: true}); res.Resealed {
			t.Error("what has the present seal got another")
		}
		if got := w.audited(t, "config.key_switch"); len(got) != 1 || got[0].Target != string(next.ID()) {
			t.Errorf("key switches audited: %+v", got)
		}
	})
}

// Two applies and a rollback at once, over and over: one live row, one line of parents.
func TestAppliesAndRollbacksAtOnce(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		w.versions(t, 2)
		id := w.onlyRecord(t)
		services := []*control.Service{w.svc, w.service(t, w.open(t), nil), w.service(t, w.open(t), nil)}
		const rounds = 8
		won := 2
		for round := range rounds {
			w.address(t, id, 100+round)
			seen := w.liveRow(t)
			var wg sync.WaitGroup
			errs := make([]error, 3)
			for i, svc := range services {
				wg.Go(func() {
					if i == 2 {
						_, errs[i] = svc.Rollback(context.Background(), w.operator, control.RollbackRequest{AcceptDisruption: true})
					} else {
						_, errs[i] = svc.Apply(context.Background(), w.operator, control.ApplyRequest{AcceptDisruption: true})
					}
				})
			}
			wg.Wait()
			for i, err := range errs {
				var stale *control.StaleError
				var target *control.TargetError
				if err != nil && !errors.As(err, &stale) && !errors.As(err, &target) {
					t.Errorf("process %d: %v", i, err)
				}
				if stale != nil && stale.Plan == nil {
					t.Errorf("process %d lost and was shown no plan", i)
				}
			}
			row := w.liveRow(t)
			generation := row.Generations[len(row.Generations)-1]
			if last := seen.Generations[len(seen.Generations)-1]; generation <= last {
				t.Errorf("nobody won: generation %d after %d", generation, last)
			}
			won = int(generation)
		}
		w.oneLine(t, won)
	})
}

// oneLine holds that exactly one row is active, that generations 1 to n were each taken once, and that every
// version's parent is what was live in the generation before its first.
func (w *world) oneLine(t testing.TB, n int) {
	t.Helper()
	history, err := w.svc.History(context.Background(), w.operator, control.Page{Limit: control.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	active, taken := 0, map[uint64]control.SnapshotRow{}
	for _, row := range history.Items {
		if !row.ActivatedAt.IsZero() {
			active++
		}
		for _, g := range row.Generations {
			if other, ok := taken[g]; ok {
				t.Errorf("generation %d is of versions %d and %d", g, other.Version, row.Version)
			}
			taken[g] = row
		}
	}
	if active != 1 || len(taken) != n {
		t.Errorf("%d rows are active, %d generations of %d taken", active, len(taken), n)
	}
	for _, row := range history.Items {
		if len(row.Generations) == 0 {
			t.Errorf("version %d is stored and never was live", row.Version)
			continue
		}
		if parent := taken[row.Generations[0]-1]; parent.Version != row.ParentVersion {
			t.Errorf("version %d has parent %d, live was %d", row.Version, row.ParentVersion, parent.Version)
		}
	}
}

func TestRollbackWhenTheAnswerToTheCommitIsLost(t *testing.T) {
	w := newWorld(t)
	w.versions(t, 2)
	svc := w.service(t, unsure{w.store, true}, nil)
	res, err := svc.Rollback(t.Context(), w.operator, control.RollbackRequest{AcceptDisruption: true})
	if err != nil || res.Generation != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	if row := w.liveRow(t); row.Version != 1 {
		t.Errorf("live is %+v", row)
	}
}
