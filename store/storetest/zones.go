package storetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

var tenancyClauses = []clause{
	{name: "a zone of another workspace is ErrNotFound in every method and stays as it is", run: func(f *fixture) {
		z := f.zone("tenancy.example")
		f.insert(z, record("tenancy.example", "mine"))
		f.put(z, control.KindPool, "main", `{}`)
		f.everyMethodNotFound(f.other, z)
		if n := len(f.auditOf(f.other)); n != 0 {
			f.Errorf("refused edits left %d audit entries", n)
		}
	}},
	{name: "an absent zone is ErrNotFound in every method", run: func(f *fixture) {
		z := f.zone("stays.example")
		absent := control.ZoneRow{ID: zone.ID(id()), Name: zone.MustName("absent.example")}
		before := f.state(z)
		f.everyMethodNotFound(f.ws, absent)
		f.same("the log and another zone", f.state(z), before)
	}},
	{name: "no zone of another workspace is listed", run: func(f *fixture) {
		f.zone("listed.example")
		zones, err := f.store.ListZones(f.ctx, f.other, control.Page{Limit: 10})
		f.ok(err)
		if len(zones) != 0 {
			f.Errorf("listed %v", zones)
		}
	}},
	{name: "the page key of another workspace's row is as an absent one", run: func(f *fixture) {
		z := f.zone("pagekey.example")
		r := record("pagekey.example", "x")
		f.insert(z, r)
		entry := f.auditOf(f.ws)[0]
		_, err := f.store.ListAudit(f.ctx, f.other, control.Page{After: entry.ID, Limit: 10})
		f.fails(err, control.ErrNotFound)
		_, err = f.store.ListAudit(f.ctx, f.other, control.Page{After: id(), Limit: 10})
		f.fails(err, control.ErrNotFound)
		second := f.zone("pagekey2.example")
		_, err = f.store.ListRecords(f.ctx, f.ws, second.ID, control.RecordFilter{}, control.Page{After: r.ID, Limit: 10})
		f.fails(err, control.ErrNotFound)
	}},
}

// everyMethodNotFound calls each method of EditStore that takes a zone as workspace ws.
func (f *fixture) everyMethodNotFound(ws string, z control.ZoneRow) {
	f.Helper()
	var before zoneState
	if z.Workspace == f.ws {
		before = f.state(z)
	}
	page := control.Page{Limit: 10}
	pool := control.ObjectRow{Kind: control.KindPool, Name: "main", Body: []byte(`{"policy":"random_two_choices"}`)}
	entry := func() control.AuditEntry {
		e := f.entry("refused")
		e.Workspace = ws
		return e
	}
	for name, call := range map[string]func() error{
		"ZoneByName":  func() error { _, err := f.store.ZoneByName(f.ctx, ws, z.Name); return err },
		"ZoneByID":    func() error { _, err := f.store.ZoneByID(f.ctx, ws, z.ID); return err },
		"ReadRecords": func() error { _, _, err := f.store.ReadRecords(f.ctx, ws, z.ID); return err },
		"ListRecords": func() error { _, err := f.store.ListRecords(f.ctx, ws, z.ID, control.RecordFilter{}, page); return err },
		"Object":      func() error { _, err := f.store.Object(f.ctx, ws, z.ID, control.KindPool, "main"); return err },
		"ListObjects": func() error { _, err := f.store.ListObjects(f.ctx, ws, z.ID, control.KindPool); return err },
		"DeleteZone":  func() error { return f.store.DeleteZone(f.ctx, ws, z.ID, entry()) },
		"ChangeRecords": func() error {
			change := control.RecordChange{Insert: []control.RecordRow{record("new.example", "theirs")}, Settings: []byte(`{}`)}
			return f.store.ChangeRecords(f.ctx, ws, z.ID, change, 0, entry())
		},
		"ChangeRecords, empty": func() error {
			return f.store.ChangeRecords(f.ctx, ws, z.ID, control.RecordChange{}, 0, entry())
		},
		"PutObject": func() error { _, err := f.store.PutObject(f.ctx, ws, z.ID, pool, 0, entry()); return err },
		"PutObject, must not exist": func() error {
			_, err := f.store.PutObject(f.ctx, ws, z.ID, pool, -1, entry())
			return err
		},
		"PutObject, at a revision": func() error {
			_, err := f.store.PutObject(f.ctx, ws, z.ID, pool, 1, entry())
			return err
		},
		"DeleteObject": func() error {
			return f.store.DeleteObject(f.ctx, ws, z.ID, control.KindPool, "main", 0, entry())
		},
	} {
		f.Log(name)
		f.fails(call(), control.ErrNotFound)
	}
	if z.Workspace == f.ws {
		f.same("the zone after foreign calls", f.state(z), before)
	}
}

