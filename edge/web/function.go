package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/internal/fieldname"
	"github.com/guardyn-edge/guardyn/zone"
)

// chooseFunction notes the function that the first rule names, to be called in place of the origin.
func (x *exchange) chooseFunction(name zone.Phase) bool {
	for rule := range x.zone.Rules.Matching(name, &x.rule) {
		if x.common(rule) {
			return false
		}
		if rule.Action == zone.ActionFunction {
			x.note(rule)
			if x.function = x.zone.Functions[rule.Parameters.Function]; x.function == nil {
				x.fail(http.StatusServiceUnavailable, "The site has no function for this request.") // as no sound build publishes it
				return true
			}
			return false
		}
	}
	return false
}

// callFunction answers by the function that was chosen.
func (x *exchange) callFunction() {
	if x.body != nil {
		defer x.body.stop()
	}
	request := x.functionRequest()
	ctx, attend, release := x.functionContext()
	request.Attend = attend
	x.called()
	resp, err := x.function.Call(ctx, request)
	release()
	if x.trace != nil {
		x.returned(functionUsage(resp, err), err)
	}
	if x.body != nil && !x.body.ended.Load() {
		x.closeConnection()
	}
	if err != nil {
		x.functionFailed(err)
		return
	}
	defer resp.Close()
	h := x.w.Header()
	x.connection = resp.Header["Connection"]
	hasBody := FunctionAnswer(h, resp)
	x.cache.whole = true
	if !x.cache.on || !x.cacheAnswer(resp.Status) {
		x.begin(resp.Status)
	}
	if hasBody && x.r.Method != http.MethodHead {
		x.w.Write(resp.Body) //nolint:errcheck // a client that left needs no answer
	}
}

// FunctionAnswer puts into h what a client gets of a function's header: not what ends at this hop or is the node's to say. It takes
// the body away where a status has none, and reports whether one may be there, however short.
func FunctionAnswer(h http.Header, resp *function.Response) (hasBody bool) {
	connection := resp.Header["Connection"]
	for name, values := range resp.Header {
		if !fieldname.HopByHop(name) && !fieldname.Node(name) && !listed(connection, name) {
			h[name] = values
		}
	}
	switch resp.Status {
	case http.StatusNoContent, http.StatusNotModified:
		resp.Body = nil // RFC 9110 §15.3.5, §15.4.5
		return false
	case http.StatusResetContent:
		resp.Body = nil // RFC 9110 §15.3.6
	}
	h["Content-Length"] = []string{strconv.Itoa(len(resp.Body))}
	return true
}

// functionUsage is what a call took.
func functionUsage(resp *function.Response, err error) function.Usage {
	var failed *function.Error
	switch {
	case err == nil:
		return resp.Usage
	case errors.As(err, &failed):
		return failed.Usage
	default:
		return function.Usage{}
	}
}

// functionContext is the context of a call, which is done once nobody wants its answer. attend is called when the call begins to
// wait for something or takes long: to learn of a client that leaves costs more than most calls.
func (x *exchange) functionContext() (ctx context.Context, attend, release func()) {
	conn := x.w.conn
	if conn == nil || x.cache.flight != nil {
		ctx, release = x.context()
		return ctx, func() {}, release
	}
	ctx, release = leaving(x.r.Context(), conn)
	return ctx, conn.Attend, release
}

// functionRequest is the request as a function sees it: the form that rules saw, and the fields that an origin would get.
func (x *exchange) functionRequest() *function.Request {
	r := &function.Request{
		Method: x.r.Method, Scheme: x.scheme, Host: x.rule.Host, Path: x.rule.Path, Query: x.rule.Query,
		Client: x.rule.Client, Header: x.r.Header, Length: x.r.ContentLength,
	}
	if x.body != nil {
		r.Body, r.Interrupt = x.body, x.body.interrupt
	}
	return r
}

// maxTold bounds what the access log tells of a function's standard error, in bytes.
const maxTold = 256

// functionFailed answers for a function that did not: 502 when it failed by itself, 503 when a limit ended it or there was no place.
func (x *exchange) functionFailed(err error) {
	var failed *function.Error
	if !errors.As(err, &failed) {
		x.originErr = err
		x.fail(http.StatusBadGateway, "The site's function failed.")
		return
	}
	switch failed.Kind {
	case function.Left:
		x.clientLeft()
	case function.BodyFailed:
		if !x.bodyFailed(x.body.failure(), x.body.stalled.Load()) {
			x.clientLeft()
		}
		return
	}
	x.originErr = err
	if told := bytes.TrimSpace(failed.Usage.Stderr); len(told) > 0 {
		x.originErr = errors.New(err.Error() + ": " + strconv.Quote(string(told[max(0, len(told)-maxTold):])))
	}
	switch {
	case failed.Kind == function.Busy:
		x.w.Header().Set("Retry-After", "1")
		x.fail(http.StatusServiceUnavailable, "This site's function has too much to do.")
	case failed.Kind.Overrun():
		x.fail(http.StatusServiceUnavailable, "The site's function took more than it may.")
	default:
		x.fail(http.StatusBadGateway, "The site's function failed.")
	}
}
