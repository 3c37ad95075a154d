package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// node is a server over views that a test publishes.
type node struct {
	*Server
	t       testing.TB
	live    edge.Live
	version uint64
	stop    context.CancelFunc
	ended   chan error
}

func startNode(t testing.TB, configure ...func(*Config)) *node {
	t.Helper()
	n := &node{t: t, ended: make(chan error, 1)}
	c := Config{View: n.live.Load, Addr: "127.0.0.1:0", AllowedOrigins: loopback, Grace: 5 * time.Second}
	for _, f := range configure {
		f(&c)
	}
	n.Server = NewServer(c)
	if err := n.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	go func() { n.ended <- n.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-n.ended; err != nil {
			t.Error(err)
		}
	})
	return n
}

// end stops the node and waits for the end of all that it does, before the test's own.
func (n *node) end() {
	n.t.Helper()
	n.stop()
	if err := <-n.ended; err != nil {
		n.t.Error(err)
	}
	n.ended <- nil // for the cleanup
}

// publish makes zones the node's whole configuration.
func (n *node) publish(zones ...*zone.Zone) *edge.View {
	n.t.Helper()
	in := snapshot.Input{Now: time.Now(), AllowedOrigins: append(loopback, netip.MustParsePrefix("0.0.0.0/0"))}
	for i, z := range zones {
		if z.ID == "" {
			z.ID = zone.ID(fmt.Sprintf("0190c1d2-0000-7000-8000-%012d", i+1))
		}
		if err := z.Normalize(); err != nil {
			n.t.Fatal(err)
		}
		in.Zones = append(in.Zones, snapshot.ZoneInput{Workspace: "w", Zone: z.Served()})
	}
	n.version++
	s, _, err := snapshot.Build(in, snapshot.Meta{Version: n.version, CreatedAt: in.Now})
	if err != nil {
		n.t.Fatal(err)
	}
	v, err := edge.Compile(n.live.Load(), s, n.version, edge.Options{Secrets: testSecrets{}})
	if err != nil {
		n.t.Fatal(err)
	}
	n.live.Store(v)
	return v
}

// site is a zone example.com whose name www is served by the origin at address.
func site(address string, change ...func(*zone.Zone)) *zone.Zone {
	z := &zone.Zone{
		Name:    zone.MustName("example.com"),
		Records: []zone.Record{record("www.example.com", "192.0.2.1"), record("*.wild.example.com", "192.0.2.1")},
		Pools:   map[string]zone.Pool{"main": {Origins: []zone.Origin{{Name: "a", Address: address}}}},
		LoadBalancers: map[zone.Name]zone.LoadBalancer{
			zone.MustName("www.example.com"):    {Pools: []string{"main"}},
			zone.MustName("*.wild.example.com"): {Pools: []string{"main"}},
		},
	}
	for _, f := range change {
		f(z)
	}
	return z
}

func record(name, address string) zone.Record {
	r := zone.Record{Name: zone.MustName(name), Type: 1, Content: address, Proxied: true}
	if strings.Contains(address, ":") {
		r.Type = 28
	}
	return r
}

func rule(phase zone.Phase, expression string, action zone.Action, p zone.Parameters) func(*zone.Zone) {
	return func(z *zone.Zone) {
		if z.Rulesets == nil {
			z.Rulesets = make(map[zone.Phase][]zone.Rule)
		}
		z.Rulesets[phase] = append(z.Rulesets[phase], zone.Rule{Expression: expression, Action: action, Parameters: p})
	}
}

// recorded is a request as an origin got it.
type recorded struct {
	method, uri, host string
	header            http.Header
	body              string
	complete          bool // the body came to its end
}

// origin keeps what it gets and answers 200 with its name.
type origin struct {
	*httptest.Server
	mu  sync.Mutex
	got []recorded
}

func startOrigin(t testing.TB, answer ...http.HandlerFunc) *origin {
	o := new(origin)
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		o.mu.Lock()
		o.got = append(o.got, recorded{r.Method, r.RequestURI, r.Host, r.Header.Clone(), string(body), err == nil})
		o.mu.Unlock()
		if len(answer) > 0 {
			answer[0](w, r)
			return
		}
		io.WriteString(w, "origin")
	}))
	t.Cleanup(o.Close)
	return o
}

// rawOrigin reads the head of one request on each connection, writes answer as it is and closes. It returns its
// address.
func rawOrigin(t testing.TB, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					io.WriteString(c, answer)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Wait()
	})
	return l.Addr().String()
}

func (o *origin) address() string { return o.Listener.Addr().String() }

// take returns what was got since the last take.
func (o *origin) take() []recorded {
	o.mu.Lock()
	defer o.mu.Unlock()
	got := o.got
	o.got = nil
	return got
}

func (n *node) dial() net.Conn {
	n.t.Helper()
	c, err := net.Dial("tcp", n.Addr().String())
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// exchangeRaw sends bytes, the last of which must make the node close, and reads responses until it does.
func (n *node) exchangeRaw(bytesOut string) []reply {
	n.t.Helper()
	c := n.dial()
	if _, err := io.WriteString(c, bytesOut); err != nil {
		n.t.Fatal(err)
	}
	return readReplies(n.t, c)
}

type reply struct {
	status int
	header http.Header
	body   string
	closes bool
}

func readReplies(t testing.TB, r io.Reader) (out []reply) {
	t.Helper()
	b := bufio.NewReader(r)
	for {
		res, err := http.ReadResponse(b, nil)
		if err != nil {
			if err != io.ErrUnexpectedEOF && err != io.EOF {
				t.Logf("read: %v", err)
			}
			return out
		}
		var body bytes.Buffer
		io.Copy(&body, res.Body)
		out = append(out, reply{res.StatusCode, res.Header, body.String(), res.Close})
	}
}

// get asks for a path of www.example.com with extra header lines, on a connection of its own.
func (n *node) get(path string, lines ...string) reply {
	n.t.Helper()
	return n.ask("GET", "www.example.com", path, lines...)
}

func (n *node) ask(method, host, path string, lines ...string) reply {
	n.t.Helper()
	head := method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n"
	for _, l := range lines {
		head += l + "\r\n"
	}
	got := n.exchangeRaw(head + "Connection: close\r\n\r\n")
	if len(got) != 1 {
		n.t.Fatalf("%s %s%s: %d replies", method, host, path, len(got))
	}
	return got[0]
}
