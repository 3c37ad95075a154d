package control

import "context"

// ListZones lists the zones of the caller's workspace by name (viewer).
func (s *Service) ListZones(ctx context.Context, p Principal, page Page) (Listing[ZoneRow], error) {
	panic("unbuilt")
}

// CreateZone adds an empty zone (editor). The name has at least two labels and is neither an address nor a
// wildcard. ErrExists when the workspace has it already; what other workspaces have is for the build.
func (s *Service) CreateZone(ctx context.Context, p Principal, name string) (ZoneRow, error) {
	panic("unbuilt")
}

// Zone returns one zone (viewer).
func (s *Service) Zone(ctx context.Context, p Principal, ref string) (ZoneRow, error) {
	panic("unbuilt")
}

// DeleteZone removes a zone with everything in it (editor). What is served changes on the next apply.
func (s *Service) DeleteZone(ctx context.Context, p Principal, ref string) error { panic("unbuilt") }
