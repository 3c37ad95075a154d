package web

import (
	"context"
	"time"

	"github.com/guardyn-edge/guardyn/edge/http1"
)

// attendAfter is how long an exchange waits for the origin before it attends to its client.
const attendAfter = 50 * time.Millisecond

// context returns the request's context, which is done once the client has left, for what the exchange is about to wait for;
// release, once that is over. The context of the request itself tells it by HTTP/2 alone.
func (x *exchange) context() (ctx context.Context, release func()) {
	conn := x.w.conn
	if f := x.cache.flight; f != nil {
		if conn != nil {
			conn.Attend()
		}
		return f.Context(x.server.life), func() {}
	}
	if conn == nil {
		return x.r.Context(), func() {}
	}
	ctx, release = leaving(x.r.Context(), conn)
	conn.Attend()
	return ctx, release
}

// leaving returns a context that is done once conn's client is seen to have left, or release is called.
func leaving(ctx context.Context, conn *http1.Conn) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	leave := func() { cancel() }
	conn.OnLeave(&leave)
	return ctx, func() {
		conn.OnLeave(nil)
		cancel()
	}
}
