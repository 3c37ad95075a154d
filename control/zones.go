package control

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/guardyn-edge/guardyn/zone"
)

// The audit entry of a deleted zone is the only place that remembers whose it was.
const (
	actionZoneDelete = "zone.delete"
	detailZoneID     = "zone_id"
)

// ListZones lists the zones of the caller's workspace by name (viewer).
func (s *Service) ListZones(ctx context.Context, p Principal, page Page) (Listing[ZoneRow], error) {
	if err := p.may(RoleViewer); err != nil {
		return Listing[ZoneRow]{}, err
	}
	page, err := bounded(page)
	if err != nil {
		return Listing[ZoneRow]{}, err
	}
	rows, err := s.store.ListZones(ctx, p.Workspace, page)
	if err != nil {
		return Listing[ZoneRow]{}, fmt.Errorf("listing zones: %w", err)
	}
	return listing(rows, page, func(z ZoneRow) string { return z.Name.String() }), nil
}

// CreateZone adds an empty zone (editor). The name has at least two labels and is neither an address nor a
// wildcard. ErrExists when the workspace has it already; a *ProblemsError too when it could not be published beside a zone of another
// workspace: of the same name, above it, or below it without being delegated there. Else whoever creates a zone could keep everybody
// from publishing.
func (s *Service) CreateZone(ctx context.Context, p Principal, name string) (ZoneRow, error) {
	if err := p.may(RoleEditor); err != nil {
		return ZoneRow{}, err
	}
	apex, err := parseApex(name)
	if err != nil {
		return ZoneRow{}, err
	}
	z := ZoneRow{ID: zone.ID(newID()), Workspace: p.Workspace, Name: apex, CreatedAt: s.now().UTC()}
	err = s.store.CreateZone(ctx, p.Workspace, z, s.entry(p, p.Workspace, "zone.create", apex.String()))
	if errors.Is(err, ErrExists) {
		return ZoneRow{}, fmt.Errorf("zone %s %w", apex, ErrExists)
	}
	var clash *ZoneClashError
	if errors.As(err, &clash) {
		return ZoneRow{}, &ProblemsError{Problems: []Problem{clash.problem()}}
	}
	if err != nil {
		return ZoneRow{}, fmt.Errorf("creating zone %s: %w", apex, err)
	}
	return s.store.ZoneByID(ctx, p.Workspace, z.ID)
}

// parseApex reads the name of a new zone.
func parseApex(name string) (zone.Name, error) {
	refuse := func(format string, a ...any) (zone.Name, error) {
		return zone.Name{}, malformed("", fmt.Sprintf("zone %q", name), "zone_name_invalid", format, a...)
	}
	if _, err := netip.ParseAddr(strings.TrimSuffix(name, ".")); err == nil {
		return refuse("this is an address; a zone is named by a domain name such as example.com")
	}
	apex, err := zone.ParseName(name)
	if err != nil {
		return refuse("%v", err)
	}
	switch labels := strings.Split(apex.String(), "."); {
	case apex.IsWildcard():
		return refuse("a zone cannot be a wildcard; create the zone above it and add the wildcard as a record")
	case len(labels) < 2:
		return refuse("a zone needs at least two labels, such as example.com")
	case strings.Trim(labels[len(labels)-1], "0123456789") == "":
		return refuse("the last label cannot be a number")
	}
	return apex, nil
}

// Zone returns one zone (viewer).
func (s *Service) Zone(ctx context.Context, p Principal, ref string) (ZoneRow, error) {
	return s.zoneFor(ctx, p, RoleViewer, ref)
}

// DeleteZone removes a zone with everything in it (editor). What is served changes on the next apply.
func (s *Service) DeleteZone(ctx context.Context, p Principal, ref string) error {
	z, err := s.zoneFor(ctx, p, RoleEditor, ref)
	if err != nil {
		return err
	}
	a := s.entry(p, p.Workspace, actionZoneDelete, z.Name.String())
	a.Detail = detail(map[string]any{detailZoneID: string(z.ID)})
	if err := s.store.DeleteZone(ctx, p.Workspace, z.ID, a); err != nil {
		return fmt.Errorf("deleting zone %s: %w", z.Name, err)
	}
	return nil
}

// zoneFor authorises p for role and finds the zone that ref means in its workspace.
func (s *Service) zoneFor(ctx context.Context, p Principal, role Role, ref string) (ZoneRow, error) {
	if err := p.may(role); err != nil {
		return ZoneRow{}, err
	}
	missing := func() (ZoneRow, error) {
		return ZoneRow{}, fmt.Errorf("zone %q: %w", ref, ErrNotFound)
	}
	var (
		z   ZoneRow
		err error
	)
	if id, idErr := zone.ParseID(ref); idErr == nil {
		z, err = s.store.ZoneByID(ctx, p.Workspace, id)
	} else if name, nameErr := zone.ParseName(ref); nameErr == nil {
		z, err = s.store.ZoneByName(ctx, p.Workspace, name)
	} else {
		return missing()
	}
	if errors.Is(err, ErrNotFound) {
		return missing()
	}
	if err != nil {
		return ZoneRow{}, fmt.Errorf("zone %q: %w", ref, err)
	}
	return z, nil
}
