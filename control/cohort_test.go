package control_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/store"
)

// fleet is a world whose control plane has a cohort, with one version live and nodes in it.
type fleet struct {
	*world
	t       *testing.T
	cohort  *sqlstore.Store
	members []control.Principal // in the cohort
	outside control.Principal   // a node that is not
	boots   map[string]barrier.BootID
	token   barrier.Token
	record  string // the one record's id
	octet   int
}

// process is a control plane of its own on the world's database.
func (w *world) process(t *testing.T, change func(*control.Config)) (*control.Service, *store.DB, *sqlstore.Store) {
	t.Helper()
	st := w.open(t)
	var svc *control.Service
	writer, reader := st.Pools()
	cohort, err := sqlstore.New(t.Context(), writer, sqlstore.Dialect(st.Kind()), "nodes", sqlstore.ReadFrom(reader),
		sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, before, after barrier.Head) error {
			return st.DecideIn(ctx, tx, before, after, svc.Decided)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cohort.Close(); err != nil {
			t.Error(err)
		}
	})
	st.JoinCohort(func(tx *sql.Tx) store.CohortTx { return cohort.In(tx) })
	svc = w.service(t, st, func(c *control.Config) {
		c.Cohort = cohort
		if change != nil {
			change(c)
		}
	})
	return svc, st, cohort
}

func newFleet(t *testing.T, w *world, n int) *fleet {
	t.Helper()
	f := &fleet{world: w, t: t, boots: map[string]barrier.BootID{}, octet: 1}
	f.svc, f.store, f.cohort = w.process(t, nil)
	w.zone(t, w.editor, "example.com")
	f.record = w.record(t, w.editor, "example.com", "www", "A", "192.0.2.1").ID
	if res := w.apply(t, control.ApplyRequest{AcceptDisruption: true}); res.Version != 1 || res.Generation != 1 {
		t.Fatalf("the first apply: %+v", res)
	}
	for i := range n {
		made, err := f.svc.CreateMember(t.Context(), f.operator, fmt.Sprintf("edge-%d", i+1))
		f.ok(err)
		p, err := f.svc.Authenticate(t.Context(), made.Secret)
		f.ok(err)
		f.members = append(f.members, p)
		f.boot(p)
	}
	f.outside = w.node(t, "outside")
	f.token = 1
	f.ok(f.cohort.Claim(t.Context(), f.token))
	return f
}

// fleets runs a test on each kind of database.
func fleets(t *testing.T, n int, test func(f *fleet)) {
	databases(t, func(t *testing.T, w *world) { test(newFleet(t, w, n)) })
}

func (f *fleet) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// boot starts a node's process.
func (f *fleet) boot(p control.Principal) {
	f.t.Helper()
	v, err := f.cohort.Look(f.t.Context(), barrier.MemberID(p.NodeID))
	f.ok(err)
	boot := barrier.BootID(fmt.Sprintf("%s.%d", p.NodeID, v.Registration.Incarnation+1))
	_, err = f.cohort.Join(f.t.Context(), barrier.MemberID(p.NodeID), boot, v.Registration.Incarnation)
	f.ok(err)
	f.boots[p.NodeID] = boot
}

// edit gives the one record another address.
func (f *fleet) edit() {
	f.t.Helper()
	f.octet++
	f.address(f.t, f.record, f.octet)
}

func coordinated(window time.Duration) *control.RolloutRequest {
	r := &control.RolloutRequest{Mode: control.RolloutCoordinated, ConfirmWindow: &window}
	if window > 0 {
		soak := time.Millisecond
		r.Soak = &soak
	}
	return r
}

// propose puts an edit to the cohort.
func (f *fleet) propose(window time.Duration) *control.Rollout {
	f.t.Helper()
	f.edit()
	res := f.apply(f.t, control.ApplyRequest{Message: "next", AcceptDisruption: true, Rollout: coordinated(window)})
	if res.Applied || res.Reason != control.ReasonRollout || res.Rollout == nil || res.Rollout.ID != res.RolloutID {
		f.t.Fatalf("the proposal: %+v", res)
	}
	return res.Rollout
}

func (f *fleet) ack(ref barrier.Ref) {
	f.t.Helper()
	f.ok(f.cohort.Claim(f.t.Context(), f.token))
	for _, p := range f.members {
		f.ok(f.cohort.Ack(f.t.Context(), ref, barrier.MemberID(p.NodeID), f.boots[p.NodeID], ""))
	}
}

