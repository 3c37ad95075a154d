package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// Bounds of purges, beside those of one that package zone has.
const (
	// MaxZonePurges and MaxWorkspacePurges are how many purges may be made within PurgeWindow.
	MaxZonePurges      = 120
	MaxWorkspacePurges = 600
	PurgeWindow        = time.Minute
	// KeepPurges is for how long purges are kept at least, and MaxPurges how many at most: a node that was away for longer drops
	// all that it cached.
	KeepPurges = 7 * 24 * time.Hour
	MaxPurges  = 100_000
)

// quietAfter is how long a node outside of the cohort is waited for that is not heard: every node polls once in that time.
const quietAfter = time.Minute

// maxPurgeWaiting bounds the names of nodes that a purge waits for.
const maxPurgeWaiting = 100

// actionPurge names a purge in the audit log; maxPurgeTold is how many of its values the entry has.
const (
	actionPurge  = "cache.purge"
	maxPurgeTold = 10
)

// PurgeStatus is a purge with how far the fleet is.
type PurgeStatus struct {
	PurgeRow
	// Nodes are waited for: those that cache, but those outside of the cohort that were not heard for a minute, which are
	// Silent. Done of them have done it.
	Nodes, Done, Silent int
	// Waiting are names of the others of Nodes, at most 100, by name; nil in listings, and but for operators.
	Waiting []string
}

// Purge has every node drop what it cached of a zone (editor): nothing of the configuration changes by it. What is purged is what
// nodes serve under the zone's name, by whichever id; so a zone can be purged that the workspace deleted and that is live yet. In p,
// Kind and Values are read. A *ProblemsError names everything that is wrong with them; *PurgeRateError when too many were made.
func (s *Service) Purge(ctx context.Context, p Principal, ref string, purge zone.Purge) (PurgeStatus, error) {
	name, err := s.purgeable(ctx, p, RoleEditor, ref)
	if err != nil {
		return PurgeStatus{}, err
	}
	purge, err = zone.Purge{Kind: purge.Kind, Values: purge.Values}.Normalize(name)
	if err != nil {
		return PurgeStatus{}, malformedBy(name, "purge", err)
	}
	purge.Zone, purge.At = name, s.stored.at(s.now()).Truncate(time.Microsecond)
	row := PurgeRow{ID: newID(), Workspace: p.Workspace, By: p.actor(), Purge: purge}
	a := s.entry(p, p.Workspace, actionPurge, name.String())
	told := map[string]any{"purge": row.ID, "kind": string(row.Kind)}
	if n := len(row.Values); n > 0 {
		told["count"], told["values"] = n, row.Values[:min(n, maxPurgeTold)]
	}
	a.Detail = detail(told)
	row.Sequence, err = s.store.AddPurge(ctx, NewPurge{
		Row: row, Audit: a, ZoneMost: MaxZonePurges, WorkspaceMost: MaxWorkspacePurges, Window: PurgeWindow,
		KeepAge: KeepPurges, KeepRows: MaxPurges,
	})
	if err != nil {
		return PurgeStatus{}, fmt.Errorf("purging %s: %w", name, err)
	}
	s.count.purges.Add(1)
	s.log.Info("purged", "zone", name.String(), "kind", string(row.Kind), "values", len(row.Values), "sequence", row.Sequence, "by", row.By)
	return s.purgeStatus(ctx, p, row)
}

// purgeable authorises p for role and returns the name of the zone that ref means: one of its workspace, or one that is live and
// that the workspace deleted.
func (s *Service) purgeable(ctx context.Context, p Principal, role Role, ref string) (zone.Name, error) {
	z, err := s.zoneFor(ctx, p, role, ref)
	if !errors.Is(err, ErrNotFound) || errors.Is(err, ErrNoRoute) {
		return z.Name, err
	}
	_, row, liveErr := s.readLive(ctx)
	if liveErr != nil {
		return zone.Name{}, liveErr
	}
	snap, liveErr := s.openLive(ctx, row)
	if liveErr != nil {
		return zone.Name{}, liveErr
	}
	if snap == nil {
		return zone.Name{}, err
	}
	live := liveZone(snap, ref)
	if live == nil {
		return zone.Name{}, err
	}
	deleted, auditErr := s.deletedBy(ctx, p.Workspace, row, func(id zone.ID) bool { return id == live.ID })
	switch {
	case auditErr != nil:
		return zone.Name{}, auditErr
	case !deleted:
		return zone.Name{}, err
	}
	return live.Name, nil
}

// liveZone is the zone of a snapshot that ref means by name or id, nil when there is none.
func liveZone(snap *snapshot.Snapshot, ref string) *zone.Zone {
	if id, err := zone.ParseID(ref); err == nil {
		return snap.Zone(id)
	}
	name, err := zone.ParseName(ref)
	if err != nil {
		return nil
	}
	for z := range snap.Zones() {
		if z.Name == name {
			return z
		}
	}
	return nil
}

