package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// strict makes a stored body that this build does not wholly understand an error rather than a loss.
var strict = json.RejectUnknownMembers(true)

// ReadConfiguration implements control.PublishStore: three scans inside one read, put together here. A
// database that is asked to sort or join a million records takes longer than a map takes to find their
// zones.
func (db *DB) ReadConfiguration(ctx context.Context) ([]snapshot.ZoneInput, error) {
	var c configuration
	err := db.read(ctx, func(q querier) error {
		if err := c.readZones(ctx, q); err != nil {
			return err
		}
		if err := c.readRecords(ctx, q); err != nil {
			return err
		}
		return c.readObjects(ctx, q)
	})
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	for _, z := range c.zones {
		slices.SortFunc(z.Zone.Records, zone.Record.Compare)
	}
	return c.zones, nil
}

// configuration is what was read so far.
type configuration struct {
	zones []snapshot.ZoneInput
	byID  map[string]*zone.Zone
}

func (c *configuration) readZones(ctx context.Context, q querier) error {
	plans, err := q.plans(ctx)
	if err != nil {
		return err
	}
	ceilings := make(map[string]zone.Ceilings, len(plans))
	for _, p := range plans {
		ceilings[p.Name] = p.Ceilings
	}
	c.byID = map[string]*zone.Zone{}
	return q.each(ctx, func(rows *sql.Rows) error {
		var id, workspace, name, plan string
		var records int
		if err := rows.Scan(&id, &workspace, &name, &records, &plan); err != nil {
			return err
		}
		n, err := zone.ParseName(name)
		if err != nil {
			return fmt.Errorf("stored zone %s: %w", id, err)
		}
		z := &zone.Zone{ID: zone.ID(id), Name: n, Ceilings: ceilings[plan], Records: make([]zone.Record, 0, records)}
		c.zones = append(c.zones, snapshot.ZoneInput{Workspace: workspace, Zone: z})
		c.byID[id] = z
		return nil
	}, `SELECT z.id, z.workspace_id, z.name, z.records, w.plan
		FROM edge.zone z JOIN edge.workspace w ON w.id = z.workspace_id ORDER BY z.id`)
}

func (c *configuration) readRecords(ctx context.Context, q querier) error {
	var (
		z              *zone.Zone
		lastZone, last string
		lastName       zone.Name
	)
	return q.each(ctx, func(rows *sql.Rows) error {
		var (
			id, name string
			r        zone.Record
		)
		if err := rows.Scan(&id, &name, &r.Type, &r.Content, &r.TTL, &r.Proxied); err != nil {
			return err
		}
		if id != lastZone || z == nil {
			if z = c.byID[id]; z == nil {
				return fmt.Errorf("stored record %s of zone %s: the zone does not exist", name, id)
			}
			lastZone = id
		}
		if name != last {
			var err error
			if lastName, err = zone.ParseName(name); err != nil {
				return fmt.Errorf("stored record of zone %s: %w", id, err)
			}
			last = name
		}
		r.Name = lastName
		z.Records = append(z.Records, r)
		return nil
	}, `SELECT zone_id, name, type, content, coalesce(ttl, 0), proxied FROM edge.record`)
}

func (c *configuration) readObjects(ctx context.Context, q querier) error {
	return q.each(ctx, func(rows *sql.Rows) error {
		var (
			id, kind, name string
			body           sql.RawBytes
		)
		if err := rows.Scan(&id, &kind, &name, &body); err != nil {
			return err
		}
		z := c.byID[id]
		if z == nil {
			return fmt.Errorf("stored %s %s of zone %s: the zone does not exist", kind, name, id)
		}
		if err := addObject(z, control.ObjectKind(kind), name, body); err != nil {
			return fmt.Errorf("stored %s %s of zone %s: %w", kind, name, z.Name, err)
		}
		return nil
	}, `SELECT zone_id, kind, name, body FROM edge.object`)
}

// addObject puts an object where its kind belongs in z.
func addObject(z *zone.Zone, kind control.ObjectKind, name string, body []byte) error {
	switch kind {
	case control.KindRuleset:
		return addTo(&z.Rulesets, zone.Phase(name), body)
	case control.KindList:
		return addTo(&z.Lists, name, body)
	case control.KindPool:
		return addTo(&z.Pools, name, body)
	case control.KindLoadBalancer:
		return addToHost(&z.LoadBalancers, name, body)
	case control.KindTLSHost:
		return addToHost(&z.TLSHosts, name, body)
	case control.KindFunction:
		return addTo(&z.Functions, name, body)
	case control.KindCachePolicy:
		return json.Unmarshal(body, &z.CachePolicy, strict)
	case control.KindSettings:
		return json.Unmarshal(body, &z.Settings, strict)
	default:
		return fmt.Errorf("unknown kind")
	}
}

func addTo[K comparable, V any](m *map[K]V, key K, body []byte) error {
	var v V
	if err := json.Unmarshal(body, &v, strict); err != nil {
		return err
	}
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = v
	return nil
}

func addToHost[V any](m *map[zone.Name]V, host string, body []byte) error {
	name, err := zone.ParseName(host)
	if err != nil {
		return err
	}
	return addTo(m, name, body)
}
