package control

import (
	"context"

	"github.com/guardyn-edge/guardyn/zone"
)

// PatchSettings changes settings by key from text, as zone.Settings.Set reads them (editor). All bad keys
// and values are reported together. ifRevision is Any, Absent or the revision that must stand (ErrConflict).
func (s *Service) PatchSettings(ctx context.Context, p Principal, ref string, set map[string]string, ifRevision int64) (Object[zone.Settings], error) {
	panic("unbuilt")
}
