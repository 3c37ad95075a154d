package edge_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// faulty is s with some of its text replaced, as a control plane would publish it that does not judge what it builds: its
// content hash is right.
func faulty(t *testing.T, s *snapshot.Snapshot, oldNew ...string) *snapshot.Snapshot {
	t.Helper()
	doc := string(s.JSON())
	changed := strings.NewReplacer(oldNew...).Replace(doc)
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(doc, oldNew[i]) {
			t.Fatalf("%s is not in %s", oldNew[i], doc)
		}
	}
	const zones = `"zones":`
	_, tail, found := strings.Cut(changed, zones)
	if !found {
		t.Fatal("a document without zones")
	}
	sum := blake3.Sum256([]byte(strings.TrimSuffix(tail, "}")))
	forged, err := snapshot.Parse(bytes.Replace([]byte(changed), []byte(s.ContentHash()), []byte(hex.EncodeToString(sum[:])), 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	return forged
}

// wasmStart is a module whose _start does nothing.
const wasmStart = "\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x07\x0a\x01\x06_start\x00\x00" + "\x0a\x04\x01\x02\x00\x0b"

// TestCeilingsAreJudgedAgain: what a zone has is judged by the ceilings that the snapshot says it has, although no build would
// have let it pass. What is at its ceiling compiles.
func TestCeilingsAreJudgedAgain(t *testing.T) {
	id := newIdentity(t)
	certificate, key := pair(t, time.Unix(1800, 0), "a.example", "www.a.example")
	host := zone.TLSHost{Certificate: certificate, SealedKey: id.seal(t, key)}
	origin := func(name string) zone.Origin { return zone.Origin{Name: name, Address: "192.0.2.1:80"} }
	pools := func(z *zone.Zone) {
		z.Pools = map[string]zone.Pool{"p": {Origins: []zone.Origin{origin("a"), origin("b")}}, "q": {Origins: []zone.Origin{origin("c")}}}
	}
	function := func(f zone.Function) func(*zone.Zone) {
		return func(z *zone.Zone) {
			f.Module = []byte(wasmStart)
			z.Functions = map[string]zone.Function{"f": f}
		}
	}
	rules := func(n int) []zone.Rule {
		list := make([]zone.Rule, n)
		for i := range list {
			list[i] = zone.Rule{Expression: "true", Action: zone.ActionLog}
		}
		return list
	}
	rows := map[string]struct {
		has      func(*zone.Zone)
		at, over string // the ceiling in JSON: what the zone has, and less
		want     string
	}{
		"records": {func(z *zone.Zone) {
			z.Records = newZone(t, 1, "a.example", "www A 192.0.2.1", "www A 192.0.2.2", "mail A 192.0.2.3").Records
		}, "3", "2", "it has 3 records, at most 2"},
		"rules": {func(z *zone.Zone) {
			z.Rulesets = map[zone.Phase][]zone.Rule{zone.PhaseCustom: rules(2), zone.PhaseRatelimit: rules(1)}
		}, "3", "2", "it has 3 rules, at most 2"},
		"lists": {func(z *zone.Zone) {
			z.Lists = map[string]zone.List{"a": {Kind: zone.ListString}, "b": {Kind: zone.ListIP}}
		}, "2", "1", "it has 2 lists, at most 1"},
		"list_items": {func(z *zone.Zone) {
			z.Lists = map[string]zone.List{"a": {Kind: zone.ListString, Items: []string{"x", "y"}}, "b": {Kind: zone.ListIP, Items: []string{"192.0.2.1"}}}
		}, "3", "2", "it has 3 list items, at most 2"},
		"pools":   {pools, "2", "1", "it has 2 pools, at most 1"},
		"origins": {pools, "3", "2", "it has 3 origins, at most 2"},
		"load_balancers": {func(z *zone.Zone) {
			pools(z)
			b := zone.LoadBalancer{Pools: []string{"p"}}
			z.LoadBalancers = map[zone.Name]zone.LoadBalancer{zone.MustName("a.example"): b, zone.MustName("www.a.example"): b}
		}, "2", "1", "it has 2 load balancers, at most 1"},
		"tls_hosts": {func(z *zone.Zone) {
			z.TLSHosts = map[zone.Name]zone.TLSHost{zone.MustName("a.example"): host, zone.MustName("www.a.example"): host}
		}, "2", "1", "it has 2 TLS hosts, at most 1"},
		"functions": {func(z *zone.Zone) {
			z.Functions = map[string]zone.Function{"f": {Module: []byte(wasmStart)}, "g": {Module: []byte(wasmStart)}}
		}, "2", "1", "it has 2 functions, at most 1"},
		"function_size":   {function(zone.Function{}), fmt.Sprintf(`"%dB"`, len(wasmStart)), `"20B"`, fmt.Sprintf("the module of function f is %dB, at most 20B", len(wasmStart))},
		"function_memory": {function(zone.Function{Memory: 1 << 20}), `"1MiB"`, `"512KiB"`, "the memory of function f is 1MiB, at most 512KiB"},
		"function_time":   {function(zone.Function{Timeout: zone.Duration(300 * time.Millisecond)}), `"300ms"`, `"200ms"`, "the timeout of function f is 300ms, at most 200ms"},
		"function_output": {function(zone.Function{Output: 1 << 10}), `"1KiB"`, `"512B"`, "the output of function f is 1KiB, at most 512B"},
	}
	// Of what comes, and not of what a zone has.
	atRunTime := map[string]bool{"request_body": true, "request_rate": true}
	for f := range reflect.TypeFor[zone.Ceilings]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, ok := rows[name]; ok == atRunTime[name] {
			t.Errorf("ceiling %s: not in this table, or in it and judged at run time too", name)
		}
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			good := newZone(t, 2, "b.example")
			z := newZone(t, 1, "a.example")
			row.has(z)
			if err := z.Normalize(); err != nil {
				t.Fatal(err)
			}
			ceiling := fmt.Sprintf("%q:", name)
			if err := json.Unmarshal([]byte("{"+ceiling+row.at+"}"), &z.Ceilings); err != nil {
				t.Fatal(err)
			}
			s := build(t, 1, z, good)
			old, err := edge.Compile(nil, s, 1, edge.Options{Secrets: id})
			if err != nil {
				t.Fatalf("at its ceiling: %v", err)
			}
			v, err := edge.Compile(old, faulty(t, s, `"ceilings":{`+ceiling+row.at, `"ceilings":{`+ceiling+row.over), 2, edge.Options{})
			if v != nil || err == nil {
				t.Fatal("over its ceiling it compiles")
			}
			if want := "compile: zone a.example: ceiling " + name + ": " + row.want; err.Error() != want {
				t.Errorf("error %q, want %q", err, want)
			}
		})
	}
}

