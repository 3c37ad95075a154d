package probe

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/guardyn-edge/guardyn/edge/pool"
)

// askPool returns nil when the pool has an origin that works and that the node would send a request to.
func (p *Prober) askPool(ctx context.Context, r poolRef) error {
	if p.allDown(r) {
		return fmt.Errorf("%s has no healthy origin: health checks failed, or requests did", r)
	}
	return p.origin.check(ctx, r)
}

// allDown reports whether the served view has the pool as r says, and each origin of it is unhealthy or ejected. What was found out
// takes several checks; what is newer than that, asking tells.
func (p *Prober) allDown(r poolRef) bool {
	v := p.c.Live()
	if v == nil {
		return false
	}
	z := v.Host(r.apex)
	if z == nil || z.Config.ID != r.zone || !reflect.DeepEqual(z.Config.Pools[r.name], r.pool) {
		return false
	}
	origins := z.Pools.Pool(r.name)
	return len(origins) > 0 && !slices.ContainsFunc(origins, (*pool.Origin).Usable)
}
