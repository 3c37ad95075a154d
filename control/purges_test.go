package control_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// names are compared as what they are.
var names = cmp.AllowUnexported(zone.Name{})

func (w *world) purge(t testing.TB, kind zone.PurgeKind, values ...string) control.PurgeStatus {
	t.Helper()
	st, err := w.svc.Purge(context.Background(), w.editor, "example.com", zone.Purge{Kind: kind, Values: values})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// statement asks svc as a node that has done the purges up to after, and verifies the answer.
func (w *world) statement(t testing.TB, svc *control.Service, node control.Principal, after *seal.PurgeMark) seal.PurgeStatement {
	t.Helper()
	s, err := svc.Purges(context.Background(), node, after)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := seal.Trust(w.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	st, err := seal.VerifyPurges(s, trusted, after)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestPurge(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		z := w.zone(t, w.editor, "example.com")
		st := w.purge(t, zone.PurgeURL, "HTTPS://WWW.example.com/b/../a", "https://www.example.com/a")
		want := zone.Purge{Sequence: 1, Zone: z.Name, Kind: zone.PurgeURL, Values: []string{"https://www.example.com/a"}, At: w.clock.now()}
		if diff := cmp.Diff(want, st.Purge, names); diff != "" || st.By != "editor@example.com" {
			t.Errorf("by %s: %s", st.By, diff)
		}
		second := w.purge(t, zone.PurgeAll)
		got, err := w.svc.PurgeByID(ctx, w.viewer, string(z.ID), st.ID)
		if diff := cmp.Diff(st, got, names); diff != "" || err != nil {
			t.Errorf("by id: %v %s", err, diff)
		}
		l, err := w.svc.ListPurges(ctx, w.viewer, "example.com", control.Page{Limit: 1})
		if err != nil || len(l.Items) != 1 || l.Items[0].ID != second.ID || l.Next != second.ID {
			t.Errorf("first page: %+v, %v", l, err)
		}
		l, err = w.svc.ListPurges(ctx, w.viewer, "example.com", control.Page{Limit: 1, After: l.Next})
		if err != nil || len(l.Items) != 1 || l.Items[0].ID != st.ID {
			t.Errorf("second page: %+v, %v", l, err)
		}
		entries := w.audited(t, "cache.purge")
		if len(entries) != 2 || entries[1].Target != "example.com" || entries[1].Actor != "editor@example.com" ||
			!strings.Contains(entries[1].Detail, st.ID) || !strings.Contains(entries[1].Detail, `"count":1`) {
			t.Errorf("audit: %+v", entries)
		}

		node := w.node(t, "fra1")
		all := zone.Purge{Kind: zone.PurgeAll}
		for _, row := range []struct {
			name string
			p    control.Principal
			ref  string
			want error
		}{
			{"a viewer", w.viewer, "example.com", control.ErrForbidden},
			{"another workspace", w.stranger, "example.com", control.ErrNotFound},
			{"another workspace, by id", w.stranger, string(z.ID), control.ErrNotFound},
			{"a node", node, "example.com", control.ErrNoRoute},
			{"nobody", control.Principal{}, "example.com", control.ErrNoRoute},
			{"no such zone", w.editor, "example.org", control.ErrNotFound},
		} {
			_, err := w.svc.Purge(ctx, row.p, row.ref, all)
			wantError(t, row.name, err, row.want)
		}
		for name, p := range map[string]control.Principal{"another workspace": w.stranger, "a node": node} {
			_, err := w.svc.PurgeByID(ctx, p, string(z.ID), st.ID)
			wantError(t, name+" asks for one", err, control.ErrNotFound)
			_, err = w.svc.ListPurges(ctx, p, "example.com", control.Page{})
			wantError(t, name+" lists", err, control.ErrNotFound)
		}
		w.zone(t, w.editor, "example.net")
		_, err = w.svc.PurgeByID(ctx, w.editor, "example.net", st.ID)
		wantError(t, "of another zone", err, control.ErrNotFound)

		_, err = w.svc.Purge(ctx, w.editor, "example.com", zone.Purge{Kind: zone.PurgeURL, Values: []string{"/a", "https://example.org/"}})
		if ps := problems(t, "bad values", err); len(ps) != 2 || ps[0].Zone != "example.com" || !strings.HasPrefix(ps[1].Message, "value 2") {
			t.Errorf("problems: %+v", ps)
		}
		_, err = w.svc.Purges(ctx, w.operator, nil)
		wantError(t, "a user asks as a node", err, control.ErrNoRoute)
		_, err = w.svc.Purges(ctx, node, &seal.PurgeMark{Sequence: 1, ID: "x"})
		problems(t, "a place that is none", err)
		if b, err := w.store.PurgesAfter(ctx, seal.PurgeMark{}, 10, 1<<20); err != nil || len(b.Rows) != 2 {
			t.Errorf("the log has %+v, %v", b, err)
		}
	})
}

// What is purged is what nodes serve under a name, whatever became of the rows since it was published.
func TestPurgeOfWhatIsLive(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		all := zone.Purge{Kind: zone.PurgeAll}
		old := w.zone(t, w.editor, "example.com")
		w.apply(t, control.ApplyRequest{Message: "one", AcceptDisruption: true})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(w.svc.DeleteZone(ctx, w.editor, "example.com"))
		for _, ref := range []string{"example.com", "EXAMPLE.com.", string(old.ID)} {
			st, err := w.svc.Purge(ctx, w.editor, ref, all)
			if err != nil || st.Zone != old.Name {
				t.Errorf("deleted and live, by %s: %+v, %v", ref, st, err)
			}
			got, err := w.svc.PurgeByID(ctx, w.viewer, ref, st.ID)
			if err != nil || got.ID != st.ID {
				t.Errorf("read by %s: %+v, %v", ref, got, err)
			}
		}
		for name, p := range map[string]control.Principal{"by another workspace": w.stranger, "by a viewer": w.viewer} {
			want := control.ErrNotFound
			if p == w.viewer {
				want = control.ErrForbidden
			}
			_, err := w.svc.Purge(ctx, p, "example.com", all)
			wantError(t, "deleted and live, "+name, err, want)
		}
		_, err := w.svc.Purge(ctx, w.editor, "example.org", all)
		wantError(t, "never live", err, control.ErrNotFound)

		again := w.zone(t, w.editor, "example.com")
		st, err := w.svc.Purge(ctx, w.editor, "example.com", all)
		if err != nil || st.Zone != old.Name || again.ID == old.ID {
			t.Errorf("made again: %+v, %v", st, err)
		}
		if l, err := w.svc.ListPurges(ctx, w.viewer, "example.com", control.Page{}); err != nil || len(l.Items) != 4 {
			t.Errorf("listed: %+v, %v", l, err)
		}
		// What another workspace deleted is not this one's.
		w.zone(t, w.stranger, "example.net")
		w.apply(t, control.ApplyRequest{Message: "two", AcceptDisruption: true})
		must(w.svc.DeleteZone(ctx, w.stranger, "example.net"))
		_, err = w.svc.Purge(ctx, w.editor, "example.net", all)
		wantError(t, "another workspace's", err, control.ErrNotFound)
		_, err = w.svc.Purge(ctx, w.stranger, "example.net", all)
		must(err)
		// Once it is live no more there is nothing to purge.
		w.apply(t, control.ApplyRequest{Message: "three", AcceptDisruption: true})
		_, err = w.svc.Purge(ctx, w.stranger, "example.net", all)
		wantError(t, "live no more", err, control.ErrNotFound)
	})
}

