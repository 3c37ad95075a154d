package web

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/internal/fieldname"
)

// errBrokenOff begins the error of an answer that an origin did not end.
var errBrokenOff = errors.New("the origin broke off its answer")

// relay sends the answer whose head is in t to the client. false: it could not be sent to its end, and the client has
// what came of it.
func (x *exchange) relay(c *originConn, t *transit) bool {
	if x.early {
		x.closeConnection()
	}
	announced := x.answerHeader(&t.head)
	b := &t.body
	x.cache.whole = b.state == bodyEnded || b.state == bodyCounted && b.left <= int64(len(b.in))
	x.respond(t.head.status)
	if b.state == bodyToTheEnd || b.state == bodyChunkSize {
		// Of an answer whose length nobody knows, such as a stream of events, nothing is held back while the origin
		// is waited for.
		pending := true
		b.waits = func() {
			if pending {
				x.w.flush()
				pending = false
			}
		}
		return x.relayBody(b, &pending) && x.relayTrailer(b.trailer, announced)
	}
	return x.relayBody(b, nil)
}

// relayBody copies the body. pending is set to true for each piece that was written.
func (x *exchange) relayBody(b *originBody, pending *bool) bool {
	if b.state == bodyEnded {
		return true
	}
	if b.state != bodyCounted || b.left > int64(len(b.in)) {
		buf := x.server.buffers.Get()
		defer x.server.buffers.Put(buf)
		b.buf = buf
	}
	for {
		p, err := b.next()
		if len(p) > 0 {
			if _, err := x.w.Write(p); err != nil {
				return false // the client left
			}
			if pending != nil {
				*pending = true
			}
		}
		switch {
		case err == io.EOF:
			if len(b.in) == 0 {
				b.in = nil // of a buffer that goes back
			}
			return true
		case err != nil:
			x.brokenOff(err)
			return false
		}
	}
}

// brokenOff notes that the origin did not end its answer, unless the client left or its own body failed before, and
// sends what came of it: what is still held back would be thrown away.
func (x *exchange) brokenOff(err error) {
	if !x.left() && (x.body == nil || x.body.failure() == nil) {
		x.result.Err = err
		x.originErr = fmt.Errorf("%w after %d octets: %w", errBrokenOff, max(x.w.bytes, x.w.sunk), err)
		x.tryFailed(x.originErr)
		x.server.counters.originErrors.Add(1)
	}
	x.w.flush()
}

// respond is told that the head of an origin's answer is in the client's header, and sends it, unless the cache has the answer. Either way
// the body is written to the client's writer then.
func (x *exchange) respond(status int) {
	x.came(status)
	if x.cache.on && x.cacheAnswer(status) {
		return
	}
	x.begin(status)
}

// begin runs the rules of the response phases and sends the answer's head.
func (x *exchange) begin(status int) {
	x.runResponsePhases()
	if h := x.w.Header(); len(h["Content-Type"]) == 0 {
		h["Content-Type"] = nil // keeps net/http, by HTTP/2, from guessing one
	}
	x.w.WriteHeader(status)
}

// came notes that an origin's answer has come.
func (x *exchange) came(status int) {
	now := time.Now()
	x.result.Status, x.result.Latency = status, now.Sub(x.sent)
	x.meters.firstByte.Observe(now.Sub(x.asked))
	x.tryAnswered(status, now)
}

// runResponsePhases lets rules change the client's header.
func (x *exchange) runResponsePhases() {
	h := x.w.Header()
	s := x.server
	for i := range s.phases {
		if p := &s.phases[i]; p.response != nil && x.zone.Rules != nil && !x.skipped[p.name] {
			p.response(x, p.name, h)
		}
	}
	if x.sticky != "" {
		h["Set-Cookie"] = append(h["Set-Cookie"], x.sticky)
	}
}

// answerHeader adds the fields of an origin's answer to the client's, but for those that end at this hop or are the
// node's, and returns the names of trailers that it announces.
func (x *exchange) answerHeader(a *answerHead) (announced []string) {
	h := x.w.Header()
	x.connection = a.connection
	values := make([]string, len(a.fields))
	for i := range a.fields {
		f := &a.fields[i]
		switch {
		case f.name == "Trailer" && a.chunked:
			announced = x.appendAnnounced(announced, f.value)
			continue
		case f.name == "Content-Length":
			if a.status == http.StatusNoContent || len(h[f.name]) > 0 {
				continue
			}
		case f.name == "Upgrade" && x.tellsUpgrade(a.status):
		case fieldname.HopByHop(f.name) || fieldname.Node(f.name) || listed(a.connection, f.name):
			continue
		}
		if v, ok := h[f.name]; ok {
			h[f.name] = append(v, f.value)
			continue
		}
		values[i] = f.value
		h[f.name] = values[i : i+1 : i+1]
	}
	if len(announced) > 0 {
		h["Trailer"] = []string{strings.Join(announced, ", ")}
	}
	return announced
}

// tellsUpgrade reports whether the client is told to what the server wants it to go over, and adds the option that goes with it
// (RFC 9110 §7.8, §15.5.22).
func (x *exchange) tellsUpgrade(status int) bool {
	tells := status == http.StatusUpgradeRequired && x.r.ProtoMajor == 1 // HTTP/2 has no place for it (RFC 9113 §8.2.2)
	if h := x.w.Header(); tells && !http1.Lists(h["Connection"], "upgrade") {
		h["Connection"] = append(h["Connection"], "Upgrade")
	}
	return tells
}

// listed reports whether Connection lists a field, "close" and "keep-alive" being no fields.
func listed(connection []string, name string) bool {
	return len(connection) > 0 && http1.Lists(connection, name)
}

// appendAnnounced appends the names of a value of Trailer that may pass (RFC 9110 §6.6.2).
func (x *exchange) appendAnnounced(names []string, value string) []string {
	for part := range strings.SplitSeq(value, ",") {
		if name := http.CanonicalHeaderKey(http1.Trim(part)); x.trailerPasses(name) {
			names = append(names, name)
		}
	}
	return names
}

// trailerPasses reports whether a field may be said after a body: none that frames a message, is the node's or was
// listed in Connection.
func (x *exchange) trailerPasses(name string) bool {
	return fieldname.SettableInRequest(name) && !listed(x.connection, name)
}

// relayTrailer sends what came after the body.
func (x *exchange) relayTrailer(trailer []field, announced []string) bool {
	if len(trailer) == 0 && len(announced) == 0 {
		return true
	}
	if x.w.sink != nil {
		if len(trailer) == 0 {
			return true
		}
		if toClient, left := x.trailed(); left || !toClient {
			return !left
		}
	}
	x.w.flush() // else net/http, by HTTP/2, gives a short body a length
	h := x.w.Header()
	for _, name := range announced {
		delete(h, name) // of the header, if there was one
	}
	for _, f := range trailer {
		if !x.trailerPasses(f.name) {
			continue
		}
		name := http.TrailerPrefix + f.name
		for _, a := range announced {
			if a == f.name {
				name = f.name
			}
		}
		h[name] = append(h[name], f.value)
	}
	return true
}

// interim passes an interim answer on (RFC 9110 §15.2), but for one that only concerns this hop.
func (x *exchange) interim(a *answerHead) {
	if a.status == http.StatusContinue {
		// The client hears it when its body is read.
		if x.pump != nil {
			x.pump.continued()
		}
		return
	}
	h := x.w.Header()
	before := maps.Clone(h)
	clear(h)
	x.answerHeader(a)
	delete(h, "Content-Length")
	x.w.WriteHeader(a.status)
	clear(h)
	maps.Copy(h, before)
}
