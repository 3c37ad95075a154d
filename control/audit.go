package control

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// ListAudit lists the log of the caller's workspace (admin), or all of it (operator), newest first.
func (s *Service) ListAudit(ctx context.Context, p Principal, all bool, page Page) (Listing[AuditEntry], error) {
	ws := p.Workspace
	if all {
		if err := p.operates(); err != nil {
			return Listing[AuditEntry]{}, err
		}
		ws = ""
	} else if err := p.may(RoleAdmin); err != nil {
		return Listing[AuditEntry]{}, err
	}
	page, err := bounded(page)
	if err != nil {
		return Listing[AuditEntry]{}, err
	}
	rows, err := s.store.ListAudit(ctx, ws, page)
	if err != nil {
		return Listing[AuditEntry]{}, fmt.Errorf("reading the audit log: %w", err)
	}
	return listing(rows, page, func(a AuditEntry) string { return a.ID }), nil
}

// entry is the audit entry of a deed of p in workspace ws ("" for the platform's own) that succeeded: it is
// written in the transaction of the deed.
func (s *Service) entry(p Principal, ws, action, target string) AuditEntry {
	return AuditEntry{
		ID: newID(), At: s.now().UTC(), Workspace: ws, Actor: p.actor(), From: p.From,
		Action: action, Target: target, Outcome: outcome(nil),
	}
}

// newID is a UUIDv7: later ones are greater.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
