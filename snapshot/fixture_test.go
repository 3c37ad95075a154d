package snapshot_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

const (
	id1 = zone.ID("01890a5d-ac96-774b-bcce-b302099a8057")
	id2 = zone.ID("01890a5d-ac96-774b-bcce-b302099a8058")
	id3 = zone.ID("01890a5d-ac96-774b-bcce-b302099a8059")
)

// startModule is the smallest WASI command: it exports an empty _start.
var startModule = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b")

func fixture(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/fixture/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func record(tb testing.TB, zoneName, name, typ, content string, ttl uint32, proxied bool) zone.Record {
	tb.Helper()
	r, err := zone.ParseRecord(zone.MustName(zoneName), name, typ, content, ttl, proxied)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// amthal is a zone that has something of everything.
func amthal(tb testing.TB) *zone.Zone {
	const n = "amthalgroup.com"
	trace := zone.Percent(250)
	query := ""
	return &zone.Zone{
		ID: id1, Name: zone.MustName(n),
		Records: []zone.Record{
			record(tb, n, "@", "A", "198.51.100.10", 0, true),
			record(tb, n, "@", "MX", "10 mail.amthalgroup.com.", 3600, false),
			record(tb, n, "@", "NS", "ns1.guardyn.example.", 86400, false),
			record(tb, n, "@", "CAA", `0 issue "ca.example"`, 0, false),
			record(tb, n, "@", "TXT", `"v=spf1 <&> -all"`, 0, false),
			record(tb, n, "mail", "A", "198.51.100.11", 0, false),
			record(tb, n, "www", "CNAME", "@", 60, true),
			record(tb, n, "_sip._tcp", "SRV", "1 2 5060 mail.amthalgroup.com.", 0, false),
		},
		Rulesets: map[zone.Phase][]zone.Rule{
			zone.PhaseRedirect:         {{Expression: `http.path == "/old"`, Action: zone.ActionRedirect, Parameters: zone.Parameters{Location: "/new", Status: 301}}},
			zone.PhaseTransformRequest: {{Expression: `true`, Action: zone.ActionRewrite, Parameters: zone.Parameters{Path: "/", Query: &query}}},
			zone.PhaseCustom: {
				{Expression: `http.path.startsWith("/wp-") && !in_list(ip.src, "office")`, Action: zone.ActionBlock, Description: "scanners"},
				{Expression: `http.path == "/off"`, Action: zone.ActionBlock, Enabled: new(bool)},
			},
			zone.PhaseRatelimit: {{Expression: `true`, Action: zone.ActionRateLimit, Parameters: zone.Parameters{Key: "string(ip.src) + http.host", Period: zone.Duration(10 * time.Second), Limit: 100}}},
			zone.PhaseOrigin:    {{Expression: `http.host == "api.amthalgroup.com"`, Action: zone.ActionRoute, Parameters: zone.Parameters{Pool: "main"}}},
			zone.PhaseFunction:  {{Expression: `http.path == "/hello"`, Action: zone.ActionFunction, Parameters: zone.Parameters{Function: "hello"}}},
		},
		Lists: map[string]zone.List{"office": {Kind: zone.ListIP, Items: []string{"192.0.2.0/24", "2001:db8::/32"}}},
		Pools: map[string]zone.Pool{
			"main": {
				Origins: []zone.Origin{{Name: "a", Address: "192.0.2.10:443", Scheme: zone.SchemeHTTPS}, {Name: "b", Address: "origin.example.net", Weight: 3}},
				Health:  &zone.HealthCheck{}, SlowStart: zone.Duration(30 * time.Second),
				OutlierDetection: &zone.OutlierDetection{Enabled: new(bool)},
			},
		},
		LoadBalancers: map[zone.Name]zone.LoadBalancer{
			zone.MustName("lb.amthalgroup.com"): {Pools: []string{"main"}, Sticky: &zone.Sticky{}},
		},
		CachePolicy: zone.CachePolicy{DefaultTTL: zone.Duration(time.Minute)},
		TLSHosts: map[zone.Name]zone.TLSHost{
			zone.MustName("www.amthalgroup.com"): {Certificate: fixture(tb, "cert.pem"), SealedKey: fixture(tb, "key.age")},
		},
		Functions: map[string]zone.Function{"hello": {Module: startModule, Environment: map[string]string{"GREETING": "salām \U0001F600", "PRIVATE_USE": "\uE000"}}},
		Settings:  zone.Settings{TraceSampling: &trace, ErrorPages: map[string]string{"503": "<h1>soon & back</h1>"}},
		Ceilings:  zone.Ceilings{Records: 100},
	}
}

func lab(tb testing.TB) *zone.Zone {
	const n = "lab.example.org"
	return &zone.Zone{ID: id2, Name: zone.MustName(n), Records: []zone.Record{record(tb, n, "@", "A", "203.0.113.5", 0, false)}}
}

func inputs(zones ...*zone.Zone) []snapshot.ZoneInput {
	in := make([]snapshot.ZoneInput, len(zones))
	for i, z := range zones {
		in[i] = snapshot.ZoneInput{Workspace: "one", Zone: z}
	}
	return in
}

var meta42 = snapshot.Meta{
	Version: 42, ParentVersion: 41, CreatedAt: time.Date(2026, 3, 1, 12, 30, 15, 0, time.UTC), CreatedBy: "ops@example.com", Message: "first <light> \U0001F600",
}

func mustBuild(tb testing.TB, m snapshot.Meta, zones ...*zone.Zone) *snapshot.Snapshot {
	tb.Helper()
	s, _, err := snapshot.Build(snapshot.Input{Zones: inputs(zones...), Now: at}, m)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// referenceHash computes the content hash of a document with other tools than the package: encoding/json to
// take the zones out, the JSON library to make them canonical.
func referenceHash(tb testing.TB, doc []byte) string {
	tb.Helper()
	var d struct {
		Zones json.RawMessage `json:"zones"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		tb.Fatal(err)
	}
	v := jsontext.Value(d.Zones)
	if err := v.Canonicalize(); err != nil {
		tb.Fatal(err)
	}
	sum := blake3.Sum256(v)
	return hex.EncodeToString(sum[:])
}
