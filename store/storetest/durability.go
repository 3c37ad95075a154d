package storetest

import (
	"testing"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// RunDurability holds that all that was written stands after the store is closed and opened again. open
// opens the same database each time and leaves closing to its caller.
func RunDurability(t *testing.T, open func(t *testing.T) control.Store) {
	first := open(t)
	f := newFixture(t, first)
	z := f.zone("durable.example")
	f.insert(z, record("durable.example", "kept"))
	f.put(z, control.KindPool, "main", `{}`)
	u := f.user(true)
	token := f.token(u, f.ws)
	f.node("fra1")
	f.apply()
	f.apply()
	f.ok(f.store.Publish(f.ctx, f.activation(f.platform(), 1, seal.KindRollback)))
	lost, err := f.store.NextVersion(f.ctx)
	f.ok(err)
	purge := f.purge(z, zone.PurgeURL, "https://durable.example/")
	state, published, nodes := f.state(z), f.published(), f.nodes()
	f.ok(first.Close())

	f.store = open(t)
	defer func() { f.ok(f.store.Close()) }()
	f.same("the zone", f.state(z), state)
	f.same("what is published", f.published(), published)
	f.same("nodes", f.nodes(), nodes)
	got, _, err := f.store.TokenByHash(f.ctx, token.Hash)
	f.ok(err)
	f.same("token", got, token)
	f.same("purges", f.after(seal.PurgeMark{}), control.PurgeBatch{Known: true, Rows: []control.PurgeRow{purge}, Head: purge.Mark()})
	next, err := f.store.NextVersion(f.ctx)
	f.ok(err)
	if next <= lost {
		t.Errorf("version %d is given again after %d", next, lost)
	}
}
