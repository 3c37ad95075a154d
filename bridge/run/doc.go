// Package run runs a bridge's document on one member: its sessions, held by lease where they are exclusive, and its routes, and from one
// document to the next only what differs.
package run

import (
	"log/slog"
	"time"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// Options are what a Runner needs beside documents. The zero value runs a standalone bridge.
type Options struct {
	// Member stands for {member}, and names who holds a lease.
	Member string
	// Origin is the bridge's name, the same on all members and at every start: what has passed it is known by it, and NATS keeps places
	// under it. "": "bridge".
	Origin  string
	Secrets session.Secrets
	// Leases are of exclusive sessions. Nil: nobody else runs the document, and they are held without.
	Leases  bridge.Leases
	Lease   time.Duration   // how long one lasts; 0: lease.DefaultTTL
	Backoff session.Backoff // between attempts to connect, and to send; zero: session.DefaultBackoff
	Logger  *slog.Logger    // nil: none
	Now     func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Origin == "" {
		o.Origin = "bridge"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
