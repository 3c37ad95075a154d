package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

func TestKeysCheckAcrossProcesses(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.published(t)
		old := w.key
		a, b := w.node(t, "a"), w.node(t, "b")
		w.node(t, "silent")
		next, err := seal.GenerateSigningKey()
		if err != nil {
			t.Fatal(err)
		}
		w.key = next
		hears, asked := w.service(t, w.open(t), nil), w.service(t, w.open(t), nil)
		poll := func(n control.Principal, keys ...seal.KeyID) {
			t.Helper()
			w.clock.advance(time.Second)
			if _, err := hears.Poll(ctx, n, nodeproto.Poll{TrustedKeys: keys}); err != nil {
				t.Fatal(err)
			}
			if _, err := hears.ListNodes(ctx, w.operator); err != nil { // writes what was heard
				t.Fatal(err)
			}
		}
		poll(a, old.ID(), next.ID())
		poll(b, old.ID())
		check := func(missing int, trusting string) {
			t.Helper()
			r, err := asked.KeysCheck(ctx, w.operator)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, n := range r.Nodes {
				if n.Trusts {
					got = append(got, n.Name)
				}
			}
			if r.KeyID != next.ID() || r.LiveKey != old.ID() || r.Missing != missing || strings.Join(got, " ") != trusting || len(r.Nodes) != 3 {
				t.Errorf("report %+v", r)
			}
		}
		check(2, "a")
		poll(b, next.ID(), old.ID())
		poll(b, old.ID(), next.ID()) // in another order they are the same
		check(1, "a b")
		if got := w.audited(t, "node.keys_change"); len(got) != 1 || got[0].Target != "b" || !strings.Contains(got[0].Detail, string(next.ID())) {
			t.Errorf("audited: %+v", got)
		}
		_, err = asked.KeysCheck(ctx, w.editor)
		wantError(t, "an editor", err, control.ErrNoRoute)
	})
}

func TestFreshnessAlarmOfNodes(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.published(t)
	n := w.node(t, "fra1")
	stale := func(what string, want bool) {
		t.Helper()
		nodes, err := w.service(t, w.store, nil).ListNodes(ctx, w.operator)
		if err != nil || nodes[0].FreshnessStale != want {
			t.Errorf("%s: %+v, %v", what, nodes[0], err)
		}
	}
	poll := func(nonce string) {
		t.Helper()
		if _, err := w.svc.Poll(ctx, n, nodeproto.Poll{Nonce: nonce}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.svc.ListNodes(ctx, w.operator); err != nil {
			t.Fatal(err)
		}
	}
	stale("new", false)
	poll("0123456789abcdef")
	w.clock.advance(control.MaxFreshnessAge)
	poll("")
	stale("at the bound", false)
	w.clock.advance(time.Minute)
	poll("")
	stale("beyond it", true)
	poll("0123456789abcdef")
	stale("proven again", false)
	a := ack(control.ApplyResult{Version: 1, Generation: 1, ContentHash: w.liveRow(t).ContentHash})
	a.Freshness = "stale"
	if err := w.svc.Ack(ctx, n, a); err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.ListNodes(ctx, w.operator); err != nil {
		t.Fatal(err)
	}
	stale("by its own word", true)
}

// What another process publishes is known long before the regular reading.
func TestHintsComeBeforeTheRegularReading(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		w.published(t)
		if strings.HasPrefix(w.url, "sqlite") {
			return // other processes' writes are not hinted there
		}
		slow := w.service(t, w.open(t), func(c *control.Config) { c.Refresh = time.Hour })
		run(t, slow)
		n := w.node(t, "fra1")
		if _, err := slow.Poll(t.Context(), n, nodeproto.Poll{}); err != nil {
			t.Fatal(err)
		}
		answered := make(chan error, 1)
		go func() {
			a, err := slow.Poll(t.Context(), n, nodeproto.Poll{Have: 1, Generation: 1, Epoch: 1, Wait: nodeproto.MaxWait})
			if err == nil && a.Artefact == nil {
				err = errors.New("nothing newer")
			}
			answered <- err
		}()
		w.apply(t, control.ApplyRequest{Reseal: true})
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

// unhinted is a store whose hints have ended.
type unhinted struct{ control.Store }

func (unhinted) Changes(context.Context) <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Without hints the regular reading is the truth, and Run ends as ever.
func TestRunWithoutHints(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	n := w.node(t, "fra1")
	svc := w.service(t, unhinted{w.open(t)}, nil)
	stop := run(t, svc)
	if _, err := svc.Poll(t.Context(), n, nodeproto.Poll{}); err != nil {
		t.Fatal(err)
	}
	w.apply(t, control.ApplyRequest{Reseal: true})
	a, err := svc.Poll(t.Context(), n, nodeproto.Poll{Have: 1, Generation: 1, Epoch: 1, Wait: nodeproto.MaxWait})
	if err != nil || a.Artefact == nil {
		t.Errorf("poll: %+v, %v", a, err)
	}
	stop()
}
