package web

import "net/http"

// busy answers a request for which there is no slot, of the node's or of its zone's share of them.
func (x *exchange) busy() {
	x.server.counters.shed.Add(1)
	h := x.w.Header()
	h.Set("Retry-After", "1")
	if x.r.ProtoMajor > 1 {
		// Without a body, which a client that gives no window would let wait where no slot bounds it.
		h.Set("Cache-Control", "no-store")
		x.w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	x.fail(http.StatusServiceUnavailable, "This node is busy.")
}

// enter counts the request among those of its zone that are being handled; false: there are too many, and it is answered. The
// caller calls leave in either case.
func (x *exchange) enter() bool {
	if x.zone.Handling.Add(1) <= int64(x.server.config.MaxRequestsPerZone) {
		return true
	}
	x.busy()
	return false
}

func (x *exchange) leave() { x.zone.Handling.Add(-1) }
