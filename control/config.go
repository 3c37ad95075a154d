package control

import "context"

// The two messages of ConfigStatus.
const (
	MessageUnpublished = "Your saved configuration differs from what is being served. It goes live on the next apply."
	MessagePublished   = "Everything you have saved is being served."
)

// ConfigStatus answers "why is my change not live yet". Live is nil when nothing was published yet.
type ConfigStatus struct {
	Live                  *SnapshotRow
	HasUnpublishedChanges bool
	Message               string
	Workspace             string // its name
}

// ConfigStatus compares the rows of the caller's own zones with what is live (viewer). Concurrent calls
// share one reading of the rows, which is never older than the call.
func (s *Service) ConfigStatus(ctx context.Context, p Principal) (ConfigStatus, error) {
	panic("unbuilt")
}
