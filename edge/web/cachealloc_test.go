//go:build !race

package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// TestCacheHitAllocatesNothing: neither looking, nor choosing before who would answer.
func TestCacheHitAllocatesNothing(t *testing.T) {
	measure := func(rules ...func(*zone.Zone)) float64 {
		n := startNode(t, withCache(0)...)
		changes := append([]func(*zone.Zone){pools(map[string]*origin{"other": named(t, "other")}), func(z *zone.Zone) { z.Ceilings.RequestRate = 1_000_000 }}, rules...)
		n.publish(site(named(t, "main").address(), changes...))
		r := httptest.NewRequest(http.MethodGet, "http://www.example.com/", nil)
		r.RequestURI, r.URL.Scheme, r.URL.Host = "/", "", ""
		n.serve(t.Context(), "/")
		w := &nowhere{make(http.Header)}
		return testing.AllocsPerRun(200, func() {
			clear(w.header)
			n.Server.serve(w, r, nil)
		})
	}
	if n := measure(); n != 0 {
		t.Errorf("%.0f allocations without rules", n)
	}
	if n := measure(routed(`http.path == "/"`, "other")); n != 0 {
		t.Errorf("%.0f allocations with a rule that routes", n)
	}
}
