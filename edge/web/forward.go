package web

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// forward sends the request to its target and the answer back.
func (x *exchange) forward() {
	if o := x.target.origin; o != nil {
		o.Begin()
		x.sent = time.Now()
		defer func() { x.target.origin.End(x.result) }()
	}
	if x.body != nil {
		x.r.Body = x.body
		defer x.body.stop()
	}
	defer x.endCut() // the proxy panics then, as net/http asks of a handler that cannot end its answer
	ctx := context.WithValue(x.r.Context(), exchangeKey{}, x)
	x.server.proxy.ServeHTTP(x.w, x.r.WithContext(ctx))
	cleanTrailer(x.w.Header(), http.TrailerPrefix, x.connection)
}

// originFailed answers for an origin that did not.
func originFailed(_ http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	x.originErr = err
	x.result.Latency = time.Since(x.sent)
	if x.body != nil {
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(x.body.failure(), &tooLarge):
			x.failBody(http.StatusRequestEntityTooLarge, bodyTooLarge)
			return
		case x.body.stalled.Load():
			x.failBody(http.StatusRequestTimeout, "The request's body did not arrive in time.")
			return
		case x.w.conn != nil && x.w.conn.refused.Load():
			x.failBody(http.StatusBadRequest, "The request's body is malformed.")
			return
		}
	}
	if r.Context().Err() != nil {
		// Without an answer net/http would write an empty 200.
		x.w.status = statusClientGone
		panic(http.ErrAbortHandler)
	}
	x.result.Err = err
	x.server.counters.originErrors.Add(1)
	if timedOut(err) {
		x.fail(http.StatusGatewayTimeout, "The site's server did not answer in time.")
		return
	}
	x.fail(http.StatusBadGateway, "The site's server could not be reached.")
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() || errors.Is(err, context.DeadlineExceeded)
}
