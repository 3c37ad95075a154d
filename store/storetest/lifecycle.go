package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
)

// resealed is a rollback to a stored version under another seal.
func (f *fixture) resealed(version uint64, hash string) control.Publication {
	pub := f.activation(f.platform(), version, seal.KindRollback)
	pub.Reseal = &seal.Sealed{
		Payload: []byte("\x28\xb5\x2f\xfd another payload"), PayloadBLAKE3: strings.Repeat("c", 64), Version: version,
		ContentHash: hash, Signature: strings.Repeat("6", 128), KeyID: "0123456789abcdef",
	}
	return pub
}

var resealClauses = []clause{
	{name: "a version is activated under another seal, itself unchanged", alone: true, run: func(f *fixture) {
		first := f.apply()
		f.apply()
		pub := f.resealed(1, first.Insert.Row.ContentHash)
		f.ok(f.store.Publish(f.ctx, pub))
		want := first.Insert.Row
		want.KeyID, want.Bytes = pub.Reseal.KeyID, int64(len(pub.Reseal.Payload))
		want.ActivatedAt, want.Generations, want.Epoch, want.Activation, want.Kind = pub.At, []uint64{1, 3}, 1, pub.Signed, seal.KindRollback
		live, err := f.store.Live(f.ctx)
		f.ok(err)
		f.same("live", live, want)
		sealed, err := f.store.Sealed(f.ctx, 1)
		f.ok(err)
		f.same("sealed", sealed, *pub.Reseal)
	}},
	{name: "a seal of another content or version is refused, and a lost race leaves the old one", alone: true, run: func(f *fixture) {
		first := f.apply()
		stale := f.resealed(1, first.Insert.Row.ContentHash)
		second := f.apply()
		f.publishFails(control.ErrNotFound, f.resealed(1, second.Insert.Row.ContentHash))
		other := f.resealed(1, first.Insert.Row.ContentHash)
		other.Activation.Version = 2
		f.publishFails(nil, other)
		f.publishFails(control.ErrConflict, stale)
		sealed, err := f.store.Sealed(f.ctx, 1)
		f.ok(err)
		f.same("sealed", sealed, first.Insert.Sealed)
	}},
	{name: "every audit entry of a publication is written, or none", alone: true, run: func(f *fixture) {
		pub := f.publication(f.platform(), 1)
		pub.Also = []control.AuditEntry{f.entry("config.key_switch")}
		f.ok(f.store.Publish(f.ctx, pub))
		if got := f.auditOf(f.ws); got[0].ID != pub.Also[0].ID && got[1].ID != pub.Also[0].ID {
			f.Errorf("the log holds %+v", got)
		}
		again := f.publication(f.platform(), 2)
		again.Also = pub.Also // an id that stands already
		f.publishFails(nil, again)
	}},
}

func (f *fixture) aheadNode(epoch, generation, version uint64) control.AheadNode {
	return control.AheadNode{
		Node: "fra1", Epoch: epoch, Generation: generation, Version: version,
		Activation: seal.SignedActivation(fmt.Sprintf("proof %d %d", epoch, generation)), SeenAt: f.now(),
	}
}

// ahead records n and holds that recorded is want.
func (f *fixture) ahead(n control.AheadNode, want bool) {
	f.Helper()
	before := len(f.auditOf(f.ws))
	recorded, err := f.store.RecordAhead(f.ctx, n, f.entry("config.signing_stopped"))
	f.ok(err)
	f.same("recorded", recorded, want)
	written := 0
	if want {
		written = 1
	}
	f.same("audit entries", len(f.auditOf(f.ws))-before, written)
}

