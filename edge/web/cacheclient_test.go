package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestClientsThatLeave: an answer comes to its end for as long as anybody wants it.
func TestClientsThatLeave(t *testing.T) {
	for _, protocol := range []string{"a connection of its own", "a stream"} {
		for _, waits := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, another waits: %v", protocol, waits), func(t *testing.T) {
				entered, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
				o, asked := gatedOrigin(t, func(_ int64, w http.ResponseWriter, r *http.Request) {
					entered <- struct{}{}
					if !waits {
						<-r.Context().Done()
						close(ended)
						return
					}
					<-release
					w.Header().Set("Cache-Control", "max-age=60")
					io.WriteString(w, "body")
				})
				n := startNode(t, withCache(0)...)
				n.publish(site(o.address()))
				ctx, leave := context.WithCancel(t.Context())
				var all sync.WaitGroup
				if protocol == "a stream" {
					all.Go(func() {
						defer func() { recover() }() // as net/http does
						n.serve(ctx, "/")
					})
				} else {
					conn := n.dial()
					io.WriteString(conn, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
					leave = func() { conn.Close() }
				}
				<-entered
				if !waits {
					leave()
					<-ended
					all.Wait()
					return
				}
				var got *httptest.ResponseRecorder
				all.Go(func() { got = n.serve(t.Context(), "/") })
				waitFor(t, "the other", func() bool { return n.config.Cache.Stats().Collapsed == 1 })
				leave()
				close(release)
				all.Wait()
				if got.Body.String() != "body" || asked.Load() != 1 {
					t.Errorf("got %q, the origin was asked %d times", got.Body, asked.Load())
				}
			})
		}
	}
}

// TestSlowClientHoldsUpNobody: what a client that takes nothing has asked for first comes to others all the same.
func TestSlowClientHoldsUpNobody(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("length known: %v", known), func(t *testing.T) {
			body := bytes.Repeat([]byte("0123456789abcdef"), 1<<20/16*3)
			o, asked := gatedOrigin(t, func(_ int64, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				if known {
					w.Header().Set("Content-Length", strconv.Itoa(len(body)))
				}
				for at := 0; at < len(body); at += 1 << 16 {
					w.Write(body[at : at+1<<16])
					w.(http.Flusher).Flush()
				}
			})
			n := startNode(t, withCache(64<<20)...)
			n.publish(site(o.address()))
			conn := n.dial()
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
			first := bufio.NewReader(conn)
			if _, err := first.Peek(1); err != nil { // it has begun to come
				t.Fatal(err)
			}
			if got := n.get("/"); got.body != string(body) || asked.Load() != 1 {
				t.Errorf("got %d octets, the origin was asked %d times", len(got.body), asked.Load())
			}
			res, err := http.ReadResponse(first, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, body) {
				t.Errorf("who was slow got %d octets, %v", len(got), err)
			}
		})
	}
}

// TestFirstOctetsAreNotHeldBack: a client has what came of an answer that is being stored.
func TestFirstOctetsAreNotHeldBack(t *testing.T) {
	release := make(chan struct{})
	o, _ := gatedOrigin(t, func(_ int64, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", "9")
		io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-release
		io.WriteString(w, "last")
	})
	n := startNode(t, withCache(0)...)
	n.publish(site(o.address()))
	for i := range 2 { // who asks first, and who waits
		conn := n.dial()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != "first" {
			t.Errorf("%d got %q, %v", i, got, err)
		}
		defer func() {
			if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "last" {
				t.Errorf("%d got %q, %v in the end", i, rest, err)
			}
		}()
	}
	close(release)
}

// TestBrokenOff: an answer that the origin breaks off is not stored, and nobody takes it for the whole.
func TestBrokenOff(t *testing.T) {
	for _, tc := range []struct{ name, answer string }{
		{"a length", "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhalf"},
		{"chunks", "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"},
		{"a malformed chunk", "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nx\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t, withCache(0)...)
			n.publish(site(rawOrigin(t, tc.answer)))
			for range 2 {
				got := n.askBody("GET", "www.example.com", "/")
				if got.status != 200 || got.body != "half (broken off)" || ownCacheStatus(got.header) != "uri-miss" {
					t.Errorf("got %+v", got)
				}
			}
			if s := n.config.Cache.Stats(); s.Stored != 0 || s.Objects != 0 || s.FillBytes != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestServedWhileValidated: of many that are served what is stale, one has it validated.
func TestServedWhileValidated(t *testing.T) {
	var c clock
	entered, release := make(chan struct{}, 1000), make(chan struct{})
	o, asked := gatedOrigin(t, func(n int64, w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=600")
		if n > 1 {
			entered <- struct{}{}
			<-release
		}
		io.WriteString(w, strconv.FormatInt(n, 10))
	})
	n := startNode(t, withCache(0, func(cfg *Config) { cfg.Now = c.now })...)
	n.publish(site(o.address()))
	n.serve(t.Context(), "/")
	c.Add(int64(time.Minute))
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if got := n.serve(t.Context(), "/"); got.Body.String() != "1" {
				t.Errorf("got %q", got.Body)
			}
		})
	}
	all.Wait()
	<-entered
	if asked.Load() != 2 {
		t.Errorf("the origin was asked %d times", asked.Load())
	}
	close(release)
	n.fetching.Wait()
	if got := n.serve(t.Context(), "/"); got.Body.String() != "2" || asked.Load() != 2 {
		t.Errorf("got %q", got.Body)
	}
}

// TestEndWhileAnswersAreOnTheirWay: a node that ends waits for nothing that no client waits for.
func TestEndWhileAnswersAreOnTheirWay(t *testing.T) {
	var c clock
	entered := make(chan struct{}, 1)
	o, _ := gatedOrigin(t, func(n int64, w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=600")
		if n > 1 {
			entered <- struct{}{}
			<-r.Context().Done()
		}
	})
	n := startNode(t, withCache(0, func(cfg *Config) { cfg.Now, cfg.Grace = c.now, 10*time.Millisecond })...)
	n.publish(site(o.address()))
	n.serve(t.Context(), "/")
	c.Add(int64(time.Minute))
	n.serve(t.Context(), "/")
	<-entered
	n.end()
}
