package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/store"
	"github.com/guardyn-edge/guardyn/zone"
)

// Whatever is edited between two reads, the second gives what a process that reads for the first time is given, and shares
// what was not edited with the first.
func TestReadConfigurationAgain(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			ctx, url := t.Context(), d.url(t)
			db, other := open(t, url), open(t, url)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(db.CreateWorkspace(ctx, control.Workspace{ID: "w", Name: "w", Plan: "standard", CreatedAt: time.Unix(1, 0)}, auditEntry("w")))
			random := rand.New(rand.NewPCG(1, 2))
			var zones []zone.ID
			create := func(i int) {
				t.Helper()
				z := control.ZoneRow{ID: zone.ID(uuid.NewString()), Name: zone.MustName(fmt.Sprintf("z%d.example", i)), CreatedAt: time.Unix(1, 0)}
				must(other.CreateZone(ctx, "w", z, auditEntry("w")))
				zones = append(zones, z.ID)
			}
			for i := range 300 { // more than are read one by one
				create(i)
			}
			before := map[zone.ID]*zone.Zone{}
			for round := range 60 {
				edited := map[zone.ID]bool{}
				all := false
				for range random.IntN(4) {
					at := random.IntN(len(zones))
					id := zones[at]
					edited[id] = true
					switch random.IntN(6) {
					case 0:
						create(1000 + round*10 + len(edited))
					case 1:
						must(other.DeleteZone(ctx, "w", id, auditEntry("w")))
						zones = slices.Delete(zones, at, at+1)
					case 2, 3:
						rows, _, err := other.ReadRecords(ctx, "w", id)
						must(err)
						var ch control.RecordChange
						if len(rows) > 0 && random.IntN(2) == 0 {
							ch.Delete = []string{rows[0].ID}
						} else {
							ch.Insert = []control.RecordRow{{ID: uuid.NewString(), Record: zone.Record{
								Name: zone.MustName("a.z.example"), Type: 16, Content: fmt.Sprint(random.Uint64()),
							}}}
						}
						must(other.ChangeRecords(ctx, "w", id, ch, 0, auditEntry("w")))
					case 4:
						_, err := other.PutObject(ctx, "w", id, control.ObjectRow{
							Kind: control.KindList, Name: "l", Body: fmt.Appendf(nil, `{"kind":"string","items":["%d"]}`, random.Uint64()),
						}, 0, auditEntry("w"))
						must(err)
					case 5:
						all = true
						must(other.PutPlan(ctx, zone.Plan{Name: "standard", Ceilings: zone.Ceilings{Records: 1 + random.IntN(1e6)}}, auditEntry("w")))
					}
				}
				got, err := db.ReadConfiguration(ctx)
				must(err)
				fresh, err := store.Open(ctx, url)
				must(err)
				want, err := fresh.ReadConfiguration(ctx)
				must(errors.Join(err, fresh.Close()))
				if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(zone.Name{}, zone.Mailbox{})); diff != "" {
					t.Fatalf("round %d (-a first read +the next read):\n%s", round, diff)
				}
				if !slices.IsSortedFunc(got, func(a, b snapshot.ZoneInput) int { return cmp.Compare(a.Zone.ID, b.Zone.ID) }) {
					t.Fatal("not in the order of ids")
				}
				for _, in := range got {
					if was := before[in.Zone.ID]; round > 0 && !all && !edited[in.Zone.ID] && was != nil && was != in.Zone {
						t.Fatalf("round %d: %s was read again, and not edited", round, in.Zone.ID)
					}
					before[in.Zone.ID] = in.Zone
				}
			}
		})
	}
}

// A database that was promoted or restored has lost edits and numbers the next ones as those. What was read before is not
// taken for them.
func TestReadConfigurationOfAnotherPast(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			ctx, url := t.Context(), d.url(t)
			db, raw := open(t, url), d.raw(t, url)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			id := zone.ID("00000000-0000-4000-8000-000000000001")
			says := func(content string) {
				t.Helper()
				got, err := db.ReadConfiguration(ctx)
				must(err)
				if len(got) != 1 || len(got[0].Zone.Records) != 1 || got[0].Zone.Records[0].Content != content {
					t.Fatalf("%+v, want %q", got[0].Zone, content)
				}
			}
			edit := func(content string) {
				t.Helper()
				must(db.ChangeRecords(ctx, "w", id, control.RecordChange{Insert: []control.RecordRow{{ID: "r", Record: zone.Record{
					Name: zone.MustName("z.example"), Type: 16, Content: content,
				}}}}, 0, auditEntry("w")))
			}
			must(db.CreateWorkspace(ctx, control.Workspace{ID: "w", Name: "w", Plan: "standard", CreatedAt: time.Unix(1, 0)}, auditEntry("w")))
			must(db.CreateZone(ctx, "w", control.ZoneRow{ID: id, Name: zone.MustName("z.example"), CreatedAt: time.Unix(1, 0)}, auditEntry("w")))
			edit("lost")
			says("lost")
			for _, statement := range []string{`DELETE FROM edge.record`, `UPDATE edge.zone SET revision = 1, records = 0`} {
				if d.name == "SQLite" {
					statement = strings.ReplaceAll(statement, "edge.", "")
				}
				_, err := raw.ExecContext(ctx, statement)
				must(err)
			}
			edit("new")
			says("new")
		})
	}
}

func auditEntry(workspace string) control.AuditEntry {
	return control.AuditEntry{ID: uuid.NewString(), At: time.Unix(1, 0), Workspace: workspace}
}
