package control

import (
	"context"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// PurgeRow is a purge with who made it, and the id by which people name it (UUIDv7).
type PurgeRow struct {
	ID        string
	Workspace string
	By        string
	zone.Purge
}

// Mark is the place behind it in the log.
func (r PurgeRow) Mark() seal.PurgeMark { return seal.PurgeMark{Sequence: r.Sequence, ID: r.ID} }

// NewPurge is a purge to be written, and what bounds the log.
type NewPurge struct {
	Row   PurgeRow // Sequence is for the store to give
	Audit AuditEntry
	// ZoneMost and WorkspaceMost are how many purges of its zone and of its workspace may be made within Window.
	ZoneMost, WorkspaceMost int
	Window                  time.Duration
	// A purge is dropped, with all before it, when it is older than KeepAge or KeepRows others follow it.
	KeepAge  time.Duration
	KeepRows int
}

// PurgeBatch is a part of the log.
type PurgeBatch struct {
	// Known tells whether all that followed the place that was asked for is kept. Rows is empty when it is not.
	Known bool
	Rows  []PurgeRow // in order
	Head  seal.PurgeMark
}

// PurgeStore holds the platform's log of purges. Numbers are given in the order in which transactions commit and without a gap:
// who has read up to a number never misses a smaller one.
type PurgeStore interface {
	// AddPurge gives n.Row the next number, writes it with its audit entry, drops what the log is not to keep, and returns the
	// number. Whether the workspace may purge the zone is the caller's to know. *PurgeRateError, and nothing done, beyond the bounds.
	AddPurge(ctx context.Context, n NewPurge) (uint64, error)
	// PurgesAfter returns at most most purges that follow a place, and no more once they have bytes of values, from one read.
	PurgesAfter(ctx context.Context, after seal.PurgeMark, most, bytes int) (PurgeBatch, error)
	// Purge returns one; ErrNotFound, of another workspace or zone too.
	Purge(ctx context.Context, ws string, of zone.Name, purge string) (PurgeRow, error)
	// ListPurges that a workspace made of a zone, newest first; the page key is the id.
	ListPurges(ctx context.Context, ws string, of zone.Name, p Page) ([]PurgeRow, error)
	// PurgeIDs returns the ids of those numbers that are kept.
	PurgeIDs(ctx context.Context, numbers []uint64) (map[uint64]string, error)
}

// PurgeRateError refuses a purge since too many were made. Nothing was changed.
type PurgeRateError struct {
	Of     string // zone or workspace
	Most   int
	Window time.Duration
}

func (e *PurgeRateError) Error() string {
	return fmt.Sprintf("%d purges of this %s were made within %s, which is the most: wait, or name more in one purge", e.Most, e.Of, e.Window)
}
