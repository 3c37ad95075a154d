package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/zone"
)

// silentAfter is how long a node may be silent before what it said of its pools counts no more: a poll that is held and a few
// that fail are shorter.
const silentAfter = 5 * time.Minute

// maxOriginError bounds in bytes what a node says of an origin; more is cut.
const maxOriginError = 200

// PoolStatus is how a pool's origins do on the fleet's nodes, by what each node acknowledged last.
type PoolStatus struct {
	Zone zone.Name
	Pool string
	// Nodes that say how their pools do, Unknown those that do not: they were not heard for five minutes, have
	// more to say than an acknowledgement takes, or are of a version from before it.
	Nodes, Unknown int
	Origins        []OriginStatus // by name, as they are edited; those of the live configuration may be others
}

// OriginStatus is how one origin does.
type OriginStatus struct {
	Name, Address string
	Enabled       bool
	// Serving is on how many nodes it takes requests, Unhealthy and Ejected on how many it does not, and why.
	Serving, Unhealthy, Ejected int
	// Since is when it went down on the node where it is down longest, Error what the node says where it went down last.
	Since time.Time
	Error string
	// DownOn are the names of the nodes on which it takes no requests, sorted; nil but for operators.
	DownOn []string
}

// PoolStatus returns how a pool does (viewer).
func (s *Service) PoolStatus(ctx context.Context, p Principal, ref, name string) (PoolStatus, error) {
	z, err := s.zoneFor(ctx, p, RoleViewer, ref)
	if err != nil {
		return PoolStatus{}, err
	}
	pool, err := s.Pools().Get(ctx, p, string(z.ID), name)
	if err != nil {
		return PoolStatus{}, err
	}
	all, err := s.poolStatuses(ctx, p, z, []Object[zone.Pool]{pool})
	if err != nil {
		return PoolStatus{}, err
	}
	return all[0], nil
}

// PoolStatuses returns how all pools of a zone do, by name (viewer). It reads the nodes once.
func (s *Service) PoolStatuses(ctx context.Context, p Principal, ref string) ([]PoolStatus, error) {
	z, err := s.zoneFor(ctx, p, RoleViewer, ref)
	if err != nil {
		return nil, err
	}
	pools, err := s.Pools().List(ctx, p, string(z.ID))
	if err != nil || len(pools) == 0 {
		return nil, err
	}
	return s.poolStatuses(ctx, p, z, pools)
}

// poolOrigin is an origin as nodes name it.
type poolOrigin struct{ pool, origin string }

// poolStatuses passes over the nodes once for pools of z.
func (s *Service) poolStatuses(ctx context.Context, p Principal, z ZoneRow, pools []Object[zone.Pool]) ([]PoolStatus, error) {
	nodes, err := s.store.ListNodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	all := make([]PoolStatus, len(pools))
	at, latest := make(map[poolOrigin]*OriginStatus), make(map[poolOrigin]time.Time)
	for i, pool := range pools {
		origins := make([]OriginStatus, len(pool.Value.Origins))
		for j, o := range pool.Value.Origins {
			origins[j] = OriginStatus{Name: o.Name, Address: o.Address, Enabled: o.Enabled == nil || *o.Enabled}
			at[poolOrigin{pool.Name, o.Name}] = &origins[j]
		}
		all[i] = PoolStatus{Zone: z.Name, Pool: pool.Name, Origins: origins}
	}
	var told, unknown int
	now := s.stored.at(s.now())
	for _, n := range nodes {
		if n.Acked == nil || n.Acked.Pools == nil || n.Acked.Pools.Omitted > 0 || now.Sub(n.LastSeen) > silentAfter {
			unknown++
			continue
		}
		told++
		for _, d := range n.Acked.Pools.Down {
			key := poolOrigin{d.Pool, d.Origin}
			o := at[key]
			if d.Zone != string(z.ID) || o == nil {
				continue
			}
			if d.State == nodeproto.OriginEjected {
				o.Ejected++
			} else {
				o.Unhealthy++
			}
			if o.Since.IsZero() || d.Since.Before(o.Since) {
				o.Since = d.Since
			}
			if d.Error != "" && !d.Since.Before(latest[key]) {
				o.Error, latest[key] = d.Error, d.Since
			}
			if p.Operator {
				o.DownOn = append(o.DownOn, n.Name)
			}
		}
	}
	for i := range all {
		all[i].Nodes, all[i].Unknown = told, unknown
		for j := range all[i].Origins {
			if o := &all[i].Origins[j]; o.Enabled {
				o.Serving = max(0, told-o.Unhealthy-o.Ejected)
			}
		}
	}
	return all, nil
}

// cleanPools returns a copy of what a node says of its pools, with what no node would say left out: one entry for each origin, in
// order.
func cleanPools(p *nodeproto.Pools) *nodeproto.Pools {
	if p == nil {
		return nil
	}
	out := &nodeproto.Pools{Checked: max(p.Checked, 0), Omitted: max(p.Omitted, 0), Down: []nodeproto.OriginDown{}}
	for _, d := range p.Down {
		_, badZone := zone.ParseID(d.Zone)
		_, badPool := zone.ParseObjectName(d.Pool)
		_, badOrigin := zone.ParseObjectName(d.Origin)
		if badZone != nil || badPool != nil || badOrigin != nil || d.State != nodeproto.OriginUnhealthy && d.State != nodeproto.OriginEjected {
			continue
		}
		d.Error = strings.ToValidUTF8(d.Error[:min(len(d.Error), maxOriginError)], "\uFFFD")
		out.Down = append(out.Down, d)
	}
	by := func(a, b nodeproto.OriginDown) int {
		return cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.Pool, b.Pool), strings.Compare(a.Origin, b.Origin))
	}
	slices.SortStableFunc(out.Down, by)
	out.Down = slices.CompactFunc(out.Down, func(a, b nodeproto.OriginDown) bool { return by(a, b) == 0 })
	if more := len(out.Down) - nodeproto.MaxOriginsDown; more > 0 {
		out.Down, out.Omitted = out.Down[:nodeproto.MaxOriginsDown], out.Omitted+more
	}
	return out
}
