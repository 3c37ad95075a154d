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

// ReadConfiguration implements control.PublishStore, inside one read. Zones whose stamp is what it was when this
// DB read them last are shared with that read: what a change costs follows the change. Else there are three scans, put
// together here: a database that is asked to sort or join a million records takes longer than a map takes to find their
// zones.
func (db *DB) ReadConfiguration(ctx context.Context) ([]snapshot.ZoneInput, error) {
	var c configuration
	if before := db.lastRead.Load(); before != nil {
		c.before = *before
	}
	err := db.read(ctx, func(q querier) error {
		if err := c.readZones(ctx, q); err != nil {
			return err
		}
		if len(c.fresh) > maxSingleReads {
			return c.readParts(ctx, q, "")
		}
		for _, z := range c.fresh {
			if err := c.readParts(ctx, q, " WHERE zone_id = $1", string(z.ID)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	for _, z := range c.fresh {
		slices.SortFunc(z.Records, zone.Record.Compare)
	}
	db.lastRead.Store(&c.read)
	return c.zones, nil
}

// maxSingleReads is up to how many zones are read one by one. Beyond them a scan of all is less.
const maxSingleReads = 256

// configuration is what was read so far.
type configuration struct {
	before zonesRead
	read   zonesRead
	zones  []snapshot.ZoneInput
	fresh  []*zone.Zone // those that before does not hold as they are
}

// zonesRead holds zones by id. Who reads them changes nothing of them.
type zonesRead map[string]zoneRead

type zoneRead struct {
	zone  *zone.Zone
	stamp string // new with every edit of anything in the zone
	fresh bool   // its records and objects are being read
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
	c.read = make(zonesRead, len(c.before))
	c.zones = make([]snapshot.ZoneInput, 0, len(c.before))
	return q.each(ctx, func(rows *sql.Rows) error {
		var id, workspace, plan string
		var name, stamp sql.RawBytes
		var records int
		if err := rows.Scan(&id, &workspace, &name, &records, &stamp, &plan); err != nil {
			return err
		}
		r := c.before[id]
		switch limit := ceilings[plan]; {
		case r.zone == nil || r.stamp != string(stamp):
			n, err := zone.ParseName(string(name))
			if err != nil {
				return fmt.Errorf("stored zone %s: %w", id, err)
			}
			r = zoneRead{
				zone:  &zone.Zone{ID: zone.ID(id), Name: n, Ceilings: limit, Records: make([]zone.Record, 0, records)},
				stamp: string(stamp), fresh: true,
			}
			c.fresh = append(c.fresh, r.zone)
		case r.zone.Ceilings != limit:
			z := *r.zone
			z.Ceilings = limit
			r.zone, r.fresh = &z, false
		default:
			r.fresh = false
		}
		c.read[id] = r
		c.zones = append(c.zones, snapshot.ZoneInput{Workspace: workspace, Zone: r.zone})
		return nil
	}, `SELECT z.id, z.workspace_id, z.name, z.records, z.stamp, w.plan
		FROM edge.zone z JOIN edge.workspace w ON w.id = z.workspace_id ORDER BY z.id`)
}

// readParts reads what zones hold, of all or, with a condition, of one.
func (c *configuration) readParts(ctx context.Context, q querier, where string, args ...any) error {
	if err := c.readRecords(ctx, q, where, args...); err != nil {
		return err
	}
	return c.readObjects(ctx, q, where, args...)
}

func (c *configuration) readRecords(ctx context.Context, q querier, where string, args ...any) error {
	var (
		r              zoneRead
		lastZone, last string
		lastName       zone.Name
	)
	return q.each(ctx, func(rows *sql.Rows) error {
		var (
			id, name string
			record   zone.Record
		)
		if err := rows.Scan(&id, &name, &record.Type, &record.Content, &record.TTL, &record.Proxied); err != nil {
			return err
		}
		if id != lastZone || r.zone == nil {
			if r = c.read[id]; r.zone == nil {
				return fmt.Errorf("stored record %s of zone %s: the zone does not exist", name, id)
			}
			lastZone = id
		}
		if !r.fresh {
			return nil
		}
		if name != last {
			var err error
			if lastName, err = zone.ParseName(name); err != nil {
				return fmt.Errorf("stored record of zone %s: %w", id, err)
			}
			last = name
		}
		record.Name = lastName
		r.zone.Records = append(r.zone.Records, record)
		return nil
	}, `SELECT zone_id, name, type, content, coalesce(ttl, 0), proxied FROM edge.record`+where, args...)
}

func (c *configuration) readObjects(ctx context.Context, q querier, where string, args ...any) error {
	return q.each(ctx, func(rows *sql.Rows) error {
		var (
			id, kind, name string
			body           sql.RawBytes
		)
		if err := rows.Scan(&id, &kind, &name, &body); err != nil {
			return err
		}
		r := c.read[id]
		if r.zone == nil {
			return fmt.Errorf("stored %s %s of zone %s: the zone does not exist", kind, name, id)
		}
		if !r.fresh {
			return nil
		}
		if err := addObject(r.zone, control.ObjectKind(kind), name, body); err != nil {
			return fmt.Errorf("stored %s %s of zone %s: %w", kind, name, r.zone.Name, err)
		}
		return nil
	}, `SELECT zone_id, kind, name, body FROM edge.object`+where, args...)
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
