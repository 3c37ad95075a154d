package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// BenchmarkAddPurge adds to a log that holds nothing, and to one that is full, so that each purge drops another.
func BenchmarkAddPurge(b *testing.B) {
	for _, d := range databases {
		for _, rows := range []int{0, control.MaxPurges} {
			b.Run(fmt.Sprintf("%s/rows=%d", d.name, rows), func(b *testing.B) {
				url := d.url(b)
				db := open(b, url)
				fill(b, db)
				at := time.Unix(1000, 0)
				add := func(keep int) {
					_, err := db.AddPurge(b.Context(), control.NewPurge{
						Row: control.PurgeRow{
							ID: uuid.NewString(), Workspace: "w1",
							Purge: zone.Purge{Zone: zone.MustName("example.com"), Kind: zone.PurgeTag, Values: []string{"a-tag"}, At: at},
						},
						Audit:    control.AuditEntry{ID: uuid.NewString(), At: at},
						ZoneMost: control.MaxZonePurges, WorkspaceMost: control.MaxWorkspacePurges, Window: control.PurgeWindow,
						KeepAge: control.KeepPurges, KeepRows: keep,
					})
					if err != nil {
						b.Fatal(err)
					}
					at = at.Add(time.Second) // within the rate
				}
				if rows > 0 {
					seedPurges(b, d.name, url, rows)
				}
				b.ReportAllocs()
				for b.Loop() {
					add(max(rows, 1))
				}
			})
		}
	}
}

// BenchmarkPurgesAfter reads what a node at the end is told, and a whole statement.
func BenchmarkPurgesAfter(b *testing.B) {
	for _, d := range databases {
		url := d.url(b)
		db := open(b, url)
		fill(b, db)
		seedPurges(b, d.name, url, control.MaxPurges)
		rev, err := db.Revisions(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range []uint64{0, 1, seal.MaxPurges} {
			b.Run(fmt.Sprintf("%s/purges=%d", d.name, n), func(b *testing.B) {
				from := rev.Purges.Sequence - n
				ids, err := db.PurgeIDs(b.Context(), []uint64{from})
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					batch, err := db.PurgesAfter(b.Context(), seal.PurgeMark{Sequence: from, ID: ids[from]}, seal.MaxPurges, seal.MaxPurgesBytes)
					if err != nil || !batch.Known || uint64(len(batch.Rows)) != n {
						b.Fatalf("%d rows, known %t, %v", len(batch.Rows), batch.Known, err)
					}
				}
			})
		}
	}
}

// seedPurges writes a log past the store, whose triggers would look at each row.
func seedPurges(b *testing.B, database, url string, rows int) {
	b.Helper()
	driver, name, at := "pgx", url, "to_timestamp(1)"
	series, pad := fmt.Sprintf(`generate_series(1, %d) AS s(n)`, rows), `lpad(n::text, 36, '0')`
	before, after := `ALTER TABLE edge.purge DISABLE TRIGGER USER`, `ALTER TABLE edge.purge ENABLE TRIGGER USER`
	if database == "SQLite" {
		driver, name, at = "sqlite", strings.TrimPrefix(url, "sqlite:"), "1000000"
		series = fmt.Sprintf(`(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s) AS s`, rows)
		pad = `printf('%036d', n)`
		before = `DROP TRIGGER purge_next`
		after = `SELECT 1`
	}
	raw := openSQL(b, driver, name)
	for _, statement := range []string{
		before,
		`UPDATE edge.purge_log SET head = ` + fmt.Sprint(rows) + `, head_id = (SELECT ` + strings.ReplaceAll(pad, "n::", fmt.Sprint(rows)+"::") + `)`,
		`INSERT INTO edge.purge (sequence, id, workspace_id, zone, kind, value_list, at, by)
		 SELECT n, ` + pad + `, 'w1', 'example.com', 'tag', '["a-tag"]', ` + at + `, 'ada@example.net' FROM ` + series,
		after,
	} {
		if database == "SQLite" {
			statement = strings.NewReplacer("edge.", "", "d', n))", fmt.Sprintf("d', %d))", rows)).Replace(statement)
		}
		if _, err := raw.ExecContext(b.Context(), statement); err != nil {
			b.Fatalf("%s: %v", statement, err)
		}
	}
}
