package seal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

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

func signingKey(tb testing.TB) seal.SigningKey {
	tb.Helper()
	k, err := seal.ParseSigningKey(strings.Repeat("01", 32))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func buildSealed(tb testing.TB, in []snapshot.ZoneInput, version uint64) (*snapshot.Snapshot, seal.Sealed) {
	tb.Helper()
	s, _, err := snapshot.Build(snapshot.Input{Zones: in, Now: now}, snapshot.Meta{Version: version, CreatedAt: now})
	if err != nil {
		tb.Fatal(err)
	}
	sealed, err := seal.Seal(signingKey(tb), s)
	if err != nil {
		tb.Fatal(err)
	}
	return s, sealed
}

// BenchmarkBuildHashSeal is what an apply does between reading rows and storing the artefact.
func BenchmarkBuildHashSeal(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("zones=%d", n), func(b *testing.B) {
			in := platform(b, n)
			b.ReportAllocs()
			for b.Loop() {
				_, sealed := buildSealed(b, in, 1)
				b.ReportMetric(float64(len(sealed.Payload)), "payload-B")
			}
		})
	}
}

// BenchmarkOpenVerify is what a node does between the last byte of an artefact and the compilation: with
// nothing in memory, and with one record changed against what it serves.
func BenchmarkOpenVerify(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("zones=%d", n), func(b *testing.B) {
			in := platform(b, n)
			prev, _ := buildSealed(b, in, 1)
			z := *in[n/2].Zone
			z.Records = slices.Clone(z.Records)
			z.Records[0].TTL = 61
			in[n/2].Zone = &z
			_, sealed := buildSealed(b, in, 2)
			k := signingKey(b)
			signed, err := seal.Activate(k, sealed, seal.Activation{
				Platform: "01890a5d-ac96-774b-bcce-b302099a8000", Epoch: 1, Generation: 2, Kind: seal.KindApply, ParentGeneration: 1, IssuedAt: now,
			})
			if err != nil {
				b.Fatal(err)
			}
			trusted, err := seal.Trust(k.Public())
			if err != nil {
				b.Fatal(err)
			}
			a := seal.Artefact{Sealed: sealed, Activation: signed}
			for _, c := range []struct {
				name string
				prev *snapshot.Snapshot
			}{{"first", nil}, {"change", prev}} {
				b.Run(c.name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						v, err := seal.Open(a, trusted, c.prev)
						if err != nil {
							b.Fatal(err)
						}
						if d := v.Snapshot().Delta(c.prev); c.prev != nil && len(d.Changed) != 1 {
							b.Fatalf("%d zones changed", len(d.Changed))
						}
					}
				})
			}
		})
	}
}
