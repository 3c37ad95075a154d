package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// The two messages of ConfigStatus.
const (
	MessageUnpublished = "Your saved configuration differs from what is being served. It goes live on the next apply."
	MessagePublished   = "Everything you have saved is being served."
)

// ConfigStatus answers "why is my change not live yet". Live is nil when nothing was published yet.
type ConfigStatus struct {
	Live                  *SnapshotRow
	HasUnpublishedChanges bool
	Message               string
	Workspace             string // its name
}

// ConfigStatus compares the rows of the caller's own zones with what is live (viewer). Concurrent calls
// share one reading of the rows and one build per workspace, never older than the call.
func (s *Service) ConfigStatus(ctx context.Context, p Principal) (ConfigStatus, error) {
	if err := p.may(RoleViewer); err != nil {
		return ConfigStatus{}, err
	}
	saved, err := s.rows.do(ctx, s.readSaved)
	if err != nil {
		return ConfigStatus{}, err
	}
	changed, err := saved.differs(ctx, s, p.Workspace)
	if err != nil {
		return ConfigStatus{}, err
	}
	st := ConfigStatus{
		Live: saved.live, HasUnpublishedChanges: changed, Message: MessagePublished, Workspace: p.WorkspaceName,
	}
	if changed {
		st.Message = MessageUnpublished
	}
	return st, nil
}

// savedRows is one reading of everybody's rows, and for each workspace that asked whether it differs from
// what is live.
type savedRows struct {
	live    *SnapshotRow
	old     *snapshot.Snapshot
	zones   map[string][]snapshot.ZoneInput // by workspace
	orphans map[zone.ID]bool                // live, and in nobody's rows

	mu    sync.Mutex // held while comparing: one workspace at a time
	asked map[string]bool
}

// readSaved reads rows and what is live.
func (s *Service) readSaved(ctx context.Context) (*savedRows, error) {
	done, err := s.buildSlot(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	_, live, err := s.readLive(ctx)
	if err != nil {
		return nil, err
	}
	inputs, err := s.store.ReadConfiguration(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	r := &savedRows{
		live: live, zones: make(map[string][]snapshot.ZoneInput),
		orphans: make(map[zone.ID]bool), asked: make(map[string]bool),
	}
	if r.old, err = s.openLive(ctx, live); err != nil {
		return nil, err
	}
	if r.old != nil {
		for z := range r.old.Zones() {
			r.orphans[z.ID] = true
		}
	}
	for _, in := range inputs {
		r.zones[in.Workspace] = append(r.zones[in.Workspace], in)
		delete(r.orphans, in.Zone.ID)
	}
	return r, nil
}

// differs tells whether an apply would change what is served for workspace ws.
func (r *savedRows) differs(ctx context.Context, s *Service, ws string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if changed, known := r.asked[ws]; known {
		return changed, nil
	}
	changed, err := r.zonesDiffer(s, ws)
	if err == nil && !changed && len(r.orphans) > 0 {
		changed, err = s.deletedBy(ctx, ws, r.live, func(id zone.ID) bool { return r.orphans[id] })
	}
	if err != nil {
		return false, err
	}
	r.asked[ws] = changed
	return changed, nil
}

// zonesDiffer compares the zones that the workspace has.
func (r *savedRows) zonesDiffer(s *Service, ws string) (bool, error) {
	own := r.zones[ws]
	if len(own) == 0 {
		return false, nil
	}
	if r.old == nil {
		return true, nil
	}
	snap, _, _, err := s.build(own, r.old, false)
	var problems *ProblemsError
	switch {
	case errors.As(err, &problems):
		return servedDiffers(own, r.old)
	case err != nil:
		return false, err
	}
	return len(snap.Delta(r.old).Changed) > 0, nil
}

// servedDiffers compares zones that do not build. They may still be what is served: what a build refuses
// depends on more than the rows.
func servedDiffers(own []snapshot.ZoneInput, old *snapshot.Snapshot) (bool, error) {
	for _, in := range own {
		was := old.Zone(in.Zone.ID)
		if was == nil {
			return true, nil
		}
		a, err := encode(in.Zone.Served())
		if err != nil {
			return false, err
		}
		b, err := encode(was)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(a, b) {
			return true, nil
		}
	}
	return false, nil
}

// Bounds of the search for who deleted a live zone: how much of the log is read, and how far the clocks of
// processes may disagree.
const (
	deletedPages = 100
	deletedSkew  = time.Hour
)

// deletedBy tells whether the workspace deleted a zone that is live and for whose id which is true. A deleted zone's owner stands in
// the workspace's own audit log, which is read back to the making of the live snapshot.
func (s *Service) deletedBy(ctx context.Context, ws string, live *SnapshotRow, which func(zone.ID) bool) (bool, error) {
	since := live.CreatedAt.Add(-deletedSkew)
	page := Page{Limit: MaxPage}
	for range deletedPages {
		rows, err := s.store.ListAudit(ctx, ws, page)
		if err != nil {
			return false, fmt.Errorf("reading the audit log: %w", err)
		}
		for _, a := range rows {
			if a.At.Before(since) {
				return false, nil
			}
			if a.Action != actionZoneDelete {
				continue
			}
			var d map[string]string
			if json.Unmarshal([]byte(a.Detail), &d) == nil && which(zone.ID(d[detailZoneID])) {
				return true, nil
			}
		}
		if len(rows) < page.Limit {
			break
		}
		page.After = rows[len(rows)-1].ID
	}
	return false, nil
}
