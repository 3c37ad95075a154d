package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/guardyn-edge/guardyn/edge/cache"
)

// Why a request went forward (RFC 9211 §2.2).
const (
	forwardedBypass   = "bypass"    // the cache had no part, by a rule or by what the request is
	forwardedMethod   = "method"    // by its method
	forwardedURIMiss  = "uri-miss"  // there is nothing under the key
	forwardedVaryMiss = "vary-miss" // there is, for other values of the fields in Vary
	forwardedStale    = "stale"
	forwardedRequest  = "request" // what there is may not be served to a request with Authorization
)

// told is what Cache-Status (RFC 9211 §2) says of an answer that is no hit.
type told struct {
	forwarded string // empty: it did not go forward, nor is it a hit
	// status is what the origin answered with where the client is answered with another, else 0.
	status int
	// collapsed: the answer is what another request brought, or notUsed, was waited for in vain.
	collapsed, notUsed bool
	stored             bool
	detail             string
	hasTTL             bool
	ttl                int64 // seconds
}

// fresh is t with what is left of o's lifetime.
func (t told) fresh(seconds int64) told {
	t.ttl, t.hasTTL = seconds, true
	return t
}

func (t *told) String() string {
	var b strings.Builder
	b.WriteString(cache.Name)
	if t.forwarded != "" {
		b.WriteString("; fwd=" + t.forwarded)
	}
	if t.status != 0 {
		b.WriteString("; fwd-status=" + strconv.Itoa(t.status))
	}
	switch {
	case t.collapsed:
		b.WriteString("; collapsed")
	case t.notUsed:
		b.WriteString("; collapsed=?0")
	}
	if t.stored {
		b.WriteString("; stored")
	}
	if t.hasTTL {
		b.WriteString("; ttl=" + strconv.FormatInt(t.ttl, 10))
	}
	if t.detail != "" {
		b.WriteString("; detail=" + t.detail)
	}
	return b.String()
}

// tell notes what the access log and Cache-Status say of the cache's part.
func (x *exchange) tell(outcome string, t told) {
	c := &x.cache
	if t.forwarded != "" && !t.collapsed {
		t.notUsed = c.waited
	}
	c.outcome, c.told = outcome, t
	x.w.cacheStatus = []string{t.String()}
}

// tellOrigins notes that the origin answered with another status than the client is answered with, who without a word takes it for the
// same (RFC 9211 §2.3).
func (x *exchange) tellOrigins(status, client int) {
	t := &x.cache.told
	if t.forwarded == "" || t.status != 0 || status == client {
		return
	}
	t.status = status
	x.w.cacheStatus = []string{t.String()}
}

// tellMethod notes that a method is none that the cache answers.
func (x *exchange) tellMethod() {
	if m := x.r.Method; m != http.MethodGet && m != http.MethodHead {
		x.w.cacheStatus = []string{cache.Name + "; fwd=" + forwardedMethod}
	}
}
