package cache

import (
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// BenchmarkPurge purges 100,000 objects of a cache, all of them by one kind of purge.
func BenchmarkPurge(b *testing.B) {
	for _, kind := range []zone.PurgeKind{zone.PurgeAll, zone.PurgePrefix, zone.PurgeTag, zone.PurgeURL} {
		b.Run(string(kind), func(b *testing.B) {
			c := New(1 << 30)
			p := policyOf(b, zone.CachePolicy{})
			values := map[zone.PurgeKind][]string{zone.PurgePrefix: {"www.example.com/object/"}, zone.PurgeTag: {"b"}}[kind]
			for i := 0; kind == zone.PurgeURL && i < zone.MaxPurgeValues; i++ {
				values = append(values, "https://www.example.com"+path(i))
			}
			for n := range b.N {
				b.StopTimer()
				for i := range 100_000 {
					fill(b, c, key(path(i)), p, make([]byte, 100), "Cache-Control", "max-age=60", "Cache-Tag", "a, b")
				}
				b.StartTimer()
				c.Purge([]zone.Purge{purge(uint64(n+1), kind, values...)})
				b.StopTimer()
				c.Close()
			}
		})
	}
}
