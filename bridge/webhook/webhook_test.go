package webhook_test

import (
	"bufio"
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
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/bridge/topic"
	"github.com/guardyn-edge/guardyn/bridge/webhook"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

func open(t *testing.T, d document.Session, secrets string) session.Session {
	t.Helper()
	d.ID, d.Kind = "s", document.HTTP
	s, err := webhook.New(session.Config{
		Session: d, Secrets: session.Secrets(secrets), Backoff: session.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond},
		Window: func() int { return 10 }, IsTarget: func() bool { return false }, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		s.Close()
	})
	testmosquitto.Until(t, "the session converges", func() bool { return s.Status().Converged })
	return s
}

func send(s session.Session, m session.Message) error {
	answer := make(chan error, 1)
	s.Send(&session.Outgoing{Message: m, Done: func(err error) { answer <- err }})
	return <-answer
}

// TestPosts: path, headers, credentials, and what each status means.
func TestPosts(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cred"), []byte("token: s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	tries := map[string]int{}
	keys := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		tries[r.URL.Path]++
		n := tries[r.URL.Path]
		if key := r.Header.Get("Idempotency-Key"); n > 1 && keys[r.URL.Path] != key || key == "" {
			t.Errorf("attempt %d has the key %q, the one before %q", n, key, keys[r.URL.Path])
		} else {
			keys[r.URL.Path] = key
		}
		switch r.URL.Path {
		case "/base/good":
			if string(body) != "hello" || r.Header.Get("Content-Type") != "text/plain" || r.Header.Get("Site") != "north" || r.URL.RawQuery != "q=1" ||
				r.Header.Get("Authorization") != "Bearer s3cret" || r.Host == "evil" {
				t.Errorf("came %q with %v, query %q", body, r.Header, r.URL.RawQuery)
			}
			w.WriteHeader(http.StatusAccepted)
		case "/base/moved":
			http.Redirect(w, r, "/base/good", http.StatusFound)
		case "/base/bad":
			http.Error(w, "no such device", http.StatusUnprocessableEntity)
		case "/base/busy", "/base/limited", "/base/cut":
			if n >= 3 {
				return
			}
			if r.URL.Path == "/base/cut" {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(map[string]int{"/base/busy": 503, "/base/limited": 429}[r.URL.Path])
		}
	}))
	defer server.Close()
	s := open(t, document.Session{URL: server.URL + "/base?q=1", Credentials: "cred"}, dir)
	for _, tt := range []struct {
		topic, refused string
		tries          int
	}{{"good", "", 1}, {"moved", "302", 1}, {"bad", "no such device", 1}, {"busy", "", 3}, {"limited", "", 3}, {"cut", "", 3}} {
		t.Run(tt.topic, func(t *testing.T) {
			err := send(s, session.Message{Topic: tt.topic, Payload: []byte("hello"), ContentType: "text/plain", Properties: []session.Property{
				{Name: "site", Value: "north"}, {Name: "Host", Value: "evil"}, {Name: "no header", Value: "x"}, {Name: "Authorization", Value: "Basic x"},
			}})
			var refusal *session.Refusal
			if errors.As(err, &refusal) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("it says %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if tries["/base/"+tt.topic] != tt.tries {
				t.Errorf("%d attempts", tries["/base/"+tt.topic])
			}
		})
	}
	for name, m := range map[string]session.Message{
		"a level up": {Topic: "../admin"}, "this level": {Topic: "x/./y"}, "ends a level up": {Topic: "x/.."},
		"a property of two lines": {Topic: "good", Properties: []session.Property{{Name: "site", Value: "a\r\nHost: evil"}}},
		"a control character":     {Topic: "good", Properties: []session.Property{{Name: "site", Value: "\x01"}}},
		"content type":            {Topic: "good", ContentType: "text/\x01"},
		"topic":                   {Topic: "a\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			var refusal *session.Refusal
			if err := send(s, m); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "cannot be a") {
				t.Errorf("it says %v", err)
			}
		})
	}
	mu.Lock()
	defer mu.Unlock()
	if len(tries) != 6 {
		t.Errorf("what cannot be sent was: %v", tries)
	}
	if s.Ordered() {
		t.Error("POSTs overtake each other")
	}
}

