package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/admin"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/host"
	"github.com/guardyn-edge/guardyn/bridge/source/filesource"
)

// still is a data path that runs what it is told.
type still struct{ swapped chan *document.Document }

type ready struct {
	s *still
	d *document.Document
}

func (s *still) Prepare(_ context.Context, d *document.Document) (bridge.Prepared, error) {
	if _, ok := d.Session("unbuildable"); ok {
		return nil, errors.New("x.cred is not there")
	}
	return ready{s, d}, nil
}
func (s *still) Status() bridge.Status       { return bridge.Status{} }
func (s *still) Drain(context.Context) error { return nil }
func (s *still) Stop(context.Context) error  { return nil }
func (r ready) Discard()                     {}
func (r ready) Swap(context.Context) error   { r.s.swapped <- r.d; return nil }

const (
	token = "let me in"
	first = "# ours\nversion: 7\nsessions:\n  - {id: s, kind: nats, url: \"nats://h\"}\n"
	next  = "version: 7\nsessions:\n  - {id: s, kind: nats, url: \"nats://h\"}\n  - {id: x, kind: nats, url: \"nats://x\"}\n"
)

// start returns the URL of a member that runs the document, or is idle when it is "", and the file it is in.
func start(t *testing.T, doc, token string) (url, file string, runs *still) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "bridge.yaml")
	if doc != "" {
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs = &still{make(chan *document.Document, 16)}
	log := slog.New(slog.DiscardHandler)
	h, err := host.New(host.Config{Source: filesource.New(file, time.Millisecond), Runner: runs, Logger: log, Poll: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s, err := admin.NewServer(h, admin.Options{Token: token, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.Handler)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	t.Cleanup(func() {
		server.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if doc != "" {
		<-runs.swapped
		tick := time.NewTicker(time.Millisecond) // what was told to run is not known to be active yet
		defer tick.Stop()
		for ready := 0; ready != http.StatusOK; ready, _, _ = ask(t, http.MethodGet, server.URL+"/readyz", "") {
			<-tick.C
		}
	}
	return server.URL, file, runs
}

// ask makes a request; headers are NAME: VALUE.
func ask(t *testing.T, method, url, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

const allowed = "Authorization: Bearer " + token

func TestPut(t *testing.T) {
	url, file, runs := start(t, first, token)
	config := url + "/v1/bridge/config"
	for _, tt := range []struct {
		name    string
		body    string
		query   string
		headers []string
		status  int
		says    string
	}{
		{"without token", next, "", []string{`If-Match: "7"`}, 401, "unauthorized"},
		{"with another token", next, "", []string{`If-Match: "7"`, "Authorization: Bearer x"}, 401, "unauthorized"},
		{"without a condition", next, "", []string{allowed}, 428, "precondition_required"},
		{"over another version", next, "", []string{allowed, `If-Match: "6"`}, 412, `"version":7`},
		{"over none of several", next, "", []string{allowed, `If-Match: "5", "6"`}, 412, `has the ETag \"7\"`},
		{"over a weak one", next, "", []string{allowed, `If-Match: W/"7"`}, 412, "a weak tag matches nothing"},
		{"over one that is spelt otherwise", next, "", []string{allowed, `If-Match: "07"`}, 412, "version_changed"},
		{"over no tag", next, "", []string{allowed, "If-Match: 7"}, 400, "in quotes"},
		{"over a tag and any", next, "", []string{allowed, `If-Match: *, "7"`}, 400, "in quotes"},
		{"over tags without a comma", next, "", []string{allowed, `If-Match: "6" "7"`}, 400, "in quotes"},
		{"over a tag that does not end", next, "", []string{allowed, `If-Match: "7`}, 400, "in quotes"},
		{"over an empty list", next, "", []string{allowed, "If-Match: ,"}, 400, "in quotes"},
		{"over one, and where none is", next, "", []string{allowed, `If-Match: "7"`, "If-None-Match: *"}, 412, "exists"},
		{"created where one is", next, "", []string{allowed, "If-None-Match: *"}, 412, "exists"},
		{"over all but this", next, "", []string{allowed, `If-None-Match: W/"7"`}, 412, "excludes"},
		{"invalid", "sessions: [{}]\nx: 1\n", "", []string{allowed, `If-Match: "7"`}, 422, `"errors":[{"line":1,"message":"sessions.0.id`},
		{"too large", strings.Repeat("#", document.MaxBytes+1), "", []string{allowed, `If-Match: "7"`}, 413, "too_large"},
		{"another mode", "version: 7\nbridge: {deployment_mode: clustered, cluster: {members: [m]}}\n", "", []string{allowed, `If-Match: "7"`}, 422, "--member-id"},
		{"cannot be built", strings.Replace(next, "id: x", "id: unbuildable", 1), "", []string{allowed, `If-Match: "7"`}, 409, "x.cred is not there"},
		{"for something else", next, "?for=fun", []string{allowed, `If-Match: "7"`}, 400, "replacement"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, text, header := ask(t, http.MethodPut, config+tt.query, tt.body, tt.headers...)
			if status != tt.status || !strings.Contains(text, tt.says) || header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("answered %d, %s, %v", status, text, header)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != first {
				t.Fatalf("the document became %q, %v", got, err)
			}
		})
	}
	status, text, header := ask(t, http.MethodPut, config, next, allowed, `If-Match: "7"`)
	if status != 200 || header.Get("ETag") != `"8"` || !strings.Contains(text, `"verb": "reload"`) || !strings.Contains(text, "sessions.x") {
		t.Errorf("answered %d, %s, ETag %s", status, text, header.Get("ETag"))
	}
	if d := <-runs.swapped; d.Version != 8 {
		t.Errorf("runs version %d", d.Version)
	}
	if status, text, header := ask(t, http.MethodGet, config, "", allowed); status != 200 || text != strings.Replace(next, "version: 7", "version: 8", 1) || header.Get("ETag") != `"8"` {
		t.Errorf("holds %d, %q, ETag %s", status, text, header.Get("ETag"))
	}
	if status, text, _ := ask(t, http.MethodGet, config+"?of=running", "", allowed); status != 200 || !strings.HasPrefix(text, `{"bridge":{`) {
		t.Errorf("runs %d, %q", status, text)
	}
}

// TestPutOver saves on conditions that hold of the document that stands (RFC 9110 §13.1.1, §13.1.2).
func TestPutOver(t *testing.T) {
	url, _, runs := start(t, first, token)
	version := 7
	for _, tt := range []struct{ name, field, value string }{
		{"any", "If-Match", "*"},
		{"one of several", "If-Match", `"x,\y", W/"VERSION", ,"VERSION" ,"0"`},
		{"the second field", "If-Match", `"0"|"VERSION"`},
		{"all but some", "If-None-Match", `"0", W/"1"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/v1/bridge/config",
				strings.NewReader(strings.ReplaceAll(next, "id: x", fmt.Sprintf("id: x%d", version))))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			for value := range strings.SplitSeq(strings.ReplaceAll(tt.value, "VERSION", fmt.Sprint(version)), "|") {
				req.Header.Add(tt.field, value)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if want := fmt.Sprintf("%q", fmt.Sprint(version+1)); resp.StatusCode != 200 || resp.Header.Get("ETag") != want {
				text, _ := io.ReadAll(resp.Body)
				t.Fatalf("answered %d, ETag %s, want %s: %s", resp.StatusCode, resp.Header.Get("ETag"), want, text)
			}
			version++
			<-runs.swapped
		})
	}
}

// TestPutWhereNoneIs: nothing stands that a tag, or any, could be of, and creating needs no more than that.
func TestPutWhereNoneIs(t *testing.T) {
	url, file, runs := start(t, "", token)
	for _, condition := range []string{"If-Match: *", `If-Match: "7"`} {
		if status, text, _ := ask(t, http.MethodPut, url+"/v1/bridge/config", next, allowed, condition); status != 412 || !strings.Contains(text, `"code":"missing"`) {
			t.Errorf("%s: answered %d, %s", condition, status, text)
		}
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a document was made: %v", err)
	}
	if status, text, header := ask(t, http.MethodPut, url+"/v1/bridge/config", next, allowed, "If-None-Match: *"); status != 200 || header.Get("ETag") != `"1"` {
		t.Errorf("answered %d, %s", status, text)
	}
	<-runs.swapped
}

// TestPutOvertaken: who saves over any version is not refused because of what others save meanwhile, and who names one is.
func TestPutOvertaken(t *testing.T) {
	url, _, _ := start(t, first, token)
	const writers = 3
	answers := make(chan string, 2*writers)
	for range writers {
		for _, condition := range []string{"If-Match: *", `If-Match: "7"`} {
			go func() {
				status, text, _ := ask(t, http.MethodPut, url+"/v1/bridge/config", next, allowed, condition)
				answers <- fmt.Sprint(status, " ", text)
			}()
		}
	}
	saved := 0
	for range 2 * writers {
		switch answer := <-answers; answer[:3] {
		case "200", "202":
			saved++
			// One that another was saved over says so at once, rather than when nothing more is waited for.
			if strings.Contains(answer, "has not looked at it yet") {
				t.Errorf("answered %s", answer)
			}
		case "412":
		default:
			t.Errorf("answered %s", answer)
		}
	}
	if saved < writers || saved > writers+1 {
		t.Errorf("%d of %d were saved", saved, 2*writers)
	}
}

func TestWithoutToken(t *testing.T) {
	url, _, _ := start(t, first, "")
	for _, header := range []string{"X: y", "Authorization: Bearer ", allowed} {
		if status, text, _ := ask(t, http.MethodPut, url+"/v1/bridge/config", next, `If-Match: "7"`, header); status != 403 || !strings.Contains(text, "--token-file") {
			t.Errorf("answered %d, %s", status, text)
		}
	}
}

func TestHealth(t *testing.T) {
	idle, _, _ := start(t, "", token)
	runs, _, _ := start(t, first, token)
	for _, tt := range []struct {
		name, url string
		status    int
		says      string
	}{
		{"lives", idle + "/healthz", 200, "ok"},
		{"not ready", idle + "/readyz", 503, "idle"},
		{"ready", runs + "/readyz", 200, "ok"},
		{"knows itself", runs + "/deephealth", 200, `"rung": "standalone"`},
		{"counts", runs + "/metrics", 200, "guardyn_bridge_config_version 7"},
		{"counts when idle", idle + "/metrics", 200, "guardyn_bridge_ready 0"},
		{"elsewhere", runs + "/v1/bridge", 404, ""},
	} {
		if status, text, _ := ask(t, http.MethodGet, tt.url, ""); status != tt.status || !strings.Contains(text, tt.says) {
			t.Errorf("%s: answered %d, %s", tt.name, status, text)
		}
	}
}

func TestClient(t *testing.T) {
	url, _, runs := start(t, first, token)
	c, err := admin.NewClient(url, token, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.Status(t.Context()); err != nil || s.Version != 7 || !s.Ready {
		t.Errorf("status %+v, %v", s, err)
	}
	p, err := c.Plan(t.Context(), []byte(next))
	if err != nil || !p.Takes || p.Change.Class != document.LiveSafe || fmt.Sprint(p.Change.Sessions.Start) != "[x]" {
		t.Errorf("plan %+v, %v", p, err)
	}
	doc, etag, err := c.Config(t.Context())
	if err != nil || string(doc) != first || etag != `"7"` {
		t.Errorf("holds %q, %s, %v", doc, etag, err)
	}
	if out, err := c.Put(t.Context(), []byte(next), etag, false); err != nil || out.Version != 8 {
		t.Errorf("saved %+v, %v", out, err)
	}
	<-runs.swapped
	var refused *admin.Problem
	if _, err := c.Put(t.Context(), []byte(next), etag, false); !errors.As(err, &refused) || refused.Code != "version_changed" || *refused.Version != 8 {
		t.Errorf("saved again: %v", err)
	}
	if _, err := c.Plan(t.Context(), []byte("x: 1\n")); !errors.As(err, &refused) || len(refused.Errors) != 1 || !strings.Contains(refused.Error(), "line 1") {
		t.Errorf("plan of nonsense: %v", err)
	}
	for _, bad := range []string{"", "ftp://h", "http://"} {
		if _, err := admin.NewClient(bad, "", nil); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
