package store_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/store"
	"github.com/guardyn-edge/guardyn/zone"
)

// fill gives a database one row of each kind, and two published versions, of which the second is live.
func fill(t testing.TB, db *store.DB) {
	t.Helper()
	fillWith(t, db, func(z control.ZoneRow, a control.AuditEntry) error { return db.CreateZone(t.Context(), "w1", z, a) })
}

// fillWith is fill, with another way to create the zone.
func fillWith(t testing.TB, db *store.DB, create func(control.ZoneRow, control.AuditEntry) error) {
	t.Helper()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	entry := func() control.AuditEntry { return control.AuditEntry{ID: uuid.NewString(), At: at, Workspace: "w1"} }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(db.CreateWorkspace(t.Context(), control.Workspace{ID: "w1", Name: "one", Plan: "standard", CreatedAt: at}, entry()))
	must(db.CreateUser(t.Context(), control.User{ID: "u1", Email: "ada@example.net", CreatedAt: at}, entry()))
	must(db.SetMembership(t.Context(), control.Membership{UserID: "u1", Workspace: "w1", Role: control.RoleAdmin}, entry()))
	must(db.CreateToken(t.Context(), control.Token{ID: "t1", UserID: "u1", Workspace: "w1", CreatedAt: at}, entry()))
	must(db.CreateNode(t.Context(), control.Node{ID: "n1", Name: "fra1", CreatedAt: at}, control.Token{ID: "t2", Hash: [32]byte{2}, CreatedAt: at}, entry()))
	z := control.ZoneRow{ID: zone.ID(strings.Repeat("a", 36)), Name: zone.MustName("example.com"), CreatedAt: at}
	must(create(z, entry()))
	a := control.RecordRow{ID: "r1", Record: zone.Record{Name: z.Name, Type: 1, Content: "192.0.2.1"}}
	must(db.ChangeRecords(t.Context(), "w1", z.ID, control.RecordChange{Insert: []control.RecordRow{a}}, 0, entry()))
	_, err := db.PutObject(t.Context(), "w1", z.ID, control.ObjectRow{Kind: control.KindPool, Name: "main", Body: []byte(`{}`)}, 0, entry())
	must(err)
	for range 2 {
		must(publish(t, db, entry()))
	}
}

// publish a new version after what is live.
func publish(t testing.TB, db *store.DB, audit control.AuditEntry) error {
	t.Helper()
	p, err := db.Platform(t.Context())
	if err != nil {
		return err
	}
	version, err := db.NextVersion(t.Context())
	if err != nil {
		return err
	}
	hash := fmt.Sprintf("%064x", version)
	return db.Publish(t.Context(), control.Publication{
		SeenGeneration: p.Generation,
		Insert: &control.NewSnapshot{
			Row:    control.SnapshotRow{Version: version, ContentHash: hash, CreatedAt: audit.At},
			Sealed: seal.Sealed{Version: version, ContentHash: hash, Payload: []byte("payload")},
		},
		Activation: seal.Activation{Platform: p.ID, Epoch: p.Epoch, Generation: p.Generation + 1, Kind: seal.KindApply, Version: version},
		At:         audit.At,
		Audit:      audit,
	})
}

const insertSnapshot = `INSERT INTO edge.snapshot (version, parent_version, content_hash, created_by, message, created_at,
	zones, bytes, key_id, payload_blake3, signature, activated_at, payload)
	SELECT %s, parent_version, %s, created_by, message, created_at, zones, bytes, key_id, payload_blake3, signature, %s, payload
	FROM edge.snapshot WHERE version = 2`

