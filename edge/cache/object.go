package cache

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Head is the head of an answer as it came from what stands behind the cache.
type Head struct {
	Status int
	// Header is without the fields that end at this hop, names in canonical form.
	Header http.Header
	// Requested is when it was asked for, Received when it came.
	Requested, Received time.Time
}

// Asked is what of a request decides on what may be stored and served for it.
type Asked struct {
	// Header is what the origin gets, before the cache changes it.
	Header http.Header
	// Authorized says that it has Authorization, Cookies that it has Cookie.
	Authorized, Cookies bool
	// Generation is that of the view that treats the request.
	Generation uint64
}

// Field is a header field with its lines.
type Field struct {
	Name   string
	Values []string
}

// Object is a stored answer, or one on its way into the cache. It is immutable and shared: its fields must not be changed, nor appended to.
type Object struct {
	Status int
	// Fields have no Content-Length, which is that of Body, nor Set-Cookie or Cache-Tag.
	Fields []Field
	// Body is nil while a flight brings it.
	Body []byte
	// Tags are those of Cache-Tag.
	Tags []string

	policy     *Policy
	generation uint64
	received   time.Time
	timing     timing
	requested  time.Time

	revalidate, onError time.Duration // how long it may be served stale
	noCache             bool
	strict              bool // never stale (RFC 9111 §4.2.4)
	shared              bool // also for requests with Authorization (RFC 9111 §3.5)
	cookies             bool // it was asked for with cookies
	setCookie           bool // it came with Set-Cookie
	vary                []varied
	etag, lastModified  string
	size                int64

	purged atomic.Bool  // not to be served: purged, or overtaken by one that other fields select
	failed atomic.Int64 // when revalidation failed last, in Unix nanoseconds
	memo   atomic.Pointer[memo]
	length []string // Content-Length
}

// memo keeps what an answer says of age for the second that it is true in.
type memo struct {
	age         int64
	text, state []string
}

// Age is how old o is (RFC 9111 §4.2.3).
func (o *Object) Age(now time.Time) time.Duration {
	return o.timing.initialAge + max(0, now.Sub(o.received))
}

// TTL is for how long o is fresh yet; zero or less when it is stale, and whenever it must be validated.
func (o *Object) TTL(now time.Time) time.Duration {
	if o.noCache {
		return min(0, o.timing.lifetime-o.Age(now))
	}
	return o.timing.lifetime - o.Age(now)
}

// TTLSeconds is what of its lifetime is left beside what Age tells, both in whole seconds; it is not above zero for what must be
// validated.
func (o *Object) TTLSeconds(now time.Time) int64 {
	left := int64(o.timing.lifetime/time.Second) - int64(o.Age(now)/time.Second)
	if o.noCache {
		return min(0, left)
	}
	return left
}

// WhileRevalidating reports whether o, being stale, may be served while it is validated (RFC 5861 §3).
func (o *Object) WhileRevalidating(now time.Time) bool {
	return !o.strict && -o.TTL(now) < o.revalidate
}

// OnError reports whether o, being stale, may be served since the origin fails with that status (RFC 5861 §4).
func (o *Object) OnError(status int, now time.Time) bool {
	return !o.strict && gatewayError(status) && -o.TTL(now) < o.onError && !o.purged.Load()
}

// retryAfter is how long the origin is left alone after a revalidation failed, while what is stale may be served.
const retryAfter = 5 * time.Second

// Failed notes that the origin failed to validate o.
func (o *Object) Failed(now time.Time) { o.failed.Store(now.UnixNano()) }

// Resting reports whether o may be served stale without asking the origin, which failed a moment ago.
func (o *Object) Resting(now time.Time) bool {
	at := o.failed.Load()
	return at != 0 && now.Sub(time.Unix(0, at)) < retryAfter && (o.OnError(http.StatusGatewayTimeout, now) || o.WhileRevalidating(now))
}

