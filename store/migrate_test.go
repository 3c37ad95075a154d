package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/store"
	"github.com/guardyn-edge/guardyn/zone"
)

// A database that holds something comes to the newest schema with all of it.
func TestMigrateWhatIsThere(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			ctx, url := t.Context(), d.url(t)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			type all struct {
				Platform control.Platform
				History  []control.SnapshotRow
				Nodes    []control.Node
				Zones    int
			}
			read := func(db *store.DB) (a all) {
				t.Helper()
				var err error
				a.Platform, err = db.Platform(ctx)
				must(err)
				a.History, err = db.History(ctx, control.Page{Limit: 10})
				must(err)
				a.Nodes, err = db.ListNodes(ctx)
				must(err)
				zones, err := db.ListZones(ctx, "w1", control.Page{Limit: 100})
				must(err)
				a.Zones = len(zones)
				return a
			}
			old, err := store.OpenAt(ctx, url, 1)
			must(err)
			raw := d.raw(t, url)
			fillWith(t, old, func(z control.ZoneRow, a control.AuditEntry) error {
				// As builds of that schema did.
				at, table := "0", "zone"
				if d.name == "Postgres" {
					at, table = "to_timestamp(0)", "edge.zone"
				}
				_, err := raw.ExecContext(ctx, `INSERT INTO `+table+` (id, workspace_id, name, revision, records, created_at)
					VALUES ('`+string(z.ID)+`', 'w1', '`+z.Name.String()+`', 1, 0, `+at+`)`)
				return errors.Join(err, old.Append(ctx, a))
			})
			before := read(old)
			must(old.Close())
			var logged []string
			rows, err := raw.QueryContext(ctx, map[string]string{
				"SQLite": `SELECT id FROM audit ORDER BY rowid DESC`, "Postgres": `SELECT id FROM edge.audit ORDER BY ctid DESC`,
			}[d.name])
			must(err)
			for rows.Next() {
				var id string
				must(rows.Scan(&id))
				logged = append(logged, id)
			}
			must(errors.Join(rows.Err(), rows.Close()))

			var schema *store.SchemaError
			if _, err := store.Open(ctx, url); !errors.As(err, &schema) || schema.Have != 1 {
				t.Fatalf("opened before it was migrated: %v", err)
			}
			db := open(t, url)
			if diff := cmp.Diff(before, read(db), cmp.AllowUnexported(zone.Name{})); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
			entries, err := db.ListAudit(ctx, "", control.Page{Limit: 100})
			must(err)
			var listed []string
			for _, e := range entries {
				listed = append(listed, e.ID)
			}
			if len(logged) < 5 || !slices.Equal(listed, logged) {
				t.Errorf("the log has %q, want the order of writing %q", listed, logged)
			}
			c, err := db.ClusterSettings(ctx)
			must(err)
			if want := (control.ClusterSettings{Rollout: control.RolloutDirect, Deadline: 5 * time.Minute, Soak: 10 * time.Second, Margin: 100, Revision: 1}); c != want {
				t.Errorf("settings: %+v", c)
			}
			must(publish(t, db, control.AuditEntry{ID: uuid.NewString(), At: time.Now(), Workspace: "w1"}))
			must(db.CreateWorkspace(ctx, control.Workspace{ID: "w2", Name: "two", Plan: "standard", CreatedAt: time.Now()}, control.AuditEntry{ID: uuid.NewString(), At: time.Now()}))
			below := control.ZoneRow{ID: zone.ID(strings.Repeat("b", 36)), Name: zone.MustName("www.example.com"), CreatedAt: time.Now()}
			var clash *control.ZoneClashError
			if err := db.CreateZone(ctx, "w2", below, control.AuditEntry{ID: uuid.NewString(), At: time.Now()}); !errors.As(err, &clash) || clash.Above.String() != "example.com" {
				t.Errorf("below a zone that was there: %v", err)
			}
			r, err := db.Revisions(ctx)
			must(err)
			if r.Generation != before.Platform.Generation+1 || r.Rollouts != 0 {
				t.Errorf("revisions: %+v", r)
			}
		})
	}
}
