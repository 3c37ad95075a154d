package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"

	"github.com/guardyn-edge/guardyn/seal"
)

// watchEvery is how often the live row is looked at.
const watchEvery = 4 * time.Millisecond

// watch looks at the live row over a connection of its own until ctx ends: there is exactly one, it is that of the
// platform's generation, and no generation is missing before it. It notes the first and the last look at each
// generation, which say all that the looks between them do. It returns how often it looked.
func (d *deeds) watch(ctx context.Context, conn *pgx.Conn) (looks int) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var (
		last       moved
		began, end int64
		again      bool
	)
	note := func() {
		if again {
			d.history = append(d.history, porcupine.Operation{Input: move{}, Call: began, Output: last, Return: end})
		}
	}
	for ; ; looks++ {
		select {
		case <-ctx.Done():
			d.mu.Lock()
			note()
			d.mu.Unlock()
			return looks
		case <-tick.C:
		}
		var generation, activations, live, liveVersion, version uint64
		call := d.now()
		// One statement sees one state.
		err := conn.QueryRow(d.t.Context(), `
			SELECT p.generation, (SELECT count(*) FROM edge.activation), count(s.version), coalesce(max(s.version), 0),
			       coalesce((SELECT version FROM edge.activation a WHERE a.epoch = p.epoch AND a.generation = p.generation), 0)
			FROM edge.platform p LEFT JOIN edge.snapshot s ON s.activated_at IS NOT NULL GROUP BY p.epoch, p.generation`).
			Scan(&generation, &activations, &live, &liveVersion, &version)
		ret := d.now()
		if err != nil {
			d.t.Error("watch:", err)
			return looks
		}
		if live != 1 || liveVersion != version || activations != generation || generation < last.generation {
			d.t.Errorf("generation %d (after %d), %d activations: %d live rows, version %d, which should be %d",
				generation, last.generation, activations, live, liveVersion, version)
			return looks
		}
		now := moved{outcome: done, generation: generation, version: liveVersion}
		if now == last {
			began, end, again = call, ret, true
			continue
		}
		d.mu.Lock()
		note()
		d.history = append(d.history, porcupine.Operation{Input: move{}, Call: call, Output: now, Return: ret})
		d.mu.Unlock()
		last, again = now, false
	}
}

// checkHistory compares what the database holds with what clients were told, and returns what was live when.
func (d *deeds) checkHistory(conn *pgx.Conn, trusted seal.TrustedKeys) liveRow {
	t := d.t
	t.Helper()
	l := liveRow{version: map[uint64]uint64{}, parent: map[uint64]uint64{}, bears: map[string]uint64{}}
	names := checkSnapshots(t, conn, trusted)

	type told struct{ action, mark string }
	audited := map[uint64]told{}
	for _, row := range query[struct {
		Action, Mark string
		Generation   uint64
	}](t, conn, `
		SELECT action, detail::json->>'message' AS mark, (detail::json->>'generation')::bigint AS generation
		FROM edge.audit WHERE action IN ('config.apply', 'config.rollback') AND outcome = 'ok'`) {
		if audited[row.Generation] != (told{}) {
			t.Errorf("two deeds are audited as generation %d: %s and %s", row.Generation, audited[row.Generation].mark, row.Mark)
		}
		audited[row.Generation] = told{row.Action, row.Mark}
	}

	var before, newest uint64 // the version that was live, and the newest that an apply made
	activated := map[uint64]bool{}
	rows := query[struct {
		Epoch, Generation, Version, Parent uint64
		Kind, Signed, Hash, Message        string
	}](t, conn, `
		SELECT a.epoch, a.generation, a.version, s.parent_version AS parent, a.kind, a.signed, s.content_hash AS hash, s.message
		FROM edge.activation a JOIN edge.snapshot s ON s.version = a.version ORDER BY a.epoch, a.generation`)
	for i, row := range rows {
		g := row.Generation
		if row.Epoch != 1 || g != uint64(i)+1 {
			t.Fatalf("activation %d is generation %d of epoch %d", i+1, g, row.Epoch)
		}
		act, _, err := seal.VerifyActivation(seal.SignedActivation(row.Signed), trusted)
		if err != nil {
			t.Fatalf("generation %d: %v", g, err)
		}
		if act.Generation != g || act.ParentGeneration != g-1 || act.Version != row.Version || act.ContentHash != row.Hash || string(act.Kind) != row.Kind {
			t.Errorf("generation %d, version %d, %s, content %s: signed is %+v", g, row.Version, row.Kind, row.Hash, act)
		}
		deed := audited[g]
		if deed.action != "config."+row.Kind {
			t.Errorf("generation %d, %s, is audited as %q", g, row.Kind, deed.action)
		}
		if l.bears[deed.mark] != 0 {
			t.Errorf("%s was done twice: generations %d and %d", deed.mark, l.bears[deed.mark], g)
		}
		if c, ok := d.consents[deed.mark]; !ok || c.hash != row.Hash {
			t.Errorf("generation %d, %q, published content %s; what its plan showed was %s", g, deed.mark, row.Hash, c.hash)
		}
		if row.Kind == "apply" {
			if activated[row.Version] || row.Version <= newest || row.Parent != before || row.Message != deed.mark {
				t.Errorf("generation %d is an apply of version %d (parent %d, %q) by %q; version %d was live, %d the newest",
					g, row.Version, row.Parent, row.Message, deed.mark, before, newest)
			}
			newest = row.Version
			d.checkContained(row.Version, names[row.Version], d.consents[deed.mark].planned)
		} else if !activated[row.Version] {
			t.Errorf("generation %d rolls back to version %d, which never was live", g, row.Version)
		}
		activated[row.Version] = true
		l.version[g], l.parent[row.Version], l.bears[deed.mark] = row.Version, row.Parent, g
		before = row.Version
	}
	if len(audited) != len(rows) || len(names) != len(activated) {
		t.Errorf("%d activations of %d versions, but %d audited deeds and %d snapshots", len(rows), len(activated), len(audited), len(names))
	}

	for _, op := range d.history {
		in, out := op.Input.(move), op.Output.(moved)
		if g, took := l.bears[in.mark]; in.kind != moveRead && out.outcome == refused && took {
			t.Errorf("%s was refused, and done as generation %d", in.mark, g)
		}
		if out.outcome != done {
			continue
		}
		if in.kind != moveRead && l.bears[in.mark] != out.generation || l.version[out.generation] != out.version {
			t.Errorf("%q was answered generation %d, version %d; history has it as generation %d, and version %d there",
				in.mark, out.generation, out.version, l.bears[in.mark], l.version[out.generation])
		}
		if out.hash != "" && rows[out.generation-1].Hash != out.hash {
			t.Errorf("%q was answered content %s of version %d, which has %s", in.mark, out.hash, out.version, rows[out.generation-1].Hash)
		}
	}
	return l
}

