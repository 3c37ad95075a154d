package control_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

func TestCreateZoneNames(t *testing.T) {
	w := newWorld(t)
	rows := []struct {
		name, in, want string // want "": refused
	}{
		{"plain", "example.com", "example.com"},
		{"folded", "Example.ORG.", "example.org"},
		{"international", "bücher.example", "xn--bcher-kva.example"},
		{"reverse", "2.0.192.in-addr.arpa", "2.0.192.in-addr.arpa"},
		{"one label", "com", ""},
		{"root", ".", ""},
		{"empty", "", ""},
		{"IPv4", "192.0.2.1", ""},
		{"IPv6", "2001:db8::1", ""},
		{"last label a number", "example.1", ""},
		{"wildcard", "*.example.com", ""},
		{"blank", "exa mple.com", ""},
		{"escape", "\x1b[2J.example.com", ""},
	}
	for _, r := range rows {
		z, err := w.svc.CreateZone(t.Context(), w.editor, r.in)
		if r.want == "" {
			problems(t, r.name, err)
		} else if err != nil || z.Name.String() != r.want || z.ID == "" || z.Revision == 0 {
			t.Errorf("%s: %+v, %v", r.name, z, err)
		}
	}
	_, err := w.svc.CreateZone(t.Context(), w.editor, "EXAMPLE.com.")
	wantError(t, "the same name", err, control.ErrExists)
	if got := err.Error(); got != "zone example.com exists already" {
		t.Errorf("it says %q", got)
	}
}

func TestRecords(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		z := w.zone(t, w.editor, "example.com")
		r := w.record(t, w.editor, "example.com", "www", "aaaa", "2001:0DB8:0::1")
		if r.Content != "2001:db8::1" || r.Name.String() != "www.example.com" || r.EffectiveTTL() != 300 {
			t.Errorf("normal form: %+v", r)
		}
		_, err := w.svc.AddRecord(ctx, w.editor, string(z.ID), control.RecordInput{Name: "www", Type: "AAAA", Content: "2001:db8::1", TTL: 60})
		wantError(t, "the same with another ttl", err, control.ErrExists)
		if want := "record www.example.com AAAA with this content exists already; to change its TTL or proxying, remove it and add it again, or update it by its id"; err.Error() != want {
			t.Errorf("it says %q", err)
		}
		up, err := w.svc.UpdateRecord(ctx, w.editor, "example.com", r.ID, control.RecordInput{Name: "www", Type: "AAAA", Content: "2001:db8::1", TTL: 60, Proxied: true})
		if err != nil || up.ID != r.ID || up.TTL != 60 || !up.Proxied {
			t.Errorf("update: %+v, %v", up, err)
		}
		_, err = w.svc.UpdateRecord(ctx, w.editor, "example.com", "0198c5a0-0000-7000-8000-000000000000", control.RecordInput{Name: "www", Type: "A", Content: "192.0.2.1"})
		wantError(t, "update of no record", err, control.ErrNotFound)
		w.record(t, w.editor, "example.com", "@", "MX", "10 mail.")
		w.record(t, w.editor, "example.com", "mail", "A", "192.0.2.3")

		l, err := w.svc.ListRecords(ctx, w.viewer, "example.com", control.RecordQuery{}, control.Page{Limit: 2})
		if err != nil || len(l.Items) != 2 || l.Next == "" || l.Items[0].Name != z.Name {
			t.Fatalf("first page: %+v, %v", l, err)
		}
		l, err = w.svc.ListRecords(ctx, w.viewer, "example.com", control.RecordQuery{}, control.Page{Limit: 2, After: l.Next})
		if err != nil || len(l.Items) != 1 || l.Next != "" || l.Items[0].ID != r.ID {
			t.Errorf("second page: %+v, %v", l, err)
		}
		l, err = w.svc.ListRecords(ctx, w.viewer, "example.com", control.RecordQuery{Name: "mail", Type: "a"}, control.Page{})
		if err != nil || len(l.Items) != 1 || l.Items[0].Content != "192.0.2.3" {
			t.Errorf("filtered: %+v, %v", l, err)
		}
		_, err = w.svc.ListRecords(ctx, w.viewer, "example.com", control.RecordQuery{Name: "a..b", Type: "NOSUCH"}, control.Page{})
		if ps := problems(t, "bad filters", err); len(ps) != 2 {
			t.Errorf("problems: %+v", ps)
		}
		_, err = w.svc.ListRecords(ctx, w.viewer, "example.com", control.RecordQuery{}, control.Page{Limit: 1001})
		problems(t, "limit", err)

		if err := w.svc.DeleteRecord(ctx, w.editor, "example.com", strings.ToUpper(r.ID)); err != nil {
			t.Fatal(err)
		}
		wantError(t, "again", w.svc.DeleteRecord(ctx, w.editor, "example.com", r.ID), control.ErrNotFound)
		wantError(t, "no id", w.svc.DeleteRecord(ctx, w.editor, "example.com", "x"), control.ErrNotFound)
		got, err := w.svc.Zone(ctx, w.viewer, "EXAMPLE.com")
		if err != nil || got.Records != 2 || got.Revision <= z.Revision {
			t.Errorf("zone: %+v, %v", got, err)
		}
		if a := w.audited(t, "record.add"); len(a) != 3 || a[2].Target != "example.com www.example.com AAAA" || a[0].Actor != "editor@example.com" {
			t.Errorf("audited: %+v", a)
		}
	})
}

