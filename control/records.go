package control

import "context"

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
	panic("unbuilt")
}

// AddRecord adds one record (editor). ErrExists when there is one of this name, type and content, whatever
// its TTL: that is changed with UpdateRecord.
func (s *Service) AddRecord(ctx context.Context, p Principal, ref string, in RecordInput) (RecordRow, error) {
	panic("unbuilt")
}

// UpdateRecord replaces the record with this id (editor).
func (s *Service) UpdateRecord(ctx context.Context, p Principal, ref, id string, in RecordInput) (RecordRow, error) {
	panic("unbuilt")
}

// DeleteRecord removes the record with this id (editor).
func (s *Service) DeleteRecord(ctx context.Context, p Principal, ref, id string) error {
	panic("unbuilt")
}