func (f *fleet) commit(ref barrier.Ref) {
	f.t.Helper()
	f.ack(ref)
	f.ok(f.cohort.Commit(f.t.Context(), ref, f.token))
}

func (f *fleet) converge(ref barrier.Ref) {
	f.t.Helper()
	for _, p := range f.members {
		f.ok(f.cohort.Converge(f.t.Context(), ref, barrier.MemberID(p.NodeID), f.boots[p.NodeID], "works"))
	}
	since := f.row().Now
	for !f.row().Now.After(since.Add(time.Millisecond)) {
	}
}

func (f *fleet) confirm(ref barrier.Ref) {
	f.t.Helper()
	f.ok(f.confirms(f.cohort, ref))
}

// confirms is confirm by a process's way to the cohort, that may fail. Evidence is for a second: where a busy machine lets it expire before it is used, it is renewed.
func (f *fleet) confirms(cohort *sqlstore.Store, ref barrier.Ref) (err error) {
	f.t.Helper()
	f.until("converged long enough", func() bool {
		f.converge(ref)
		err = cohort.Confirm(f.t.Context(), ref, f.token)
		return !errors.Is(err, barrier.ErrNotConverged)
	})
	return err
}

func (f *fleet) row() barrier.Row {
	f.t.Helper()
	row, err := f.cohort.Current(f.t.Context())
	f.ok(err)
	return row
}

// agrees holds that the cohort's committed pointer has the content of what is live, and that the numbers fit.
func (f *fleet) agrees() {
	f.t.Helper()
	live, row := f.liveRow(f.t), f.row()
	if want := barrier.Digest(nodeproto.CandidateDigest(live.ContentHash)); row.Committed.Digest != want || row.Committed.Version != live.Version {
		f.t.Errorf("live is version %d, %s; committed is %v", live.Version, want, row.Committed)
	}
	platform, err := f.store.Platform(f.t.Context())
	f.ok(err)
	last := live.Generations[len(live.Generations)-1]
	if platform.Generation != last || row.Committed.Generation > last {
		f.t.Errorf("the platform's generation is %d, live has %v, committed %d", platform.Generation, live.Generations, row.Committed.Generation)
	}
	if live.Kind != seal.KindReverted && row.Committed.Generation != last {
		f.t.Errorf("generation %d is live (%s), committed is %d", last, live.Kind, row.Committed.Generation)
	}
	act := f.opens(f.t, trust(f.t, f.key)).Activation()
	if act.Generation != last || act.Kind != live.Kind {
		f.t.Errorf("the activation of generation %d, kind %s is %+v", last, live.Kind, act)
	}
}

func (f *fleet) poll(p control.Principal, q nodeproto.Poll) control.PollAnswer {
	f.t.Helper()
	a, err := f.svc.Poll(f.t.Context(), p, q)
	f.ok(err)
	return a
}

// until returns when it is so.
func (f *fleet) until(what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); runtime.Gosched() {
		if time.Now().After(end) {
			f.t.Fatalf("not in a minute: %s", what)
		}
	}
}

// activation is what an offer activates.
func (f *fleet) activation(a control.PollAnswer) seal.Activation {
	f.t.Helper()
	if a.Artefact == nil {
		f.t.Fatal("nothing is offered")
	}
	act, _, err := seal.VerifyActivation(a.Artefact.Activation, trust(f.t, f.key))
	f.ok(err)
	return act
}

func (f *fleet) ackOf(act seal.Activation, signed seal.SignedActivation) nodeproto.Ack {
	return nodeproto.Ack{
		Version: act.Version, Generation: act.Generation, Epoch: act.Epoch, ContentHash: act.ContentHash,
		Boot: strings.Repeat("0b", 16), Activation: signed,
	}
}

// openError is the rollout that is in the way.
func (f *fleet) openError(what string, err error, id barrier.RolloutID) {
	f.t.Helper()
	var open *control.RolloutOpenError
	if !errors.As(err, &open) || open.Rollout.ID != id || !errors.Is(err, control.ErrRolloutOpen) {
		f.t.Errorf("%s while rollout %s is open: %v", what, id, err)
	}
}