func TestMalformedRecordsReportEverything(t *testing.T) {
	w := newWorld(t)
	w.zone(t, w.editor, "example.com")
	rows := []struct {
		name string
		in   control.RecordInput
		n    int
	}{
		{"address", control.RecordInput{Name: "www", Type: "A", Content: "192.0.2.300"}, 1},
		{"outside", control.RecordInput{Name: "www.example.org.", Type: "A", Content: "192.0.2.1"}, 1},
		{"name and type", control.RecordInput{Name: "a..b", Type: "NOSUCH", Content: "x"}, 2},
		{"name, content, ttl", control.RecordInput{Name: "a..b", Type: "A", Content: "x", TTL: 1 << 31}, 3},
		{"proxied MX", control.RecordInput{Name: "@", Type: "MX", Content: "10 mail.", Proxied: true}, 1},
	}
	for _, r := range rows {
		_, err := w.svc.AddRecord(t.Context(), w.editor, "example.com", r.in)
		if ps := problems(t, r.name, err); len(ps) != r.n || ps[0].Zone != "example.com" {
			t.Errorf("%s: %+v", r.name, ps)
		}
	}
	if z, err := w.svc.Zone(t.Context(), w.viewer, "example.com"); err != nil || z.Records != 0 {
		t.Errorf("zone: %+v, %v", z, err)
	}
}

const zoneFile = `$TTL 3600
@    IN SOA ns1.example.com. admin.example.com. 2026082701 3600 600 604800 120
@       NS    ns1
ns1     A     192.0.2.53
www     A     192.0.2.1
www 60  AAAA  2001:db8::1
@       TXT   "v=spf1; -all"
`

func TestImport(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.zone(t, w.editor, "example.com")
		kept := w.record(t, w.editor, "example.com", "www", "A", "192.0.2.1") // ttl 300: the file says 3600
		w.record(t, w.editor, "example.com", "old", "A", "192.0.2.99")
		revision := func() int64 {
			t.Helper()
			z, err := w.svc.Zone(ctx, w.viewer, "example.com")
			if err != nil {
				t.Fatal(err)
			}
			return z.Revision
		}
		doImport := func(file string, o control.ImportOptions) control.ImportResult {
			t.Helper()
			res, err := w.svc.ImportZoneFile(ctx, w.editor, "example.com", strings.NewReader(file), o)
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		before := revision()
		want := control.ImportResult{Added: 4, Updated: 1, Settings: true}
		if got := doImport(zoneFile, control.ImportOptions{DryRun: true}); got != want {
			t.Errorf("dry run: %+v, want %+v", got, want)
		}
		if revision() != before {
			t.Error("a dry run edited")
		}
		if got := doImport(zoneFile, control.ImportOptions{}); got != want {
			t.Errorf("import: %+v, want %+v", got, want)
		}
		before = revision()
		if got, want := doImport(zoneFile, control.ImportOptions{}), (control.ImportResult{Unchanged: 5}); got != want {
			t.Errorf("the same again: %+v, want %+v", got, want)
		}
		if revision() != before {
			t.Error("an import of what stands edited")
		}
		if got, want := doImport(zoneFile, control.ImportOptions{Replace: true}), (control.ImportResult{Unchanged: 5, Removed: 1}); got != want {
			t.Errorf("replace: %+v, want %+v", got, want)
		}
		settings, err := w.svc.Settings().Get(ctx, w.viewer, "example.com", "")
		if err != nil || settings.Value.SOA.RName.String() != "admin.example.com" || settings.Value.SOA.Minimum != 120 {
			t.Errorf("settings: %+v, %v", settings, err)
		}
		l, err := w.svc.ListRecords(ctx, w.viewer, "example.com", control.RecordQuery{Name: "www", Type: "A"}, control.Page{})
		if err != nil || len(l.Items) != 1 || l.Items[0].ID != kept.ID || l.Items[0].TTL != 3600 {
			t.Errorf("the updated record: %+v, %v", l, err)
		}

		var out bytes.Buffer
		if err := w.svc.ExportZoneFile(ctx, w.viewer, "example.com", &out); err != nil {
			t.Fatal(err)
		}
		if got, want := doImport(out.String(), control.ImportOptions{Replace: true}), (control.ImportResult{Unchanged: 5}); got != want {
			t.Errorf("import of the export: %+v, want %+v\n%s", got, want, out.String())
		}
	})
}

