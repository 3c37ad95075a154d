package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// unknown asserts that err tells nothing about the call's outcome.
func unknown(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || barrier.Code(err) != "" || errors.Is(err, remote.ErrForbidden) || errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("%s: %v", what, err)
	}
}

const late = `{"title":"Conflict","status":409,"code":"late","detail":"late"}`

// answerAs writes an answer in the handler's manner.
func answerAs(w http.ResponseWriter, r *http.Request, status int, contentType, body string) {
	w.Header().Set("Barrier-Answer", r.Header.Get("Barrier-Request"))
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// Whatever is between the client and the handler, or in its place, is not believed.
func TestLyingServers(t *testing.T) {
	const problem, js, octets = "application/problem+json", "application/json", "application/octet-stream"
	row := `{"revision":1,"generation":1,"claim":1,"roster":{"revision":0,"members":[]},"seats":[],"now":"2030-01-02T03:04:05Z"}`
	tests := map[string]http.HandlerFunc{
		"a proxy's page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<html><h1>502</h1>")
		},
		"a portal's page": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>please log in") },
		"a portal's 204":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"success without the word": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", js)
			_, _ = io.WriteString(w, row)
		},
		"success with another's word": func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Barrier-Request", r.Header.Get("Barrier-Request")+"0")
			answerAs(w, r, 200, js, row)
		},
		"a named error without the word": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", problem)
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, late)
		},
		"a named error with another status": func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 412, problem, late) },
		"a named error as 500":              func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 500, problem, late) },
		"a named error of two statuses": func(w http.ResponseWriter, r *http.Request) {
			answerAs(w, r, 412, problem, strings.Replace(late, "409", "412", 1))
		},
		"a named error as 200":   func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 200, problem, late) },
		"a named error as JSON":  func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 409, js, late) },
		"a named error and more": func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 409, problem, late+"{}") },
		"half a named error":     func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 409, problem, late[:40]) },
		"a code twice": func(w http.ResponseWriter, r *http.Request) {
			answerAs(w, r, 409, problem, late[:len(late)-1]+`,"code":"early"}`)
		},
		"an error of many bytes": func(w http.ResponseWriter, r *http.Request) {
			answerAs(w, r, 409, problem, late+strings.Repeat(" ", 1<<20))
		},
		"a code that nobody knows": func(w http.ResponseWriter, r *http.Request) {
			answerAs(w, r, 409, problem, strings.Replace(late, `"late"`, `"soon"`, 1))
		},
		"an answer of nothing":      func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 200, js, "") },
		"an answer of null":         func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 200, js, "null ,") },
		"an answer of another kind": func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 200, js, `[]`) },
		"an answer of another type": func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 200, "text/plain", row) },
		"an answer and more":        func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 200, js, row+"]") },
		"204 where there is an answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Barrier-Answer", r.Header.Get("Barrier-Request"))
			w.WriteHeader(http.StatusNoContent)
		},
		"206": func(w http.ResponseWriter, r *http.Request) { answerAs(w, r, 206, js, row) },
		"an answer that is cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			answerAs(w, r, 200, js, row)
		},
		"an answer without its length": func(w http.ResponseWriter, r *http.Request) {
			answerAs(w, r, 200, js, "")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, row)
		},
		"an artefact that is cut": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			answerAs(w, r, 200, octets, "abc")
		},
		"nothing": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				handler(w, r)
			}))
			defer server.Close()
			c := client(t, server.URL, coordinator, remote.ClientOptions{Timeout: 5 * time.Second})
			for _, m := range methods {
				asked.Store(0)
				unknown(t, m.name, m.call(t.Context(), c))
				reads := m.name == "Current" || m.name == "Look" || m.name == "Get"
				if n := asked.Load(); n != 1 && !(reads && name == "nothing") {
					t.Errorf("%s was asked %d times", m.name, n)
				}
			}
		})
	}
}

