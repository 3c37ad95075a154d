package control

import "context"

// History lists snapshots, newest version first (operator). The page key is the version in decimal.
func (s *Service) History(ctx context.Context, p Principal, page Page) (Listing[SnapshotRow], error) {
	panic("unbuilt")
}