// refused are statements that someone with the database's own password types, and what must refuse each.
var refused = []struct{ name, on, statement, by string }{
	{"a second active row", "", `UPDATE edge.snapshot SET activated_at = (SELECT activated_at FROM edge.snapshot WHERE version = 2) WHERE version = 1`, "snapshot_one_active"},
	{"a second active row, inserted", "", fmt.Sprintf(insertSnapshot, "9", "content_hash", "activated_at"), "snapshot_one_active"},
	{"a version twice", "", fmt.Sprintf(insertSnapshot, "2", "content_hash", "NULL"), "snapshot"},
	{"version 0", "", fmt.Sprintf(insertSnapshot, "0", "content_hash", "NULL"), "check"},
	{"hash in upper case", "", fmt.Sprintf(insertSnapshot, "9", "'"+strings.Repeat("A", 64)+"'", "NULL"), "content_hash"},
	{"hash too short", "", fmt.Sprintf(insertSnapshot, "9", "'"+strings.Repeat("a", 63)+"'", "NULL"), "content_hash"},
	{"hash too long", "", fmt.Sprintf(insertSnapshot, "9", "'"+strings.Repeat("a", 65)+"'", "NULL"), "content_hash"},
	{"hash with a line break", "", fmt.Sprintf(insertSnapshot, "9", "'"+strings.Repeat("a", 64)+"\n'", "NULL"), "content_hash"},
	{"hash that is no hex", "", fmt.Sprintf(insertSnapshot, "9", "'"+strings.Repeat("g", 64)+"'", "NULL"), "content_hash"},
	{"another hash for a version", "", `UPDATE edge.snapshot SET content_hash = '` + strings.Repeat("a", 64) + `' WHERE version = 2`, "never changes"},
	{"another number for a version", "", `UPDATE edge.snapshot SET version = 7 WHERE version = 2`, ""},
	{"a published version gone", "", `DELETE FROM edge.snapshot WHERE version = 1`, "foreign key"},

	{"generation down", "", `UPDATE edge.platform SET generation = generation - 1`, "never go down"},
	{"epoch down", "", `UPDATE edge.platform SET epoch = epoch - 1`, ""},
	{"directory down", "", `UPDATE edge.platform SET directory = directory - 1`, "never go down"},
	{"platform renamed", "", `UPDATE edge.platform SET id = '` + strings.Repeat("0", 36) + `'`, "never"},
	{"platform deleted", "", `DELETE FROM edge.platform`, "never deleted"},
	{"platform truncated", "Postgres", `TRUNCATE edge.platform`, "never deleted"},
	{"a second platform", "", `INSERT INTO edge.platform (one, id, epoch, generation, directory) VALUES (2, '` + strings.Repeat("0", 36) + `', 1, 0, 0)`, ""},
	{"platform replaced", "SQLite", `REPLACE INTO platform (one, id, epoch, generation, directory) VALUES (1, '` + strings.Repeat("0", 36) + `', 1, 0, 0)`, "one row"},
	{"generation replaced", "SQLite", `UPDATE OR REPLACE platform SET generation = 0`, "never go down"},
	{"generation upserted", "", `INSERT INTO edge.platform (one, id, epoch, generation, directory) VALUES (1, '` + strings.Repeat("0", 36) + `', 1, 0, 0)
		ON CONFLICT (one) DO UPDATE SET generation = 0`, ""},

	{"version counter back", "SQLite", `UPDATE config_version_seq SET last = last - 1`, "given out once"},
	{"version counter replaced", "SQLite", `REPLACE INTO config_version_seq (one, last) VALUES (1, 0)`, "one row"},
	{"version counter deleted", "SQLite", `DELETE FROM config_version_seq`, "never deleted"},

	{"audit changed", "", `UPDATE edge.audit SET outcome = 'ok'`, "append-only"},
	{"audit deleted", "", `DELETE FROM edge.audit`, "append-only"},
	{"audit truncated", "Postgres", `TRUNCATE edge.audit`, "append-only"},
	{"audit replaced", "SQLite", `REPLACE INTO audit SELECT position, id, at, workspace, 'someone else', origin, action, target, outcome, detail FROM audit`, "append-only"},
	{"audit upserted", "Postgres", `INSERT INTO edge.audit OVERRIDING USER VALUE SELECT * FROM edge.audit ON CONFLICT (id) DO UPDATE SET actor = 'someone else'`, "append-only"},

	{"activation changed", "", `UPDATE edge.activation SET version = 2 WHERE generation = 1`, "append-only"},
	{"activation deleted", "", `DELETE FROM edge.activation`, "append-only"},
	{"activation truncated", "Postgres", `TRUNCATE edge.activation`, "append-only"},
	{"activation truncated with its snapshots", "Postgres", `TRUNCATE edge.snapshot CASCADE`, "append-only"},
	{"activation replaced", "SQLite", `REPLACE INTO activation SELECT epoch, generation, 2, kind, signed, by, at FROM activation WHERE generation = 1`, "append-only"},
	{"a generation twice", "", `INSERT INTO edge.activation SELECT epoch, generation, 1, kind, signed, by, at FROM edge.activation WHERE generation = 2`, ""},
	{"activation of nothing", "", `INSERT INTO edge.activation SELECT epoch, 9, 900, kind, signed, by, at FROM edge.activation WHERE generation = 2`, "foreign key"},

	{"a zone twice", "", `INSERT INTO edge.zone SELECT '` + strings.Repeat("b", 36) + `', workspace_id, name, 1, 0, created_at FROM edge.zone`, ""},
	{"a zone of nobody", "", `UPDATE edge.zone SET workspace_id = 'nobody'`, "foreign key"},
	{"a workspace with zones gone", "", `DELETE FROM edge.workspace`, "foreign key"},
	{"a record twice", "", `INSERT INTO edge.record SELECT zone_id, 'r2', name, type, content, content_key, ttl, proxied FROM edge.record`, ""},
	{"a TTL over 2^31-1", "", `UPDATE edge.record SET ttl = 2147483648`, ""},
	{"an object of no kind", "", `UPDATE edge.object SET kind = 'wish'`, "check"},
	{"a role of no kind", "", `UPDATE edge.membership SET role = 'owner'`, "check"},
	{"a token twice", "", `UPDATE edge.token SET hash = (SELECT hash FROM edge.token WHERE id = 't2')`, ""},
	{"a token of nobody", "", `UPDATE edge.token SET user_id = NULL WHERE id = 't1'`, "check"},
	{"a token of a user and a node", "", `UPDATE edge.token SET node_id = 'n1' WHERE id = 't1'`, "check"},
	{"a plan in use gone", "", `DELETE FROM edge.plan`, "foreign key"},
	{"another message of a rollout", "", `UPDATE edge.rollout SET message = 'x', provisional = 'p' WHERE generation = 7`, "append-only"},
	{"a rollout touched", "", `UPDATE edge.rollout SET margin = margin WHERE generation = 7`, "append-only"},
	{"a trial's second activation", "", `UPDATE edge.rollout SET provisional = 'q' WHERE generation = 8`, "append-only"},
	{"a trial without its activation", "", `UPDATE edge.rollout SET provisional = NULL WHERE generation = 8`, "append-only"},
	{"a rollout gone", "", `DELETE FROM edge.rollout`, "append-only"},
	{"a rollout replaced", "SQLite", `REPLACE INTO edge.rollout SELECT * FROM edge.rollout`, "append-only"},
	{"rollouts emptied", "Postgres", `TRUNCATE edge.rollout`, "append-only"},
	{"a rollout of no version", "", `INSERT INTO edge.rollout SELECT '` + strings.Repeat("c", 36) + `', 1, 9, kind, 99, content_hash, message, by, margin, created_at, NULL FROM edge.rollout WHERE generation = 7`, "foreign key"},
	{"the end of the log of purges back", "", `UPDATE edge.purge_log SET head = head - 1`, "never go down"},
	{"its floor beyond its end", "", `UPDATE edge.purge_log SET floor = head + 1, floor_id = 'x'`, "check"},
	{"the log of purges gone", "", `DELETE FROM edge.purge_log`, "never deleted"},
	{"a second log of purges", "", `INSERT INTO edge.purge_log (one, head, head_id, floor, floor_id) VALUES (2, 0, '', 0, '')`, ""},
	{"a log of purges replaced", "SQLite", `REPLACE INTO edge.purge_log (one, head, head_id, floor, floor_id) VALUES (1, 0, '', 0, '')`, "one row"},
	{"the names' lock gone", "", `DELETE FROM edge.zone_names`, "never deleted"},
	{"a purge changed", "", `UPDATE edge.purge SET kind = 'tag'`, "never changes"},
	{"a purge gone that nodes may lack", "", `DELETE FROM edge.purge`, "may not have it yet"},
	{"purges emptied", "Postgres", `TRUNCATE edge.purge`, "never changes"},
	{"a purge without its number", "", `INSERT INTO edge.purge SELECT 9, '` + strings.Repeat("9", 36) + `', workspace_id, zone, kind, value_list, at, by FROM edge.purge`, "not the one that was taken"},
	{"a purge replaced", "SQLite", `REPLACE INTO edge.purge SELECT sequence, id, workspace_id, zone, 'tag', value_list, at, by FROM edge.purge`, "not the one that was taken"},

	{"a window without coordinated", "", `UPDATE edge.platform SET confirm_window_ms = 20000`, "check"},
	{"a window too short", "", `UPDATE edge.platform SET rollout_mode = 'coordinated', confirm_window_ms = 19999`, "check"},
	{"a third way of publishing", "", `UPDATE edge.platform SET rollout_mode = 'canary'`, "check"},
	{"steps of rollouts counted down", "", `UPDATE edge.platform SET rollouts = -1`, "never go down"},
	{"settings rewound", "", `UPDATE edge.platform SET settings_revision = 0`, "never go down"},
}

