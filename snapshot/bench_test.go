package snapshot_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// platform makes n zones of ten records, as rows would hold them.
func platform(tb testing.TB, n int) []snapshot.ZoneInput {
	tb.Helper()
	in := make([]snapshot.ZoneInput, n)
	for i := range in {
		name := zone.MustName(fmt.Sprintf("zone-%06d.example.com", i))
		rec := func(label, typ, content string, ttl uint32, proxied bool) zone.Record {
			r, err := zone.ParseRecord(name, label, typ, content, ttl, proxied)
			if err != nil {
				tb.Fatal(err)
			}
			return r
		}
		z := &zone.Zone{
			ID: zone.ID(fmt.Sprintf("01890000-0000-7000-8000-%012x", i)), Name: name,
			Records: []zone.Record{
				rec("@", "A", fmt.Sprintf("198.51.%d.%d", i>>8&255, i&255), 0, true),
				rec("@", "AAAA", fmt.Sprintf("2001:db8::%x:%x", i>>12+1, i&4095+1), 0, true),
				rec("@", "MX", "10 mail."+name.String()+".", 3600, false),
				rec("@", "NS", "ns1.guardyn.example.", 86400, false),
				rec("@", "NS", "ns2.guardyn.example.", 86400, false),
				rec("@", "TXT", "v=spf1 include:_spf.example.net -all", 0, false),
				rec("_dmarc", "TXT", "v=DMARC1; p=none", 0, false),
				rec("api", "A", "203.0.113.7", 60, false),
				rec("mail", "A", "203.0.113.9", 0, false),
				rec("www", "CNAME", name.String()+".", 0, true),
			},
		}
		if err := z.Normalize(); err != nil {
			tb.Fatal(err)
		}
		in[i] = snapshot.ZoneInput{Workspace: fmt.Sprint(i % 100), Zone: z}
	}
	return in
}

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func build(tb testing.TB, zones []snapshot.ZoneInput, version uint64) *snapshot.Snapshot {
	tb.Helper()
	s, _, err := snapshot.Build(snapshot.Input{Zones: zones, Now: at}, snapshot.Meta{
		Version: version, ParentVersion: version - 1, CreatedAt: at, CreatedBy: "ops@example.com", Message: "bench",
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

var sizes = []int{1_000, 10_000, 100_000}

func BenchmarkBuild(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("zones=%d", n), func(b *testing.B) {
			in := platform(b, n)
			b.ReportAllocs()
			for b.Loop() {
				build(b, in, 2)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("zones=%d", n), func(b *testing.B) {
			in := platform(b, n)
			prev := build(b, in, 1)
			z := *in[n/2].Zone
			z.Records = slices.Clone(z.Records)
			z.Records[0].TTL = 61
			in[n/2].Zone = &z
			next := build(b, in, 2).JSON()
			for name, prev := range map[string]*snapshot.Snapshot{"first": nil, "change": prev} {
				b.Run(name, func(b *testing.B) {
					b.SetBytes(int64(len(next)))
					b.ReportAllocs()
					for b.Loop() {
						if _, err := snapshot.Parse(next, prev); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}
