package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/http1"
)

// lead makes the exchange bring a flight: the origin is asked for the whole answer, or whether the stale one is its answer yet.
func (x *exchange) lead(f *cache.Flight) {
	c := &x.cache
	c.flight = f
	x.hook()
	h := x.r.Header
	c.conditions = cache.ConditionsOf(h)
	c.conditional = len(c.conditions.IfNoneMatch)+len(c.conditions.IfModifiedSince) > 0
	for _, name := range [...]string{"If-None-Match", "If-Modified-Since", "Range", "If-Range"} {
		delete(h, name)
	}
	if f.Base == nil {
		return
	}
	etag, lastModified := f.Base.Validators()
	if etag != "" {
		h["If-None-Match"] = []string{etag}
	}
	if lastModified != "" {
		h["If-Modified-Since"] = []string{lastModified}
	}
	c.validating = etag != "" || lastModified != ""
}

// alone makes the exchange bring an answer that nobody waits for. The origin gets the request as it is.
func (x *exchange) alone() {
	c := &x.cache
	c.flight = x.server.config.Cache.Alone(&c.key, &c.policy, &c.found)
	c.conditions = cache.ConditionsOf(x.r.Header)
	x.hook()
}

// hook lets a client that leaves leave its flight, until the exchange ends.
func (x *exchange) hook() {
	c := &x.cache
	if c.unhook != nil || c.background {
		return
	}
	leave := sync.OnceFunc(c.flight.Leave)
	conn := x.w.conn
	if conn == nil {
		stop := context.AfterFunc(x.r.Context(), leave)
		c.unhook = func() { stop() }
		return
	}
	c.unhook = func() { conn.OnLeave(nil) }
	conn.OnLeave(&leave)
}

// cacheAnswer decides what becomes of an origin's answer, whose header is in the client's. When it returns true the cache has it:
// the client is answered from there, and the body goes there.
func (x *exchange) cacheAnswer(status int) bool {
	c := &x.cache
	h := x.w.Header()
	now := x.server.config.Now()
	head := cache.Head{Status: status, Header: h, Requested: c.begun, Received: now}
	if !safe(x.r.Method) && status >= 200 && status < 400 {
		x.invalidate(h)
	}
	if c.flight == nil || c.over {
		if x.r.Method == http.MethodHead && c.forwarded != "" {
			switch o := c.found.Object; {
			case o == nil:
			case status < 500 && cache.Withheld(x.connection):
				x.server.config.Cache.Discard(&c.key, o)
			case status < 500:
				x.server.config.Cache.Update(&c.key, o, &c.policy, &c.asked, &head)
			case o.OnError(status, now):
				clear(h)
				x.serveStale(o, status, false, now)
				x.w.sink = new(refusing)
				return true
			}
		}
		delete(h, "Cache-Tag")
		return false
	}
	base := c.flight.Base
	if c.validating && status == http.StatusNotModified {
		return x.validated(&head)
	}
	if base != nil && base.OnError(status, now) {
		x.overWithStale(status)
		return true
	}
	length := bodyLength(status, h)
	o, why := c.flight.Policy().Judge(&c.asked, &head)
	if why == "" && cache.Withheld(x.connection) {
		why = reasonConnection
	}
	if why == "" {
		why = c.flight.Begin(o, length)
	}
	if why != "" {
		if status >= 502 && status <= 504 {
			// It says nothing of the request, and who waits would find the same.
			c.flight.Fail(status, nil)
		} else {
			c.flight.Release(now, c.conditional || c.background || why == cache.ReasonSize)
		}
		c.over = true
		switch {
		case overrules(status):
			c.flight.Overtaken()
		case c.background:
			c.flight.Unsettled(now)
		}
		x.tell("miss", told{forwarded: c.forwarded, detail: why})
		delete(h, "Cache-Tag")
		if c.background {
			x.w.sink = new(refusing)
		}
		return c.background
	}
	c.object, c.setCookie = o, h["Set-Cookie"]
	clear(h)
	x.w.sink = (*filling)(x)
	x.tell("miss", told{forwarded: c.forwarded}.fresh(o.TTLSeconds(now))) // whether it is stored shows at its end
	if !c.background && !c.whole {
		x.beginClient(length)
	}
	return true
}

// reasonConnection is why an answer is not stored whose origin says in Connection of a field that decides on storing that it is for
// this hop alone: it is gone by now, and its absence must not make more storable than it would (RFC 9110 §7.6.1).
const reasonConnection = "connection"

// overrules reports whether an answer tells that what is stored of its key is not suitable any more (RFC 9111 §4.3.3), with a validator or
// without: not an error of the server's, nor what speaks of the client's own copy or range.
func overrules(status int) bool {
	switch status {
	case http.StatusPartialContent, http.StatusNotModified, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		return false
	}
	return status < 500
}