var zoneClauses = []clause{
	{name: "a created zone is read back by id and by name", run: func(f *fixture) {
		want := f.zone("created.example")
		got, err := f.store.ZoneByID(f.ctx, f.ws, want.ID)
		f.ok(err)
		f.same("by id", got, want)
		got, err = f.store.ZoneByName(f.ctx, f.ws, want.Name)
		f.ok(err)
		f.same("by name", got, want)
	}},
	{name: "a name that the workspace has is ErrExists", run: func(f *fixture) {
		z := f.zone("taken.example")
		again := control.ZoneRow{ID: zone.ID(id()), Name: z.Name, CreatedAt: f.now()}
		f.unchanged(z, control.ErrExists, func() error {
			return f.store.CreateZone(f.ctx, f.ws, again, f.entry("zone.create"))
		})
	}},
	{name: "a name that clashes with a zone of another workspace is a ZoneClashError", alone: true, run: func(f *fixture) {
		z := f.zone("clash.example")
		f.insert(z, control.RecordRow{ID: id(), Record: zone.Record{Name: zone.MustName("given.clash.example"), Type: zone.TypeNS, Content: "ns.example.net"}})
		f.zone("own.mid.deep.example")
		f.ok(f.create(f.other, "theirs.own.mid.deep.example.net"))
		for _, row := range []struct {
			name, zone string
			want       *control.ZoneClash
			above      string
		}{
			{"of the same name", "clash.example", clash(control.ClashTaken), ""},
			{"below", "a.clash.example", clash(control.ClashBelow), "clash.example"},
			{"far below", "c.b.a.clash.example", clash(control.ClashBelow), "clash.example"},
			{"above", "deep.example", clash(control.ClashAbove), ""},
			{"right above", "mid.deep.example", clash(control.ClashAbove), ""},
			{"delegated", "given.clash.example", nil, ""},
			{"below what is delegated, but the nearest zone is one's own", "x.given.clash.example", nil, ""},
			{"ends in the same octets", "xclash.example", nil, ""},
			{"above one's own", "deep.example.net", nil, ""},
		} {
			var e *control.ZoneClashError
			switch err := f.create(f.other, row.zone); {
			case row.want == nil:
				f.ok(err)
			case !errors.As(err, &e):
				f.Errorf("%s: %v", row.name, err)
			default:
				f.same(row.name, *e, control.ZoneClashError{Name: zone.MustName(row.zone), Kind: *row.want, Above: named(row.above)})
				_, err := f.store.ZoneByName(f.ctx, f.other, zone.MustName(row.zone))
				f.fails(err, control.ErrNotFound)
			}
		}
		f.ok(f.create(f.ws, "a.clash.example")) // of one's own nothing need be delegated
		f.ok(f.store.DeleteZone(f.ctx, f.ws, z.ID, f.entry("zone.delete")))
		f.ok(f.create(f.other, "b.clash.example"))
		if err := f.create(f.ws, "clash.example"); !errors.As(err, new(*control.ZoneClashError)) {
			f.Errorf("above what is another's by now: %v", err)
		}
	}},
	{name: "a zone of one's own between stands for what is below it", alone: true, run: func(f *fixture) {
		z := f.zone("between.example")
		f.insert(z, control.RecordRow{ID: id(), Record: zone.Record{Name: zone.MustName("x.between.example"), Type: zone.TypeNS, Content: "ns.example.net"}})
		f.ok(f.create(f.other, "x.between.example"))
		f.ok(f.create(f.ws, "example")) // above between.example alone
	}},
	{name: "of two workspaces that create above, below or at one name at once, one does", alone: true, run: func(f *fixture) {
		for round := range 10 {
			names := []string{fmt.Sprintf("r%d.race.example", round), fmt.Sprintf("a.r%d.race.example", round), fmt.Sprintf("r%d.race.example", round), fmt.Sprintf("b.a.r%d.race.example", round)}
			errs := atOnce(4, func(i int) error {
				ws := []string{f.ws, f.other}[i%2]
				return f.create(ws, names[i])
			})
			// Of the first workspace two names of its own may stand, one of them twice.
			stand := map[bool]bool{}
			for i, err := range errs {
				if err == nil {
					stand[i%2 == 0] = true
				} else if !errors.Is(err, control.ErrExists) && !errors.As(err, new(*control.ZoneClashError)) {
					f.Errorf("%s: %v", names[i], err)
				}
			}
			if len(stand) != 1 {
				f.Errorf("round %d: both workspaces have zones there: %v", round, errs)
			}
		}
	}},
	{name: "an id that stands is ErrExists", run: func(f *fixture) {
		z := f.zone("first.example")
		again := control.ZoneRow{ID: z.ID, Name: zone.MustName("second.example"), CreatedAt: f.now()}
		f.unchanged(z, control.ErrExists, func() error {
			return f.store.CreateZone(f.ctx, f.ws, again, f.entry("zone.create"))
		})
	}},
	{name: "of many that create one name at once, one does", run: func(f *fixture) {
		errs := atOnce(8, func(int) error {
			z := control.ZoneRow{ID: zone.ID(id()), Name: zone.MustName("raced.example"), CreatedAt: f.now()}
			return f.store.CreateZone(f.ctx, f.ws, z, f.entry("zone.create"))
		})
		f.winners(errs, control.ErrExists)
	}},
	{name: "a workspace that does not exist is ErrNotFound", run: func(f *fixture) {
		z := control.ZoneRow{ID: zone.ID(id()), Name: zone.MustName("nowhere.example"), CreatedAt: f.now()}
		f.fails(f.store.CreateZone(f.ctx, id(), z, f.entry("zone.create")), control.ErrNotFound)
	}},
	{name: "listing is ordered by the bytes of the name and pages without gap or overlap", run: func(f *fixture) {
		// A collation that skips punctuation would order these otherwise.
		names := []string{
			"a-b.example", "a.b.example", "a0.example", "a_b.example", "ab.example", "b.example", "xn--4ca.example", "z.example",
		}
		for _, i := range []int{3, 0, 7, 5, 1, 6, 2, 4} {
			f.zone(names[i])
		}
		if !slices.IsSorted(names) {
			f.Fatal("the test's own order is wrong")
		}
		for _, limit := range []int{1, 2, 3, 8, 1000} {
			var got []string
			for _, z := range pages(f, limit, func(z control.ZoneRow) string { return z.Name.String() },
				func(p control.Page) ([]control.ZoneRow, error) { return f.store.ListZones(f.ctx, f.ws, p) }) {
				got = append(got, z.Name.String())
			}
			f.same("names", got, names)
		}
		refusesLimits(f, func(p control.Page) ([]control.ZoneRow, error) { return f.store.ListZones(f.ctx, f.ws, p) })
	}},
	{name: "a page key need not be a zone's name", run: func(f *fixture) {
		f.zone("m.example")
		zones, err := f.store.ListZones(f.ctx, f.ws, control.Page{After: "l", Limit: 5})
		f.ok(err)
		if len(zones) != 1 {
			f.Errorf("got %v", zones)
		}
	}},
	{name: "deleting takes records and objects along and frees the name", run: func(f *fixture) {
		z := f.zone("deleted.example")
		f.insert(z, record("deleted.example", "gone"))
		f.put(z, control.KindPool, "main", `{}`)
		f.ok(f.store.DeleteZone(f.ctx, f.ws, z.ID, f.entry("zone.delete")))
		f.everyMethodNotFound(f.ws, control.ZoneRow{ID: z.ID, Name: z.Name})
		again := f.zone("deleted.example")
		if s := f.state(again); len(s.Records) != 0 || len(s.Objects) != 0 || s.Zone.Records != 0 {
			f.Errorf("the new zone of that name holds %v", s)
		}
	}},
	{name: "each deed leaves exactly its audit entry", run: func(f *fixture) {
		z := f.zone("audited.example")
		f.insert(z, record("audited.example", "x"))
		f.put(z, control.KindPool, "main", `{}`)
		f.ok(f.store.DeleteObject(f.ctx, f.ws, z.ID, control.KindPool, "main", 0, f.entry("object.delete")))
		f.ok(f.store.DeleteZone(f.ctx, f.ws, z.ID, f.entry("zone.delete")))
		var got []string
		for _, e := range f.auditOf(f.ws) {
			got = append(got, e.Action)
		}
		want := []string{"zone.delete", "object.delete", "object.put", "record.add", "zone.create"}
		f.same("actions", got, want)
	}},
}

// create makes a zone in a workspace.
func (f *fixture) create(ws, name string) error {
	z := control.ZoneRow{ID: zone.ID(id()), Name: zone.MustName(name), CreatedAt: f.now()}
	return f.store.CreateZone(f.ctx, ws, z, f.entry("zone.create"))
}

func clash(c control.ZoneClash) *control.ZoneClash { return &c }

func named(s string) (n zone.Name) {
	if s != "" {
		n = zone.MustName(s)
	}
	return n
}