var recoveryClauses = []clause{
	{name: "what a node proved is kept, the newest of it, and stops every publication", alone: true, run: func(f *fixture) {
		f.apply()
		pub := f.publication(f.platform(), 900)
		f.ahead(f.aheadNode(1, 1, 1), false) // it is what is live
		if f.platform().Ahead != nil {
			f.Fatal("what is live was kept as ahead")
		}
		f.ahead(f.aheadNode(1, 7, 6), true)
		f.ahead(f.aheadNode(1, 7, 6), false)
		f.ahead(f.aheadNode(1, 6, 9), false)
		newest := f.aheadNode(2, 3, 8)
		f.ahead(newest, true)
		f.same("ahead", f.platform().Ahead, &newest)
		f.publishFails(control.ErrNodeAhead, pub)
	}},
	{name: "raising the epoch lifts the refusal, and versions that were shown are not given again", alone: true, run: func(f *fixture) {
		f.apply()
		f.ahead(f.aheadNode(1, 7, 600), true)
		bump := control.EpochBump{SeenEpoch: 1, Epoch: 2, Version: 600, Audit: f.entry("config.recover")}
		f.ok(f.store.BumpEpoch(f.ctx, bump))
		p := f.platform()
		f.same("platform", p, control.Platform{ID: p.ID, Epoch: 2, Generation: 1})
		if entries := f.auditOf(f.ws); entries[0].ID != bump.Audit.ID {
			f.Errorf("the newest audit entry is %+v", entries[0])
		}
		if pub := f.apply(); pub.Activation.Version != 601 || pub.Activation.Epoch != 2 {
			f.Errorf("published %+v", pub.Activation)
		}
		f.ahead(f.aheadNode(1, 9000, 9000), false) // of the epoch before
	}},
	{name: "a sequence that is farther stays there", alone: true, run: func(f *fixture) {
		for range 5 {
			f.apply()
		}
		f.ok(f.store.BumpEpoch(f.ctx, control.EpochBump{SeenEpoch: 1, Epoch: 2, Version: 3, Audit: f.entry("config.recover")}))
		f.same("version", f.apply().Activation.Version, uint64(6))
		f.ok(f.store.BumpEpoch(f.ctx, control.EpochBump{SeenEpoch: 2, Epoch: 3, Version: 6, Audit: f.entry("config.recover")}))
		f.same("version", f.apply().Activation.Version, uint64(7))
	}},
	{name: "another epoch than the one seen is ErrConflict, one that does not follow an error", alone: true, run: func(f *fixture) {
		f.ahead(f.aheadNode(3, 1, 1), true)
		f.fails(f.store.BumpEpoch(f.ctx, control.EpochBump{SeenEpoch: 2, Epoch: 3, Audit: f.entry("config.recover")}), control.ErrConflict)
		if err := f.store.BumpEpoch(f.ctx, control.EpochBump{SeenEpoch: 1, Epoch: 1, Audit: f.entry("config.recover")}); err == nil {
			f.Error("the epoch followed itself")
		}
		// One that does not reach what was proved does not lift the refusal.
		f.ok(f.store.BumpEpoch(f.ctx, control.EpochBump{SeenEpoch: 1, Epoch: 2, Audit: f.entry("config.recover")}))
		if p := f.platform(); p.Epoch != 2 || p.Ahead == nil {
			f.Errorf("platform %+v", p)
		}
	}},
	{name: "of many recoveries at once exactly one wins", alone: true, run: func(f *fixture) {
		errs := atOnce(6, func(int) error {
			return f.store.BumpEpoch(f.ctx, control.EpochBump{SeenEpoch: 1, Epoch: 2, Audit: f.entry("config.recover")})
		})
		f.winners(errs, control.ErrConflict)
		f.same("epoch", f.platform().Epoch, uint64(2))
	}},
}

func (f *fixture) replay(key string) control.Replay {
	return control.Replay{UserID: f.ws, Key: key, Request: [32]byte{1, 31: 2}, Answer: []byte(`{"Version":1}`), At: f.now()}
}