// rollouts are one that was not decided and one that was on trial.
func rollouts(t *testing.T, raw *sql.DB, rewrite func(string) string) {
	t.Helper()
	for id, as := range map[string]string{"a": `7, 'apply', NULL`, "b": `8, 'rollback', 'signed'`} {
		generation, rest, _ := strings.Cut(as, ", ")
		kind, provisional, _ := strings.Cut(rest, ", ")
		_, err := raw.ExecContext(t.Context(), rewrite(`INSERT INTO edge.rollout
			SELECT '`+strings.Repeat(id, 36)+`', 1, `+generation+`, `+kind+`, version, content_hash, 'm', 'ada', 100, created_at, `+provisional+`
			FROM edge.snapshot WHERE version = 1`))
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDatabaseRefuses(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.url(t)
			db := open(t, url)
			fill(t, db)
			_, err := db.AddPurge(t.Context(), control.NewPurge{
				Row: control.PurgeRow{
					ID: uuid.NewString(), Workspace: "w1",
					Purge: zone.Purge{Zone: zone.MustName("example.com"), Kind: zone.PurgeAll, At: time.Unix(1, 0)},
				},
				Audit: control.AuditEntry{ID: uuid.NewString(), At: time.Unix(1, 0)}, ZoneMost: 1, WorkspaceMost: 1, KeepAge: time.Hour, KeepRows: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			raw := d.raw(t, url)
			rewrite := func(s string) string { return s }
			if d.name == "SQLite" {
				rewrite = func(s string) string { return strings.ReplaceAll(s, "edge.", "") }
				// Whoever opens the file may not have asked for this; without it nothing else would refuse.
				raw.SetMaxOpenConns(1)
				if _, err := raw.ExecContext(t.Context(), `PRAGMA foreign_keys = ON`); err != nil {
					t.Fatal(err)
				}
			}
			rollouts(t, raw, rewrite)
			before := dump(t, raw, rewrite)
			for _, r := range refused {
				if r.on != "" && r.on != d.name {
					continue
				}
				t.Run(r.name, func(t *testing.T) {
					_, err := raw.ExecContext(t.Context(), rewrite(r.statement))
					if err == nil {
						t.Fatal("the database took it")
					}
					if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(r.by)) {
						t.Errorf("refused by %v, not by %q", err, r.by)
					}
					if diff := cmp.Diff(before, dump(t, raw, rewrite)); diff != "" {
						t.Errorf("changed all the same (-before +after):\n%s", diff)
					}
				})
			}
		})
	}
}

