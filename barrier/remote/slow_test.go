package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// post makes a POST as the coordinator with a body of the test's.
func post(t *testing.T, address, path, contentType string, body io.Reader, length int64) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+prefix+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = length
	req.Header.Set("Authorization", "Bearer "+credential(coordinator))
	req.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

// Only JSON that says each thing once, and nothing else, is taken.
func TestBodiesAreStrict(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	for name, tt := range map[string]struct{ path, contentType, body string }{
		"empty":               {"/claim", "application/json", ``},
		"another type":        {"/claim", "text/plain", `{"token":1}`},
		"no type":             {"/claim", "", `{"token":1}`},
		"a form":              {"/claim", "application/x-www-form-urlencoded", `token=1`},
		"not JSON":            {"/claim", "application/json", `token: 1`},
		"two values":          {"/claim", "application/json", `{"token":1}{"token":2}`},
		"trailing":            {"/claim", "application/json", `{"token":1}]`},
		"an unknown member":   {"/claim", "application/json", `{"token":1,"force":true}`},
		"a member twice":      {"/claim", "application/json", `{"token":1,"token":2}`},
		"another case":        {"/claim", "application/json", `{"Token":1}`},
		"a negative number":   {"/claim", "application/json", `{"token":-1}`},
		"a fraction":          {"/claim", "application/json", `{"token":1.5}`},
		"too large a number":  {"/claim", "application/json", `{"token":18446744073709551616}`},
		"a number as text":    {"/claim", "application/json", `{"token":"1"}`},
		"not UTF-8":           {"/lease/acquire", "application/json", "{\"holder\":\"\xff\",\"ttl_ms\":1000}"},
		"a lone surrogate":    {"/lease/acquire", "application/json", `{"holder":"\ud800","ttl_ms":1000}`},
		"a duration as text":  {"/lease/acquire", "application/json", `{"holder":"h","ttl_ms":"1s"}`},
		"a part of a ms":      {"/lease/acquire", "application/json", `{"holder":"h","ttl_ms":1.5}`},
		"too long a duration": {"/lease/acquire", "application/json", `{"holder":"h","ttl_ms":9223372036855}`},
		"a duration of null":  {"/lease/acquire", "application/json", `{"holder":"h","ttl_ms":null}`},
		"a query":             {"/claim?token=2", "application/json", `{"token":1}`},
	} {
		status, answer := post(t, server.URL, tt.path, tt.contentType, strings.NewReader(tt.body), int64(len(tt.body)))
		if status != 400 || !strings.Contains(answer, `"code":"invalid"`) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	for _, path := range []string{
		"GET /row?x=1", "GET /view?member=a&member=a", "GET /view?member=a&x=1", "GET /watch?topic=roster", "GET /watch",
		"GET /watch?topic=head&topic=head", "GET /artefact?digest=a&digest=b", "GET /view?member=%zz",
	} {
		if status, answer, _ := (request{path: path}).send(t, server.URL, credential(coordinator)); status != 400 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if calls := s.took(); len(calls) > 0 {
		t.Errorf("reached the store: %v", calls)
	}
}

func TestPathsAndMethods(t *testing.T) {
	server, _ := serve(t, newSpy().backend(), remote.Options{})
	for path, want := range map[string]int{
		"GET /": 404, "GET /row/": 404, "GET //row": 404, "POST /lease": 404, "DELETE /row": 405, "HEAD /row": 405, "OPTIONS /artefact": 405,
		"POST /artefact": 405, "GET /ack": 405,
	} {
		status, answer, h := (request{path: path}).send(t, server.URL, credential(coordinator))
		if status != want || (status == 405) != (h.Get("Allow") != "") {
			t.Errorf("%s: %d %s %v", path, status, answer, h)
		}
	}
	bare, _ := serve(t, remote.Backend{Store: newSpy()}, remote.Options{})
	for _, r := range matrix {
		if !strings.Contains(r.path, "lease") && !strings.Contains(r.path, "artefact") {
			continue
		}
		if status, answer, _ := r.send(t, bare.URL, credential(coordinator)); status != 404 || !strings.Contains(answer, "no_such_path") {
			t.Errorf("%s: %d %s", r.path, status, answer)
		}
	}
}

// spaces is a body of n bytes that counts what was taken of it.
type spaces struct {
	n     int64
	taken atomic.Int64
}

func (s *spaces) Read(b []byte) (int, error) {
	left := s.n - s.taken.Load()
	if left <= 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), left)
	for i := range b[:n] {
		b[i] = ' '
	}
	s.taken.Add(n)
	return int(n), nil
}

