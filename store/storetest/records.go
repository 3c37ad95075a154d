package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

func sortRecords(records []control.RecordRow) []control.RecordRow {
	return slices.SortedFunc(slices.Values(records), func(a, b control.RecordRow) int {
		return cmp.Or(cmp.Compare(a.Name.String(), b.Name.String()), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.Content, b.Content), cmp.Compare(a.ID, b.ID))
	})
}

// change edits a zone's records whatever its revision.
func (f *fixture) change(z control.ZoneRow, ch control.RecordChange) error {
	return f.store.ChangeRecords(f.ctx, f.ws, z.ID, ch, 0, f.entry("record.change"))
}

var recordClauses = []clause{
	{name: "every member is read back as it was given", run: func(f *fixture) {
		z := f.zone("members.example")
		want := []control.RecordRow{
			{ID: id(), Record: zone.Record{Name: zone.MustName("members.example"), Type: rrtype("A"), Content: "192.0.2.1", TTL: 60, Proxied: true}},
			{ID: id(), Record: zone.Record{Name: zone.MustName("*.members.example"), Type: rrtype("CNAME"), Content: "members.example", TTL: zone.MaxTTL}},
			{ID: id(), Record: zone.Record{Name: zone.MustName("auto.members.example"), Type: rrtype("AAAA"), Content: "2001:db8::1"}},
			{ID: id(), Record: zone.Record{Name: zone.MustName("_txt.members.example"), Type: rrtype("TXT"), Content: `$1 ? "quoted" \000 edge.zone ` + "'; --"}},
			{ID: id(), Record: zone.Record{Name: zone.MustName("empty.members.example"), Type: rrtype("TXT")}},
			{ID: id(), Record: zone.Record{Name: zone.MustName("large.members.example"), Type: rrtype("TXT"), Content: strings.Repeat("k", 65_000)}},
			{ID: id(), Record: zone.Record{Name: zone.MustName("unknown.members.example"), Type: 65_534, Content: `\# 1 00`}},
		}
		f.insert(z, want...)
		f.same("records", f.records(z), sortRecords(want))
	}},
	{name: "every edit raises the revision and counts", run: func(f *fixture) {
		z := f.zone("revision.example")
		a, b := record("revision.example", "a"), record("revision.example", "b")
		expect := func(what string, revision int64, records int) {
			f.Helper()
			row, err := f.store.ZoneByID(f.ctx, f.ws, z.ID)
			f.ok(err)
			_, read, err := f.store.ReadRecords(f.ctx, f.ws, z.ID)
			f.ok(err)
			if row.Revision != revision || read != revision || row.Records != records {
				f.Fatalf("after %s: revision %d (%d with the records), %d records; want %d and %d",
					what, row.Revision, read, row.Records, revision, records)
			}
		}
		expect("creation", 1, 0)
		f.insert(z, a, b)
		expect("two records", 2, 2)
		b.TTL = 60
		f.ok(f.change(z, control.RecordChange{Update: []control.RecordRow{b}}))
		expect("an update", 3, 2)
		f.put(z, control.KindPool, "main", `{}`)
		expect("an object", 4, 2)
		f.ok(f.store.DeleteObject(f.ctx, f.ws, z.ID, control.KindPool, "main", 0, f.entry("object.delete")))
		expect("an object's end", 5, 2)
		f.ok(f.change(z, control.RecordChange{Delete: []string{a.ID}}))
		expect("a record's end", 6, 1)
		f.ok(f.change(z, control.RecordChange{Settings: []byte(`{}`)}))
		expect("settings", 7, 1)
	}},
	{name: "a revision that does not hold is ErrConflict and changes nothing", run: func(f *fixture) {
		z := f.zone("cas.example")
		f.insert(z, record("cas.example", "a")) // revision 2
		change := control.RecordChange{Insert: []control.RecordRow{record("cas.example", "b")}}
		for _, stale := range []int64{1, 3, -1} {
			f.unchanged(z, control.ErrConflict, func() error {
				return f.store.ChangeRecords(f.ctx, f.ws, z.ID, change, stale, f.entry("record.add"))
			})
		}
		f.ok(f.store.ChangeRecords(f.ctx, f.ws, z.ID, change, 2, f.entry("record.add")))
	}},
	{name: "of many edits at one revision, one is done", run: func(f *fixture) {
		z := f.zone("race.example")
		errs := atOnce(8, func(i int) error {
			change := control.RecordChange{Insert: []control.RecordRow{record("race.example", fmt.Sprint("by ", i))}}
			return f.store.ChangeRecords(f.ctx, f.ws, z.ID, change, 1, f.entry("record.add"))
		})
		winner := f.winners(errs, control.ErrConflict)
		if got := f.records(z); len(got) != 1 || got[0].Content != fmt.Sprint("by ", winner) {
			f.Errorf("%d won and the zone holds %v", winner, got)
		}
	}},
	{name: "edits at any revision are all done, one after another", run: func(f *fixture) {
		z := f.zone("serial.example")
		for i, err := range atOnce(8, func(i int) error {
			return f.change(z, control.RecordChange{Insert: []control.RecordRow{record("serial.example", fmt.Sprint(i))}})
		}) {
			if err != nil {
				f.Errorf("edit %d: %v", i, err)
			}
		}
		if s := f.state(z); s.Zone.Revision != 9 || s.Zone.Records != 8 || len(s.Records) != 8 {
			f.Errorf("after 8 edits: %+v with %d records", s.Zone, len(s.Records))
		}
	}},
	{name: "the same name, type and content is ErrExists", run: func(f *fixture) {
		z := f.zone("exists.example")
		a, b := record("exists.example", "a"), record("exists.example", "b")
		f.insert(z, a, b)
		twin := record("exists.example", "a")
		twin.TTL, twin.Proxied = 60, true // not part of the identity
		become := a
		become.ID = b.ID
		fresh := record("exists.example", "fresh")
		sameID := record("exists.example", "other content")
		sameID.ID = a.ID
		for name, ch := range map[string]control.RecordChange{
			"insert":           {Insert: []control.RecordRow{twin}},
			"insert twice":     {Insert: []control.RecordRow{fresh, {ID: id(), Record: fresh.Record}}},
			"insert after one": {Insert: []control.RecordRow{fresh, twin}},
			"insert same id":   {Insert: []control.RecordRow{sameID}},
			"update":           {Update: []control.RecordRow{become}},
			"update twice":     {Update: []control.RecordRow{{ID: a.ID, Record: fresh.Record}, {ID: b.ID, Record: fresh.Record}}},
			"update, insert":   {Update: []control.RecordRow{{ID: a.ID, Record: fresh.Record}}, Insert: []control.RecordRow{fresh}},
		} {
			f.Log(name)
			f.unchanged(z, control.ErrExists, func() error { return f.change(z, ch) })
		}
		f.insert(z, record("EXISTS.example", "A")) // content is case-sensitive
		second := f.zone("exists2.example")
		f.insert(second, a) // another zone is another zone, its ids too
	}},
	{name: "an id that is not in the zone is ErrNotFound and nothing is done", run: func(f *fixture) {
		z, second := f.zone("ids.example"), f.zone("ids2.example")
		mine, theirs := record("ids.example", "mine"), record("ids2.example", "theirs")
		f.insert(z, mine)
		f.insert(second, theirs)
		moved := control.RecordRow{ID: theirs.ID, Record: record("ids.example", "moved").Record}
		fresh := []control.RecordRow{record("ids.example", "fresh")}
		for name, ch := range map[string]control.RecordChange{
			"delete absent":        {Delete: []string{id()}, Insert: fresh},
			"delete after another": {Delete: []string{mine.ID, id()}, Insert: fresh},
			"delete twice":         {Delete: []string{mine.ID, mine.ID}, Insert: fresh},
			"delete of another":    {Delete: []string{theirs.ID}, Insert: fresh},
			"update absent":        {Update: []control.RecordRow{record("ids.example", "x")}, Insert: fresh, Settings: []byte(`{}`)},
			"update of another":    {Update: []control.RecordRow{moved}, Insert: fresh},
			"update of deleted":    {Delete: []string{mine.ID}, Update: []control.RecordRow{mine}, Insert: fresh},
		} {
			f.Log(name)
			f.unchanged(z, control.ErrNotFound, func() error { return f.change(z, ch) })
		}
		f.same("the other zone", f.records(second), []control.RecordRow{theirs})
	}},
	{name: "what a change takes away it can give anew", run: func(f *fixture) {
		z := f.zone("anew.example")
		a, b, c := record("anew.example", "a"), record("anew.example", "b"), record("anew.example", "c")
		f.insert(z, a, b, c)
		// b takes over what a was, a new record what b was; a is gone.
		b.Content = "a"
		fresh := record("anew.example", "b")
		f.ok(f.change(z, control.RecordChange{Delete: []string{a.ID}, Update: []control.RecordRow{b}, Insert: []control.RecordRow{fresh}}))
		f.same("records", f.records(z), sortRecords([]control.RecordRow{b, fresh, c}))
		// Two that exchange their contents.
		b.Content, c.Content = c.Content, b.Content
		f.ok(f.change(z, control.RecordChange{Update: []control.RecordRow{b, c}}))
		f.same("records", f.records(z), sortRecords([]control.RecordRow{b, fresh, c}))
	}},
	{name: "settings go with the records or not at all", run: func(f *fixture) {
		z := f.zone("settings.example")
		f.ok(f.change(z, control.RecordChange{
			Insert: []control.RecordRow{record("settings.example", "a")}, Settings: []byte(`{"always_https":true}`),
		}))
		got, err := f.store.Object(f.ctx, f.ws, z.ID, control.KindSettings, "zone")
		f.ok(err)
		f.same("settings", got, control.ObjectRow{Kind: control.KindSettings, Name: "zone", Body: []byte(`{"always_https":true}`), Revision: 2})
		f.unchanged(z, control.ErrExists, func() error {
			return f.change(z, control.RecordChange{Insert: []control.RecordRow{record("settings.example", "a")}, Settings: []byte(`{}`)})
		})
	}},
	{name: "thousands of records are one change", run: func(f *fixture) {
		z := f.zone("bulk.example")
		var many []control.RecordRow
		for i := range 2_345 {
			many = append(many, record(fmt.Sprintf("h%d.bulk.example", i), fmt.Sprint(i)))
		}
		last := slices.Concat(many, []control.RecordRow{{ID: id(), Record: many[0].Record}})
		f.unchanged(z, control.ErrExists, func() error { return f.change(z, control.RecordChange{Insert: last}) })
		f.insert(z, many...)
		f.same("records", f.records(z), sortRecords(many))
		var ids []string
		for i := range many {
			many[i].TTL = 77
			ids = append(ids, many[i].ID)
		}
		f.ok(f.change(z, control.RecordChange{Update: many}))
		f.same("records", f.records(z), sortRecords(many))
		f.unchanged(z, control.ErrNotFound, func() error {
			return f.change(z, control.RecordChange{Delete: slices.Concat(ids, []string{id()})})
		})
		f.ok(f.change(z, control.RecordChange{Delete: ids}))
		if s := f.state(z); len(s.Records) != 0 || s.Zone.Records != 0 {
			f.Errorf("%d records are left and %d counted", len(s.Records), s.Zone.Records)
		}
	}},
	{name: "listing is ordered by name, type, content, id and pages without gap or overlap", run: func(f *fixture) {
		z := f.zone("order.example")
		var all []control.RecordRow
		for _, name := range []string{"order.example", "a-b.order.example", "a.b.order.example", "a_b.order.example"} {
			for _, content := range []string{"b", "B", "a b", "a-b", "ab", "", "~"} {
				all = append(all, record(name, content))
				spf := record(name, content)
				spf.Type = rrtype("SPF")
				all = append(all, spf)
			}
		}
		f.insert(z, all...)
		all = sortRecords(all)
		f.same("read", f.records(z), all)
		list := func(filter control.RecordFilter) func(control.Page) ([]control.RecordRow, error) {
			return func(p control.Page) ([]control.RecordRow, error) {
				return f.store.ListRecords(f.ctx, f.ws, z.ID, filter, p)
			}
		}
		key := func(r control.RecordRow) string { return r.ID }
		for _, limit := range []int{1, 2, 5, 1000} {
			f.same(fmt.Sprint("pages of ", limit), pages(f, limit, key, list(control.RecordFilter{})), all)
		}
		for _, filter := range []control.RecordFilter{
			{Name: zone.MustName("a.b.order.example")},
			{Type: rrtype("SPF")},
			{Name: zone.MustName("a-b.order.example"), Type: rrtype("TXT")},
			{Name: zone.MustName("none.order.example")},
		} {
			var want []control.RecordRow
			for _, r := range all {
				if (filter.Name.IsZero() || filter.Name == r.Name) && (filter.Type == 0 || filter.Type == r.Type) {
					want = append(want, r)
				}
			}
			f.same(fmt.Sprint("filter ", filter), pages(f, 3, key, list(filter)), want)
		}
		refusesLimits(f, list(control.RecordFilter{}))
	}},
	{name: "a page key that is gone is ErrNotFound, not the end", run: func(f *fixture) {
		z := f.zone("gonekey.example")
		a, b := record("gonekey.example", "a"), record("gonekey.example", "b")
		f.insert(z, a, b)
		f.ok(f.change(z, control.RecordChange{Delete: []string{a.ID}}))
		_, err := f.store.ListRecords(f.ctx, f.ws, z.ID, control.RecordFilter{}, control.Page{After: a.ID, Limit: 5})
		f.fails(err, control.ErrNotFound)
	}},
	{name: "records and revision come from one read", run: func(f *fixture) {
		z := f.zone("oneread.example")
		const edits = 60
		written := make(chan error, 1)
		go func() {
			for i := range edits {
				change := control.RecordChange{Insert: []control.RecordRow{record("oneread.example", fmt.Sprint(i))}}
				if err := f.change(z, change); err != nil {
					written <- err
					return
				}
			}
			written <- nil
		}()
		for done := false; !done; {
			select {
			case err := <-written:
				f.ok(err)
				done = true
			default:
			}
			records, revision, err := f.store.ReadRecords(f.ctx, f.ws, z.ID)
			f.ok(err)
			if int64(len(records)) != revision-1 {
				f.Fatalf("%d records at revision %d", len(records), revision)
			}
		}
		if got := len(f.records(z)); got != edits {
			f.Errorf("%d records after %d edits", got, edits)
		}
	}},
}
