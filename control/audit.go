package control

import "context"

// ListAudit lists the log of the caller's workspace (admin), or all of it (operator), newest first.
func (s *Service) ListAudit(ctx context.Context, p Principal, all bool, page Page) (Listing[AuditEntry], error) {
	panic("unbuilt")
}
