package host

import (
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
)

// expiry knows when the certificate of the served view that ends first does, without a pass over all zones unless that one goes. It is
// safe for concurrent use.
type expiry struct {
	mu     sync.Mutex
	at     time.Time
	passes int // over all zones
}

// first is zero without any certificate.
func (x *expiry) first() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.at
}

// swapped tells that after is served in the place of before, nil for nothing. It costs what differs.
func (x *expiry) swapped(before, after *edge.View) {
	x.mu.Lock()
	defer x.mu.Unlock()
	lost := false
	after.Changed(before, func(was, is *edge.Zone) {
		if was != nil {
			for name, h := range was.TLS.Hosts() {
				kept := is != nil && is.TLS.Host(name) == h
				lost = lost || !kept && !h.Leaf().NotAfter.After(x.at)
			}
		}
		if is != nil {
			for _, h := range is.TLS.Hosts() {
				x.see(h)
			}
		}
	})
	if !lost {
		return
	}
	x.at = time.Time{}
	x.passes++
	after.TLSHosts(func(_ string, h *edge.TLSHost) bool {
		x.see(h)
		return true
	})
}

func (x *expiry) see(h *edge.TLSHost) {
	if end := h.Leaf().NotAfter; x.at.IsZero() || end.Before(x.at) {
		x.at = end
	}
}

// forgetZones gives up the counts of single zones that the node no longer has.
func (e *Edge) forgetZones(before, after *edge.View) {
	if e.webZones == nil {
		return
	}
	var gone []string
	after.Changed(before, func(was, is *edge.Zone) {
		if is == nil {
			gone = append(gone, was.Config.Name.String())
		}
	})
	e.webZones.Forget(gone)
	e.dnsZones.Forget(gone)
}