// dump prints what the statements of refused aim at.
func dump(t *testing.T, raw *sql.DB, rewrite func(string) string) []string {
	t.Helper()
	var lines []string
	for _, statement := range []string{
		`SELECT 'platform ' || id || ' ' || epoch || ' ' || generation || ' ' || directory || ' ' || rollouts || ' ' || rollout_mode || ' ' || confirm_window_ms || ' ' || settings_revision FROM edge.platform`,
		`SELECT 'rollout ' || id || ' ' || generation || ' ' || message || ' ' || coalesce(provisional, '') FROM edge.rollout ORDER BY generation`,
		`SELECT 'snapshot ' || version || ' ' || content_hash || ' ' || coalesce(activated_at || '', 'idle') FROM edge.snapshot ORDER BY version`,
		`SELECT 'activation ' || epoch || ' ' || generation || ' ' || version FROM edge.activation ORDER BY epoch, generation`,
		`SELECT 'audit ' || id || ' ' || actor || ' ' || outcome FROM edge.audit ORDER BY id`,
		`SELECT 'zone ' || id || ' ' || workspace_id || ' ' || name FROM edge.zone ORDER BY id`,
		`SELECT 'record ' || id || ' ' || coalesce(ttl, 0) FROM edge.record ORDER BY id`,
		`SELECT 'token ' || id || ' ' || coalesce(user_id, '') || ' ' || coalesce(node_id, '') FROM edge.token ORDER BY id`,
	} {
		rows, err := raw.QueryContext(t.Context(), rewrite(statement))
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}
