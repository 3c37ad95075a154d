package snapshot

import (
	"fmt"
	"slices"

	"github.com/guardyn-edge/guardyn/zone"
)

// Plan is a difference of meaning. Text prints it as spec §5, JSON is its data.
type Plan struct {
	LiveVersion uint64       `json:"live_version"` // 0: nothing is live
	ContentHash string       `json:"content_hash"` // of new
	Disruptive  bool         `json:"disruptive"`
	Changes     int          `json:"changes"`
	Zones       []ZoneChange `json:"zones,omitempty"`
	Warnings    []Problem    `json:"warnings,omitempty"` // the caller adds Build's
	Held        []HeldZone   `json:"held,omitempty"`     // the caller adds BuildHolding's
}

// What happens to a zone, in the order in which a plan lists zones.
const (
	ActionAdd    = "add"
	ActionChange = "change"
	ActionRemove = "remove"
)

// ZoneChange is one zone's part of a plan.
type ZoneChange struct {
	ID     zone.ID   `json:"id"`
	Name   zone.Name `json:"name"`
	Action string    `json:"action"` // add, change, remove
	// Records counts the records of a zone that is removed (or added).
	Records    int    `json:"records,omitzero"`
	Disruptive bool   `json:"disruptive,omitzero"`
	Lines      []Line `json:"lines,omitempty"`
	// Warning says that the zone loses so many records that it looks like a failed import.
	Warning string `json:"warning,omitempty"`
}

// Line is one line under a zone. Text is whole and may hold control characters; Plan.Text shortens it and
// makes them inert.
type Line struct {
	Kind       string `json:"kind"` // zone, dns, rules, lists, pools, balancers, cache, tls, functions, settings, ceilings
	Text       string `json:"text"`
	Disruptive bool   `json:"disruptive,omitzero"`
}

// Diff compares by meaning; old may be nil. Zones are matched by name, so a zone that was deleted and made
// again shows what differs in it, its id at least. A plan has no changes only when the contents are the same. The plan lists new zones, then
// changed ones, then removed ones, each by name.
func Diff(old, new *Snapshot) *Plan {
	p := &Plan{ContentHash: new.content.hash}
	if old != nil {
		p.LiveVersion = old.meta.Version
	}
	before, after := map[zone.Name]*zone.Zone{}, map[zone.Name]*zone.Zone{}
	new.merge(old, func(o, n *entry) {
		if o != nil && n != nil && o.same(n) {
			return
		}
		if o != nil {
			before[o.zone.Name] = o.zone
		}
		if n != nil {
			after[n.zone.Name] = n.zone
		}
	})
	for name, n := range after {
		if o, ok := before[name]; ok {
			if c := diffZone(o, n); len(c.Lines) > 0 {
				p.Zones = append(p.Zones, c)
			}
			continue
		}
		p.Zones = append(p.Zones, ZoneChange{
			ID: n.ID, Name: name, Action: ActionAdd, Records: len(n.Records),
			Disruptive: disruptive(kindZone, "", added),
		})
	}
	for name, o := range before {
		if _, ok := after[name]; !ok {
			p.Zones = append(p.Zones, ZoneChange{
				ID: o.ID, Name: name, Action: ActionRemove, Records: len(o.Records),
				Disruptive: disruptive(kindZone, "", removed),
			})
		}
	}
	rank := map[string]int{ActionAdd: 0, ActionChange: 1, ActionRemove: 2}
	slices.SortFunc(p.Zones, func(a, b ZoneChange) int {
		if c := rank[a.Action] - rank[b.Action]; c != 0 {
			return c
		}
		return a.Name.Compare(b.Name)
	})
	for i := range p.Zones {
		p.Changes += max(1, len(p.Zones[i].Lines))
		p.Disruptive = p.Disruptive || p.Zones[i].Disruptive
	}
	return p
}

// zoneDiff collects the lines of one zone, in the order of the kinds.
type zoneDiff struct{ ZoneChange }

func diffZone(old, new *zone.Zone) ZoneChange {
	d := zoneDiff{ZoneChange{ID: new.ID, Name: new.Name, Action: ActionChange}}
	if old.ID != new.ID {
		d.line(kindZone, disruptive(kindZone, "id", changed), "made again: its id is %s now, was %s", new.ID, old.ID)
	}
	d.records(old, new)
	d.rules(old.Rulesets, new.Rulesets)
	d.lists(old.Lists, new.Lists)
	d.pools(old.Pools, new.Pools)
	d.balancers(old, new)
	d.cache(old.CachePolicy, new.CachePolicy)
	d.tls(old.TLSHosts, new.TLSHosts)
	d.functions(old.Functions, new.Functions)
	for _, c := range zone.SettingsDiff(old.Settings, new.Settings) {
		d.line(kindSettings, disruptive(kindSettings, c.Label, changed), "%s %s → %s", c.Label, c.Old, c.New)
	}
	d.ceilings(old.Ceilings.Effective(), new.Ceilings.Effective())
	return d.ZoneChange
}

func (d *zoneDiff) line(kind string, disruptive bool, format string, args ...any) {
	d.Lines = append(d.Lines, Line{Kind: kind, Text: fmt.Sprintf(format, args...), Disruptive: disruptive})
	d.Disruptive = d.Disruptive || disruptive
}