// An answer that is well formed but about something else is seen where it can be.
func TestAnswersAboutSomethingElse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerAs(w, r, 200, "application/json", `{}`)
	}))
	defer server.Close()
	c := client(t, server.URL, coordinator, remote.ClientOptions{})
	for _, m := range methods {
		switch m.name {
		case "Current", "Look", "Join", "Propose", "SetRoster", "AdoptBaseline", "Acquire", "Get":
			unknown(t, m.name, m.call(t.Context(), c))
		default: // {} is the answer to these
			if err := m.call(t.Context(), c); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

// A redirect is never followed: it would carry credentials and a write to where nobody sent them.
func TestRedirects(t *testing.T) {
	var followed atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		followed.Add(1)
		answerAs(w, r, 200, "application/json", `{}`)
	}))
	defer target.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Barrier-Answer", r.Header.Get("Barrier-Request"))
			http.Redirect(w, r, target.URL+r.URL.Path, status)
		}))
		c := client(t, server.URL, coordinator, remote.ClientOptions{
			HTTP: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }},
		})
		for _, m := range methods {
			unknown(t, fmt.Sprintf("%s after %d", m.name, status), m.call(t.Context(), c))
		}
		server.Close()
	}
	if n := followed.Load(); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// raw accepts connections and lets answer say what is sent on each, after the first bytes of a request came.
func raw(t *testing.T, answer func(net.Conn)) (address string, accepted *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted = new(atomic.Int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			t.Cleanup(func() { conn.Close() })
			go func() {
				_, _ = conn.Read(make([]byte, 1<<10))
				answer(conn)
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String(), accepted
}

// Whatever a server sends, or does not, a call ends in its time and reads no more than its answer may be.
func TestServersThatNeverEnd(t *testing.T) {
	sent := new(atomic.Int64)
	flood := func(conn net.Conn, piece string) {
		for {
			n, err := io.WriteString(conn, piece)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	tests := map[string]func(net.Conn){
		"half open": func(net.Conn) {},
		"half a header": func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: appl")
		},
		"a header without end": func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			flood(conn, "X-A: "+strings.Repeat("a", 1000)+"\r\n")
		},
		"informational answers without end": func(conn net.Conn) { flood(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") },
		"an error without end": func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/problem+json\r\n\r\n")
			flood(conn, strings.Repeat("a", 1000))
		},
		"a body of a gigabyte": func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n")
			flood(conn, strings.Repeat(" ", 1000))
		},
		"chunks without end": func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
			flood(conn, "3e8\r\n"+strings.Repeat(" ", 1000)+"\r\n")
		},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			address, _ := raw(t, answer)
			c := client(t, address, coordinator, remote.ClientOptions{Timeout: 40 * time.Millisecond, TransferTimeout: 40 * time.Millisecond})
			for _, m := range methods {
				sent.Store(0)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				unknown(t, m.name, m.call(t.Context(), c))
				if d := time.Since(began); d > 5*time.Second {
					t.Errorf("%s took %s", m.name, d)
				}
				runtime.ReadMemStats(&after)
				if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
					t.Errorf("%s allocated %d bytes, of %d that were sent", m.name, n, sent.Load())
				}
			}
		})
	}
}