func TestPurgeRate(t *testing.T) {
	w := newWorld(t)
	w.zone(t, w.editor, "example.com")
	for range control.MaxZonePurges {
		w.purge(t, zone.PurgeAll)
	}
	var rate *control.PurgeRateError
	_, err := w.svc.Purge(t.Context(), w.editor, "example.com", zone.Purge{Kind: zone.PurgeAll})
	if !errors.As(err, &rate) || rate.Of != "zone" || rate.Most != control.MaxZonePurges {
		t.Errorf("one too many: %v", err)
	}
	w.clock.advance(control.PurgeWindow)
	w.purge(t, zone.PurgeAll)
}

// A node follows the log through restarts of the control plane, in any number of processes.
func TestPurgeStatements(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		w.zone(t, w.editor, "example.com")
		node := w.node(t, "fra1")
		platform, err := w.store.Platform(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first := w.statement(t, w.svc, node, nil)
		if !first.Floor || first.To != (seal.PurgeMark{}) || first.Platform != platform.ID || first.Epoch != 1 {
			t.Fatalf("of an empty log: %+v", first)
		}
		at := first.To
		if st := w.statement(t, w.svc, node, &at); st.Floor || st.More || len(st.Purges) != 0 || st.To != at {
			t.Errorf("nothing new: %+v", st)
		}
		one, two := w.purge(t, zone.PurgeTag, "a"), w.purge(t, zone.PurgePrefix, "example.com/img/")
		// The process that took them dies before any node has heard of it; another one has never seen them.
		other := w.service(t, w.open(t), nil)
		for name, svc := range map[string]*control.Service{"the same process": w.svc, "another": other} {
			st := w.statement(t, svc, node, &at)
			if diff := cmp.Diff([]zone.Purge{one.Purge, two.Purge}, st.Purges, names); diff != "" || st.To != two.Mark() || st.More || st.Floor {
				t.Errorf("%s: %+v %s", name, st, diff)
			}
		}
		mark := one.Mark()
		if st := w.statement(t, other, node, &mark); len(st.Purges) != 1 || st.Purges[0].Sequence != 2 {
			t.Errorf("after the first: %+v", st)
		}
		if st := w.statement(t, other, node, nil); !st.Floor || st.To != two.Mark() {
			t.Errorf("of a node that starts: %+v", st)
		}
		// A log that was lost: ahead of this one, or at a number that is another purge's here.
		for _, lost := range []seal.PurgeMark{{Sequence: 9, ID: one.ID}, {Sequence: 2, ID: one.ID}, {Sequence: 1, ID: two.ID}} {
			if st := w.statement(t, w.svc, node, &lost); !st.Floor || st.To != two.Mark() || len(st.Purges) != 0 {
				t.Errorf("after %s: %+v", lost, st)
			}
		}
		// Where one process has more than the other has read, it is not passed over.
		three := w.purge(t, zone.PurgeAll)
		end := two.Mark()
		if st := w.statement(t, other, node, &end); len(st.Purges) != 1 || st.To != three.Mark() {
			t.Errorf("of the other process: %+v", st)
		}
	})
}

