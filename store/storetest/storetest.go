// Package storetest is the conformance suite of control.Store: what each port promises, one named test a
// clause, for every adapter to run.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

// Run holds an adapter against every clause. open returns an empty store and closes it when its test ends;
// tests that can share one by working in different workspaces do.
func Run(t *testing.T, open func(t *testing.T) control.Store) {
	runGroups(t, open, []group{
		{"Tenancy", tenancyClauses},
		{"Zones", zoneClauses},
		{"Records", recordClauses},
		{"Tell", tellClauses},
		{"Text", textClauses},
		{"Objects", objectClauses},
		{"Configuration", configurationClauses},
		{"Publish", publishClauses},
		{"Reseal", resealClauses},
		{"Recovery", recoveryClauses},
		{"Replays", replayClauses},
		{"Changes", changeClauses},
		{"History", historyClauses},
		{"Workspaces", workspaceClauses},
		{"Tokens", tokenClauses},
		{"Nodes", nodeClauses},
		{"NodeKeys", nodeKeyClauses},
		{"Audit", auditClauses},
		{"Cluster", clusterClauses},
		{"Purges", purgeClauses},
	})
}

// group is clauses of one port.
type group struct {
	name    string
	clauses []clause
}

func runGroups(t *testing.T, open func(t *testing.T) control.Store, groups []group) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			shared := sync.OnceValue(func() control.Store { return open(t) })
			for _, c := range group.clauses {
				t.Run(c.name, func(t *testing.T) {
					if c.alone {
						c.run(newFixture(t, open(t)))
					} else {
						c.run(newFixture(t, shared()))
					}
				})
			}
		})
	}
}

// clause is one promise of a port. One that is alone needs a store that nothing happened to.
type clause struct {
	name  string
	alone bool
	run   func(*fixture)
}

// fixture is a store with two workspaces of this test's own.
type fixture struct {
	*testing.T
	ctx   context.Context
	store control.Store
	ws    string // the workspace that the test works in
	other string // and one that it must not reach
	clock atomic.Int64
}

func newFixture(t *testing.T, s control.Store) *fixture {
	f := &fixture{T: t, ctx: t.Context(), store: s}
	f.clock.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMicro())
	f.ws, f.other = f.workspace(), f.workspace()
	return f
}

// id returns a new UUIDv7.
func id() string { return uuid.Must(uuid.NewV7()).String() }

// now is a clock of microseconds that never gives the same time twice.
func (f *fixture) now() time.Time { return time.UnixMicro(f.clock.Add(1_000_003)).UTC() }

// entry returns an audit entry of this workspace.
func (f *fixture) entry(action string) control.AuditEntry {
	return control.AuditEntry{ID: id(), At: f.now(), Workspace: f.ws, Actor: "ada@example.net", Action: action, Outcome: "ok"}
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// fails holds that err is want, and nothing more exact that a caller could take it for.
func (f *fixture) fails(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("the error is %v, not %v", err, want)
	}
	for _, e := range []error{control.ErrNotFound, control.ErrExists, control.ErrConflict} {
		if e != want && errors.Is(err, e) {
			f.Fatalf("the error %v is %v as well as %v", err, e, want)
		}
	}
}

