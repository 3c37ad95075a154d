package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// objectKey names an object of a zone; name is empty for kinds of which there is one.
type objectKey struct{ kind, name string }

// object is an object's body in normal form, with the revision that it was read at (0: from a file, or never
// written).
type object struct {
	body     []byte
	revision int64
}

// zoneState is all that a zone holds, in normal form: of the control plane, or of a file.
type zoneState struct {
	name    zone.Name
	records []zone.Record // sorted, without duplicates
	objects map[objectKey]object
	// revision of the zone that all of this is of, 0 for a file's.
	revision int64
}

// emptyBody is the body of a single object that has its defaults.
const emptyBody = "{}"

// readAttempts bounds how often a zone is read anew because it was edited meanwhile.
const readAttempts = 5

// readZone reads a zone whole. What it returns is one state of the zone: its revision, which every edit
// raises, was the same before and after.
func (a *app) readZone(ctx context.Context, c *api.Client, name string) (*zoneState, error) {
	before, err := c.Zone(ctx, name)
	if err != nil {
		return nil, err
	}
	for range readAttempts {
		state, err := a.readZoneOnce(ctx, c, before.Name)
		var problem *api.Error
		if err != nil && (!errors.As(err, &problem) || problem.Status != http.StatusNotFound) {
			return nil, err
		}
		// What was listed and is gone now is an edit too; so is the zone's own end, which this tells.
		after, zoneErr := c.Zone(ctx, before.ID)
		if zoneErr != nil {
			return nil, zoneErr
		}
		if err == nil && after.Revision == before.Revision {
			state.revision = after.Revision
			return state, nil
		}
		before = after
	}
	return nil, hint(fmt.Errorf("%s is edited faster than it can be read", before.Name), "try again")
}

func (a *app) readZoneOnce(ctx context.Context, c *api.Client, name string) (*zoneState, error) {
	parsed, err := zone.ParseName(name)
	if err != nil {
		return nil, fmt.Errorf("zone of the control plane: %w", err)
	}
	s := &zoneState{name: parsed, objects: map[objectKey]object{}}
	records, err := a.records(ctx, c, name, api.RecordFilter{})
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		content := r.Content
		if t, err := zone.ParseRRType(r.Type); err == nil {
			content = zone.WrittenContent(t, content)
		}
		record, err := zone.ParseRecord(parsed, r.Name+".", r.Type, content, r.TTL, r.Proxied)
		if err != nil {
			return nil, fmt.Errorf("%s: record %s of the control plane: %w", name, recordLine(r), err)
		}
		s.records = append(s.records, record)
	}
	sortRecords(s.records, parsed)
	for _, k := range objectKinds() {
		all := []string{""}
		if !k.single {
			if all, err = k.names(ctx, c, name); err != nil {
				return nil, err
			}
		}
		for _, one := range all {
			body, revision, err := k.get(ctx, c, name, one)
			if err != nil {
				return nil, err
			}
			s.objects[objectKey{k.member, one}] = object{body, revision}
		}
	}
	return s, nil
}

// sortRecords orders records as files hold them: the apex, then by name, type and content.
func sortRecords(records []zone.Record, apex zone.Name) {
	slices.SortFunc(records, func(a, b zone.Record) int {
		if a.Name != b.Name && (a.Name == apex || b.Name == apex) {
			if a.Name == apex {
				return -1
			}
			return 1
		}
		return cmp.Or(a.Name.Compare(b.Name), cmp.Compare(a.Type, b.Type), a.Compare(b))
	})
}

// objectNames lists the names of a kind's objects, sorted.
func (s *zoneState) objectNames(kind string) []string {
	var out []string
	for key := range s.objects {
		if key.kind == kind {
			out = append(out, key.name)
		}
	}
	slices.Sort(out)
	return out
}
