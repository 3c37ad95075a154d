package probe

import (
	"testing"

	"github.com/guardyn-edge/guardyn/edge/pool"
)

// A pool whose origins answer, and that the node takes for unhealthy, has not converged; one that was so before is not asked for.
func TestHealthOfTheNode(t *testing.T) {
	n := startNode(t)
	o := startOrigin(t, 200)
	one, two := n.snapshot(site(1, "a")), n.snapshot(site(1, "a", o.zone()))
	n.serve(one)
	n.try(one, two)
	n.wants(true, "pools 1/1")
	origin := n.live.Load().Host("zone-001.example").Pools.Pool("main")[0]
	origin.SetHealth(pool.Unhealthy, "status 500")
	n.wants(false, "pool main of zone-001.example has no healthy origin: health checks failed")
	origin.SetHealth(pool.Healthy, "")
	n.wants(true, "pools 1/1")

	origin.SetHealth(pool.Unhealthy, "status 500")
	three := n.snapshot(site(1, "a", o.zone()), site(2, "b"))
	n.try(two, three)
	n.wants(true, "zones 1/1")
}
