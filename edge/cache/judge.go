package cache

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

const (
	// maxTags bounds the tags of one answer. One with more, or with a tag longer than zone.MaxCacheTag, is not stored: purging
	// it by a tag that was left out would do nothing.
	maxTags = 128
	// maxFields bounds the octets of the fields of an object.
	maxFields = 64 << 10
)

// Why an answer is not stored: tokens, as Cache-Status tells them.
const (
	reasonStatus        = "status"
	reasonPartial       = "partial"
	reasonNoStore       = "no-store"
	reasonPrivate       = "private"
	reasonAuthorization = "authorization"
	reasonSetCookie     = "set-cookie"
	reasonVary          = "vary"
	reasonTags          = "cache-tag"
	reasonStale         = "stale"
	reasonTrailer       = "trailer"
	reasonFields        = "fields"
	// ReasonOvertaken is that of an answer that a purge, an unsafe method, a publication or a later answer overtook on its way; ReasonRoom: what
	// is asked for more often did not make room for it.
	ReasonOvertaken = "overtaken"
	ReasonRoom      = "room"
	// ReasonSize is that of an answer over the bound of one object; ReasonMemory: as many answers as may be are on their way.
	ReasonSize   = "size"
	ReasonMemory = "memory"
)

// Judge decides whether an answer may be stored (RFC 9111 §3), and for how long it is fresh. It returns the object that is to take the
// body, or why there is none.
func (p *Policy) Judge(a *Asked, h *Head) (*Object, string) {
	d, targeted := responseDirectives(h.Header)
	switch {
	case h.Status == http.StatusPartialContent || len(h.Header["Content-Range"]) > 0:
		return nil, reasonPartial
	case h.Status < 200 || h.Status > 599 || h.Status == http.StatusNotModified || h.Status == http.StatusUpgradeRequired || d.mustUnderstand && !understood(h.Status):
		return nil, reasonStatus
	case d.malformed || d.noStore && !d.mustUnderstand:
		return nil, reasonNoStore
	case d.private:
		return nil, reasonPrivate
	case len(h.Header["Trailer"]) > 0:
		return nil, reasonTrailer
	}
	o := &Object{
		Status: h.Status, policy: p, generation: a.Generation, received: h.Received, requested: h.Requested, noCache: d.noCache,
		shared: d.public || d.sharedMaxAge.set || d.mustRevalidate, cookies: a.Cookies, setCookie: len(h.Header["Set-Cookie"]) > 0,
		strict: d.noCache || d.mustRevalidate || d.proxyRevalidate,
	}
	if a.Authorized && !o.shared {
		return nil, reasonAuthorization
	}
	if o.setCookie && !p.StoreSetCookie {
		return nil, reasonSetCookie
	}
	names, ok := selectedBy(h.Header)
	if !ok {
		return nil, reasonVary
	}
	o.timing = p.times(h, &d, targeted, a.Cookies)
	o.revalidate = window(d.staleWhileRevalidate, p.StaleWhileRevalidate, p.RuleStaleWhileRevalidate)
	o.onError = window(d.staleIfError, p.StaleIfError, p.RuleStaleIfError)
	o.etag, o.lastModified = first(h.Header["Etag"]), first(h.Header["Last-Modified"])
	if !o.timing.explicit && !byHeuristic(h.Status) && !d.public {
		return nil, reasonStatus
	}
	// What is stale when it comes is of use only if it can be validated, or may be served stale.
	validated := h.Status == http.StatusOK && (o.etag != "" || o.lastModified != "")
	lasting := !o.strict && max(o.revalidate, o.onError) > 0 && o.timing.explicit
	if o.TTL(h.Received) <= 0 && !lasting && !(validated && (o.timing.explicit || d.noCache)) {
		return nil, reasonStale
	}
	if o.Tags, ok = tagsOf(h.Header["Cache-Tag"]); !ok {
		return nil, reasonTags
	}
	o.Fields = keep(h.Header)
	if len(h.Header["Date"]) == 0 {
		o.Fields = append(o.Fields, Field{"Date", []string{h.Received.UTC().Format(http.TimeFormat)}})
	}
	if o.etag != "" {
		o.etag = strings.Clone(o.etag)
	}
	o.lastModified = strings.Clone(o.lastModified)
	o.vary = valuesOf(names, a.Header)
	if o.weigh(); o.size > maxFields {
		return nil, reasonFields
	}
	return o, ""
}

