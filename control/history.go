package control

import (
	"context"
	"fmt"
)

// History lists snapshots, newest version first (operator). The page key is the version in decimal.
func (s *Service) History(ctx context.Context, p Principal, page Page) (Listing[SnapshotRow], error) {
	if err := p.operates(); err != nil {
		return Listing[SnapshotRow]{}, err
	}
	page, err := bounded(page)
	if err != nil {
		return Listing[SnapshotRow]{}, err
	}
	rows, err := s.store.History(ctx, page)
	if err != nil {
		return Listing[SnapshotRow]{}, fmt.Errorf("reading the history: %w", err)
	}
	return listing(rows, page, versionKey), nil
}
