// Package bridge has the ports of the message bridge: through which its host drives the data path, and through which the data path
// learns whether this member may hold an exclusive session.
package bridge

import (
	"context"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge/document"
)

// Runner runs what a document says on this member. A new one runs nothing. The host calls Prepare, Swap, Discard, Drain
// and Stop one at a time; Status may be called beside them at any time and does not block.
type Runner interface {
	// Prepare builds beside what runs all that runs not yet or differently in d: it reads credentials and certificates, resolves {member}
	// and compiles, and opens no connection, binds no address and writes to nobody. The error joins everything that is wrong,
	// for people. At most one Prepared is outstanding.
	Prepare(ctx context.Context, d *document.Document) (Prepared, error)

	// Status tells how each session and route of what runs does.
	Status() Status

	// Drain stops intake on every session and waits until what was taken is confirmed by its target, or goes to its dead letter, and is
	// acknowledged to its source. The error, when ctx ends before, says what is not; its sources will deliver that again.
	// Sessions stay connected; nothing is taken in again before the next Swap.
	Drain(ctx context.Context) error

	// Stop disconnects every session, gives every lease back and waits for all goroutines; then nothing runs, and Prepare and Swap may begin
	// anew. An error means that this is not sure: the process must end, so that no other's session is fought for.
	Stop(ctx context.Context) error
}

// Prepared is what a document needs beyond what runs. It is used once: Swap or Discard.
type Prepared interface {
	// Swap makes the document what runs: units that it changes or lacks are drained and stopped, then what is new is started. What both
	// documents share goes on, connected, without losing a message. It returns when each unit is under way, not when sessions are connected:
	// that is Status. On an error the old document still runs. It keeps to ctx.
	Swap(ctx context.Context) error

	// Discard frees it.
	Discard()
}

// Status is how this member does with what it runs.
type Status struct {
	Digest   document.Digest // of what runs; "": nothing
	Sessions []SessionStatus // sorted by id
	Routes   []RouteStatus   // sorted by id
}

// SessionState is how far a session has come.
type SessionState string

// The states.
const (
	Connecting SessionState = "connecting" // or connecting again, or waiting to
	Connected  SessionState = "connected"
	Standby    SessionState = "standby"  // another member holds the exclusive session
	Stopping   SessionState = "stopping" // on the way out, or intake is stopped
)

// SessionStatus is how one session does.
type SessionStatus struct {
	ID            string               `json:"id"`
	Kind          document.Kind        `json:"kind"`
	State         SessionState         `json:"state"`
	Since         time.Time            `json:"since"` // of State
	LastError     string               `json:"last_error,omitzero"`
	Connects      uint64               `json:"connects"` // since the session started
	Exclusive     bool                 `json:"exclusive,omitzero"`
	Holder        string               `json:"holder,omitzero"` // the member that holds an exclusive session, if known
	Subscriptions []SubscriptionStatus `json:"subscriptions,omitzero"`

	// Converged: it is connected and every subscription was granted as it was asked for, or it stands by as it should. Detail says what is
	// missing.
	Converged bool   `json:"converged"`
	Detail    string `json:"detail,omitzero"`
}

// SubscriptionStatus is what the source said to one subscription.
type SubscriptionStatus struct {
	Filter  string `json:"filter"`
	Asked   int    `json:"asked_qos"`
	Granted int    `json:"granted_qos"` // -1: not yet, or refused
	Error   string `json:"error,omitzero"`
}

// RouteStatus is how one route does. Counters are since it started; a restart of the route starts them anew.
type RouteStatus struct {
	ID        string    `json:"id"`
	Since     time.Time `json:"since"` // of its start
	Taken     uint64    `json:"taken"`
	Filtered  uint64    `json:"filtered"`  // did not pass the filter
	Failed    uint64    `json:"failed"`    // the filter could not tell, as of a payload that is no JSON
	Delivered uint64    `json:"delivered"` // confirmed by the target
	Refused   uint64    `json:"refused"`   // for good, by the target or a transform
	Looped    uint64    `json:"looped"`    // had come from this bridge
	Retried   uint64    `json:"retried"`   // attempts that the target did not confirm
	InFlight  int       `json:"in_flight"`
	LastError string    `json:"last_error,omitzero"`

	// Converged: its sessions have, and the share of refused messages has not risen by more than the route's health margin since the
	// last swap. Detail says what is missing.
	Converged bool   `json:"converged"`
	Detail    string `json:"detail,omitzero"`
}

// Leases returns the lease of an exclusive session, the same for all members of the cohort. Holders are member ids with something
// random behind them. Tokens only grow.
type Leases interface {
	Session(id string) (barrier.Leases, error)
}
