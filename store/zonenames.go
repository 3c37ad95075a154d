package store

import (
	"context"
	"database/sql"
	"slices"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

// backwards is a name's octets in reverse order. What lies below a name begins with its own and a dot.
func backwards(n zone.Name) string {
	b := []byte(n.String())
	slices.Reverse(b)
	return string(b)
}

// freeName refuses a name for a new zone of ws that another workspace has, or that would put it above or below a zone of another
// workspace which the other one of the two does not delegate. It locks the names of zones until the transaction ends, so that what
// it found stands.
func (q querier) freeName(ctx context.Context, ws string, name zone.Name) error {
	if _, err := q.exec(ctx, `UPDATE edge.zone_names SET made = made + 1`); err != nil {
		return err
	}
	if err := q.freeAbove(ctx, ws, name); err != nil {
		return err
	}
	return q.freeBelow(ctx, ws, name)
}

// freeAbove judges the zones of that name and the nearest above it.
func (q querier) freeAbove(ctx context.Context, ws string, name zone.Name) error {
	var names []any
	for n := name; !n.IsZero(); n = n.Parent() {
		names = append(names, backwards(n))
	}
	type owned struct{ id, workspace, name string }
	var nearest []owned // of one name, more than one only in what is from before names were kept apart
	err := q.each(ctx, func(rows *sql.Rows) error {
		var z owned
		err := rows.Scan(&z.id, &z.workspace, &z.name)
		if len(nearest) > 0 && len(nearest[0].name) < len(z.name) {
			nearest = nearest[:0]
		}
		if len(nearest) == 0 || nearest[0].name == z.name {
			nearest = append(nearest, z)
		}
		return err
	}, `SELECT id, workspace_id, name FROM edge.zone WHERE backwards IN (`+places(len(names), 1)+`)`, names...)
	if err != nil || slices.ContainsFunc(nearest, func(z owned) bool { return z.workspace == ws }) {
		return err // of its own of this name the constraint speaks
	}
	for _, z := range nearest {
		if z.name == name.String() {
			return &control.ZoneClashError{Name: name, Kind: control.ClashTaken}
		}
		args := []any{z.id, int64(zone.TypeNS)}
		for n := name; n.String() != z.name; n = n.Parent() {
			args = append(args, n.String())
		}
		var delegated bool
		err := q.row(ctx, `SELECT EXISTS (SELECT 1 FROM edge.record WHERE zone_id = $1 AND type = $2 AND name IN (`+places(len(args)-2, 3)+`))`,
			args...).Scan(&delegated)
		if err != nil {
			return err
		}
		if !delegated {
			above, err := zone.ParseName(z.name)
			if err != nil {
				return err
			}
			return &control.ZoneClashError{Name: name, Kind: control.ClashBelow, Above: above}
		}
	}
	return nil
}

// freeBelow judges the zones below a name that have none between, since a new zone delegates nothing.
func (q querier) freeBelow(ctx context.Context, ws string, name zone.Name) error {
	// In this order a zone comes after every one that it lies below. The octet after the dot is the slash.
	from := backwards(name)
	seen := make(map[string]bool)
	clash := false
	err := q.each(ctx, func(rows *sql.Rows) error {
		var below, workspace string
		if err := rows.Scan(&below, &workspace); err != nil {
			return err
		}
		n, err := zone.ParseName(below)
		if err != nil {
			return err
		}
		for n = n.Parent(); n != name; n = n.Parent() {
			if seen[n.String()] {
				return nil
			}
		}
		if seen[below] = true; workspace != ws {
			clash = true
			return errEnough
		}
		return nil
	}, `SELECT name, workspace_id FROM edge.zone WHERE backwards > $1 AND backwards < $2 ORDER BY backwards`, from+".", from+"/")
	if clash {
		return &control.ZoneClashError{Name: name, Kind: control.ClashAbove}
	}
	return err
}