// A body in the right manner that comes drop by drop is given up in time, and one that is too long before it is read.
func TestSlowAndLongBodies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Barrier-Answer", r.Header.Get("Barrier-Request"))
		kind := "application/json"
		if strings.HasSuffix(r.URL.Path, "/artefact") && r.Method == http.MethodGet {
			kind = "application/octet-stream"
		}
		w.Header().Set("Content-Type", kind)
		switch r.Header.Get("Test") {
		case "drops":
			w.Header().Set("Content-Length", "60000")
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-r.Context().Done():
					return
				case <-tick.C:
					_, _ = io.WriteString(w, " ")
					w.(http.Flusher).Flush()
				}
			}
		case "long":
			w.Header().Set("Content-Length", fmt.Sprint(1<<30))
			for {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		}
	}))
	defer server.Close()
	for _, how := range []string{"drops", "long"} {
		c, err := remote.NewClient(server.URL+prefix, remote.ClientOptions{
			Timeout: 40 * time.Millisecond, TransferTimeout: 40 * time.Millisecond,
			Authorize: func(r *http.Request) error { r.Header.Set("Test", how); return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, m := range methods {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := m.call(t.Context(), c)
			unknown(t, how+": "+m.name, err)
			if how == "drops" && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", m.name, err)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
				t.Errorf("%s allocated %d bytes", m.name, n)
			}
		}
	}
}

// A write whose connection breaks is not made again, on a connection that was used before neither.
func TestWritesAreNotRepeated(t *testing.T) {
	s := newSpy()
	var writes, abort atomic.Int64
	h := remote.NewHandler(s.backend(), authorize, remote.Options{})
	defer h.Close()
	server := httptest.NewServer(http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && abort.Load() > 0 {
			writes.Add(1)
			panic(http.ErrAbortHandler)
		}
		h.ServeHTTP(w, r)
	})))
	defer server.Close()
	for _, m := range methods {
		c := client(t, server.URL, m.who, remote.ClientOptions{})
		abort.Store(0)
		if err := m.call(t.Context(), c); err != nil { // the connection is open now
			t.Fatal(err)
		}
		if m.name == "Current" || m.name == "Look" || m.name == "Get" {
			continue
		}
		abort.Store(1)
		writes.Store(0)
		unknown(t, m.name, m.call(t.Context(), c))
		if n := writes.Load(); n != 1 {
			t.Errorf("%s was sent %d times", m.name, n)
		}
	}
}

func TestCallerGivesUp(t *testing.T) {
	s := newSpy()
	s.hold = make(chan struct{})
	defer close(s.hold)
	server, _ := serve(t, s.backend(), remote.Options{})
	c := client(t, server.URL, coordinator, remote.ClientOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- c.Claim(ctx, 1) }()
	for len(s.took()) == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	for _, base := range []string{"", "host", "ftp://host/a", "http://", "http://h/a?b=c", "http://h/a#b", "http://u:p@h/a", "http://h:port/", "\x00"} {
		if c, err := remote.NewClient(base, remote.ClientOptions{}); err == nil {
			c.Close()
			t.Errorf("%q is taken", base)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("%v shows a password", err)
		}
	}
	refuse := errors.New("no credentials today")
	c, err := remote.NewClient("http://192.0.2.1/x/", remote.ClientOptions{Authorize: func(*http.Request) error { return refuse }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Claim(t.Context(), 1); !errors.Is(err, refuse) {
		t.Error(err)
	}
}

// What cannot be sent is refused before it is.
func TestCallsThatCannotBeSent(t *testing.T) {
	address, accepted := raw(t, func(conn net.Conn) { conn.Close() })
	c := client(t, address, coordinator, remote.ClientOptions{})
	ctx := t.Context()
	long := strings.Repeat("a", remote.MaxRequest)
	_, err1 := c.Join(ctx, "\xff", "boot", 0)
	_, err2 := c.Propose(ctx, barrier.Proposal{ID: "r", Deadline: time.Second + 1})
	_, err3 := c.SetRoster(ctx, 0, make([]barrier.MemberID, 50*barrier.MaxMembers))
	_, err4 := c.Acquire(ctx, "me", barrier.MinLease-1)
	_, err5 := c.Acquire(ctx, "me", barrier.MaxLease+1)
	_, err6 := c.Acquire(ctx, long, time.Second)
	for i, err := range []error{
		err1, err2, err3, err4, err5, err6,
		c.Ack(ctx, ref, "a", "boot", "\xff"), c.Ack(ctx, ref, "a", "boot", long), c.Renew(ctx, barrier.Lease{Holder: "me"}),
		c.Put(ctx, "test:1", make([]byte, barrier.MaxArtefactBytes+1)),
	} {
		if !errors.Is(err, barrier.ErrInvalid) {
			t.Errorf("%d: %v", i+1, err)
		}
	}
	if n := accepted.Load(); n > 0 {
		t.Errorf("%d connections were made", n)
	}
}
