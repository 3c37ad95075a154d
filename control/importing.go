package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/zone"
)

// ImportOptions say how a zone file meets the records that stand.
type ImportOptions struct {
	// Replace removes the records that the file does not have.
	Replace bool
	// DryRun counts and changes nothing.
	DryRun bool
	// IfRevision, when not 0, is the zone's revision that must still stand (ErrConflict).
	IfRevision int64
}

// ImportResult counts records. Settings tells that the file's SOA changed the zone's settings.
type ImportResult struct {
	Added     int
	Removed   int
	Updated   int // same name, type and content, other TTL or proxied flag
	Unchanged int
	Settings  bool
}

// editAttempts bounds how often an edit that reads, decides and writes meets another edit of the zone.
const editAttempts = 5

// ImportZoneFile reads an RFC 1035 zone file of at most MaxImport bytes into the zone (editor), all or
// nothing. A *ProblemsError holds every bad line with its number. The SOA goes to the zone's settings.
// ErrConflict when the zone is edited faster than the import can compare.
func (s *Service) ImportZoneFile(ctx context.Context, p Principal, ref string, r io.Reader, o ImportOptions) (ImportResult, error) {
	z, err := s.zoneFor(ctx, p, RoleEditor, ref)
	if err != nil {
		return ImportResult{}, err
	}
	file, err := readImport(r, z.Name)
	if err != nil {
		return ImportResult{}, err
	}
	for range editAttempts {
		res, err := s.importOnce(ctx, p, z, file, o)
		if !errors.Is(err, ErrConflict) || o.IfRevision != 0 {
			return res, err
		}
	}
	return ImportResult{}, fmt.Errorf("importing into %s: the zone %w, %d times; try again", z.Name, ErrConflict, editAttempts)
}

// readImport parses the file; every bad line is a problem.
func readImport(r io.Reader, zn zone.Name) (*zone.ZoneFile, error) {
	limited := &io.LimitedReader{R: r, N: MaxImport + 1}
	file, err := zone.ReadZoneFile(limited, zn)
	if limited.N <= 0 {
		return nil, malformed(zn.String(), "", "file_too_large", "a zone file is at most %d MiB", MaxImport>>20)
	}
	var lines zone.LineErrors
	if errors.As(err, &lines) {
		e := &ProblemsError{Problems: make([]Problem, len(lines))}
		for i, l := range lines {
			e.Problems[i] = Problem{
				Zone: zn.String(), Code: "zone_file_malformed", Message: l.Message, Line: l.Line, Column: l.Column,
			}
		}
		return nil, e
	}
	if err != nil {
		return nil, fmt.Errorf("reading the zone file: %w", err)
	}
	return file, nil
}

// importOnce compares with one reading of the zone and writes only if that reading still holds.
func (s *Service) importOnce(ctx context.Context, p Principal, z ZoneRow, file *zone.ZoneFile, o ImportOptions) (ImportResult, error) {
	have, revision, err := s.store.ReadRecords(ctx, p.Workspace, z.ID)
	if err != nil {
		return ImportResult{}, fmt.Errorf("reading records of %s: %w", z.Name, err)
	}
	if o.IfRevision != 0 && o.IfRevision != revision {
		return ImportResult{}, fmt.Errorf("importing into %s: the zone %w", z.Name, ErrConflict)
	}
	ch, res := compareRecords(have, file.Records, o.Replace)
	if file.SOA != nil {
		settings, err := s.Settings().stored(ctx, p.Workspace, z, singletonName)
		if err != nil {
			return ImportResult{}, err
		}
		if ch.Settings, err = settingsWithSOA(z.Name, settings.Value, *file.SOA); err != nil {
			return ImportResult{}, err
		}
		res.Settings = ch.Settings != nil
	}
	if o.DryRun || res.Added+res.Removed+res.Updated == 0 && !res.Settings {
		return res, nil
	}
	a := s.entry(p, p.Workspace, "zone.import", z.Name.String())
	a.Detail = detail(map[string]any{"added": res.Added, "removed": res.Removed, "updated": res.Updated, "replace": o.Replace})
	if err := s.store.ChangeRecords(ctx, p.Workspace, z.ID, ch, revision, a); err != nil {
		return ImportResult{}, fmt.Errorf("importing into %s: %w", z.Name, err)
	}
	return res, nil
}

// recordKey is what makes two records the same one.
type recordKey struct {
	name    zone.Name
	rrtype  zone.RRType
	content string
}

func keyOf(r zone.Record) recordKey { return recordKey{r.Name, r.Type, r.Content} }

// compareRecords finds the change from have to want. A record that want has twice counts once, as its first.
func compareRecords(have []RecordRow, want []zone.Record, replace bool) (RecordChange, ImportResult) {
	var (
		ch  RecordChange
		res ImportResult
	)
	standing := make(map[recordKey]RecordRow, len(have))
	for _, r := range have {
		standing[keyOf(r.Record)] = r
	}
	seen := make(map[recordKey]bool, len(want))
	for _, r := range want {
		k := keyOf(r)
		if seen[k] {
			continue
		}
		seen[k] = true
		old, stands := standing[k]
		switch {
		case !stands:
			ch.Insert = append(ch.Insert, RecordRow{ID: newID(), Record: r})
		case old.Record != r:
			ch.Update = append(ch.Update, RecordRow{ID: old.ID, Record: r})
		default:
			res.Unchanged++
		}
	}
	if replace {
		for _, r := range have {
			if !seen[keyOf(r.Record)] {
				ch.Delete = append(ch.Delete, r.ID)
			}
		}
	}
	res.Added, res.Updated, res.Removed = len(ch.Insert), len(ch.Update), len(ch.Delete)
	return ch, res
}

// settingsWithSOA returns the body of the settings with another SOA, nil when that changes nothing.
func settingsWithSOA(zn zone.Name, settings zone.Settings, soa zone.SOA) ([]byte, error) {
	before, err := encode(settings)
	if err != nil {
		return nil, err
	}
	settings.SOA = soa
	settings, err = settings.Normalize()
	if err != nil {
		return nil, malformedBy(zn, "SOA", err)
	}
	after, err := encode(settings)
	if err != nil || bytes.Equal(before, after) {
		return nil, err
	}
	return after, nil
}

// ExportZoneFile prints the zone as a file that ImportZoneFile reads back to the same rows (viewer). An
// error before the first byte leaves w untouched.
func (s *Service) ExportZoneFile(ctx context.Context, p Principal, ref string, w io.Writer) error {
	z, err := s.zoneFor(ctx, p, RoleViewer, ref)
	if err != nil {
		return err
	}
	rows, _, err := s.store.ReadRecords(ctx, p.Workspace, z.ID)
	if err != nil {
		return fmt.Errorf("reading records of %s: %w", z.Name, err)
	}
	settings, err := s.Settings().stored(ctx, p.Workspace, z, singletonName)
	if err != nil {
		return err
	}
	out := &zone.Zone{ID: z.ID, Name: z.Name, Settings: settings.Value, Records: make([]zone.Record, len(rows))}
	for i, r := range rows {
		out.Records[i] = r.Record
	}
	if err := zone.WriteZoneFile(w, out); err != nil {
		return fmt.Errorf("writing %s: %w", z.Name, err)
	}
	return nil
}

// encode prints a value as rows hold it.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return b, nil
}

// detail prints members of an audit entry.
func detail(members map[string]any) string {
	maps.DeleteFunc(members, func(_ string, v any) bool { return v == "" || v == false })
	b, err := encode(members)
	if err != nil {
		return ""
	}
	return string(slices.Clip(b))
}
