package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

func (f *fixture) node(name string) (control.Node, control.Token) {
	f.Helper()
	n := control.Node{ID: id(), Name: name, CreatedAt: f.now()}
	t := f.newToken(control.User{}, "")
	t.NodeID = n.ID
	f.ok(f.store.CreateNode(f.ctx, n, t, f.entry("node.create")))
	return n, t
}

func (f *fixture) nodes() []control.Node {
	f.Helper()
	nodes, err := f.store.ListNodes(f.ctx)
	f.ok(err)
	return nodes
}

func ack(version uint64, failure *nodeproto.AckError) *nodeproto.Ack {
	return &nodeproto.Ack{
		Version: version, Generation: version + 1, Epoch: 1, ContentHash: "c", Boot: "b",
		TrustedKeys: []seal.KeyID{"8f2c1ab30d4e57f9", "0123456789abcdef"}, Freshness: "fresh", Error: failure,
	}
}

var nodeClauses = []clause{
	{name: "nodes are listed by name; one comes with a token that speaks for it", alone: true, run: func(f *fixture) {
		b, token := f.node("b")
		a, _ := f.node("a")
		upper, _ := f.node("B")
		f.same("nodes", f.nodes(), []control.Node{upper, a, b})
		got, p, err := f.store.TokenByHash(f.ctx, token.Hash)
		f.ok(err)
		f.same("token", got, token)
		f.same("principal", p, control.Principal{TokenID: token.ID, NodeID: b.ID, NodeName: "b"})
	}},
	{name: "a name that is taken is ErrExists and its token is not stored", alone: true, run: func(f *fixture) {
		f.node("taken")
		t := f.newToken(control.User{}, "")
		f.fails(f.store.CreateNode(f.ctx, control.Node{ID: id(), Name: "taken", CreatedAt: f.now()}, t, f.entry("node.create")), control.ErrExists)
		_, _, err := f.store.TokenByHash(f.ctx, t.Hash)
		f.fails(err, control.ErrNotFound)
		if n := len(f.nodes()); n != 1 {
			f.Errorf("%d nodes", n)
		}
	}},
	{name: "a node goes with its tokens; an absent one is ErrNotFound", alone: true, run: func(f *fixture) {
		n, t := f.node("gone")
		second := f.newToken(control.User{}, "")
		second.NodeID = n.ID
		f.ok(f.store.CreateToken(f.ctx, second, f.entry("token.create")))
		_, kept := f.node("kept")
		f.ok(f.store.DeleteNode(f.ctx, n.ID, f.entry("node.delete")))
		for _, token := range []control.Token{t, second} {
			_, _, err := f.store.TokenByHash(f.ctx, token.Hash)
			f.fails(err, control.ErrNotFound)
		}
		_, _, err := f.store.TokenByHash(f.ctx, kept.Hash)
		f.ok(err)
		f.fails(f.store.DeleteNode(f.ctx, n.ID, f.entry("node.delete")), control.ErrNotFound)
	}},
	{name: "news of many nodes is written in one call, of those that are gone passed over", alone: true, run: func(f *fixture) {
		a, _ := f.node("a")
		b, _ := f.node("b")
		at := f.now()
		rejected := f.entry("config.node_rejected")
		f.ok(f.store.RecordNodes(f.ctx, []control.NodeReport{
			{NodeID: b.ID, Address: "192.0.2.2", SeenAt: at},
			{NodeID: id(), Address: "192.0.2.3", SeenAt: at, Ack: ack(9, nil)},
			{NodeID: a.ID, Address: "192.0.2.1", SeenAt: at, Ack: ack(1, nil)},
		}, []control.AuditEntry{rejected}))
		a.Address, a.LastSeen, a.Acked, a.AckedAt = "192.0.2.1", at, ack(1, nil), at
		b.Address, b.LastSeen = "192.0.2.2", at
		f.same("nodes", f.nodes(), []control.Node{a, b})
		f.same("newest audit entry", f.auditOf(f.ws)[0], rejected)
		f.ok(f.store.RecordNodes(f.ctx, nil, nil))
	}},
	{name: "news of more nodes than one statement takes is written, of each its own", alone: true, run: func(f *fixture) {
		const many = 520
		nodes, reports := make([]control.Node, many), make([]control.NodeReport, 0, many+2)
		for i := range nodes {
			nodes[i], _ = f.node(fmt.Sprintf("n%03d", i))
			at := f.now()
			r := control.NodeReport{
				NodeID: nodes[i].ID, Address: fmt.Sprintf("192.0.2.%d", i), SeenAt: at, FreshAt: at, Ack: ack(uint64(i+1), nil),
				TrustedKeys: []seal.KeyID{"00000000000000aa"}, KeysAudit: f.entry("node.keys_change"),
			}
			reports = append(reports, r)
			n := &nodes[i]
			n.Address, n.LastSeen, n.Acked, n.AckedAt = r.Address, at, r.Ack, at
			n.FreshAt, n.TrustedKeys, n.KeysAt = at, r.TrustedKeys, at
		}
		f.ok(f.store.RecordNodes(f.ctx, reports, nil))
		f.same("nodes", f.nodes(), nodes)
		// Two of them trust another key now; one says so twice.
		at := f.now()
		first, last := reports[0], reports[many-1]
		for _, r := range []*control.NodeReport{&first, &last} {
			r.SeenAt, r.Ack, r.FreshAt = at, nil, time.Time{}
			r.TrustedKeys, r.KeysAudit = []seal.KeyID{"00000000000000bb"}, f.entry("node.keys_change")
		}
		again := last
		again.SeenAt, again.KeysAudit = at.Add(time.Second), f.entry("node.keys_change")
		f.ok(f.store.RecordNodes(f.ctx, append(slices.Clone(reports[1:many-1]), again, first, last), nil))
		for n, r := range map[*control.Node]control.NodeReport{&nodes[0]: first, &nodes[many-1]: again} {
			n.LastSeen, n.KeysAt, n.TrustedKeys = r.SeenAt, r.SeenAt, r.TrustedKeys
		}
		f.same("nodes", f.nodes(), nodes)
		logged := map[string]bool{}
		for _, a := range f.auditOf(f.ws) {
			logged[a.ID] = true
		}
		f.same("logged", []bool{logged[first.KeysAudit.ID], logged[last.KeysAudit.ID], logged[again.KeysAudit.ID], logged[reports[1].KeysAudit.ID]},
			[]bool{true, true, false, false})
	}},
	{name: "an older acknowledgement never replaces a newer one", alone: true, run: func(f *fixture) {
		n, _ := f.node("a")
		old, at := f.now(), f.now()
		record := func(reports ...control.NodeReport) { f.Helper(); f.ok(f.store.RecordNodes(f.ctx, reports, nil)) }
		record(control.NodeReport{NodeID: n.ID, Address: "new", SeenAt: at, Ack: ack(2, nil)})
		record(control.NodeReport{NodeID: n.ID, Address: "old", SeenAt: old, Ack: ack(1, &nodeproto.AckError{Code: "old"})})
		n.Address, n.LastSeen, n.Acked, n.AckedAt = "new", at, ack(2, nil), at
		f.same("node", f.nodes(), []control.Node{n})
		later := at.Add(time.Second)
		record( // in whatever order one batch has them
			control.NodeReport{NodeID: n.ID, Address: "last", SeenAt: later.Add(time.Second)},
			control.NodeReport{NodeID: n.ID, Address: "later", SeenAt: later, Ack: ack(3, nil)},
		)
		n.Address, n.LastSeen, n.Acked, n.AckedAt = "last", later.Add(time.Second), ack(3, nil), later
		f.same("node", f.nodes(), []control.Node{n})
	}},
	{name: "of one process of a node, its own numbers order acknowledgements, and no clock does", alone: true, run: func(f *fixture) {
		n, _ := f.node("a")
		at := f.now()
		numbered := func(boot string, sequence, version uint64) *nodeproto.Ack {
			a := ack(version, nil)
			a.Boot, a.Sequence = boot, sequence
			return a
		}
		for _, step := range []struct {
			name      string
			seen, now time.Duration // after at
			ack       *nodeproto.Ack
			want      uint64 // version
		}{
			{"heard by a clock two hours ahead", 2 * time.Hour, 2 * time.Hour, numbered("b1", 1, 1), 1},
			{"the next, by a clock a day behind", -24 * time.Hour, -24 * time.Hour, numbered("b1", 2, 2), 2},
			{"an earlier one again, by the clock ahead", 2 * time.Hour, 2 * time.Hour, numbered("b1", 1, 1), 2},
			{"the same again", time.Hour, time.Hour, numbered("b1", 2, 3), 2},
			{"a new process", 3 * time.Hour, 3 * time.Hour, numbered("b2", 1, 4), 4},
			{"of the process before, heard earlier and written later", time.Hour, 4 * time.Hour, numbered("b1", 9, 5), 4},
			{"a new process, while what is stored is of a time to come", time.Minute, time.Minute, numbered("b3", 1, 6), 6},
			{"a process that does not number them", 2 * time.Minute, 2 * time.Minute, numbered("b3", 0, 7), 7},
		} {
			f.ok(f.store.RecordNodes(f.ctx, []control.NodeReport{{NodeID: n.ID, SeenAt: at.Add(step.seen), Now: at.Add(step.now), Ack: step.ack}}, nil))
			f.same(step.name, f.nodes()[0].Acked.Version, step.want)
		}
	}},
	{name: "what is stored of a time to come is replaced", alone: true, run: func(f *fixture) {
		n, _ := f.node("a")
		at := f.now()
		report := func(at time.Time, key seal.KeyID) {
			f.Helper()
			f.ok(f.store.RecordNodes(f.ctx, []control.NodeReport{{
				NodeID: n.ID, SeenAt: at, FreshAt: at, Now: at, TrustedKeys: []seal.KeyID{key}, KeysAudit: f.entry("node.keys_change"),
			}}, nil))
		}
		report(at.Add(2*time.Hour), "00000000000000aa")
		report(at, "00000000000000bb")
		got := f.nodes()[0]
		f.same("times", []time.Time{got.LastSeen, got.FreshAt, got.KeysAt}, []time.Time{at, at, at})
		f.same("keys", got.TrustedKeys, []seal.KeyID{"00000000000000bb"})
	}},
	{name: "an error stays until a good acknowledgement", alone: true, run: func(f *fixture) {
		n, _ := f.node("a")
		failure := &nodeproto.AckError{Code: "signature_invalid", Message: "line\nbreak \x1b[31m", Version: 7}
		for _, step := range []struct {
			name string
			ack  *nodeproto.Ack
			want *nodeproto.AckError
		}{
			{"failure", ack(1, failure), failure},
			{"seen only", nil, failure},
			{"good", ack(2, nil), nil},
		} {
			f.ok(f.store.RecordNodes(f.ctx, []control.NodeReport{{NodeID: n.ID, SeenAt: f.now(), Ack: step.ack}}, nil))
			f.same(step.name, f.nodes()[0].LastError, step.want)
		}
	}},
	{name: "processes that report at once end up with the newest", alone: true, run: func(f *fixture) {
		a, _ := f.node("a")
		b, _ := f.node("b")
		base := f.now()
		for _, err := range atOnce(8, func(i int) error {
			at := base.Add(time.Duration(i) * time.Second)
			reports := []control.NodeReport{{NodeID: a.ID, SeenAt: at, Ack: ack(uint64(i), nil)}, {NodeID: b.ID, SeenAt: at, Ack: ack(uint64(i), nil)}}
			if i%2 == 1 {
				reports[0], reports[1] = reports[1], reports[0]
			}
			return f.store.RecordNodes(f.ctx, reports, nil)
		}) {
			f.ok(err)
		}
		for _, n := range f.nodes() {
			f.same(n.Name, n.Acked, ack(7, nil))
		}
	}},
}