func subscribe(t *testing.T, s session.Session, route, filter string, sink session.Sink) {
	t.Helper()
	f, err := topic.ParseFilter(topic.MQTT, filter)
	if err != nil {
		t.Fatal(err)
	}
	s.Subscribe(route, session.Subscription{Filter: f}, sink)
}

// TestListens: a POST is answered when the message is settled, by every route that takes it.
func TestListens(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cred"), []byte("username: u\npassword: p\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := testmosquitto.FreeAddr(t)
	s := open(t, document.Session{Listen: addr, Credentials: "cred"}, dir)
	taken := make(chan *session.Delivery, 10)
	subscribe(t, s, "one", "in/+", func(d *session.Delivery) { taken <- d })
	subscribe(t, s, "two", "in/both", func(d *session.Delivery) { taken <- d })
	post := func(method, path, body, password string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Site", "north")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Cookie", "x=y")
		if password != "" {
			r.SetBasicAuth("u", password)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	go func() {
		d := <-taken
		if d.Topic != "in/x" || string(d.Payload) != "{}" || d.ContentType != "application/json" || fmt.Sprint(d.Properties) != "[{site north}]" {
			t.Errorf("came %+v", d.Message)
		}
		d.Settle()
		first, second := <-taken, <-taken
		first.Settle()
		first.Settle()
		if first == second || first.Topic != "in/both" || second.Topic != "in/both" {
			t.Errorf("came %+v and %+v", first.Message, second.Message)
		}
		second.Settle()
		first, second = <-taken, <-taken
		first.Drop("the broker does not allow it")
		second.Settle()
	}()
	for _, tt := range []struct {
		name, method, path, password string
		want                         int
	}{
		{"settled", "POST", "/in/x", "p", 204},
		{"by two routes", "POST", "/in/both", "p", 204},
		{"dropped by one of them", "POST", "/in/both", "p", 422},
		{"nobody takes it", "POST", "/out/x", "p", 404},
		{"no credentials", "POST", "/in/x", "", 401},
		{"wrong credentials", "POST", "/in/x", "q", 401},
		{"another method", "PUT", "/in/x", "p", 405},
		{"watches nothing", "GET", "/?topic=a/%23/b", "p", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if r := post(tt.method, tt.path, "{}", tt.password); r.StatusCode != tt.want {
				t.Errorf("the answer is %s", r.Status)
			}
		})
	}
	s.Unsubscribe(t.Context(), "one")
	if r := post("POST", "/in/x", "{}", "p"); r.StatusCode != 404 {
		t.Errorf("after the route has gone the answer is %s", r.Status)
	}
}

// TestWatches: who watches sees what is sent by its filter, and after a break what it has missed.
func TestWatches(t *testing.T) {
	addr := testmosquitto.FreeAddr(t)
	s := open(t, document.Session{Listen: addr}, "")
	watch := func(last string) (*bufio.Scanner, func()) {
		ctx, stop := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/?topic=a/%2B", nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil || response.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(response, err)
		}
		return bufio.NewScanner(response.Body), func() { stop(); _ = response.Body.Close() }
	}
	lines := func(in *bufio.Scanner, n int) string {
		var all []string
		for len(all) < n && in.Scan() {
			if in.Text() != "" {
				all = append(all, in.Text())
			}
		}
		return strings.Join(all, "|")
	}
	in, stop := watch("")
	for i, m := range []session.Message{
		{Topic: "a/1", Payload: []byte("one\ntwo")}, {Topic: "b/1"}, {Topic: "a/2", Payload: []byte{0xff}, Properties: []session.Property{{Name: "k", Value: "v"}}},
	} {
		if err := send(s, m); err != nil {
			t.Fatal(i, err)
		}
	}
	if got, want := lines(in, 4), `id: 1|data: {"topic":"a/1","text":"one\ntwo"}|id: 3|data: {"topic":"a/2","properties":[["k","v"]],"base64":"/w=="}`; got != want {
		t.Errorf("saw %s", got)
	}
	stop()
	in, stop = watch("1")
	if got := lines(in, 2); !strings.HasPrefix(got, "id: 3|") {
		t.Errorf("after the break saw %s", got)
	}
	stop()
	for range 1100 {
		_ = send(s, session.Message{Topic: "a/3"})
	}
	in, stop = watch("3")
	if got := lines(in, 2); got != "event: lost|data: events are gone that were not seen" {
		t.Errorf("after too long a break saw %s", got)
	}
	stop()
}