func TestPurgeStatementIsBounded(t *testing.T) {
	w := newWorld(t)
	w.zone(t, w.editor, "example.com")
	node := w.node(t, "fra1")
	var values []string
	for i := range 8 {
		values = append(values, fmt.Sprintf("https://example.com/%d%s", i, strings.Repeat("a", 8000)))
	}
	for range 10 { // 64 kB each
		w.purge(t, zone.PurgeURL, values...)
	}
	var at seal.PurgeMark
	var parts []int
	for more := true; more; {
		st := w.statement(t, w.svc, node, &at)
		at, more = st.To, st.More
		parts = append(parts, len(st.Purges))
	}
	if !slices.Equal(parts, []int{8, 2}) || at.Sequence != 10 {
		t.Errorf("parts %v up to %d", parts, at.Sequence)
	}
}

func TestPurgeWakesPolls(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		w.published(t)
		node := w.node(t, "fra1")
		run(t, w.svc)
		other := w.service(t, w.open(t), nil)
		run(t, other)
		poll := func(svc *control.Service, purged string, wait time.Duration) control.PollAnswer {
			t.Helper()
			a, err := svc.Poll(context.Background(), node, nodeproto.Poll{Have: 1, Epoch: 1, Generation: 1, Purged: purged, Wait: wait})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := poll(w.svc, "", 0); a.Purges != "" {
			t.Errorf("a node that caches nothing is told %q", a.Purges)
		}
		// It knows no place: it is told at once.
		if a := poll(w.svc, nodeproto.NoPurges, nodeproto.MaxWait); a.Purges != "0" {
			t.Errorf("the end of an empty log is %q", a.Purges)
		}
		at := "0"
		for _, svc := range []*control.Service{w.svc, other} {
			woken := make(chan string, 1)
			go func() {
				a, err := svc.Poll(context.Background(), node, nodeproto.Poll{Have: 1, Epoch: 1, Generation: 1, Purged: at, Wait: nodeproto.MaxWait})
				if err != nil {
					t.Error(err)
				}
				woken <- a.Purges
			}()
			// A poll that is ahead of what a process has read has it read: it waits whichever comes first.
			waiting(t, svc, 1)
			st := w.purge(t, zone.PurgeAll)
			at = st.Mark().String()
			select {
			case got := <-woken:
				if got != at {
					t.Errorf("woken with %q, not %q", got, at)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the poll sleeps on")
			}
		}
		_, err := w.svc.Poll(context.Background(), node, nodeproto.Poll{Purged: "1"})
		problems(t, "a place that is none", err)
	})
}