// TestCeilingsAreToldTogether: all zones and all ceilings of each.
func TestCeilingsAreToldTogether(t *testing.T) {
	a, b := newZone(t, 1, "a.example", "www A 192.0.2.1", "www A 192.0.2.2"), newZone(t, 2, "b.example", "@ TXT b", "@ TXT c", "@ TXT d")
	a.Lists = map[string]zone.List{"x": {Kind: zone.ListIP}, "y": {Kind: zone.ListIP}}
	a.Ceilings, b.Ceilings = zone.Ceilings{Records: 2, Lists: 2}, zone.Ceilings{Records: 3}
	s := build(t, 1, a, b, newZone(t, 3, "c.example", "www A 192.0.2.1"))
	_, err := edge.Compile(nil, faulty(t, s, `{"lists":2,"records":2}`, `{"lists":1,"records":1}`, `{"records":3}`, `{"records":1}`), 1, edge.Options{})
	const want = "compile: zone a.example: ceiling records: it has 2 records, at most 1\n" +
		"ceiling lists: it has 2 lists, at most 1\n" +
		"zone b.example: ceiling records: it has 3 records, at most 1"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestCeilingsByDefault: a plan that says nothing has ceilings too.
func TestCeilingsByDefault(t *testing.T) {
	z := newZone(t, 1, "a.example")
	z.Lists = make(map[string]zone.List)
	for i := range 51 {
		z.Lists[fmt.Sprintf("l%d", i)] = zone.List{Kind: zone.ListIP}
	}
	z.Ceilings.Lists = 51
	s := build(t, 1, z)
	if _, err := edge.Compile(nil, faulty(t, s, `"ceilings":{"lists":51},`, ``), 1, edge.Options{}); err == nil || !strings.Contains(err.Error(), "it has 51 lists, at most 50") {
		t.Errorf("error %v", err)
	}
}
