package edge_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/rrset"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

func newZone(t testing.TB, n int, apex string, records ...string) *zone.Zone {
	t.Helper()
	z := &zone.Zone{ID: zone.ID(fmt.Sprintf("0198c5a0-0000-7000-8000-%012d", n)), Name: zone.MustName(apex)}
	for _, line := range records {
		line, proxied := strings.CutSuffix(line, " proxied")
		f := strings.SplitN(line, " ", 3)
		r, err := zone.ParseRecord(z.Name, f[0], f[1], f[2], 0, proxied)
		if err != nil {
			t.Fatal(err)
		}
		z.Records = append(z.Records, r)
	}
	return z
}

func build(t testing.TB, version uint64, zones ...*zone.Zone) *snapshot.Snapshot {
	t.Helper()
	in := snapshot.Input{Now: time.Unix(1, 0), Zones: make([]snapshot.ZoneInput, len(zones))}
	for i, z := range zones {
		in.Zones[i] = snapshot.ZoneInput{Workspace: "w", Zone: z}
	}
	s, _, err := snapshot.Build(in, snapshot.Meta{Version: version, CreatedAt: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parse takes s through its document, as a node does, against what the node has.
func parse(t testing.TB, s, prev *snapshot.Snapshot) *snapshot.Snapshot {
	t.Helper()
	parsed, err := snapshot.Parse(s.JSON(), prev)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func compile(t testing.TB, old *edge.View, s *snapshot.Snapshot, generation uint64) *edge.View {
	t.Helper()
	v, err := edge.Compile(old, s, generation, edge.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// hasA reports whether a view has exactly that address at a name.
func hasA(v *edge.View, name, address string) bool {
	wire, ok := rrset.AppendWire(nil, name)
	if !ok {
		return false
	}
	z, offset := v.ZoneForWire(wire)
	if z == nil {
		return false
	}
	set, ok := z.Records.Set(z.Records.Match(wire[:offset]).Node, dns.TypeA)
	a := netip.MustParseAddr(address).As4()
	return ok && set.Count == 1 && slices.Equal(set.Data[12:], a[:])
}

func TestViewTellsWhatItIs(t *testing.T) {
	s := build(t, 42, newZone(t, 1, "a.example"))
	v := compile(t, nil, s, 58)
	if v.Version() != 42 || v.Generation() != 58 || v.ContentHash() != s.ContentHash() || v.Len() != 1 || v.Snapshot() != s {
		t.Errorf("%d %d %s %d", v.Version(), v.Generation(), v.ContentHash(), v.Len())
	}
	var live edge.Live
	if live.Load() != nil {
		t.Error("a view before the first")
	}
	live.Store(v)
	if live.Load() != v {
		t.Error("another view")
	}
}

func TestZoneFor(t *testing.T) {
	v := compile(t, nil, build(
		t, 1,
		newZone(t, 1, "example.com"), newZone(t, 2, "sub.example.com"), newZone(t, 3, "example.co.uk"), newZone(t, 4, "xn--bcher-kva.example"),
	), 1)
	for _, row := range []struct{ name, want string }{
		{"example.com", "example.com"},
		{"www.example.com", "example.com"},
		{"a.b.c.d.example.com", "example.com"},
		{"sub.example.com", "sub.example.com"},
		{"x.sub.example.com", "sub.example.com"},
		{"xsub.example.com", "example.com"},
		{"www.example.co.uk", "example.co.uk"},
		{"*.xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"com", ""},
		{"co.uk", ""},
		{"", ""},
		{".", ""},
		{"example.com.", ""},
		{"..", ""},
		{".example.com", ""},
		{"xexample.com", ""},
		{"EXAMPLE.COM", ""},
		{"example.com.evil", ""},
		{strings.Repeat("a", 64) + ".example.com", ""},
		{strings.Repeat("a.", 200) + "example.com", ""},
	} {
		got := ""
		if z := v.ZoneFor(row.name); z != nil {
			got = z.Config.Name.String()
		}
		if got != row.want {
			t.Errorf("%q: %q, want %q", row.name, got, row.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { v.Host("a.b.sub.example.com") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestProxiedOrigin(t *testing.T) {
	v := compile(t, nil, build(t, 1, newZone(
		t, 1, "example.com",
		"@ A 93.184.216.1 proxied", "www A 93.184.216.2 proxied", "www AAAA 2606:2800::2 proxied", "app CNAME origin.example.net proxied",
		"plain A 93.184.216.3", "*.tenant A 93.184.216.4 proxied", "real.tenant TXT x", "sub NS ns.example.net", "*.deep.ent A 93.184.216.5 proxied",
	)), 1)
	z := v.Host("example.com")
	for _, row := range []struct {
		name string
		want string // "" is no origin
	}{
		{"example.com", "[93.184.216.1] "},
		{"www.example.com", "[93.184.216.2 2606:2800::2] "},
		{"app.example.com", "[] origin.example.net"},
		{"plain.example.com", ""},
		{"none.example.com", ""},
		{"a.tenant.example.com", "[93.184.216.4] "},
		{"a.b.tenant.example.com", "[93.184.216.4] "},
		{"real.tenant.example.com", ""},
		{"x.real.tenant.example.com", ""},
		{"tenant.example.com", ""},
		{"*.tenant.example.com", "[93.184.216.4] "},
		{"x.sub.example.com", ""},
		{"ent.example.com", ""},
		{"x.deep.ent.example.com", "[93.184.216.5] "},
		{"example.net", ""},
		{"", ""},
		{"xexample.com", ""},
		{"com", ""},
		{strings.Repeat("a", 64) + ".example.com", ""},
	} {
		got := ""
		if o, ok := z.ProxiedOrigin(row.name); ok {
			got = fmt.Sprint(o.Addresses, " ", o.Target)
		}
		if got != row.want {
			t.Errorf("%q: %q, want %q", row.name, got, row.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { z.ProxiedOrigin("a.tenant.example.com") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSharing takes a platform through changes of each kind, parsed as a node does and not, and compares with
// a view compiled from nothing.
func TestSharing(t *testing.T) {
	type platform map[int]*zone.Zone
	steps := []struct {
		name    string
		change  func(platform)
		changed []int // zones that may not be shared
	}{
		{"one record", func(p platform) { p[3] = newZone(t, 3, "z3.example", "www A 192.0.2.200") }, []int{3}},
		{"a new zone", func(p platform) { p[50] = newZone(t, 50, "z50.example", "www A 192.0.2.50") }, []int{50}},
		{"a zone below another", func(p platform) { p[51] = newZone(t, 51, "below.z4.example", "@ A 192.0.2.51") }, []int{51}},
		{"a removed zone", func(p platform) { delete(p, 5) }, nil},
		{"a renamed zone", func(p platform) { p[6] = newZone(t, 6, "y6.example", "www A 192.0.2.6") }, []int{6}},
		{"two zones swap names", func(p platform) {
			p[7], p[8] = newZone(t, 7, "z8.example", "www A 192.0.2.7"), newZone(t, 8, "z7.example", "www A 192.0.2.8")
		}, []int{7, 8}},
		{"a name that changes hands", func(p platform) {
			delete(p, 9)
			p[60] = newZone(t, 60, "z9.example", "www A 192.0.2.60")
		}, []int{60}},
		{"nothing", func(platform) {}, nil},
		{"all at once", func(p platform) {
			delete(p, 10)
			p[11] = newZone(t, 11, "z10.example", "www A 192.0.2.11")
			p[12] = newZone(t, 12, "z11.example", "www A 192.0.2.12")
			p[70] = newZone(t, 70, "z12.example", "www A 192.0.2.70")
		}, []int{11, 12, 70}},
	}
	for _, parsed := range []bool{true, false} {
		t.Run(fmt.Sprintf("parsed %t", parsed), func(t *testing.T) {
			p := platform{}
			for i := range 40 {
				p[i] = newZone(t, i, fmt.Sprintf("z%d.example", i), fmt.Sprintf("www A 192.0.2.%d", i))
			}
			snap := func(version uint64, prev *edge.View) *snapshot.Snapshot {
				var zones []*zone.Zone
				for _, z := range p {
					zones = append(zones, z)
				}
				s := build(t, version, zones...)
				if parsed {
					var before *snapshot.Snapshot
					if prev != nil {
						before = prev.Snapshot()
					}
					s = parse(t, s, before)
				}
				return s
			}
			old := compile(t, nil, snap(1, nil), 1)
			for i, step := range steps {
				step.change(p)
				s := snap(uint64(i+2), old)
				v := compile(t, old, s, uint64(i+2))
				if v.Len() != len(p) {
					t.Errorf("%s: %d zones, want %d", step.name, v.Len(), len(p))
				}
				for n, z := range p {
					got := v.ZoneFor(z.Name.String())
					if got == nil || got.Config.ID != z.ID {
						t.Errorf("%s: zone %d is not there", step.name, n)
						continue
					}
					name, address := z.Records[0].Name.String(), z.Records[0].Content
					if !hasA(v, name, address) {
						t.Errorf("%s: %s is not %s", step.name, name, address)
					}
					if shared := got == old.ZoneFor(z.Name.String()); shared == slices.Contains(step.changed, n) {
						t.Errorf("%s: zone %d shared %t", step.name, n, shared)
					}
				}
				old = v
			}
			for _, name := range []string{"z5.example", "z6.example"} {
				if old.ZoneFor(name) != nil {
					t.Errorf("%s is still there", name)
				}
			}
		})
	}
}

// TestOldViewStays: a view that is in use does not see the ones after it.
func TestOldViewStays(t *testing.T) {
	a, b := newZone(t, 1, "a.example", "www A 192.0.2.1"), newZone(t, 2, "b.example", "www A 192.0.2.2")
	old := compile(t, nil, build(t, 1, a, b), 1)
	v := compile(t, old, build(t, 2, newZone(t, 1, "a.example", "www A 192.0.2.9")), 2)
	if !hasA(old, "www.a.example", "192.0.2.1") || !hasA(old, "www.b.example", "192.0.2.2") || old.Len() != 2 || old.Generation() != 1 {
		t.Error("the old view has changed")
	}
	if !hasA(v, "www.a.example", "192.0.2.9") || v.ZoneFor("www.b.example") != nil || v.Len() != 1 {
		t.Error("the new view is not the new snapshot")
	}
}

func TestServiceAddresses(t *testing.T) {
	s := build(t, 1, newZone(t, 1, "a.example", "www A 93.184.216.1 proxied"))
	old, err := edge.Compile(nil, s, 1, edge.Options{ServiceAddresses: []netip.Addr{netip.MustParseAddr("::ffff:198.51.100.1")}})
	if err != nil {
		t.Fatal(err)
	}
	if set, ok := old.Service().Set(dns.TypeA); !ok || set.Count != 1 {
		t.Error("a mapped address is not IPv4")
	}
	if _, ok := old.Service().Set(dns.TypeAAAA); ok {
		t.Error("an IPv6 address")
	}
	// Other addresses, the same zones.
	v, err := edge.Compile(old, s, 2, edge.Options{ServiceAddresses: []netip.Addr{netip.MustParseAddr("2001:db8::1")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := v.Service().Set(dns.TypeAAAA); !ok || v.ZoneFor("a.example") != old.ZoneFor("a.example") {
		t.Error("the addresses did not change, or the zones did")
	}
}

func TestCompileErrors(t *testing.T) {
	good := newZone(t, 1, "good.example", "www A 192.0.2.1")
	old := compile(t, nil, build(t, 1, good), 1)
	for name, row := range map[string]struct {
		snapshot *snapshot.Snapshot
		options  edge.Options
		want     string
	}{
		"no snapshot":     {nil, edge.Options{}, "there is no snapshot"},
		"many addresses":  {build(t, 2, good), edge.Options{ServiceAddresses: slices.Repeat([]netip.Addr{netip.MustParseAddr("::1")}, 17)}, "0 IPv4 and 17 IPv6 service addresses, at most 16"},
		"address not set": {build(t, 2, good), edge.Options{ServiceAddresses: make([]netip.Addr, 1)}, "service address 1 is not set"},
	} {
		v, err := edge.Compile(old, row.snapshot, 2, row.options)
		if v != nil || err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTrustedProxiesAreCompiledWithTheZone(t *testing.T) {
	with, without := newZone(t, 1, "a.example"), newZone(t, 2, "b.example")
	with.Settings.TrustedProxies = []string{"198.51.100.0/24", "2001:db8::1", "::ffff:192.0.2.0/120"}
	if err := with.Normalize(); err != nil {
		t.Fatal(err)
	}
	s := build(t, 1, with, without)
	v := compile(t, nil, s, 1)
	if z := v.ZoneFor("b.example"); z.TrustedProxies != nil {
		t.Error("a zone that trusts nobody has a table")
	}
	z := v.ZoneFor("a.example")
	for address, want := range map[string]bool{
		"198.51.100.255": true, "198.51.101.0": false, "2001:db8::1": true, "2001:db8::2": false,
		"192.0.2.7": true, "::ffff:192.0.2.7": false, // addresses come unmapped
	} {
		if got := z.TrustedProxies.Contains(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: trusted is %v, want %v", address, got, want)
		}
	}
	changed := newZone(t, 2, "b.example", "@ A 192.0.2.1")
	if next := compile(t, v, build(t, 2, with, changed), 2); next.ZoneFor("a.example").TrustedProxies != z.TrustedProxies {
		t.Error("an unchanged zone was compiled again")
	}
}

func TestSerialRisesOverARecovery(t *testing.T) {
	s := build(t, 1)
	serial := func(epoch, generation uint64) uint32 {
		v, err := edge.Compile(nil, s, generation, edge.Options{Epoch: epoch})
		if err != nil {
			t.Fatal(err)
		}
		return v.Serial()
	}
	if serial(0, 7) != 7 || serial(1, 7) != 7 {
		t.Error("the first epoch's serial is not the generation")
	}
	// RFC 1982: greater by less than 2^31.
	for _, row := range [][4]uint64{{1, 7, 1, 8}, {1, 900, 2, 5}, {2, 900, 3, 901}} {
		if d := serial(row[2], row[3]) - serial(row[0], row[1]); d == 0 || d >= 1<<31 {
			t.Errorf("epoch %d generation %d: the serial does not rise", row[2], row[3])
		}
	}
}
