package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	ch := RecordChange{Insert: []RecordRow{row}, Tell: func(a *AuditEntry, _ []RecordRow) {
		a.Detail = detail(map[string]any{"record": row.ID, "after": recordDetail(r)})
	}}
	return row, s.changeRecord(ctx, p, z, ch, recordTitle(r), "record.add")
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
	return row, s.replaceRecord(ctx, p, z, id, &row, "record.update")
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
	return s.replaceRecord(ctx, p, z, id, nil, "record.delete")
}

// replaceRecord puts another in the place of a record, or none. The log tells what it was.
func (s *Service) replaceRecord(ctx context.Context, p Principal, z ZoneRow, id string, by *RecordRow, action string) error {
	title := "record " + id
	ch := RecordChange{Delete: []string{id}}
	told := map[string]any{"record": id}
	if by != nil {
		ch = RecordChange{Update: []RecordRow{*by}}
		title = recordTitle(by.Record)
		told["after"] = recordDetail(by.Record)
	}
	ch.Tell = func(a *AuditEntry, was []RecordRow) {
		if len(was) == 1 {
			a.Target = z.Name.String() + " " + recordTitle(was[0].Record)
			told["before"] = recordDetail(was[0].Record)
		}
		a.Detail = detail(told)
	}
	return s.changeRecord(ctx, p, z, ch, title, action)
}

// changeRecord writes a change of one record.
func (s *Service) changeRecord(ctx context.Context, p Principal, z ZoneRow, ch RecordChange, title, action string) error {
	a := s.entry(p, p.Workspace, action, z.Name.String()+" "+title)
	err := s.store.ChangeRecords(ctx, p.Workspace, z.ID, ch, 0, a)
	switch {
	case errors.Is(err, ErrExists):
		return fmt.Errorf("record %s with this content %w; to change its TTL or proxying, remove it and add it again, or update it by its id", title, ErrExists)
	case err != nil:
		return fmt.Errorf("%s of %s: %w", title, z.Name, err)
	}
	return nil
}

// maxDetailContent bounds the content of a record that the log keeps, in bytes.
const maxDetailContent = 512

// recordDetail is a record as the log keeps it.
func recordDetail(r zone.Record) string {
	content := r.Content
	if len(content) > maxDetailContent {
		content = strings.ToValidUTF8(content[:maxDetailContent], "") + fmt.Sprintf("… (%d bytes)", len(r.Content))
	}
	text := fmt.Sprintf("%s %s %s ttl %d", r.Name, r.Type, content, r.EffectiveTTL())
	if r.Proxied {
		text += " proxied"
	}
	return text
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