func (f *fixture) same(what string, got, want any) {
	f.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(zone.Name{}, zone.Mailbox{})); diff != "" {
		f.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func (f *fixture) workspace() string {
	f.Helper()
	w := control.Workspace{ID: id(), Plan: "standard", CreatedAt: f.now()}
	w.Name = "workspace " + w.ID
	f.ok(f.store.CreateWorkspace(f.ctx, w, f.entry("workspace.create")))
	return w.ID
}

// zone creates a zone in the test's workspace.
func (f *fixture) zone(name string) control.ZoneRow {
	f.Helper()
	z := control.ZoneRow{ID: zone.ID(id()), Workspace: f.ws, Name: zone.MustName(name), Revision: 1, CreatedAt: f.now()}
	f.ok(f.store.CreateZone(f.ctx, f.ws, z, f.entry("zone.create")))
	return z
}

// record is a TXT record unless the content of another type is asked for with rrtype.
func record(name, content string) control.RecordRow {
	return control.RecordRow{ID: id(), Record: zone.Record{Name: zone.MustName(name), Type: rrtype("TXT"), Content: content}}
}

func rrtype(s string) zone.RRType {
	t, err := zone.ParseRRType(s)
	if err != nil {
		panic(err)
	}
	return t
}

// insert adds records to a zone.
func (f *fixture) insert(z control.ZoneRow, records ...control.RecordRow) {
	f.Helper()
	f.ok(f.store.ChangeRecords(f.ctx, f.ws, z.ID, control.RecordChange{Insert: records}, 0, f.entry("record.add")))
}

func (f *fixture) records(z control.ZoneRow) []control.RecordRow {
	f.Helper()
	records, _, err := f.store.ReadRecords(f.ctx, f.ws, z.ID)
	f.ok(err)
	return records
}

// put stores an object whatever its revision and returns the new one.
func (f *fixture) put(z control.ZoneRow, kind control.ObjectKind, name, body string) int64 {
	f.Helper()
	revision, err := f.store.PutObject(f.ctx, f.ws, z.ID, control.ObjectRow{Kind: kind, Name: name, Body: []byte(body)}, 0, f.entry("object.put"))
	f.ok(err)
	return revision
}

// zoneState is all that a zone holds, to compare before and after.
type zoneState struct {
	Zone    control.ZoneRow
	Records []control.RecordRow
	Objects []control.ObjectRow
	Audit   int
}

func (f *fixture) state(z control.ZoneRow) zoneState {
	f.Helper()
	row, err := f.store.ZoneByID(f.ctx, f.ws, z.ID)
	f.ok(err)
	s := zoneState{Zone: row, Records: f.records(z), Audit: len(f.auditOf(f.ws))}
	for _, kind := range kinds {
		objects, err := f.store.ListObjects(f.ctx, f.ws, z.ID, kind)
		f.ok(err)
		s.Objects = append(s.Objects, objects...)
	}
	return s
}

// unchanged holds that deed fails with want and leaves the zone and the log as they were.
func (f *fixture) unchanged(z control.ZoneRow, want error, deed func() error) {
	f.Helper()
	before := f.state(z)
	f.fails(deed(), want)
	f.same("the zone after a refused edit", f.state(z), before)
}

func (f *fixture) auditOf(ws string) []control.AuditEntry {
	f.Helper()
	entries, err := f.store.ListAudit(f.ctx, ws, control.Page{Limit: 1000})
	f.ok(err)
	return entries
}

var kinds = []control.ObjectKind{
	control.KindRuleset, control.KindList, control.KindPool, control.KindLoadBalancer,
	control.KindCachePolicy, control.KindTLSHost, control.KindFunction, control.KindSettings,
}

// pages reads a listing in pages of limit rows and returns all of them; key tells a row's page key.
func pages[T any](f *fixture, limit int, key func(T) string, list func(control.Page) ([]T, error)) []T {
	f.Helper()
	var all []T
	p := control.Page{Limit: limit}
	for {
		rows, err := list(p)
		f.ok(err)
		if len(rows) > limit {
			f.Fatalf("a page of %d has %d rows", limit, len(rows))
		}
		all = append(all, rows...)
		if len(rows) < limit {
			return all
		}
		if after := key(rows[len(rows)-1]); after == p.After {
			f.Fatalf("the listing stays at %s", after)
		} else {
			p.After = after
		}
	}
}

// refusesLimits holds that a page of no or too many rows is an error rather than a listing cut short.
func refusesLimits[T any](f *fixture, list func(control.Page) ([]T, error)) {
	f.Helper()
	for _, limit := range []int{-1, 0, 1001} {
		if rows, err := list(control.Page{Limit: limit}); err == nil {
			f.Errorf("a page of %d rows is answered with %d", limit, len(rows))
		}
	}
}

// atOnce runs f(0) to f(n-1) at the same time and returns their errors.
func atOnce(n int, f func(int) error) []error {
	errs := make([]error, n)
	start, done := make(chan struct{}), make(chan struct{})
	for i := range n {
		go func() {
			<-start
			errs[i] = f(i)
			done <- struct{}{}
		}()
	}
	close(start)
	for range n {
		<-done
	}
	return errs
}

// winners holds that exactly one error is nil and every other is lost, and returns the winner.
func (f *fixture) winners(errs []error, lost error) int {
	f.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			f.Fatalf("both %d and %d won", winner, i)
		case err == nil:
			winner = i
		default:
			f.fails(err, lost)
		}
	}
	if winner < 0 {
		f.Fatal("nobody won: ", fmt.Sprint(errs))
	}
	return winner
}