// bodyLength is the length of an answer's body as its head tells it, -1 when it does not.
func bodyLength(status int, h http.Header) int64 {
	if status == http.StatusNoContent {
		return 0
	}
	if v := h["Content-Length"]; len(v) > 0 {
		if n, ok := http1.ParseLength(v[0]); ok {
			return n
		}
	}
	return -1
}

// validated takes a 304 to a question whether the stale object is the answer yet.
func (x *exchange) validated(head *cache.Head) bool {
	c := &x.cache
	o, why, ok := c.flight.Base.Refreshed(c.flight.Policy(), &c.asked, head)
	clear(head.Header)
	if !ok {
		c.again = true
		x.w.sink = new(refusing)
		return true
	}
	if why == "" && cache.Withheld(x.connection) {
		why = reasonConnection
	}
	settled := x.settle()
	if why != "" {
		settled.Discard = why
		c.flight.Overtaken()
	}
	why = c.flight.Complete(o, settled)
	c.over = true
	x.tell("revalidated", x.kept(told{forwarded: forwardedStale, status: http.StatusNotModified}, o, why, head.Received))
	if !c.background {
		x.tellAge(o, head.Received)
		x.serve(o, &c.conditions)
	}
	x.w.sink = new(refusing)
	return true
}

// overWithStale answers everybody with what is stale, since the origin failed with a status.
func (x *exchange) overWithStale(status int) {
	c := &x.cache
	now := x.server.config.Now()
	c.flight.Stale(status, now)
	c.over = true
	clear(x.w.Header())
	if !c.background {
		x.serveStale(c.flight.Base, status, false, now)
	}
	x.w.sink = new(refusing)
}

// failing is told that the request is about to be answered with an error of the node's own. When it returns true it is answered.
func (x *exchange) failing(status int) bool {
	c := &x.cache
	if c.flight == nil {
		if o := c.found.Object; c.on && o != nil && c.forwarded != "" && x.r.Method == http.MethodHead {
			if now := x.server.config.Now(); o.OnError(status, now) {
				x.serveStale(o, status, false, now)
				return true
			}
		}
		return false
	}
	if c.over {
		return false
	}
	if base := c.flight.Base; base != nil && base.OnError(status, x.server.config.Now()) {
		x.overWithStale(status)
		return true
	}
	if c.background {
		c.flight.Unsettled(x.server.config.Now())
	}
	c.flight.Fail(status, nil)
	c.over = true
	x.tell("miss", told{forwarded: c.forwarded})
	return false
}

// filling takes the body of an answer into its flight.
type filling exchange

// Write implements io.Writer. What becomes too long, or more than may be on its way, goes on to the client that asked, alone.
func (f *filling) Write(p []byte) (int, error) {
	x := (*exchange)(f)
	c := &x.cache
	why, err := c.flight.Write(p)
	if err != nil {
		return 0, err
	}
	if why == "" {
		return len(p), nil
	}
	if overrules(c.object.Status) {
		c.flight.Overtaken()
	}
	c.flight.Release(x.server.config.Now(), why == cache.ReasonSize)
	c.over, c.object = true, nil
	x.w.sink = nil
	if c.served || c.background {
		return 0, errNobody
	}
	err = x.joinClient()
	c.flight.Drop()
	if err != nil && !errors.Is(err, errFlight) {
		return 0, err
	}
	return x.w.Write(p)
}

// trailed is told that a trailer follows the body that was taken into the flight: the answer is not stored, for what is stored has none, and
// the client that asked has its body. toClient: the trailer can follow it. left: the client is not there any more.
func (x *exchange) trailed() (toClient, left bool) {
	c := &x.cache
	if c.object == nil || c.over {
		return false, false // an answer that nobody wants
	}
	if overrules(c.object.Status) {
		c.flight.Overtaken()
	}
	c.flight.Trailed(x.server.config.Now())
	c.over, c.object = true, nil
	if c.served || c.background {
		return false, false
	}
	x.w.sink = nil
	err := x.joinClient()
	c.flight.Drop()
	if err != nil && !errors.Is(err, errFlight) {
		return false, true
	}
	c.served = true
	return x.w.status != http.StatusPartialContent, false
}

// maxRefused bounds how much of an answer that nobody wants is read, so that its connection can be used again.
const maxRefused = 64 << 10

var errNobody = errors.New("nobody wants the rest of the answer")

// refusing takes an answer that nobody wants, as far as that is worth it.
type refusing struct{ n int }

