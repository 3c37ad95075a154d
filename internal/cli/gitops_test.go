package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guardyn-edge/guardyn/zone"
)

// writeZone writes a zone as export does and reads the directory as sync does.
func roundTrip(t interface {
	Fatalf(string, ...any)
	Fatal(...any)
}, dir string, s *zoneState,
) *zoneState {
	text, modules, err := formatZone(s)
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range modules {
		if _, err := writeChanged(filepath.Join(dir, path), data); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writeChanged(filepath.Join(dir, zoneFileName(s.name.String())), []byte(text)); err != nil {
		t.Fatal(err)
	}
	got, err := readDirectory(dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(got) != 1 {
		t.Fatalf("read %d zones", len(got))
	}
	again, _, err := formatZone(got[0])
	if err != nil || again != text {
		t.Fatalf("printed again it differs: %v\n%s", err, cmp.Diff(text, again))
	}
	return got[0]
}

func TestFilesHoldEveryKind(t *testing.T) {
	s := &zoneState{name: zone.MustName("2.0.192.in-addr.arpa"), objects: map[objectKey]object{}}
	for _, k := range objectKinds() {
		name, body := "one", ""
		switch k.member {
		case "rulesets":
			name, body = "custom", `[{"description":"a: b # c","expression":"http.path == \"\\u0000\"","action":"block","parameters":{"body":"two\nlines\n"}}]`
		case "lists":
			body = `{"kind":"string","items":["\u0001","1","\u2028","null","true","~","é"]}`
		case "pools":
			body = `{"origins":[{"name":"a","address":"[2001:db8::1]:80"}]}`
		case "load_balancers":
			name, body = "www.2.0.192.in-addr.arpa", `{"pools":["one"]}`
		case "cache_policy":
			name, body = "", `{"default_ttl":"5m"}`
		case "tls_hosts":
			name, body = "www.2.0.192.in-addr.arpa", `{"certificate":"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n","sealed_key":"-----BEGIN AGE ENCRYPTED FILE-----\nYWdlLWVuY3J5cHRpb24ub3JnL3YxCg==\n-----END AGE ENCRYPTED FILE-----\n"}`
		case "functions":
			body = `{"module":"AGFzbQEAAAA=","environment":{"A":"1"}}`
		case "settings":
			name, body = "", `{"trace_sampling":"50.00%"}`
		}
		normal, err := k.normal(name, []byte(body))
		if err != nil {
			t.Fatalf("%s: %v", k.member, err)
		}
		s.objects[objectKey{k.member, name}] = object{body: normal}
	}
	dir := t.TempDir()
	got := roundTrip(t, dir, s)
	if z := compareZones(s, got); z != nil {
		t.Errorf("differs:\n%s", z.text())
	}
	if z := compareZones(nil, got); len(z.Edits) != len(objectKinds()) {
		t.Errorf("a new zone with every kind:\n%s", z.text())
	}
	modules, err := os.ReadDir(filepath.Join(dir, modulesDir))
	if err != nil || len(modules) != 1 {
		t.Errorf("modules: %v, %v", modules, err)
	}
}

func TestFilesHoldEveryRecord(t *testing.T) {
	apex := zone.MustName("example.com")
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s := &zoneState{name: apex, objects: map[objectKey]object{}}
		for _, k := range objectKinds() {
			if k.single {
				s.objects[objectKey{k.member, ""}] = object{body: []byte(emptyBody)}
			}
		}
		seen := map[recordKey]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "records") {
			name := rapid.SampledFrom([]string{"@", "www", "*", "1", "null", "true", "_dmarc", "a.b", "no", "0x1"}).Draw(t, "name")
			rrtype, content := "TXT", ""
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				rrtype, content = "A", "192.0.2.1"
			case 1:
				rrtype, content = "TYPE65280", `\# 2 abcd`
			default:
				content = quoteOctets(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "octets"))
			}
			ttl := rapid.SampledFrom([]uint32{0, 1, 300, zone.MaxTTL}).Draw(t, "ttl")
			r, err := zone.ParseRecord(apex, name, rrtype, content, ttl, rrtype == "A" && rapid.Bool().Draw(t, "proxied"))
			if err != nil {
				t.Fatalf("%s %s %q: %v", name, rrtype, content, err)
			}
			if !seen[keyOf(r)] {
				seen[keyOf(r)] = true
				s.records = append(s.records, r)
			}
		}
		sortRecords(s.records, apex)
		got := roundTrip(t, dir, s)
		if z := compareZones(s, got); z != nil {
			t.Fatalf("differs:\n%s", z.text())
		}
		// What is sent to the control plane is read there to the same records.
		text, err := recordText(got)
		if err != nil {
			t.Fatal(err)
		}
		file, err := zone.ReadZoneFile(strings.NewReader(string(text)), apex)
		if err != nil || file.SOA != nil || len(file.Records) != len(s.records) {
			t.Fatalf("%v, SOA %v, %d records of %d", err, file.SOA, len(file.Records), len(s.records))
		}
		for _, r := range file.Records {
			if !seen[keyOf(r)] {
				t.Fatalf("%v is none of the records", r)
			}
		}
	})
}

// quoteOctets prints any octets as a character-string of a zone file.
func quoteOctets(octets []byte) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range octets {
		b.WriteByte('\\')
		b.WriteByte('0' + c/100)
		b.WriteByte('0' + c/10%10)
		b.WriteByte('0' + c%10)
	}
	b.WriteByte('"')
	return b.String()
}

func TestCompareCountsRemovals(t *testing.T) {
	apex := zone.MustName("example.com")
	state := func(records ...string) *zoneState {
		s := &zoneState{name: apex}
		for _, text := range records {
			f := strings.Fields(text)
			r, err := zone.ParseRecord(apex, f[0], f[1], f[2], 0, false)
			if err != nil {
				t.Fatal(err)
			}
			s.records = append(s.records, r)
		}
		return s
	}
	ten := []string{"a A 192.0.2.1", "b A 192.0.2.1", "c A 192.0.2.1", "d A 192.0.2.1", "e A 192.0.2.1", "f A 192.0.2.1", "g A 192.0.2.1", "h A 192.0.2.1", "i A 192.0.2.1", "j A 192.0.2.1"}
	for _, tt := range []struct {
		name    string
		want    *zoneState
		removed int
		deletes bool
		mass    bool
		changes recordChanges
	}{
		{"nothing", state(ten...), 0, false, false, recordChanges{}},
		{"another address is a change", state(append([]string{"a A 192.0.2.9"}, ten[1:]...)...), 0, false, false, recordChanges{added: 1, removed: 1}},
		{"another type is a removal", state(append([]string{"a AAAA 2001:db8::1"}, ten[1:]...)...), 1, true, false, recordChanges{added: 1, removed: 1}},
		{"30 % is not more than 30 %", state(ten[3:]...), 3, true, false, recordChanges{removed: 3}},
		{"40 % is", state(ten[4:]...), 4, true, true, recordChanges{removed: 4}},
		{"all", state(), 10, true, true, recordChanges{removed: 10}},
		{"the zone", nil, 10, true, true, recordChanges{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			z := compareZones(state(ten...), tt.want)
			if z == nil {
				z = &zoneEdits{}
			}
			if z.Removed != tt.removed || z.deletes != tt.deletes || z.mass() != tt.mass || z.changes != tt.changes {
				t.Errorf("removed %d, deletes %v, mass %v, changes %+v", z.Removed, z.deletes, z.mass(), z.changes)
			}
		})
	}
}