// A store that does not answer keeps no node from its configuration.
func TestPollWithoutTheLogOfPurges(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	node := w.node(t, "fra1")
	st := w.open(t)
	svc := w.service(t, st, nil)
	ask := nodeproto.Poll{Have: 1, Epoch: 1, Generation: 1, Purged: nodeproto.NoPurges}
	if a, err := svc.Poll(t.Context(), node, ask); err != nil || a.Purges != "0" {
		t.Fatalf("%+v, %v", a, err)
	}
	ahead := w.purge(t, zone.PurgeAll).Mark().String()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	ask.Purged = ahead
	if a, err := svc.Poll(t.Context(), node, ask); err != nil || a.Purges != "0" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestPurgeProgress(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		z := w.published(t)
		var nodes []control.Principal
		for _, name := range []string{"ams", "fra", "old", "par"} {
			nodes = append(nodes, w.node(t, name))
		}
		sequence := uint64(0)
		ackAs := func(i int, m *seal.PurgeMark) {
			t.Helper()
			sequence++
			a := nodeproto.Ack{Boot: boot, Sequence: sequence, Purged: m}
			if err := w.svc.Ack(ctx, nodes[i], a); err != nil {
				t.Fatal(err)
			}
		}
		one := w.purge(t, zone.PurgeAll)
		want := func(name string, id string, nodes, done, silent int, waiting ...string) {
			t.Helper()
			for _, p := range []control.Principal{w.operator, w.viewer} {
				st, err := w.svc.PurgeByID(ctx, p, string(z.ID), id)
				if err != nil {
					t.Fatal(err)
				}
				if st.Nodes != nodes || st.Done != done || st.Silent != silent {
					t.Errorf("%s: %d of %d, %d silent", name, st.Done, st.Nodes, st.Silent)
				}
				if names := waiting; p.Operator && !slices.Equal(st.Waiting, names) || !p.Operator && st.Waiting != nil {
					t.Errorf("%s: waits for %q", name, st.Waiting)
				}
			}
		}
		want("nobody was heard", one.ID, 0, 0, 0)
		ackAs(0, &seal.PurgeMark{})
		ackAs(1, &seal.PurgeMark{})
		ackAs(2, nil) // caches nothing
		want("two cache", one.ID, 2, 0, 0, "ams", "fra")
		mark := one.Mark()
		ackAs(0, &mark)
		want("one is there", one.ID, 2, 1, 0, "fra")
		two := w.purge(t, zone.PurgeAll)
		end := two.Mark()
		ackAs(1, &end)
		want("both are", one.ID, 2, 2, 0)
		want("of the second", two.ID, 2, 1, 0, "ams")
		ackAs(3, &seal.PurgeMark{Sequence: 2, ID: one.ID})
		want("a place in a log that was lost", one.ID, 3, 2, 0, "par")
		w.clock.advance(time.Minute + time.Second)
		ackAs(0, &mark)
		want("one fell silent", two.ID, 2, 1, 1, "ams")
		want("one that was done stays so", one.ID, 2, 2, 1)

		if err := w.svc.Ack(ctx, nodes[0], nodeproto.Ack{Boot: boot, Purged: &seal.PurgeMark{Sequence: 1}}); err == nil {
			t.Error("an acknowledgement of a place that is none was taken")
		}
	})
}