// checkSnapshots opens every stored version and returns the names in it.
func checkSnapshots(t testing.TB, conn *pgx.Conn, trusted seal.TrustedKeys) map[uint64]map[string]bool {
	t.Helper()
	names := map[uint64]map[string]bool{}
	rows, err := conn.Query(t.Context(), `SELECT version, content_hash, key_id, payload_blake3, signature, payload FROM edge.snapshot`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s seal.Sealed
		if err := rows.Scan(&s.Version, &s.ContentHash, &s.KeyID, &s.PayloadBLAKE3, &s.Signature, &s.Payload); err != nil {
			t.Fatal(err)
		}
		snap, err := seal.OpenSealed(s, trusted)
		if err != nil {
			t.Errorf("version %d: %v", s.Version, err)
			continue
		}
		names[s.Version] = map[string]bool{}
		for z := range snap.Zones() {
			for _, r := range z.Records {
				names[s.Version][r.Name.String()] = true
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// checkContained tells whether a version has every record that was acknowledged before its plan was asked for.
func (d *deeds) checkContained(version uint64, names map[string]bool, planned int64) {
	d.t.Helper()
	for _, r := range d.records {
		if r.kept && r.acknowledged != 0 && r.acknowledged < planned && !names[r.name+"."+r.zone] {
			d.t.Errorf("version %d lacks %s.%s, which was acknowledged before its plan was made", version, r.name, r.zone)
		}
	}
}

// checkRecords compares the rows with what was acknowledged, and returns them.
func (d *deeds) checkRecords(conn *pgx.Conn) map[string]string {
	d.t.Helper()
	have := map[string]string{}
	for _, row := range query[struct{ Name, Content string }](d.t, conn, `SELECT name, content FROM edge.record`) {
		have[row.Name] = strings.Trim(row.Content, `"`)
	}
	written := map[string]bool{}
	for _, r := range d.records {
		name := r.name + "." + r.zone
		written[name] = true
		if !slices.Contains(r.may, have[name]) {
			d.t.Errorf("%s is %q, of which its client knows only %q", name, have[name], r.may)
		}
	}
	for name := range have {
		if !written[name] {
			d.t.Errorf("nobody wrote %s", name)
		}
	}
	return have
}

// query reads rows into structs by the names of their columns.
func query[T any](t testing.TB, conn *pgx.Conn, statement string) []T {
	t.Helper()
	rows, err := conn.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		t.Fatalf("%v\n%s", err, statement)
	}
	return out
}
