package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/guardyn-edge/guardyn/zone"
)

// RecordInput is a record as people write it; zone.ParseRecord reads it. TTL 0 is auto.
type RecordInput struct {
	Name    string
	Type    string
	Content string
	TTL     uint32
	Proxied bool
}

// RecordQuery narrows ListRecords; empty members do not. Name is read as in RecordInput.
type RecordQuery struct {
	Name string
	Type string
}

// ListRecords lists by name, type, content (viewer).
func (s *Service) ListRecords(ctx context.Context, p Principal, ref string, q RecordQuery, page Page) (Listing[RecordRow], error) {
	z, err := s.zoneFor(ctx, p, RoleViewer, ref)
	if err != nil {
		return Listing[RecordRow]{}, err
	}
	if page, err = bounded(page); err != nil {
		return Listing[RecordRow]{}, err
	}
	var (
		f        RecordFilter
		problems []Problem
	)
	if q.Name != "" {
		if f.Name, err = zone.ParseNameIn(z.Name, q.Name); err != nil {
			problems = append(problems, Problem{Zone: z.Name.String(), Object: "name", Code: "malformed", Message: err.Error()})
		}
	}
	if q.Type != "" {
		if f.Type, err = zone.ParseRRType(q.Type); err != nil {
			problems = append(problems, Problem{Zone: z.Name.String(), Object: "type", Code: "malformed", Message: err.Error()})
		}
	}
	if problems != nil {
		return Listing[RecordRow]{}, &ProblemsError{Problems: problems}
	}
	rows, err := s.store.ListRecords(ctx, p.Workspace, z.ID, f, page)
	if err != nil {
		return Listing[RecordRow]{}, fmt.Errorf("listing records of %s: %w", z.Name, err)
	}
	return listing(rows, page, func(r RecordRow) string { return r.ID }), nil
}

// AddRecord adds one record (editor). ErrExists when there is one of this name, type and content, whatever
// its TTL: that is changed with UpdateRecord.
func (s *Service) AddRecord(ctx context.Context, p Principal, ref string, in RecordInput) (RecordRow, error) {
	z, err := s.zoneFor(ctx, p, RoleEditor, ref)
	if err != nil {
		return RecordRow{}, err
	}
	r, err := in.parse(z.Name)
	if err != nil {
		return RecordRow{}, err
	}
	row := RecordRow{ID: newID(), Record: r}
	return row, s.changeRecord(ctx, p, z, RecordChange{Insert: []RecordRow{row}}, r, "record.add")
}

// UpdateRecord replaces the record with this id (editor).
func (s *Service) UpdateRecord(ctx context.Context, p Principal, ref, id string, in RecordInput) (RecordRow, error) {
	z, err := s.zoneFor(ctx, p, RoleEditor, ref)
	if err != nil {
		return RecordRow{}, err
	}
	id, err = recordID(id)
	if err != nil {
		return RecordRow{}, err
	}
	r, err := in.parse(z.Name)
	if err != nil {
		return RecordRow{}, err
	}
	row := RecordRow{ID: id, Record: r}
	return row, s.changeRecord(ctx, p, z, RecordChange{Update: []RecordRow{row}}, r, "record.update")
}

// DeleteRecord removes the record with this id (editor).
func (s *Service) DeleteRecord(ctx context.Context, p Principal, ref, id string) error {
	z, err := s.zoneFor(ctx, p, RoleEditor, ref)
	if err != nil {
		return err
	}
	if id, err = recordID(id); err != nil {
		return err
	}
	a := s.entry(p, p.Workspace, "record.delete", z.Name.String()+" record "+id)
	if err := s.store.ChangeRecords(ctx, p.Workspace, z.ID, RecordChange{Delete: []string{id}}, 0, a); err != nil {
		return fmt.Errorf("record %s of %s: %w", id, z.Name, err)
	}
	return nil
}

// changeRecord writes a change of the one record r.
func (s *Service) changeRecord(ctx context.Context, p Principal, z ZoneRow, ch RecordChange, r zone.Record, action string) error {
	a := s.entry(p, p.Workspace, action, z.Name.String()+" "+recordTitle(r))
	err := s.store.ChangeRecords(ctx, p.Workspace, z.ID, ch, 0, a)
	if errors.Is(err, ErrExists) {
		return fmt.Errorf("record %s with this content %w; update that one to change its TTL or proxying", recordTitle(r), ErrExists)
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", recordTitle(r), err)
	}
	return nil
}

// recordTitle names a record without its content, which may be long.
func recordTitle(r zone.Record) string { return fmt.Sprintf("%s %s", r.Name, r.Type) }

// recordID folds an id from a path; what is no id names no record.
func recordID(id string) (string, error) {
	parsed, err := zone.ParseID(id)
	if err != nil {
		return "", fmt.Errorf("record %q: %w", id, ErrNotFound)
	}
	return string(parsed), nil
}

// parse reads the input in the zone.
func (in RecordInput) parse(zn zone.Name) (zone.Record, error) {
	r, err := zone.ParseRecord(zn, in.Name, in.Type, in.Content, in.TTL, in.Proxied)
	if err != nil {
		return zone.Record{}, malformedBy(zn, fmt.Sprintf("record %s %s", in.Name, in.Type), err)
	}
	return r, nil
}