// Withheld reports whether Connection, as it came with an answer, lists a field that [Policy.Judge] reads: it was for the hop before,
// and is not among those of the answer any more. What is left says less than the origin did, and is not to be stored.
func Withheld(connection []string) bool {
	for _, v := range connection {
		for part := range strings.SplitSeq(v, ",") {
			switch http.CanonicalHeaderKey(strings.Trim(part, " \t")) {
			case "Age", "Cache-Control", "Cache-Tag", "Cdn-Cache-Control", "Content-Encoding", "Content-Length", "Content-Range", "Content-Type",
				"Date", "Etag", "Expires", "Last-Modified", "Pragma", "Set-Cookie", "Trailer", "Vary":
				return true
			}
		}
	}
	return false
}

// window is how long an answer may be served stale: as a rule says, else the answer, else the zone.
func window(own seconds, policy time.Duration, rule bool) time.Duration {
	if own.set && !rule {
		return own.value
	}
	return policy
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// tagsOf reads Cache-Tag, sorted, each once.
func tagsOf(values []string) (tags []string, ok bool) {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			tag := strings.Trim(part, " \t")
			if tag == "" {
				continue
			}
			if _, err := zone.ParseCacheTag(tag); err != nil || len(tags) == maxTags {
				return nil, false
			}
			tags = append(tags, strings.Clone(tag))
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags), true
}

// Under returns o as another policy and generation would have stored it, or why they would not have.
func (o *Object) Under(p *Policy, generation uint64) (*Object, string) {
	h := &Head{Status: o.Status, Header: o.header(), Requested: o.requested, Received: o.received}
	if len(o.Tags) > 0 {
		h.Header["Cache-Tag"] = []string{strings.Join(o.Tags, ",")}
	}
	if o.setCookie {
		h.Header["Set-Cookie"] = []string{""}
	}
	asked := &Asked{Header: make(http.Header, len(o.vary)), Authorized: false, Cookies: o.cookies, Generation: generation}
	n, why := p.Judge(asked, h)
	if n == nil {
		return nil, why
	}
	n.timing.initialAge = max(n.timing.initialAge, o.timing.initialAge)
	n.vary = o.vary
	n.setBody(o.Body)
	return n, ""
}

// refreshes reports whether a 304 speaks of o (RFC 9111 §4.3.4): a validator that it has must be o's.
func (o *Object) refreshes(h http.Header) bool {
	if etag := first(h["Etag"]); etag != "" {
		return o.etag != "" && weakly(etag) == weakly(o.etag) && (isWeak(etag) || !isWeak(o.etag))
	}
	if at, ok := httpDate(h["Last-Modified"]); ok && !o.timing.lastModified.IsZero() {
		return at.Equal(o.timing.lastModified)
	}
	return true
}

// Refreshed returns o with the fields of the 304 that validated it (RFC 9111 §4.3.4) in place of its own, under p. ok is false when the
// 304 is not about o. When the answer may not be stored any longer, why says so; it may be served once.
func (o *Object) Refreshed(p *Policy, a *Asked, h *Head) (n *Object, why string, ok bool) {
	if !o.refreshes(h.Header) {
		return nil, "", false
	}
	merged := o.header()
	for name, values := range h.Header {
		switch name {
		// Those that describe the body, which stays (RFC 9111 §3.2).
		case "Content-Length", "Content-Encoding", "Content-Range", "Content-Type":
		case "Set-Cookie":
		default:
			merged[name] = values
		}
	}
	if len(h.Header["Date"]) == 0 {
		delete(merged, "Date")
	}
	if len(h.Header["Cache-Tag"]) == 0 && len(o.Tags) > 0 {
		merged["Cache-Tag"] = []string{strings.Join(o.Tags, ",")}
	}
	if n, why = p.Judge(a, &Head{Status: o.Status, Header: merged, Requested: h.Requested, Received: h.Received}); n == nil {
		// It is still the answer to who asked.
		n = &Object{Status: o.Status, Fields: keep(merged), policy: p, received: h.Received, etag: o.etag, lastModified: o.lastModified}
		n.timing = p.times(&Head{Status: o.Status, Header: merged, Requested: h.Requested, Received: h.Received}, new(directives), true, true)
	}
	n.setCookie = n.setCookie || o.setCookie
	n.setBody(o.Body)
	return n, why, true
}
