package edge_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/zone"
)

// platform has n zones of ten records each.
func platform(b testing.TB, n int) []*zone.Zone {
	b.Helper()
	zones := make([]*zone.Zone, n)
	for i := range zones {
		apex := fmt.Sprintf("zone%d.example", i)
		zones[i] = newZone(
			b, i, apex,
			"@ NS ns1.guardyn.example", "@ NS ns2.guardyn.example", "@ MX 10 mail."+apex, "@ TXT v=spf1 mx -all",
			fmt.Sprintf("@ A 93.184.%d.%d proxied", i>>8&255, i&255), "www CNAME "+apex, "mail A 93.184.216.34",
			"mail AAAA 2606:2800:220:1::1", "_dmarc TXT v=DMARC1; p=none", "*.dev A 93.184.216.35",
		)
	}
	return zones
}

var sizes = []int{1_000, 10_000, 100_000}

// BenchmarkCompileFirst compiles a platform from nothing. held-MB is what the view holds, its snapshot not
// counted.
func BenchmarkCompileFirst(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("zones=%d", n), func(b *testing.B) {
			s := build(b, 1, platform(b, n)...)
			b.ReportAllocs()
			before := heap()
			var v *edge.View
			for b.Loop() {
				v = compile(b, nil, s, 1)
			}
			b.ReportMetric(float64(heap()-before)/1e6, "held-MB")
			runtime.KeepAlive(v)
			runtime.KeepAlive(s)
		})
	}
}

// BenchmarkCompileChange compiles one changed record on a platform, after verification: what a swap costs.
func BenchmarkCompileChange(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("zones=%d", n), func(b *testing.B) {
			zones := platform(b, n)
			first := parse(b, build(b, 1, zones...), nil)
			old := compile(b, nil, first, 1)
			zones[n/2] = newZone(b, n/2, fmt.Sprintf("zone%d.example", n/2), "www A 192.0.2.1")
			next := parse(b, build(b, 2, zones...), first)
			zones = nil
			b.ReportAllocs()
			before := heap()
			var v *edge.View
			for b.Loop() {
				v = compile(b, old, next, 2)
			}
			b.ReportMetric(float64(heap()-before)/1e6, "held-MB")
			runtime.KeepAlive([]any{v, old, first, next})
		})
	}
}

// BenchmarkZoneFor finds the zone of a host name.
func BenchmarkZoneFor(b *testing.B) {
	const n = 10_000
	v := compile(b, nil, build(b, 1, platform(b, n)...), 1)
	hosts := make([]string, n)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("www.zone%d.example", i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if v.Host(hosts[i]) == nil {
			b.Fatal("no zone")
		}
		if i++; i == n {
			i = 0
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
