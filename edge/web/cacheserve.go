package web

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/edge/cache"
)

// hit answers with o, which is stored.
func (x *exchange) hit(o *cache.Object, now time.Time, kind cache.Kind) {
	x.server.config.Cache.Count(kind)
	x.cache.outcome = "hit"
	if kind == cache.StaleHit {
		x.cache.outcome = "stale"
	}
	age, status := o.HitStatus(now)
	x.w.Header()["Age"], x.w.cacheStatus = age, status
	x.cache.told = told{}
	conditions := cache.ConditionsOf(x.r.Header)
	x.serve(o, &conditions)
}

// serve answers with an object whose body is there.
func (x *exchange) serve(o *cache.Object, conditions *cache.Conditions) {
	x.cache.served = true
	if part, body := x.serveHead(o, conditions, int64(len(o.Body))); body {
		x.w.Write(o.Body[part.Start:part.End]) //nolint:errcheck // a client that left needs no answer
	}
}

// serveHead sends the head of an answer with o, whose body has size octets, -1 while nobody knows, and returns what of the body is to
// follow, if any is.
func (x *exchange) serveHead(o *cache.Object, conditions *cache.Conditions, size int64) (part cache.Part, body bool) {
	h := x.w.Header()
	status, part := o.Answer(x.r.Method, conditions, size)
	x.tellOrigins(o.Status, status)
	if status == http.StatusRequestedRangeNotSatisfiable {
		h["Content-Range"] = []string{cache.ContentRange(status, part, size)}
		x.answer(status, "text/plain; charset=utf-8", http.StatusText(status)+"\n")
		return part, false
	}
	for i := range o.Fields {
		if f := &o.Fields[i]; status != http.StatusNotModified || !ofBody(f.Name) {
			h[f.Name] = f.Values
		}
	}
	switch {
	case status == http.StatusNotModified || status == http.StatusNoContent:
		x.begin(status)
		return part, false
	case status == http.StatusPartialContent:
		h["Content-Range"] = []string{cache.ContentRange(status, part, size)}
		h["Content-Length"] = []string{strconv.FormatInt(part.End-part.Start, 10)}
	case o.ContentLength() != nil:
		h["Content-Length"] = o.ContentLength()
	case size >= 0:
		h["Content-Length"] = []string{strconv.FormatInt(size, 10)}
	}
	x.begin(status)
	return part, x.r.Method != http.MethodHead && size != 0
}

// ofBody reports whether a field describes a body that a 304 does not have (RFC 9110 §15.4.5).
func ofBody(name string) bool {
	switch name {
	case "Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Content-Md5", "Content-Digest", "Repr-Digest":
		return true
	}
	return false
}

// await waits for a flight that another exchange brings and answers with what it brought. again: that is not for this request, which
// is to look anew; neither: it goes to the origin by itself. own: the other exchange is one for this request, of which a part was asked for.
func (x *exchange) await(f *cache.Flight, own bool) (answered, again bool) {
	s, c := x.server, &x.cache
	outcome := "miss"
	if !own {
		outcome = "collapsed"
		s.config.Cache.Collapse()
	}
	left, unhook := x.leaving()
	defer unhook()
	defer f.Leave()
	a := f.Head(s.config.CacheWait, left)
	now := s.config.Now()
	switch a.Turn {
	case cache.Left:
		x.clientLeft()
	case cache.Served:
		if !a.Object.Matches(c.asked.Header) {
			return false, true
		}
		x.tell(outcome, told{forwarded: c.forwarded, status: a.Status, collapsed: !own}.fresh(a.Object.TTLSeconds(now)))
		x.tellAge(a.Object, now)
		conditions := cache.ConditionsOf(x.r.Header)
		if a.Object.ContentLength() != nil && a.Length == int64(len(a.Object.Body)) {
			x.serve(a.Object, &conditions)
			return true, false
		}
		if part, body := x.serveHead(a.Object, &conditions, a.Length); body {
			if err := copyFlight(x.w, f, part, left); err != nil {
				x.w.flush()
				panic(http.ErrAbortHandler) // the answer has begun and has no end
			}
		}
		return true, false
	case cache.ServedStale:
		if o := c.found.Object; o != nil && o.OnError(a.Status, now) {
			x.serveStale(o, a.Status, !own, now)
			return true, false
		}
		return false, false
	case cache.Failed:
		if o := c.found.Object; o != nil && o.OnError(a.Status, now) {
			x.serveStale(o, a.Status, !own, now)
			return true, false
		}
		x.tell(outcome, told{forwarded: c.forwarded, collapsed: !own})
		x.fail(a.Status, "The site's server could not be reached.")
		return true, false
	}
	return false, false
}

// serveStale answers with o, since the origin failed with a status, for another request when collapsed is true.
func (x *exchange) serveStale(o *cache.Object, status int, collapsed bool, now time.Time) {
	x.server.config.Cache.Count(cache.StaleHit)
	x.tell("stale", told{forwarded: forwardedStale, status: status, collapsed: collapsed, detail: "stale-if-error"}.fresh(o.TTLSeconds(now)))
	x.tellAge(o, now)
	conditions := x.cache.conditions
	if x.cache.flight == nil {
		conditions = cache.ConditionsOf(x.r.Header)
	}
	x.serve(o, &conditions)
}

// tellAge adds Age to an answer that is not new.
func (x *exchange) tellAge(o *cache.Object, now time.Time) {
	if age := o.Age(now); age >= time.Second {
		x.w.Header()["Age"] = []string{strconv.FormatInt(int64(age/time.Second), 10)}
	}
}

// leaving returns a channel that is closed when the client leaves, until unhook.
func (x *exchange) leaving() (left <-chan struct{}, unhook func()) {
	conn := x.w.conn
	if conn == nil {
		return x.r.Context().Done(), func() {}
	}
	gone := make(chan struct{})
	leave := sync.OnceFunc(func() { close(gone) })
	conn.OnLeave(&leave)
	conn.Attend()
	return gone, func() { conn.OnLeave(nil) }
}

var errFlight = errors.New("the answer on its way has no end")

// copyFlight sends a part of what a flight brings as it comes; of a body whose length nobody knows, all.
func copyFlight(w *recorder, f *cache.Flight, part cache.Part, left <-chan struct{}) error {
	for at := part.Start; part.End < 0 || at < part.End; {
		p, more, ended, whole := f.Next(at)
		if part.End >= 0 {
			p = p[:min(int64(len(p)), part.End-at)]
		}
		if len(p) > 0 {
			if _, err := w.Write(p); err != nil {
				return err
			}
			at += int64(len(p))
			continue
		}
		if ended {
			if whole {
				return nil
			}
			return errFlight
		}
		w.flush()
		select {
		case <-more:
		case <-left:
			return errFlight
		}
	}
	return nil
}