// PurgeByID returns a purge of a zone (viewer).
func (s *Service) PurgeByID(ctx context.Context, p Principal, ref, id string) (PurgeStatus, error) {
	name, err := s.purgeable(ctx, p, RoleViewer, ref)
	if err != nil {
		return PurgeStatus{}, err
	}
	row, err := s.store.Purge(ctx, p.Workspace, name, id)
	if err != nil {
		return PurgeStatus{}, err
	}
	return s.purgeStatus(ctx, p, row)
}

func (s *Service) purgeStatus(ctx context.Context, p Principal, row PurgeRow) (PurgeStatus, error) {
	all, err := s.purgeStatuses(ctx, p, []PurgeRow{row}, true)
	if err != nil {
		return PurgeStatus{}, err
	}
	return all[0], nil
}

// ListPurges lists the purges of a zone that are kept, newest first (viewer). The page key is the id.
func (s *Service) ListPurges(ctx context.Context, p Principal, ref string, page Page) (Listing[PurgeStatus], error) {
	name, err := s.purgeable(ctx, p, RoleViewer, ref)
	if err != nil {
		return Listing[PurgeStatus]{}, err
	}
	if page, err = bounded(page); err != nil {
		return Listing[PurgeStatus]{}, err
	}
	rows, err := s.store.ListPurges(ctx, p.Workspace, name, page)
	if err != nil {
		return Listing[PurgeStatus]{}, fmt.Errorf("listing purges of %s: %w", name, err)
	}
	all, err := s.purgeStatuses(ctx, p, rows, false)
	if err != nil {
		return Listing[PurgeStatus]{}, err
	}
	return listing(all, page, func(st PurgeStatus) string { return st.ID }), nil
}

// purgeStatuses tells how far the fleet is with rows, as the nodes acknowledged it last; with names, by whom one is waited for.
func (s *Service) purgeStatuses(ctx context.Context, p Principal, rows []PurgeRow, names bool) ([]PurgeStatus, error) {
	out := make([]PurgeStatus, len(rows))
	if len(rows) == 0 {
		return out, nil
	}
	fleet, err := s.purgedNodes(ctx)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		st := &out[i]
		st.PurgeRow = row
		done := 0
		for _, part := range []struct {
			nodes []purgedNode
			left  *int
		}{{fleet.heard, &st.Nodes}, {fleet.quiet, &st.Silent}} {
			first, _ := slices.BinarySearchFunc(part.nodes, row.Sequence, func(n purgedNode, sequence uint64) int {
				return cmp.Compare(n.sequence, sequence)
			})
			*part.left = first
			done += len(part.nodes) - first
		}
		if names && p.Operator {
			for _, n := range fleet.heard[:min(st.Nodes, maxPurgeWaiting)] {
				st.Waiting = append(st.Waiting, n.name)
			}
			slices.Sort(st.Waiting)
		}
		st.Nodes, st.Done = st.Nodes+done, done
	}
	return out, nil
}

// purgedNode is a node that caches, with the purge of this log up to which it has done all.
type purgedNode struct {
	name     string
	sequence uint64
}

// purgedNodes are the nodes that cache, those that are behind first: heard are waited for, quiet are not.
type purgedNodes struct{ heard, quiet []purgedNode }

func (s *Service) purgedNodes(ctx context.Context) (purgedNodes, error) {
	var fleet purgedNodes
	nodes, err := s.store.ListNodes(ctx)
	if err != nil {
		return fleet, fmt.Errorf("listing nodes: %w", err)
	}
	roster, err := s.readRoster(ctx)
	if err != nil {
		return fleet, err
	}
	numbers := map[uint64]bool{}
	for _, n := range nodes {
		if n.Acked != nil && n.Acked.Purged != nil {
			numbers[n.Acked.Purged.Sequence] = true
		}
	}
	ids, err := s.store.PurgeIDs(ctx, slices.Collect(maps.Keys(numbers)))
	if err != nil {
		return fleet, err
	}
	now := s.stored.at(s.now())
	for _, n := range nodes {
		if n.Acked == nil || n.Acked.Purged == nil {
			continue // it caches nothing
		}
		at := purgedNode{name: n.Name}
		// What it has done of a log that was lost, it has to do again.
		if m := *n.Acked.Purged; m.ID == ids[m.Sequence] {
			at.sequence = m.Sequence
		}
		if now.Sub(n.LastSeen) > quietAfter && !roster.Contains(barrier.MemberID(n.ID)) {
			fleet.quiet = append(fleet.quiet, at)
		} else {
			fleet.heard = append(fleet.heard, at)
		}
	}
	for _, part := range [][]purgedNode{fleet.heard, fleet.quiet} {
		slices.SortFunc(part, func(a, b purgedNode) int {
			return cmp.Or(cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.name, b.name))
		})
	}
	return fleet, nil
}
