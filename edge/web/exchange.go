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

// exchange is one request on its way, under one view. The transport may look at its target after the
// request has ended, so it is never used again.
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
	// connection is what the origin's answer has in Connection, closing what http.Transport deletes of it.
	connection []string
	closing    connectionValues

	answered answerBody // of the origin
	cut      bool       // reading it failed

	// Of the access log.
	logged    []string // rules of action log, and what ended the request early
	originErr error
}

type exchangeKey struct{}

func exchangeOf(r *http.Request) *exchange { return r.Context().Value(exchangeKey{}).(*exchange) }
