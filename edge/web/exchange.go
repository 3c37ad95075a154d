package web

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/zone"
)

// exchange is one request on its way, under one view. It is used for another request once this one's handler has
// returned: nothing may keep it longer.
type exchange struct {
	server *Server
	view   *edge.View
	zone   *edge.Zone // nil until the host is known to be of one
	w      *recorder
	rec    recorder // what w points to
	r      *http.Request

	peer   netip.Addr    // who connected
	chain  []netip.Addr  // who the request came through, nearest first
	near   [4]netip.Addr // what chain begins in
	scheme string        // of the connection, or what a trusted peer told
	rule   rules.Request // what rules see; its path and query are what is forwarded

	skipped map[zone.Phase]bool
	pool    string // of a route rule
	// function answers in place of the origin; nil when none does.
	function *function.Function
	target   *target
	to       target         // what target points to for a pool's origin
	tried    []*pool.Origin // that no connection could be opened to
	sticky   string         // Set-Cookie that goes with the origin's answer
	result   pool.Result    // of the origin
	sent     time.Time      // when the target was asked
	asked    time.Time      // when the request's head went over a connection
	body     *requestBody   // nil without a body
	pump     *pump          // sends the body on, nil when none is at work
	// stopBody ends the reading of a body that goes on beside the exchange, and waits for it; nil when none does.
	stopBody func()
	// stopWatch ends the watch over the client by its context; nil when its connection tells.
	stopWatch func() bool
	early     bool // the origin answered before the client had sent all
	// connection is what the origin's answer has in Connection.
	connection []string

	trace  *requestTrace // nil for a request that is not traced
	meters *meters       // the share of the server's that this value counts in, whatever request it is used for

	cache caching

	// Of the access log.
	logged    []string // rules of action log, and what ended the request early
	originErr error
	ended     bool // the handler was not left by a panic
}

// exchange returns one for r, whose connection is nil when others share it.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request, conn *http1.Conn) *exchange {
	x, ok := s.exchanges.Get().(*exchange)
	if !ok {
		x = &exchange{meters: s.meters.next()}
	}
	x.server, x.r, x.rec = s, r, recorder{ResponseWriter: w, conn: conn}
	x.w, x.chain = &x.rec, x.near[:0]
	return x
}

func (s *Server) recycle(x *exchange) {
	*x = exchange{meters: x.meters}
	s.exchanges.Put(x)
}

// watch releases c when the client leaves, until unwatch.
func (x *exchange) watch(c *originConn) {
	if f := x.cache.flight; f != nil {
		f.Cancels(c.release)
		if x.cache.background {
			x.stopWatch = context.AfterFunc(x.r.Context(), c.release)
		}
		return
	}
	conn := x.w.conn
	if conn == nil {
		x.stopWatch = context.AfterFunc(x.r.Context(), c.release)
		return
	}
	conn.OnLeave(&c.release)
}

// unwatch reports whether the client has stayed; else the connection to the origin is closed or about to be.
func (x *exchange) unwatch() bool {
	if f := x.cache.flight; f != nil {
		f.Cancels(nil)
		return (x.stopWatch == nil || x.stopWatch()) && !f.Cancelled()
	}
	if x.stopWatch != nil {
		return x.stopWatch()
	}
	x.w.conn.OnLeave(nil)
	return !x.w.conn.Gone()
}

// left reports whether the client has left, and nobody else waits for the answer.
func (x *exchange) left() bool {
	if f := x.cache.flight; f != nil {
		return f.Cancelled() || x.server.life.Err() != nil
	}
	if conn := x.w.conn; conn != nil {
		return conn.Gone()
	}
	return x.r.Context().Err() != nil
}