// Write implements io.Writer.
func (r *refusing) Write(p []byte) (int, error) {
	if r.n += len(p); r.n > maxRefused {
		return 0, errNobody
	}
	return len(p), nil
}

// clientStream sends the client what its flight brings, beside the exchange that brings it: a client that is slow holds up nobody else.
type clientStream struct {
	recorder
	done chan struct{}
	err  error
}

// beginClient sends the client the head, and begins to send the body.
func (x *exchange) beginClient(length int64) {
	c := &x.cache
	part, body := x.clientHead(length)
	if !body {
		c.served = true
		x.w.flushClient()
		return
	}
	s := &clientStream{recorder: recorder{ResponseWriter: x.w.ResponseWriter, status: x.w.status}, done: make(chan struct{})}
	c.stream = s
	flight := c.flight
	go func() {
		defer close(s.done)
		s.err = copyFlight(&s.recorder, flight, part, nil)
		s.flush() // of an answer that has no end too
	}()
}

// clientHead sends the client that asked the head of the answer.
func (x *exchange) clientHead(length int64) (part cache.Part, body bool) {
	c := &x.cache
	if len(c.setCookie) > 0 {
		x.w.Header()["Set-Cookie"] = c.setCookie
	}
	x.tellAge(c.object, x.server.config.Now())
	sink := x.w.sink
	x.w.sink = nil // what is answered here is the client's
	part, body = x.serveHead(c.object, &c.conditions, length)
	x.w.sink = sink
	return part, body
}

// joinClient waits until the client has what the flight brought.
func (x *exchange) joinClient() error {
	s := x.cache.stream
	if s == nil {
		return nil
	}
	<-s.done
	x.cache.stream = nil
	x.w.bytes += s.bytes
	return s.err
}

// settle is how the answer is stored under the view that is served now, which may not be the one that it was asked for under.
func (x *exchange) settle() cache.Settled {
	c := &x.cache
	settled := cache.Settled{Policy: c.flight.Policy(), Query: c.key.Query, Generation: x.view.Generation()}
	view := x.server.config.View()
	if view == nil || view == x.view {
		return settled
	}
	settled.Generation = view.Generation()
	z := view.Host(x.rule.Host)
	if z == x.zone {
		return settled
	}
	if z == nil || z.Config.ID != x.zone.Config.ID || z.Cache == nil {
		settled.Discard = cache.ReasonOvertaken
		return settled
	}
	policy := x.policyUnder(z)
	settled.Policy, settled.Query = &policy, policy.Query.Of(x.rule.Query)
	if policy.Bypass || !policy.SameSource(c.flight.Policy()) {
		settled.Discard = cache.ReasonOvertaken
	}
	return settled
}

// kept is t of an answer o that came to its end: it is stored, or why says why not, and then no lifetime is told of it.
func (x *exchange) kept(t told, o *cache.Object, why string, now time.Time) told {
	if why != "" {
		t.detail = why
		return t
	}
	t.stored = true
	return t.fresh(o.TTLSeconds(now))
}

// endCache stores an answer that came to its end, and lets the client have what it has not yet.
func (x *exchange) endCache() {
	c := &x.cache
	if c.flight == nil {
		return
	}
	x.w.sink = nil
	if c.object != nil && !c.over {
		o, why := c.flight.End(x.settle())
		c.object, c.over = o, true
		switch {
		case c.stream != nil:
			if x.joinClient() != nil {
				panic(http.ErrAbortHandler) // the client left
			}
		case !c.served && !c.background:
			c.served = true
			x.tell("miss", x.kept(told{forwarded: c.forwarded}, o, why, x.server.config.Now()))
			if part, body := x.clientHead(int64(len(o.Body))); body {
				x.w.Write(o.Body[part.Start:part.End]) //nolint:errcheck // a client that left needs no answer
			}
		}
	}
	x.closeCache()
}

// abandon ends an exchange whose answer has no end. A client that has all of its own answer is not concerned.
func (x *exchange) abandon() {
	c := &x.cache
	served := c.served
	x.closeCache()
	if !served {
		panic(http.ErrAbortHandler) // as net/http asks of a handler that cannot end its answer
	}
}

// closeCache gives a flight up that has not ended.
func (x *exchange) closeCache() {
	c := &x.cache
	f := c.flight
	if f == nil {
		return
	}
	x.w.sink = nil
	if !c.over {
		c.over = true
		if c.background {
			f.Unsettled(x.server.config.Now()) // of a client's own, it may be the client that left
		}
		f.Fail(http.StatusBadGateway, nil)
	}
	x.joinClient() //nolint:errcheck // it has ended, which is all that counts
	if c.unhook != nil {
		c.unhook()
	}
	c.flight = nil
	f.Close()
}
