package store_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/store"
)

// BenchmarkReadConfiguration reads platforms of zones × 10 records and one ruleset.
func BenchmarkReadConfiguration(b *testing.B) {
	for _, d := range databases {
		for _, zones := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/zones=%d", d.name, zones), func(b *testing.B) {
				url := d.url(b)
				db := open(b, url)
				seed(b, d.name, url, zones)
				runtime.GC()
				b.ReportAllocs()
				for b.Loop() {
					if got, err := db.ReadConfiguration(b.Context()); err != nil || len(got) != zones || len(got[zones-1].Zone.Records) != 10 {
						b.Fatalf("%d zones, %v", len(got), err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(zones)*1e6, "µs/zone")
			})
		}
	}
}

// seed writes rows in bulk, past the store.
func seed(b *testing.B, database, url string, zones int) {
	series := `generate_series(1, %d) AS s(n)`
	hex := `lpad(to_hex(%s), %d, '0')`
	driver, name, at, boolean := "pgx", url, "now()", "(r.n < 3)"
	if database == "SQLite" {
		series = `(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s) AS s`
		hex = `printf('%%0*x', %[2]d, %[1]s)`
		driver, name, at = "sqlite", strings.TrimPrefix(url, "sqlite:"), "0"
	}
	raw := openSQL(b, driver, name)
	zoneID := `'01890000-0000-7000-8000-' || ` + fmt.Sprintf(hex, "s.n", 12)
	for _, statement := range []string{
		`INSERT INTO edge.workspace (id, name, plan, created_at) VALUES ('w', 'w', 'standard', ` + at + `)`,
		`INSERT INTO edge.zone (id, workspace_id, name, revision, records, created_at)
		 SELECT ` + zoneID + `, 'w', 'zone' || s.n || '.example', 1, 10, ` + at + ` FROM ` + fmt.Sprintf(series, zones),
		`INSERT INTO edge.record (zone_id, id, name, type, content, content_key, ttl, proxied)
		 SELECT ` + zoneID + `, 'r' || r.n, 'host' || r.n || '.zone' || s.n || '.example', 1, '192.0.2.' || r.n, ` + fmt.Sprintf(hex, "r.n", 32) + `,
		        CASE WHEN r.n < 5 THEN 60 END, ` + boolean + `
		 FROM ` + fmt.Sprintf(series, zones) + `, ` + strings.ReplaceAll(fmt.Sprintf(series, 10), "AS s", "AS r"),
		`INSERT INTO edge.object (zone_id, kind, name, body, revision)
		 SELECT ` + zoneID + `, 'ruleset', 'custom', '[{"expression":"http.path.startsWith(\"/wp-\")","action":"block"}]', 1
		 FROM ` + fmt.Sprintf(series, zones),
	} {
		if database == "SQLite" {
			statement = strings.ReplaceAll(statement, "edge.", "")
		}
		if _, err := raw.ExecContext(b.Context(), statement); err != nil {
			b.Fatalf("%v\n%s", err, statement)
		}
	}
	if database == "Postgres" {
		if _, err := raw.ExecContext(b.Context(), `ANALYZE`); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRevisions is what every process reads again and again.
func BenchmarkRevisions(b *testing.B) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			benchmark(b, open(b, d.url(b)), func(db *store.DB) error { _, err := db.Revisions(b.Context()); return err })
		})
	}
}

// BenchmarkRecordNodes is news of 10,000 nodes, half of it an acknowledgement, in one transaction.
func BenchmarkRecordNodes(b *testing.B) {
	const nodes = 10_000
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			url := d.url(b)
			db := open(b, url)
			driver, name, insert := "pgx", url, `INSERT INTO edge.node (id, name, address, created_at) SELECT 'n' || s.n, 'n' || s.n, '', now() FROM generate_series(1, $1) AS s(n)`
			if d.name == "SQLite" {
				driver, name = "sqlite", strings.TrimPrefix(url, "sqlite:")
				insert = `WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $1)
					INSERT INTO node (id, name, address, created_at) SELECT 'n' || s.n, 'n' || s.n, '', 0 FROM s`
			}
			if _, err := openSQL(b, driver, name).ExecContext(b.Context(), insert, nodes); err != nil {
				b.Fatal(err)
			}
			at := time.Unix(1_800_000_000, 0)
			reports := make([]control.NodeReport, nodes)
			for b.Loop() {
				at = at.Add(time.Second)
				for i := range reports {
					reports[i] = control.NodeReport{NodeID: fmt.Sprintf("n%d", i+1), Address: "192.0.2.1", SeenAt: at}
					if i%2 == 0 {
						reports[i].Ack = &nodeproto.Ack{Version: 1, Generation: 1, Epoch: 1, ContentHash: strings.Repeat("0", 64), Boot: strings.Repeat("0", 32)}
					}
				}
				if err := db.RecordNodes(b.Context(), reports, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/nodes*1e6, "µs/node")
		})
	}
}

// BenchmarkTokenByHash is what a request costs whose token is not held in memory.
func BenchmarkTokenByHash(b *testing.B) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			db := open(b, d.url(b))
			fill(b, db)
			benchmark(b, db, func(db *store.DB) error { _, _, err := db.TokenByHash(b.Context(), [32]byte{2}); return err })
		})
	}
}

func benchmark(b *testing.B, db *store.DB, f func(*store.DB) error) {
	for b.Loop() {
		if err := f(db); err != nil {
			b.Fatal(err)
		}
	}
}
