package cache

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

var noon = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

const testZone zone.ID = "0190c1d2-0000-7000-8000-000000000001"

var testApex = zone.MustName("example.com")

func key(path string) *Key {
	return &Key{Zone: testZone, Apex: testApex, Scheme: "https", Host: "www.example.com", Path: path}
}

func policyOf(t testing.TB, c zone.CachePolicy) *Policy {
	t.Helper()
	n, err := c.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	return NewPolicy(n)
}

// answer is an answer of 200 with fields given by name and value in turns.
func answer(fields ...string) *Head {
	h := &Head{Status: 200, Header: http.Header{}, Requested: noon, Received: noon}
	for i := 0; i < len(fields); i += 2 {
		h.Header[fields[i]] = append(h.Header[fields[i]], fields[i+1])
	}
	return h
}

// fill stores a body under a key, as an exchange would, and reports whether it was stored.
func fill(t testing.TB, c *Cache, k *Key, p *Policy, body []byte, fields ...string) bool {
	t.Helper()
	asked := &Asked{Header: http.Header{}, Generation: 1}
	found := c.Lookup(k, p, asked, noon)
	f := c.Alone(k, p, &found)
	return bring(t, f, asked, body, fields...)
}

func bring(t testing.TB, f *Flight, asked *Asked, body []byte, fields ...string) bool {
	t.Helper()
	if len(fields) == 0 {
		fields = []string{"Cache-Control", "max-age=3600", "Content-Type", "text/plain"}
	}
	o, why := f.Policy().Judge(asked, answer(fields...))
	if why == "" {
		why = f.Begin(o, int64(len(body)))
	}
	if why != "" {
		t.Fatalf("not stored: %s", why)
	}
	if why, err := f.Write(body); why != "" || err != nil {
		t.Fatalf("not taken: %s, %v", why, err)
	}
	before := f.cache.Stats().Stored
	f.End(Settled{Policy: f.Policy(), Generation: asked.Generation})
	return f.cache.Stats().Stored > before
}

func has(c *Cache, k *Key, p *Policy) bool {
	return c.Lookup(k, p, &Asked{Header: http.Header{}}, noon).Outcome == Fresh
}

func path(i int) string { return fmt.Sprintf("/object/%d", i) }
