package web

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/zone"
)

// exchange is one request on its way, under one view.
type exchange struct {
	server *Server
	view   *edge.View
	zone   *edge.Zone // nil until the host is known to be of one
	w      *recorder
	rec    recorder // what w points to
	r      *http.Request

	peer   netip.Addr    // who connected
	chain  []netip.Addr  // who the request came through, nearest first
	scheme string        // of the connection, or what a trusted peer told
	rule   rules.Request // what rules see; its path and query are what is forwarded

	skipped map[zone.Phase]bool
	pool    string // of a route rule
	target  *target
	tried   []*pool.Origin // that no connection could be opened to
	sticky  string         // Set-Cookie that goes with the origin's answer
	result  pool.Result    // of the origin
	sent    time.Time      // when the target was asked
	body    *requestBody   // nil without a body
	pump    *pump          // sends the body on, nil when none is at work
	// stopBody ends the reading of a body that goes on beside the exchange, and waits for it; nil when none does.
	stopBody func()
	early    bool // the origin answered before the client had sent all
	// connection is what the origin's answer has in Connection.
	connection []string

	// Of the access log.
	logged    []string // rules of action log, and what ended the request early
	originErr error
}
