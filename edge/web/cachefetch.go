package web

import (
	"maps"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/pool"
)

// maxFetches bounds the exchanges that no client waits for: those that validate what was served stale, and that fetch the whole of
// which a part was asked for.
const maxFetches = 256

// refresh validates the stale object that is being served, unless somebody does already or as many as may be are under way.
func (x *exchange) refresh() {
	c := &x.cache
	f, leads := x.server.config.Cache.Join(&c.key, &c.policy, &c.found)
	switch {
	case f == nil:
	case !leads:
		f.Leave()
	case !x.fetch(f):
		f.Release(x.server.config.Now(), false)
		f.Close()
	}
}

// fetch has a flight brought by an exchange of its own, as this one's client would ask for it. false: too many are under way.
func (x *exchange) fetch(f *cache.Flight) bool {
	s := x.server
	select {
	case s.fetches <- struct{}{}:
	default:
		return false
	}
	b := s.exchange(&nowhere{make(http.Header)}, nil, nil)
	b.r = (&http.Request{
		Method: http.MethodGet, URL: x.r.URL, Proto: x.r.Proto, ProtoMajor: x.r.ProtoMajor, ProtoMinor: x.r.ProtoMinor,
		Header: x.r.Header.Clone(), Host: x.r.Host, RemoteAddr: x.r.RemoteAddr, RequestURI: x.r.RequestURI, TLS: x.r.TLS,
	}).WithContext(s.life)
	b.view, b.zone, b.peer, b.chain, b.scheme = x.view, x.zone, x.peer, slices.Clone(x.chain), x.scheme
	b.skipped, b.pool, b.function = maps.Clone(x.skipped), x.pool, x.function
	from, to := &x.rule, &b.rule
	to.Host, to.Method, to.Path, to.Query, to.Scheme, to.Version = from.Host, http.MethodGet, from.Path, from.Query, from.Scheme, from.Version
	to.Header, to.Client, to.SNI, to.TLSVersion, to.Zone = b.r.Header, from.Client, from.SNI, from.TLSVersion, from.Zone
	b.cache = caching{
		on: true, background: true, policy: x.cache.policy, skips: x.cache.skips, key: x.cache.key, found: x.cache.found, forwarded: x.cache.forwarded,
		asked: x.cache.asked,
	}
	b.cache.asked.Header = b.r.Header.Clone()
	b.lead(f)
	s.fetching.Go(func() {
		defer func() {
			if n := b.rule.Errors; n > 0 {
				s.counters.ruleErrors.Add(uint64(n))
			}
			s.recycle(b)
			<-s.fetches
		}()
		b.bring()
	})
	return true
}

// bring runs an exchange that no client waits for.
func (x *exchange) bring() {
	defer func() {
		if r := recover(); r != nil && r != http.ErrAbortHandler && x.server.config.Logger != nil {
			x.server.config.Logger.Error("panic in an exchange for the cache", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	defer x.closeCache()
	x.cache.begun = x.server.config.Now()
	x.produce() // by what was chosen already
	x.endCache()
}

// produce has the function or an origin answer, once more when a 304 was of another answer than the one that is stored.
func (x *exchange) produce() {
	if x.function == nil && !x.chooseTarget() {
		return
	}
	x.cache.begun = x.server.config.Now()
	x.fulfil()
	if !x.cache.again {
		return
	}
	x.cache.again, x.cache.validating, x.w.sink = false, false, nil
	delete(x.r.Header, "If-None-Match")
	delete(x.r.Header, "If-Modified-Since")
	x.result = pool.Result{}
	x.fulfil()
}

// fulfil answers by the function or the origin that was chosen.
func (x *exchange) fulfil() {
	if x.function != nil {
		x.callFunction()
		return
	}
	x.forward()
}

// nowhere is the client of an exchange that none waits for.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) WriteHeader(int)             {}
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