var replayClauses = []clause{
	{name: "a first answer is given back for as long as it is kept, to its own user", run: func(f *fixture) {
		r := f.replay("k1")
		f.ok(f.store.PutReplay(f.ctx, r))
		got, err := f.store.Replay(f.ctx, f.ws, "k1", r.At.Add(control.ReplayAge-time.Second))
		f.ok(err)
		f.same("replay", got, r)
		for _, ask := range []struct {
			user, key string
			at        time.Time
		}{{f.ws, "k1", r.At.Add(control.ReplayAge)}, {f.other, "k1", r.At}, {f.ws, "K1", r.At}} {
			_, err = f.store.Replay(f.ctx, ask.user, ask.key, ask.at)
			f.fails(err, control.ErrNotFound)
		}
	}},
	{name: "a key that stands is ErrExists until it is too old", run: func(f *fixture) {
		r := f.replay("k2")
		f.ok(f.store.PutReplay(f.ctx, r))
		again := r
		again.Request[0], again.At = 9, r.At.Add(control.ReplayAge-time.Second)
		f.fails(f.store.PutReplay(f.ctx, again), control.ErrExists)
		again.At = r.At.Add(control.ReplayAge)
		f.ok(f.store.PutReplay(f.ctx, again))
		got, err := f.store.Replay(f.ctx, f.ws, "k2", again.At)
		f.ok(err)
		f.same("replay", got, again)
	}},
	{name: "an answer is kept with its publication, or neither is", alone: true, run: func(f *fixture) {
		pub := f.publication(f.platform(), 1)
		r := f.replay("k3")
		pub.Replay = &r
		f.ok(f.store.Publish(f.ctx, pub))
		_, err := f.store.Replay(f.ctx, f.ws, "k3", r.At)
		f.ok(err)
		again := f.publication(f.platform(), 2)
		again.Replay = &r
		f.publishFails(control.ErrExists, again)
		lost := f.replay("k4")
		stale := pub
		stale.Replay = &lost
		f.publishFails(control.ErrConflict, stale)
		_, err = f.store.Replay(f.ctx, f.ws, "k4", lost.At)
		f.fails(err, control.ErrNotFound)
	}},
	{name: "of many of one key at once exactly one is kept", run: func(f *fixture) {
		at := f.now()
		errs := atOnce(6, func(i int) error {
			r := f.replay("k5")
			r.Request[1], r.At = byte(i), at
			return f.store.PutReplay(f.ctx, r)
		})
		winner := f.winners(errs, control.ErrExists)
		got, err := f.store.Replay(f.ctx, f.ws, "k5", at)
		f.ok(err)
		f.same("kept", got.Request[1], byte(winner))
	}},
}

// hinted waits for a hint.
func (f *fixture) hinted(what string, c <-chan struct{}) {
	f.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		f.Fatalf("no hint of %s", what)
	}
}

var changeClauses = []clause{
	{name: "what moves Revisions is hinted to every listener, whose channel ends with its context", alone: true, run: func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		one, two := f.store.Changes(ctx), f.store.Changes(f.ctx)
		for _, deed := range []struct {
			name string
			do   func()
		}{
			{"a publication", func() { f.apply() }},
			{"a user", func() {
				f.ok(f.store.CreateUser(f.ctx, control.User{ID: id(), Email: id() + "@example.net", CreatedAt: f.now()}, f.entry("user.create")))
			}},
			{"a node that is ahead", func() { f.ahead(f.aheadNode(1, 900, 900), true) }},
			{"a recovery", func() {
				f.ok(f.store.BumpEpoch(f.ctx, control.EpochBump{SeenEpoch: 1, Epoch: 2, Audit: f.entry("config.recover")}))
			}},
		} {
			deed.do()
			f.hinted(deed.name, one)
			f.hinted(deed.name, two)
		}
		cancel()
		for range one {
		}
		f.apply()
		f.hinted("a publication after another listener left", two)
	}},
}

var textClauses = []clause{
	{name: "text that not every database can hold is refused in words, and nothing is written", run: func(f *fixture) {
		z := f.zone("text-" + id() + ".example")
		for name, bad := range map[string]string{"NUL": "ab\x00cd", "not UTF-8": "ab\xff\xfecd", "half a character": "ab\xc3"} {
			for what, deed := range map[string]func() error{
				"workspace": func() error {
					return f.store.CreateWorkspace(f.ctx, control.Workspace{ID: id(), Name: bad, Plan: "standard", CreatedAt: f.now()}, f.entry("w"))
				},
				"email": func() error {
					return f.store.CreateUser(f.ctx, control.User{ID: id(), Email: bad, CreatedAt: f.now()}, f.entry("u"))
				},
				"record": func() error {
					return f.store.ChangeRecords(f.ctx, f.ws, z.ID, control.RecordChange{Insert: []control.RecordRow{record("text.example", bad)}}, 0, f.entry("r"))
				},
				"object": func() error {
					_, err := f.store.PutObject(f.ctx, f.ws, z.ID, control.ObjectRow{Kind: control.KindList, Name: bad, Body: []byte("{}")}, 0, f.entry("o"))
					return err
				},
				"audit":  func() error { a := f.entry("a"); a.Detail = bad; return f.store.Append(f.ctx, a) },
				"lookup": func() error { _, err := f.store.WorkspaceByName(f.ctx, bad); return err },
				"page":   func() error { _, err := f.store.ListUsers(f.ctx, control.Page{After: bad, Limit: 1}); return err },
			} {
				before := f.state(z)
				var ps *control.ProblemsError
				if err := deed(); !errors.As(err, &ps) || ps.Problems[0].Code != "text_invalid" {
					f.Errorf("%s with %s: %v", what, name, err)
				}
				f.same("the zone", f.state(z), before)
			}
		}
	}},
	{name: "any other text is kept as it is", run: func(f *fixture) {
		a := f.entry("text")
		a.Detail = "line\r\n\ttab \x1b[31m \u2028 \U0001F600 \ufffd ' \" \\ $1 ?"
		f.ok(f.store.Append(f.ctx, a))
		f.same("detail", f.auditOf(f.ws)[0].Detail, a.Detail)
	}},
}

