package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/guardyn-edge/guardyn/zone"
)

// PatchSettings changes settings by key from text, as zone.Settings.Set reads them (editor). All bad keys
// and values are reported together. ifRevision is Any, Absent or the revision that must stand (ErrConflict).
func (s *Service) PatchSettings(ctx context.Context, p Principal, ref string, set map[string]string, ifRevision int64) (Object[zone.Settings], error) {
	z, err := s.zoneFor(ctx, p, RoleEditor, ref)
	if err != nil {
		return Object[zone.Settings]{}, err
	}
	settings := s.Settings()
	for range editAttempts {
		have, err := settings.stored(ctx, p.Workspace, z, singletonName)
		if err != nil {
			return Object[zone.Settings]{}, err
		}
		if ifRevision != Any && ifRevision != have.Revision {
			return Object[zone.Settings]{}, fmt.Errorf("settings of %s: %w", z.Name, ErrConflict)
		}
		if err := setAll(z.Name, &have.Value, set); err != nil {
			return Object[zone.Settings]{}, err
		}
		// ErrExists is the same lost race, on the first write of the settings.
		out, err := settings.put(ctx, p, z, singletonName, have.Value, have.Revision)
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrExists) {
			return out, err
		}
	}
	return Object[zone.Settings]{}, fmt.Errorf("settings of %s: %w, %d times; try again", z.Name, ErrConflict, editAttempts)
}

// setAll sets each key, in order of keys, and reports all that cannot be.
func setAll(zn zone.Name, settings *zone.Settings, set map[string]string) error {
	if len(set) == 0 {
		return malformed(zn.String(), "settings", "settings_empty", "name at least one setting, as KEY=VALUE")
	}
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(set)) {
		err := settings.Set(key, set[key])
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // the key, which was before it, Object has
		}
		for _, e := range unjoinNil(err) {
			problems = append(problems, Problem{
				Zone: zn.String(), Object: "setting " + key, Code: "setting_invalid", Message: e.Error(),
			})
		}
	}
	if problems != nil {
		return &ProblemsError{Problems: problems}
	}
	return nil
}
