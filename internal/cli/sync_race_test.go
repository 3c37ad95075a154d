package cli_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/cli"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// An edit that somebody makes after a sync printed its own is neither lost nor overwritten.
func TestSyncMeetsAnotherEdit(t *testing.T) {
	key, err := seal.GenerateSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		// at is the request before which the other edit is made.
		at   func(*http.Request) bool
		edit func(t *testing.T, p plane) error
		want []string
	}{
		{
			"a record", func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/import") },
			func(t *testing.T, p plane) error {
				_, err := p.AddRecord(t.Context(), "example.com", api.RecordEdit{Name: "theirs", Type: "TXT", Content: "x"})
				return err
			},
			[]string{"error: example.com: the records were edited meanwhile; nothing was changed", "hint: run gdn sync again"},
		},
		{
			"a record after the check",
			func(r *http.Request) bool {
				return strings.HasSuffix(r.URL.Path, "/import") && !r.URL.Query().Has("dry_run")
			},
			func(t *testing.T, p plane) error {
				_, err := p.AddRecord(t.Context(), "example.com", api.RecordEdit{Name: "theirs", Type: "TXT", Content: "x"})
				return err
			},
			[]string{"error: example.com: the zone was edited meanwhile", "hint: no zone before it was changed; gdn sync --dry-run shows what is left"},
		},
		{
			"an object", func(r *http.Request) bool { return r.Method == http.MethodPut },
			func(t *testing.T, p plane) error {
				_, _, err := p.PutList(t.Context(), "example.com", "office", zone.List{Kind: zone.ListIP, Items: []string{"192.0.2.99"}}, api.WriteOptions{})
				return err
			},
			[]string{"error: example.com: list office: ", "hint: no zone before it was changed; gdn sync --dry-run shows what is left"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := startPlane(t, "sqlite:"+filepath.Join(t.TempDir(), "guardyn.db"), key, "")
			_, err := p.CreateZone(t.Context(), api.NewZone{Name: "example.com"})
			if err != nil {
				t.Fatal(err)
			}
			for _, content := range []string{"192.0.2.1", "192.0.2.2"} {
				if _, err := p.AddRecord(t.Context(), "example.com", api.RecordEdit{Name: "www", Type: "A", Content: content}); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := p.PutList(t.Context(), "example.com", "office", zone.List{Kind: zone.ListIP}, api.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			target, err := url.Parse("http://" + p.Addr())
			if err != nil {
				t.Fatal(err)
			}
			var once sync.Once
			proxy := httputil.NewSingleHostReverseProxy(target)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.at(r) {
					once.Do(func() {
						if err := tt.edit(t, p); err != nil {
							t.Error(err)
						}
					})
				}
				proxy.ServeHTTP(w, r)
			}))
			defer front.Close()
			dir := t.TempDir()
			text := "zone: example.com\nrecords:\n  www:\n    A: [192.0.2.1]\nlists:\n  office: {kind: ip, items: [192.0.2.7]}\n"
			if err := os.WriteFile(filepath.Join(dir, "example.com.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			code := cli.Run(t.Context(), []string{"sync", "-f", dir, "--prune", "--yes-delete"}, cli.Env{
				Stdout: &out, Stderr: &errs, Environ: []string{"GUARDYN_API_URL=" + front.URL, "GUARDYN_TOKEN=" + p.token},
			})
			for _, want := range tt.want {
				if code != 1 || !strings.Contains(errs.String(), want) {
					t.Errorf("%d, want %q in:\n%s", code, want, &errs)
				}
			}
			switch tt.name {
			case "a record", "a record after the check":
				l, err := p.Records(t.Context(), "example.com", api.RecordFilter{}, api.PageOptions{})
				if err != nil || len(l.Items) != 3 {
					t.Errorf("%d records, %v; want the two and theirs", len(l.Items), err)
				}
			case "an object":
				l, _, err := p.List(t.Context(), "example.com", "office")
				if err != nil || len(l.Items) != 1 || l.Items[0] != "192.0.2.99" {
					t.Errorf("list %+v, %v; want theirs", l, err)
				}
			}
		})
	}
}
