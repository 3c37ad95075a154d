package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// newPurge is a purge of a zone that no bound stands in the way of.
func (f *fixture) newPurge(z control.ZoneRow, kind zone.PurgeKind, values ...string) control.NewPurge {
	at := f.now()
	return control.NewPurge{
		Row: control.PurgeRow{
			ID: id(), Workspace: f.ws, By: "ada@example.net",
			Purge: zone.Purge{Zone: z.Name, Kind: kind, Values: values, At: at},
		},
		Audit:    f.entry("cache.purge"),
		ZoneMost: 1 << 20, WorkspaceMost: 1 << 20, Window: time.Hour, KeepAge: 1000 * time.Hour, KeepRows: 1 << 20,
	}
}

func (f *fixture) add(n control.NewPurge) control.PurgeRow {
	f.Helper()
	sequence, err := f.store.AddPurge(f.ctx, n)
	f.ok(err)
	n.Row.Sequence = sequence
	return n.Row
}

func (f *fixture) purge(z control.ZoneRow, kind zone.PurgeKind, values ...string) control.PurgeRow {
	f.Helper()
	return f.add(f.newPurge(z, kind, values...))
}

func (f *fixture) after(m seal.PurgeMark) control.PurgeBatch {
	f.Helper()
	b, err := f.store.PurgesAfter(f.ctx, m, 1000, 1<<20)
	f.ok(err)
	return b
}

// head is the end of the log.
func (f *fixture) head() seal.PurgeMark {
	f.Helper()
	rev, err := f.store.Revisions(f.ctx)
	f.ok(err)
	return rev.Purges
}

// noPurge holds that adding fails and leaves the log as it is.
func (f *fixture) noPurge(n control.NewPurge) error {
	f.Helper()
	before, audit := f.head(), len(f.auditOf(f.ws))
	_, err := f.store.AddPurge(f.ctx, n)
	if err == nil {
		f.Fatal("the purge was taken")
	}
	f.same("end of the log", f.head(), before)
	f.same("audit entries", len(f.auditOf(f.ws)), audit)
	return err
}