// A body that is too large is refused, and what was not read yet is not.
func TestLargeBodies(t *testing.T) {
	s := newSpy()
	_, h := serve(t, s.backend(), remote.Options{})
	for _, path := range []string{"/ack", "/roster", "/artefact"} {
		limit, method, kind := int64(remote.MaxRequest), http.MethodPost, "application/json"
		switch path {
		case "/roster":
			limit = int64(remote.MaxRoster)
		case "/artefact":
			limit, method, kind = barrier.MaxArtefactBytes, http.MethodPut, "application/octet-stream"
		}
		for _, declared := range []bool{true, false} {
			body := &spaces{n: 1 << 30}
			r := httptest.NewRequest(method, path, body)
			r.ContentLength = -1
			if declared {
				r.ContentLength = body.n
			}
			r.Header.Set("Content-Type", kind)
			r.Header.Set("Authorization", "Bearer "+credential(remote.Principal{Member: "a", Coordinator: true}))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != 400 || !strings.Contains(w.Body.String(), `"invalid"`) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
			if n := body.taken.Load(); n > 2*limit || declared && n > 0 {
				t.Errorf("%s: %d bytes were read", path, n)
			}
		}
	}
	if calls := s.took(); len(calls) > 0 {
		t.Errorf("reached the store: %v", calls)
	}
}

func longID(i int) barrier.MemberID {
	return barrier.MemberID(fmt.Sprintf("%0*d", barrier.MaxIDBytes, i))
}

// The largest roster, row and view that can be are within the bounds, and come whole.
func TestTheLargestFit(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	c := client(t, server.URL, coordinator, remote.ClientOptions{Timeout: time.Minute})
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901234, time.UTC)
	worst := func(n int) string { return strings.Repeat("\x01", n) }
	digest := barrier.Digest("a:" + strings.Repeat(`"`, barrier.MaxDigestBytes-2))
	last := barrier.Ref{ID: barrier.RolloutID(longID(0)), Generation: 1<<64 - 1}
	boot := barrier.BootID(longID(0))
	head := barrier.Head{
		Revision: 1<<64 - 1, Generation: 1<<64 - 1, Claim: 1<<64 - 1,
		Committed: barrier.Pointer{Generation: 1<<64 - 1, Digest: digest, Version: 1<<64 - 1},
		Rollout: &barrier.Rollout{
			Ref: last, Digest: digest, Version: 1<<64 - 1, Proposer: worst(barrier.MaxNameBytes), RosterRevision: 1<<64 - 1, EpochSize: 1000,
			Window: barrier.MaxWindow, Soak: barrier.MaxWindow, Grace: barrier.MaxGrace, EvidenceTTL: barrier.MaxEvidenceTTL,
			ProposedAt: at, Deadline: at, State: barrier.Committed, CommittedAt: at, ConfirmDeadline: at, DecidedAt: at,
			DecidedBy: "operator " + worst(barrier.MaxNameBytes), Reason: worst(barrier.MaxReasonBytes),
		},
		Previous: &barrier.Outcome{Ref: last, Digest: digest, Version: 1<<64 - 1, State: barrier.Committed, Reason: worst(barrier.MaxReasonBytes)},
	}
	reg := barrier.Registration{Boot: boot, Incarnation: 1<<64 - 1, Joined: 1<<64 - 1}
	ballot := barrier.Ballot{
		Boot: boot, Vote: barrier.Nacked, BuildDigest: worst(barrier.MaxDigestBytes), Reason: worst(barrier.MaxReasonBytes), VotedAt: at,
		ConvergedSince: at, RenewedAt: at, Detail: worst(barrier.MaxReasonBytes), Withdrawn: worst(barrier.MaxReasonBytes), WithdrawnAt: at,
	}
	s.view = barrier.View{Head: head, Registration: reg, InEpoch: true, Ballot: ballot, Now: at}
	s.row = barrier.Row{Head: head, Now: at, Margin: time.Second}
	members := make([]barrier.MemberID, barrier.MaxMembers)
	for i := range members {
		members[i] = longID(i)
		s.row.Seats = append(s.row.Seats, barrier.Seat{Member: members[i], Registration: reg, Ballot: ballot})
	}
	s.row.Roster = barrier.Roster{Revision: 1<<64 - 1, Members: members}

	view, err := c.Look(t.Context(), "a")
	if err != nil || view.Ballot != ballot {
		t.Errorf("Look: %v", err)
	}
	row, err := c.Current(t.Context())
	if err != nil || len(row.Seats) != len(members) || row.Seats[999] != s.row.Seats[999] || !slices.Equal(row.Roster.Members, members) {
		t.Errorf("Current: %v", err)
	}
	roster, err := c.SetRoster(t.Context(), 1<<64-2, members)
	if err != nil || !slices.Equal(roster.Members, members) {
		t.Errorf("SetRoster: %v", err)
	}
	s.err = &barrier.OpenError{Rollout: *head.Rollout}
	if _, err := c.Current(t.Context()); barrier.Code(err) != "open" {
		t.Errorf("OpenError: %v", err)
	}
	s.err = nil
	s.bytes = bytes.Repeat([]byte("x"), barrier.MaxArtefactBytes)
	if got, err := c.Get(t.Context(), "test:1"); err != nil || !bytes.Equal(got, s.bytes) {
		t.Errorf("Get: %d bytes, %v", len(got), err)
	}
	if err := c.Put(t.Context(), "test:1", s.bytes); err != nil {
		t.Errorf("Put: %v", err)
	}
}