func TestExportKeepsProxied(t *testing.T) {
	w := newWorld(t)
	w.zone(t, w.editor, "example.com")
	if _, err := w.svc.AddRecord(t.Context(), w.editor, "example.com", control.RecordInput{Name: "www", Type: "A", Content: "192.0.2.1", Proxied: true}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := w.svc.ExportZoneFile(t.Context(), w.viewer, "example.com", &out); err != nil {
		t.Fatal(err)
	}
	res, err := w.svc.ImportZoneFile(t.Context(), w.editor, "example.com", &out, control.ImportOptions{Replace: true})
	if err != nil || res != (control.ImportResult{Unchanged: 1}) {
		t.Errorf("import of the export: %+v, %v", res, err)
	}
}

func TestImportReportsEveryBadLineAndChangesNothing(t *testing.T) {
	w := newWorld(t)
	z := w.zone(t, w.editor, "example.com")
	file := lines(
		`$TTL 300`,
		`www  A  192.0.2.300`,
		`ok   A  192.0.2.1`,
		`bad  NOSUCH x`,
		`$INCLUDE other.zone`,
		`out.example.org. A 192.0.2.1`,
	)
	_, err := w.svc.ImportZoneFile(t.Context(), w.editor, "example.com", strings.NewReader(file), control.ImportOptions{Replace: true})
	var at []int
	for _, p := range problems(t, "import", err) {
		at = append(at, p.Line)
		if p.Code != "zone_file_malformed" || p.Zone != "example.com" || p.Message == "" {
			t.Errorf("problem: %+v", p)
		}
	}
	if fmt.Sprint(at) != "[2 4 5 6]" {
		t.Errorf("bad lines %v: %v", at, err)
	}
	if now, err := w.svc.Zone(t.Context(), w.viewer, "example.com"); err != nil || now.Revision != z.Revision {
		t.Errorf("zone: %+v, %v", now, err)
	}
}

// endless is a comment without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "; comment\n"[i%10]
	}
	return len(p), nil
}