var purgeClauses = []clause{
	{name: "purges are numbered from 1, and read as they were written", alone: true, run: func(f *fixture) {
		f.same("an empty log", f.after(seal.PurgeMark{}), control.PurgeBatch{Known: true})
		f.same("its end", f.head(), seal.PurgeMark{})
		z := f.zone("purged.example")
		first := f.purge(z, zone.PurgeURL, "https://purged.example/a?b", `https://purged.example/%22`)
		second := f.purge(z, zone.PurgeAll)
		third := f.purge(f.zone("other.example"), zone.PurgeTag, `"\`)
		f.same("numbers", []uint64{first.Sequence, second.Sequence, third.Sequence}, []uint64{1, 2, 3})
		f.same("end", f.head(), third.Mark())
		f.same("all", f.after(seal.PurgeMark{}), control.PurgeBatch{Known: true, Rows: []control.PurgeRow{first, second, third}, Head: third.Mark()})
		f.same("the last", f.after(second.Mark()), control.PurgeBatch{Known: true, Rows: []control.PurgeRow{third}, Head: third.Mark()})
		f.same("none", f.after(third.Mark()), control.PurgeBatch{Known: true, Head: third.Mark()})
		got, err := f.store.Purge(f.ctx, f.ws, z.Name, first.ID)
		f.ok(err)
		f.same("one", got, first)
		list, err := f.store.ListPurges(f.ctx, f.ws, z.Name, control.Page{Limit: 10})
		f.ok(err)
		f.same("of a zone, newest first", list, []control.PurgeRow{second, first})
		list, err = f.store.ListPurges(f.ctx, f.ws, z.Name, control.Page{Limit: 10, After: second.ID})
		f.ok(err)
		f.same("second page", list, []control.PurgeRow{first})
		ids, err := f.store.PurgeIDs(f.ctx, []uint64{3, 1, 7})
		f.ok(err)
		f.same("ids", ids, map[uint64]string{1: first.ID, 3: third.ID})
		if n := len(f.auditOf(f.ws)); n < 3 {
			f.Errorf("%d audit entries", n)
		}
	}},
	{name: "the purges of a zone are its workspace's, and stay when it is gone", run: func(f *fixture) {
		z := f.zone("mine.example")
		p := f.purge(z, zone.PurgeAll)
		_, err := f.store.Purge(f.ctx, f.other, z.Name, p.ID)
		f.fails(err, control.ErrNotFound)
		_, err = f.store.Purge(f.ctx, f.ws, zone.MustName("elsewhere.example"), p.ID)
		f.fails(err, control.ErrNotFound)
		list, err := f.store.ListPurges(f.ctx, f.other, z.Name, control.Page{Limit: 10})
		f.ok(err)
		f.same("of another workspace", len(list), 0)
		_, err = f.store.ListPurges(f.ctx, f.ws, z.Name, control.Page{Limit: 10, After: id()})
		f.fails(err, control.ErrNotFound)
		f.ok(f.store.DeleteZone(f.ctx, f.ws, z.ID, f.entry("zone.delete")))
		again := f.purge(z, zone.PurgeAll)
		list, err = f.store.ListPurges(f.ctx, f.ws, z.Name, control.Page{Limit: 10})
		f.ok(err)
		f.same("of a zone that is gone", list, []control.PurgeRow{again, p})
		ids, err := f.store.PurgeIDs(f.ctx, []uint64{p.Sequence})
		f.ok(err)
		f.same("of the deleted zone", ids, map[uint64]string{p.Sequence: p.ID})
	}},
	{name: "a purge whose audit entry cannot be written is none, and leaves no gap", alone: true, run: func(f *fixture) {
		z := f.zone("audited.example")
		first := f.newPurge(z, zone.PurgeAll)
		f.add(first)
		again := f.newPurge(z, zone.PurgeAll)
		again.Audit = first.Audit
		_ = f.noPurge(again)
		f.same("the next number", f.purge(z, zone.PurgeAll).Sequence, uint64(2))
	}},
	{name: "a reader that goes on from its place misses none of what eight write at once", alone: true, run: readWhileWritten},
	{name: "a place that never was, or is of a log that was lost, is not known", alone: true, run: func(f *fixture) {
		z := f.zone("places.example")
		first := f.purge(z, zone.PurgeAll)
		last := f.purge(z, zone.PurgeAll)
		for name, m := range map[string]seal.PurgeMark{
			"ahead":                  {Sequence: 3, ID: id()},
			"of another log":         {Sequence: 1, ID: id()},
			"of another log, at end": {Sequence: 2, ID: first.ID},
			"a beginning with an id": {ID: id()},
			"far ahead":              {Sequence: 1<<63 - 1, ID: id()},
		} {
			f.same(name, f.after(m), control.PurgeBatch{Head: last.Mark()})
		}
	}},
	{name: "what is over the number of rows is dropped, and who has not read it is not known", alone: true, run: func(f *fixture) {
		z := f.zone("rows.example")
		var all []control.PurgeRow
		for range 7 {
			n := f.newPurge(z, zone.PurgeAll)
			n.KeepRows = 3
			all = append(all, f.add(n))
		}
		head := all[6].Mark()
		f.same("the beginning", f.after(seal.PurgeMark{}), control.PurgeBatch{Head: head})
		f.same("the one before the floor", f.after(all[2].Mark()), control.PurgeBatch{Head: head})
		f.same("the floor of another log", f.after(seal.PurgeMark{Sequence: 4, ID: id()}), control.PurgeBatch{Head: head})
		f.same("the floor", f.after(all[3].Mark()), control.PurgeBatch{Known: true, Rows: all[4:], Head: head})
		list, err := f.store.ListPurges(f.ctx, f.ws, z.Name, control.Page{Limit: 10})
		f.ok(err)
		f.same("listed", len(list), 3)
	}},
	{name: "what is too old is dropped by the next purge, the newest never", alone: true, run: func(f *fixture) {
		z := f.zone("age.example")
		first, second := f.purge(z, zone.PurgeAll), f.purge(z, zone.PurgeAll)
		n := f.newPurge(z, zone.PurgeAll)
		n.KeepAge = n.Row.At.Sub(second.At)
		third := f.add(n)
		f.same("after the floor", f.after(first.Mark()), control.PurgeBatch{Known: true, Rows: []control.PurgeRow{second, third}, Head: third.Mark()})
		f.same("before it", f.after(seal.PurgeMark{}), control.PurgeBatch{Head: third.Mark()})
		n = f.newPurge(z, zone.PurgeAll)
		n.KeepAge = time.Microsecond
		fourth := f.add(n)
		f.same("all but the newest", f.after(third.Mark()), control.PurgeBatch{Known: true, Rows: []control.PurgeRow{fourth}, Head: fourth.Mark()})
	}},
	{name: "a log that is far too long becomes shorter with each purge", alone: true, run: func(f *fixture) {
		z := f.zone("long.example")
		for range 30 {
			f.purge(z, zone.PurgeAll)
		}
		n := f.newPurge(z, zone.PurgeAll)
		n.KeepRows = 2
		last := f.add(n)
		list, err := f.store.ListPurges(f.ctx, f.ws, z.Name, control.Page{Limit: 100})
		f.ok(err)
		f.same("kept", len(list), 2)
		f.same("the newest", list[0], last)
	}},
	{name: "one purge too many within the window is refused, of the zone and of the workspace", alone: true, run: func(f *fixture) {
		z, y := f.zone("rate.example"), f.zone("more.example")
		limited := func(z control.ZoneRow) control.NewPurge {
			n := f.newPurge(z, zone.PurgeAll)
			n.ZoneMost, n.WorkspaceMost, n.Window = 2, 3, time.Minute
			return n
		}
		first := f.add(limited(z))
		f.add(limited(z))
		refused := func(n control.NewPurge, of string) {
			f.Helper()
			var e *control.PurgeRateError
			if err := f.noPurge(n); !errors.As(err, &e) || e.Of != of {
				f.Fatalf("got %v, want too many of a %s", err, of)
			}
		}
		refused(limited(z), "zone")
		f.add(limited(y))
		refused(limited(y), "workspace")
		n := limited(z)
		n.Row.At = first.At.Add(n.Window)
		f.add(n) // the first is not within the minute any more
	}},
	{name: "a batch ends at its number and at its bytes, and has one at least", alone: true, run: func(f *fixture) {
		z := f.zone("batch.example")
		var all []control.PurgeRow
		for i := range 5 {
			all = append(all, f.purge(z, zone.PurgeTag, fmt.Sprintf("tag-%05d", i)))
		}
		for _, row := range []struct{ most, bytes, want int }{{5, 1 << 20, 5}, {2, 1 << 20, 2}, {5, 18, 2}, {5, 26, 2}, {5, 27, 3}, {5, 1, 1}} {
			b, err := f.store.PurgesAfter(f.ctx, seal.PurgeMark{}, row.most, row.bytes)
			f.ok(err)
			f.same(fmt.Sprintf("at most %d and %d bytes", row.most, row.bytes), b, control.PurgeBatch{Known: true, Rows: all[:row.want], Head: all[4].Mark()})
		}
	}},
	{name: "a purge is hinted at", alone: true, run: func(f *fixture) {
		z := f.zone("hint.example")
		changes := f.store.Changes(f.ctx)
		f.purge(z, zone.PurgeAll)
		select {
		case <-changes:
		case <-time.After(10 * time.Second):
			f.Error("nobody hinted")
		}
	}},
}

func readWhileWritten(f *fixture) {
	const writers, each = 8, 25
	z := f.zone("race.example")
	read := make(chan error, 1)
	var got []control.PurgeRow
	go func() {
		var at seal.PurgeMark
		for len(got) < writers*each {
			b, err := f.store.PurgesAfter(f.ctx, at, 1000, 1<<20)
			if err != nil || !b.Known {
				read <- fmt.Errorf("after %s: known %t, %w", at, b.Known, err)
				return
			}
			for _, r := range b.Rows {
				if r.Sequence != at.Sequence+1 {
					read <- fmt.Errorf("purge %d follows %d", r.Sequence, at.Sequence)
					return
				}
				at = r.Mark()
			}
			got = append(got, b.Rows...)
		}
		read <- nil
	}()
	written := make([][]string, writers)
	for _, err := range atOnce(writers, func(i int) error {
		for range each {
			n := f.newPurge(z, zone.PurgeAll)
			if _, err := f.store.AddPurge(f.ctx, n); err != nil {
				return err
			}
			written[i] = append(written[i], n.Row.ID)
		}
		return nil
	}) {
		f.ok(err)
	}
	f.ok(<-read)
	place := map[string]int{}
	for i, r := range got {
		place[r.ID] = i
	}
	for _, ids := range written {
		if !slices.IsSortedFunc(ids, func(a, b string) int { return place[a] - place[b] }) || slices.ContainsFunc(ids, func(id string) bool { _, ok := place[id]; return !ok }) {
			f.Error("what one wrote is missing, or in another order than it was answered")
		}
	}
}
