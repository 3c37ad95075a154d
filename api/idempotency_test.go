package api_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/api"
)

// A request that is sent again under its Idempotency-Key gets the first answer and does nothing again.
func TestIdempotencyKey(t *testing.T) {
	p := newPlane(t)
	p.publish("one")
	op := p.client("operator")
	_, err := op.AddRecord(t.Context(), "example.com", api.RecordEdit{Name: "x", Type: "TXT", Content: "two"})
	p.must(err)
	apply := func(key, body string) answer {
		return p.request("operator", "POST", "/v1/config/apply", body, "Idempotency-Key: "+key)
	}
	var (
		all     [8]answer
		sending sync.WaitGroup
	)
	for i := range all {
		sending.Go(func() { all[i] = apply("key-1", `{"message":"two"}`) })
	}
	sending.Wait()
	replayed := 0
	for _, a := range all {
		if a.status != 200 || a.body != all[0].body || !strings.Contains(a.body, `"applied":true`) {
			t.Errorf("answer %d %s", a.status, a.body)
		}
		if a.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if replayed != len(all)-1 {
		t.Errorf("%d of %d answers were repetitions", replayed, len(all))
	}
	h, err := op.History(t.Context(), api.PageOptions{})
	p.must(err)
	if len(h.Items) != 2 {
		t.Errorf("%d versions, want 2", len(h.Items))
	}
	if a := apply("key-1", `{"message":"three"}`); a.status != 422 || !strings.Contains(a.body, "idempotency_key_reused") {
		t.Errorf("another body: %d %s", a.status, a.body)
	}
	if a := apply("key-2", `{"message":"two"}`); !strings.Contains(a.body, "no_changes") {
		t.Errorf("another key: %s", a.body)
	}
	for _, key := range []string{"", "a b", strings.Repeat("k", 129), "ü"} {
		if a := apply(key, `{}`); a.status != 400 || !strings.Contains(a.body, "bad_idempotency_key") {
			t.Errorf("key %q: %d %s", key, a.status, a.body)
		}
	}
	// A refusal is an answer too.
	first := apply("key-3", `{"expected_content_hash":"`+strings.Repeat("0", 64)+`"}`)
	second := apply("key-3", `{"expected_content_hash":"`+strings.Repeat("0", 64)+`"}`)
	if first.status != 409 && first.status != 200 || second.status != first.status || second.body != first.body {
		t.Errorf("refusal %d, then %d", first.status, second.status)
	}
}