func TestImportIsBounded(t *testing.T) {
	w := newWorld(t)
	w.zone(t, w.editor, "example.com")
	read := &countingReader{r: endless{}}
	_, err := w.svc.ImportZoneFile(t.Context(), w.editor, "example.com", read, control.ImportOptions{})
	if ps := problems(t, "import", err); ps[0].Code != "file_too_large" {
		t.Errorf("problems: %+v", ps)
	}
	if read.n > control.MaxImport+1 {
		t.Errorf("read %d bytes", read.n)
	}
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func TestObjects(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.zone(t, w.editor, "example.com")
		lists := w.svc.Lists()
		_, err := lists.Get(ctx, w.viewer, "example.com", "office")
		wantError(t, "get of none", err, control.ErrNotFound)
		put, err := lists.Put(ctx, w.editor, "example.com", "office", zone.List{Kind: zone.ListIP, Items: []string{"2001:DB8::/32", "192.0.2.0/24", "192.0.2.0/24"}}, control.Absent)
		if err != nil || put.Revision <= 0 || fmt.Sprint(put.Value.Items) != "[192.0.2.0/24 2001:db8::/32]" {
			t.Fatalf("put: %+v, %v", put, err)
		}
		_, err = lists.Put(ctx, w.editor, "example.com", "office", put.Value, control.Absent)
		wantError(t, "put where there is one", err, control.ErrExists)
		_, err = lists.Put(ctx, w.editor, "example.com", "office", put.Value, put.Revision+100)
		wantError(t, "put at another revision", err, control.ErrConflict)
		again, err := lists.Put(ctx, w.editor, "example.com", "office", zone.List{Kind: zone.ListIP}, put.Revision)
		if err != nil || again.Revision <= put.Revision {
			t.Errorf("put at its revision: %+v, %v", again, err)
		}
		wantError(t, "delete at another revision", lists.Delete(ctx, w.editor, "example.com", "office", put.Revision), control.ErrConflict)
		if all, err := lists.List(ctx, w.viewer, "example.com"); err != nil || len(all) != 1 || all[0].Name != "office" || all[0].Revision != again.Revision {
			t.Errorf("list: %+v, %v", all, err)
		}
		if err := lists.Delete(ctx, w.editor, "example.com", "office", again.Revision); err != nil {
			t.Error(err)
		}
		wantError(t, "delete of none", lists.Delete(ctx, w.editor, "example.com", "office", control.Any), control.ErrNotFound)

		// Host names fold; what is no name names nothing when reading and is refused when writing.
		b, err := w.svc.LoadBalancers().Put(ctx, w.editor, "example.com", "WWW.Example.com.", zone.LoadBalancer{Pools: []string{"main"}}, control.Any)
		if err != nil || b.Name != "www.example.com" {
			t.Errorf("load balancer: %+v, %v", b, err)
		}
		if _, err := w.svc.LoadBalancers().Get(ctx, w.viewer, "example.com", "www"); err != nil {
			t.Error(err)
		}
		_, err = w.svc.LoadBalancers().Get(ctx, w.viewer, "example.com", "www.example.org.")
		wantError(t, "a host outside", err, control.ErrNotFound)
		_, err = w.svc.Pools().Put(ctx, w.editor, "example.com", "No Name", zone.Pool{}, control.Any)
		problems(t, "name of a pool", err)
		_, err = w.svc.Rulesets().Put(ctx, w.editor, "example.com", "lunch", nil, control.Any)
		problems(t, "phase", err)
		_, err = w.svc.Rulesets().Put(ctx, w.editor, "example.com", "custom", []zone.Rule{
			{Expression: "1 +", Action: zone.ActionBlock}, rule("/ok"), {Expression: "true", Action: zone.ActionRedirect},
		}, control.Any)
		if ps := problems(t, "rules", err); len(ps) < 2 || !strings.Contains(ps[0].Message, "rule 1") {
			t.Errorf("problems: %+v", ps)
		}

		// A cache policy is always there.
		cache, err := w.svc.CachePolicy().Get(ctx, w.viewer, "example.com", "")
		if err != nil || cache.Revision != control.Absent {
			t.Fatalf("cache policy: %+v, %v", cache, err)
		}
		cache, err = w.svc.CachePolicy().Put(ctx, w.editor, "example.com", "", zone.CachePolicy{Disabled: true}, cache.Revision)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.svc.CachePolicy().Delete(ctx, w.editor, "example.com", "", control.Any); err != nil {
				t.Error(err)
			}
		}
		if cache, err = w.svc.CachePolicy().Get(ctx, w.viewer, "example.com", ""); err != nil || cache.Value.Disabled {
			t.Errorf("cache policy: %+v, %v", cache, err)
		}
	})
}

func TestPatchSettings(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.zone(t, w.editor, "example.com")
	_, err := w.svc.PatchSettings(ctx, w.editor, "example.com", map[string]string{
		"trace_sampling": "200%", "no_such": "1", "version_header": "true",
	}, control.Any)
	if ps := problems(t, "patch", err); len(ps) != 2 || ps[0].Object != "setting no_such" || ps[1].Object != "setting trace_sampling" {
		t.Errorf("problems: %+v", ps)
	}
	if got, err := w.svc.Settings().Get(ctx, w.viewer, "example.com", ""); err != nil || got.Revision != control.Absent || got.Value.VersionHeader {
		t.Errorf("changed: %+v, %v", got, err)
	}
	_, err = w.svc.PatchSettings(ctx, w.editor, "example.com", nil, control.Any)
	problems(t, "nothing", err)

	// Several at once: none is lost.
	keys := []string{"version_header", "always_https", "trace_sampling", "log_sampling", "tls_min_version", "hsts"}
	values := []string{"true", "true", "50%", "50%", "1.3", "1h"}
	var wg sync.WaitGroup
	for i, key := range keys {
		wg.Go(func() {
			for {
				_, err := w.svc.PatchSettings(ctx, w.editor, "example.com", map[string]string{key: values[i]}, control.Any)
				if errors.Is(err, control.ErrConflict) {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
		})
	}
	wg.Wait()
	got, err := w.svc.Settings().Get(ctx, w.viewer, "example.com", "")
	v := got.Value
	if err != nil || !v.VersionHeader || !v.AlwaysHTTPS || v.TraceSampling == nil || v.LogSampling == nil || v.TLSMinVersion != "1.3" || v.HSTS == 0 {
		t.Errorf("settings: %+v, %v", got, err)
	}
	_, err = w.svc.PatchSettings(ctx, w.editor, "example.com", map[string]string{"hsts": ""}, got.Revision+1)
	wantError(t, "at another revision", err, control.ErrConflict)
	if got, err = w.svc.PatchSettings(ctx, w.editor, "example.com", map[string]string{"hsts": ""}, got.Revision); err != nil || got.Value.HSTS != 0 {
		t.Errorf("at its revision: %+v, %v", got, err)
	}
}
