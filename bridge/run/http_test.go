package run_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// TestHTTP: a POST is answered when the broker behind the route has its message; what a broker has goes to a hook in order, at least once, though the
// hook fails now and then.
func TestHTTP(t *testing.T) {
	a := testmosquitto.Start(t)
	var mu sync.Mutex
	var got []string
	fails := 0
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if fails++; fails%5 == 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if r.URL.Path != "/hooks/in/door" || r.Header.Get("Site") != "north" {
			t.Errorf("%s with %v", r.URL.Path, r.Header)
		}
		got = append(got, string(body))
	}))
	defer hook.Close()
	door := testmosquitto.FreeAddr(t)
	m := start(t, run.Options{}, fmt.Sprintf(`sessions:
  - {id: a, kind: mqtt, url: %q, clean_start: false, session_expiry: 1h}
  - {id: door, kind: http, listen: %q}
  - {id: hook, kind: http, url: "%s/hooks"}
routes:
  - {id: in, from: {session: door, topic: door/+}, to: {session: a, topic: "in/door"}, transform: {properties: {set: {site: north}}}}
  - {id: out, from: {session: a, topic: in/#}, to: {session: hook}}
`, a.URL(), door, hook.URL)).converge()
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprint(i))
		r, err := http.Post("http://"+door+"/door/1", "text/plain", strings.NewReader(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusNoContent {
			t.Fatalf("POST %d: %s", i, r.Status)
		}
		if m.route("in").Delivered != uint64(i+1) {
			t.Errorf("answered before the broker had it: %+v", m.route("in"))
		}
	}
	testmosquitto.Until(t, "the hook has everything", func() bool { return m.route("out").Delivered == 30 })
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		t.Errorf("the hook has %v", got)
	}
	if r := m.route("out"); r.Retried == 0 || r.Refused != 0 {
		t.Errorf("the route is %+v", r)
	}
}