// A reason is cut by the store, where it would have been cut without the wire between.
func TestLongReasonsAreCutAlike(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	c := client(t, server.URL, coordinator, remote.ClientOptions{})
	cut := func(reason string) string {
		ro := barrier.Head{Rollout: &barrier.Rollout{Ref: ref, State: barrier.Proposed}}
		h, err := ro.Abort(ref, barrier.ByOperator("x"), reason, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return h.Rollout.Reason
	}
	for _, piece := range []string{"a", "\x00", "é", "€", "\U0001F600", "\xff", "€\xff", "\xe2\x82", "\xf0\x9f\x98", "a\xf0"} {
		for shift := range 5 {
			for _, n := range []int{1, 330, 333, 334, 500, 999, 1000, 1001, 5000, 1 << 18} {
				reason := strings.Repeat("x", shift) + strings.Repeat(piece, n) + strings.Repeat("tail", 300)
				if err := c.Abort(t.Context(), ref, barrier.ByClaim(1), reason); err != nil {
					t.Fatal(err)
				}
				got := s.took()[0].args[2].(string)
				if len(got) > 4*barrier.MaxReasonBytes || cut(got) != cut(reason) {
					t.Fatalf("%d × %q after %d: sent %d bytes that become %q, want %q", n, piece, shift, len(got), cut(got), cut(reason))
				}
			}
		}
	}
}

// Clients that do not go on with it are cut off, and nothing is left of them.
func TestSlowClients(t *testing.T) {
	s := newSpy()
	server, h := serve(t, s.backend(), remote.Options{})
	h.SetBodyTimeout(100 * time.Millisecond)
	before := runtime.NumGoroutine()
	address := strings.TrimPrefix(server.URL, "http://")
	head := "POST " + prefix + "/claim HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + credential(coordinator) + "\r\n"
	var wg sync.WaitGroup
	for name, sent := range map[string]string{
		"half a body":  head + "Content-Length: 11\r\n\r\n{\"tok",
		"half a chunk": head + "Transfer-Encoding: chunked\r\n\r\nb\r\n{\"tok",
		"no body":      head + "Content-Length: 11\r\n\r\n",
	} {
		wg.Go(func() {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			_, err = io.WriteString(conn, sent)
			answer, err2 := io.ReadAll(conn)
			if err != nil || err2 != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
				t.Errorf("%s: %v %v %q", name, err, err2, answer)
			}
		})
	}
	wg.Wait()
	if calls := s.took(); len(calls) > 0 {
		t.Errorf("reached the store: %v", calls)
	}
	settled(t, before)
	// The deadline of a body ends with it: a call to the store may take longer.
	s.hold = make(chan struct{})
	release := time.AfterFunc(1500*time.Millisecond, func() { close(s.hold) })
	defer release.Stop()
	if err := client(t, server.URL, coordinator, remote.ClientOptions{}).Claim(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// settled waits until no more goroutines run than before.
func settled(t *testing.T, before int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for runtime.NumGoroutine() > before {
		select {
		case <-ctx.Done():
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		case <-tick.C:
		}
	}
}

// A store that does not answer is given up by the handler, also when its client does not give up.
func TestSlowStore(t *testing.T) {
	s := newSpy()
	s.hold = make(chan struct{})
	defer close(s.hold)
	server, _ := serve(t, s.backend(), remote.Options{StoreTimeout: 50 * time.Millisecond})
	for _, m := range methods {
		err := m.call(t.Context(), client(t, server.URL, m.who, remote.ClientOptions{}))
		unknown(t, m.name, err)
		if !strings.Contains(err.Error(), "outcome_unknown") {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// A whole cohort that fetches an artefact at once shares its bytes.
func TestArtefactsAreShared(t *testing.T) {
	s := newSpy()
	s.bytes = bytes.Repeat([]byte("x"), barrier.MaxArtefactBytes)
	_, h := serve(t, s.backend(), remote.Options{})
	const n = 200
	done := make(chan int, n)
	var answering sync.WaitGroup // nobody ends before all have begun to answer
	answering.Add(n)
	for range n {
		go func() {
			r := httptest.NewRequest(http.MethodGet, "/artefact?digest=test:named", nil)
			r.Header.Set("Authorization", "Bearer "+credential(coordinator))
			w := &counting{header: http.Header{}, first: func() { answering.Done(); answering.Wait() }}
			h.ServeHTTP(w, r)
			done <- w.n
		}()
	}
	for range n {
		if got := <-done; got != barrier.MaxArtefactBytes {
			t.Fatalf("%d bytes", got)
		}
	}
	if got := len(s.took()); got != 1 {
		t.Errorf("the store was asked %d times by %d requests", got, n)
	}
	// An error is not shared, and nothing is kept once nobody needs it.
	s.err = barrier.ErrNoArtefact
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/artefact?digest=test:named", nil)
	r.Header.Set("Authorization", "Bearer "+credential(coordinator))
	h.ServeHTTP(w, r)
	if w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// counting is a ResponseWriter that keeps nothing.
type counting struct {
	header http.Header
	first  func()
	n      int
}

func (c *counting) Header() http.Header { return c.header }
func (c *counting) WriteHeader(int)     { c.first() }
func (c *counting) Write(b []byte) (int, error) {
	c.n += len(b)
	return len(b), nil
}
