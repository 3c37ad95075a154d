package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/api"
)

// When the database is away, nodes are answered from memory; everything else says that it cannot.
func TestDatabaseAway(t *testing.T) {
	p := newPlane(t)
	res := p.publish("one")
	current := fmt.Sprintf("/v1/node/config?have=%d&generation=%d&epoch=1", res.Version, res.Generation)
	if a := p.request("node", "GET", current, ""); a.status != 204 {
		t.Fatal(a.wire)
	}
	p.must(p.store.Close())
	for target, status := range map[string]int{current: 204, "/v1/node/config?have=0": 200, "/healthz": 200, "/metrics": 200} {
		if a := p.request("node", "GET", target, ""); a.status != status {
			t.Errorf("%s: %d %s", target, a.status, a.body)
		}
	}
	a := p.request("anonymous", "GET", "/readyz", "")
	if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "database_unavailable") || a.header.Get("Retry-After") == "" ||
		strings.Contains(a.body, "sql") || strings.Contains(a.body, "closed") {
		t.Errorf("readyz: %s", a.wire)
	}
	for _, as := range []string{"viewer", "anonymous"} {
		a := p.request(as, "GET", "/v1/zones", "")
		if strings.Contains(a.body, "sql") || strings.Contains(a.body, "closed") {
			t.Errorf("the answer tells of the database: %s", a.body)
		}
	}
	if a := p.request("viewer", "GET", "/v1/zones", ""); a.status != http.StatusInternalServerError || !strings.Contains(a.body, `"internal"`) {
		t.Errorf("zones: %s", a.wire)
	}
}

// syncBuffer is a log that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// The access log has one line for each request that is no poll, whatever is in it, and no secret.
func TestAccessLog(t *testing.T) {
	var log syncBuffer
	p := newPlane(t, func(c *planeConfig) { c.logs = &log })
	p.publish("one")
	before := accessLines(log.String())
	for _, target := range []string{"/v1/zones", "/v1/zones/%0d%0amsg=request%1b[31m", "/v1/nothing%E2%80%AE"} {
		p.request("viewer", "GET", target, "")
	}
	p.request("node", "GET", "/v1/node/config?have=0", "")
	p.request("node", "GET", "/v1/node/config?have=bad", "")
	text := log.String()
	if got := accessLines(text) - before; got != 3 {
		t.Errorf("%d lines for 3 requests:\n%s", got, text)
	}
	for _, r := range []string{"\x1b", "\u202e", "\r"} {
		if strings.Contains(text, r) {
			t.Errorf("%q is in the log", r)
		}
	}
	for as, token := range p.tokens {
		if token != "" && strings.Contains(text, token) {
			t.Errorf("the token of %s is in the log", as)
		}
	}
	if secret := p.key.SecretHex(); strings.Contains(text, secret) {
		t.Error("the signing key is in the log")
	}
	if !strings.Contains(text, "actor=viewer@example.com") || !strings.Contains(text, "route=/v1/zones/{zone}") || !strings.Contains(text, "status=404") {
		t.Errorf("log:\n%s", text)
	}
}

// accessLines counts the lines of text that tell of a request.
func accessLines(text string) int {
	n := 0
	for l := range strings.SplitSeq(text, "\n") {
		if strings.Contains(l, "level=INFO msg=request ") {
			n++
		}
	}
	return n
}

// A long export is sent in pieces and reads back whole.
func TestLongExport(t *testing.T) {
	p := newPlane(t)
	ctx, c := t.Context(), p.client("editor")
	_, err := c.CreateZone(ctx, api.NewZone{Name: "long.example"})
	p.must(err)
	const n = 9000
	var file strings.Builder
	for i := range n {
		fmt.Fprintf(&file, "host-%05d 300 IN TXT \"a value of some length, number %d\"\n", i, i)
	}
	_, err = c.ImportZone(ctx, "long.example", strings.NewReader(file.String()), api.ImportOptions{})
	p.must(err)
	var out bytes.Buffer
	p.must(c.ExportZone(ctx, &out, "long.example"))
	if out.Len() < 512<<10 {
		t.Fatalf("the export has %d bytes: too few for what is tested", out.Len())
	}
	res, err := c.ImportZone(ctx, "long.example", &out, api.ImportOptions{Replace: true})
	p.must(err)
	if res.Unchanged != n || res.Added+res.Removed+res.Updated != 0 {
		t.Errorf("read back as %+v", res)
	}
}

// Every reference in the document leads somewhere.
func TestDocumentReferences(t *testing.T) {
	p := newPlane(t)
	for _, as := range []string{"anonymous", "operator"} {
		var doc map[string]any
		p.must(json.Unmarshal([]byte(p.request(as, "GET", "/openapi.json", "").body), &doc))
		schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
		used := map[string]bool{}
		var walk func(v any)
		walk = func(v any) {
			switch v := v.(type) {
			case map[string]any:
				if ref, ok := v["$ref"].(string); ok {
					name := strings.TrimPrefix(ref, "#/components/schemas/")
					if schemas[name] == nil {
						t.Errorf("%s: %s leads nowhere", as, ref)
					}
					used[name] = true
				}
				for _, w := range v {
					walk(w)
				}
			case []any:
				for _, w := range v {
					walk(w)
				}
			}
		}
		walk(doc)
		for name := range schemas {
			if !used[name] {
				t.Errorf("%s: nothing refers to %s", as, name)
			}
		}
	}
}