var tellClauses = []clause{
	{name: "the audit entry can tell what deleted and updated records were", run: func(f *fixture) {
		z := f.zone("tell.example")
		one, two := record("one.tell.example", "1"), record("two.tell.example", "2")
		two.TTL = 77
		f.insert(z, one, two)
		next := two
		next.Content = "3"
		var was []control.RecordRow
		f.ok(f.store.ChangeRecords(f.ctx, f.ws, z.ID, control.RecordChange{
			Delete: []string{one.ID}, Update: []control.RecordRow{next},
			Tell: func(a *control.AuditEntry, w []control.RecordRow) {
				was = w
				a.Target, a.Detail = "told", w[0].Content
			},
		}, 0, f.entry("record.delete")))
		f.same("what they were", was, []control.RecordRow{one, two})
		a := f.auditOf(f.ws)[0]
		f.same("entry", a.Target+" "+a.Detail, "told 1")
		// A change that is refused tells nobody.
		f.unchanged(z, control.ErrNotFound, func() error {
			return f.store.ChangeRecords(f.ctx, f.ws, z.ID, control.RecordChange{Delete: []string{next.ID, id()}, Tell: func(*control.AuditEntry, []control.RecordRow) {
				f.Error("told of a change that was refused")
			}}, 0, f.entry("record.delete"))
		})
	}},
}

var nodeKeyClauses = []clause{
	{name: "the keys that a node trusts are kept, and a change of them is logged once", run: func(f *fixture) {
		n, _ := f.node("keys-" + id())
		keys := func(ids ...seal.KeyID) control.NodeReport {
			return control.NodeReport{NodeID: n.ID, SeenAt: f.now(), TrustedKeys: ids, KeysAudit: f.entry("node.keys_change")}
		}
		report := func(r control.NodeReport, want control.NodeReport, logged bool) {
			f.Helper()
			f.ok(f.store.RecordNodes(f.ctx, []control.NodeReport{r}, nil))
			got := f.nodeNamed(n.Name)
			f.same("keys", got.TrustedKeys, want.TrustedKeys)
			f.same("since", got.KeysAt, want.SeenAt)
			f.same("logged", f.auditOf(f.ws)[0].ID == r.KeysAudit.ID, logged)
		}
		if got := f.nodeNamed(n.Name); got.TrustedKeys != nil || !got.KeysAt.IsZero() || !got.FreshAt.IsZero() {
			f.Errorf("a new node has %+v", got)
		}
		const a, b = seal.KeyID("00000000000000aa"), seal.KeyID("00000000000000bb")
		first := keys(a)
		report(first, first, false) // there was nothing before
		same := keys(a)
		report(same, same, false)
		late := keys(b)
		both := keys(a, b)
		report(both, both, true)
		report(late, both, false) // heard before, written after
		f.ok(f.store.RecordNodes(f.ctx, []control.NodeReport{{NodeID: n.ID, SeenAt: f.now(), FreshAt: both.SeenAt}}, nil))
		got := f.nodeNamed(n.Name)
		f.same("keys", got.TrustedKeys, both.TrustedKeys)
		f.same("fresh", got.FreshAt, both.SeenAt)
	}},
}

// nodeNamed reads one node.
func (f *fixture) nodeNamed(name string) control.Node {
	f.Helper()
	for _, n := range f.nodes() {
		if n.Name == name {
			return n
		}
	}
	f.Fatalf("no node %q", name)
	return control.Node{}
}