// Validators returns what a conditional request for o says in If-None-Match and If-Modified-Since (RFC 9111 §4.3.1), empty
// for none.
func (o *Object) Validators() (etag, lastModified string) { return o.etag, o.lastModified }

// ContentLength is the field's value, as it is kept. It is nil while a flight brings the body.
func (o *Object) ContentLength() []string { return o.length }

// HitStatus are the values of Age and of Cache-Status (RFC 9211) of an answer from the cache.
func (o *Object) HitStatus(now time.Time) (age, status []string) {
	seconds := int64(o.Age(now) / time.Second)
	m := o.memo.Load()
	if m == nil || m.age != seconds {
		ttl := o.TTLSeconds(now)
		m = &memo{
			age: seconds, text: []string{strconv.FormatInt(seconds, 10)},
			state: []string{Name + "; hit; ttl=" + strconv.FormatInt(ttl, 10)},
		}
		o.memo.Store(m)
	}
	return m.text, m.state
}

// Name is what this cache is called in Cache-Status.
const Name = "guardyn"

const (
	// objectOverhead is what an object takes beside its octets, with its place in the store; fieldOverhead a field of it.
	// TestMemoryIsAccounted compares them with the heap.
	objectOverhead = 450
	fieldOverhead  = 96
)

// with is o with its body, as it is stored.
func (o *Object) with(body []byte) *Object {
	n := &Object{
		Status: o.Status, Fields: o.Fields, Tags: o.Tags, policy: o.policy, generation: o.generation, received: o.received, timing: o.timing,
		requested: o.requested, revalidate: o.revalidate, onError: o.onError, noCache: o.noCache, strict: o.strict, shared: o.shared,
		cookies: o.cookies, setCookie: o.setCookie, vary: o.vary, etag: o.etag, lastModified: o.lastModified,
	}
	n.setBody(body)
	return n
}

// setBody ends the building of o.
func (o *Object) setBody(body []byte) {
	o.Body = body
	o.length = []string{strconv.Itoa(len(body))}
	o.weigh()
}

// weigh works out how many octets o takes.
func (o *Object) weigh() {
	n := int64(objectOverhead + cap(o.Body))
	for _, f := range o.Fields {
		n += fieldOverhead + int64(len(f.Name))
		for _, v := range f.Values {
			n += 16 + int64(len(v))
		}
	}
	for _, v := range o.vary {
		n += 32 + int64(len(v.name)+len(v.value))
	}
	for _, t := range o.Tags {
		n += 16 + int64(len(t))
	}
	o.size = n
}

// notStored are fields that are not kept (RFC 9111 §3.1): those of this hop are gone by now.
func notStored(name string) bool {
	switch name {
	case "Content-Length", "Set-Cookie", "Cache-Tag", "Trailer", "Age":
		return true
	}
	return false
}

// keep copies the fields of h that are stored, into memory of their own, one piece for all values.
func keep(h http.Header) []Field {
	octets, lines, n := 0, 0, 0
	for name, values := range h {
		if notStored(name) || len(values) == 0 {
			continue
		}
		n++
		lines += len(values)
		for _, v := range values {
			octets += len(v)
		}
	}
	var text strings.Builder
	text.Grow(octets)
	fields, values := make([]Field, 0, n), make([]string, 0, lines)
	for name, from := range h {
		if notStored(name) || len(from) == 0 {
			continue
		}
		start := len(values)
		for _, v := range from {
			at := text.Len()
			text.WriteString(v)
			values = append(values, text.String()[at:])
		}
		fields = append(fields, Field{strings.Clone(name), values[start:len(values):len(values)]})
	}
	return fields
}

// header is o's fields as a map, whose values are o's.
func (o *Object) header() http.Header {
	h := make(http.Header, len(o.Fields)+1)
	for _, f := range o.Fields {
		h[f.Name] = f.Values
	}
	return h
}
