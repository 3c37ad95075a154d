package web

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/zone"
)

// A client stays with its origin over swaps, until that is down; a request whose connection could not be opened goes on to the next.
func TestStickyAndRetry(t *testing.T) {
	answer := func(w http.ResponseWriter, _ *http.Request) {}
	one, two := startOrigin(t, answer), startOrigin(t, answer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	serve := func(first string, policy zone.Policy) *zone.Zone {
		z := site(first)
		z.Pools["main"] = zone.Pool{Policy: policy, Origins: []zone.Origin{{Name: "a", Address: first}, {Name: "b", Address: two.address()}}}
		b := z.LoadBalancers[zone.MustName("www.example.com")]
		b.Sticky = &zone.Sticky{}
		z.LoadBalancers[zone.MustName("www.example.com")] = b
		return z
	}
	hits := func(o *origin) int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.got)
	}
	n := startNode(t)
	n.publish(serve(one.address(), ""))
	cookie := n.get("/").header.Get("Set-Cookie")
	value, attributes, _ := strings.Cut(cookie, "; ")
	if !strings.HasPrefix(value, "guardyn_origin=") || attributes != "Path=/; Max-Age=3600; HttpOnly; SameSite=Lax" {
		t.Fatalf("cookie %q", cookie)
	}
	for range 2 {
		for range 3 {
			if got := n.get("/", "Cookie: "+value); got.status != 200 || got.header.Get("Set-Cookie") != "" {
				t.Errorf("%d, cookie %q", got.status, got.header.Get("Set-Cookie"))
			}
		}
		n.publish(serve(one.address(), zone.PolicyLeastConn)) // a swap that changes the pool
	}
	if hits(one) != 7 || hits(two) != 0 {
		t.Errorf("%d and %d requests, want 7 and none", hits(one), hits(two))
	}
	origins := n.live.Load().Host("www.example.com").Pools.Pool("main")
	origins[0].SetHealth(pool.Unhealthy, "down")
	if got := n.get("/", "Cookie: "+value); got.header.Get("Set-Cookie") == "" || hits(two) != 1 {
		t.Errorf("with its origin down: cookie %q, %d requests on the other", got.header.Get("Set-Cookie"), hits(two))
	}

	n.publish(serve(nobody, ""))
	before := hits(two)
	for range 4 {
		if got := n.get("/"); got.status != 200 {
			t.Errorf("an origin that nobody can connect to: %d", got.status)
		}
	}
	if hits(two) != before+4 {
		t.Errorf("%d requests, want 4", hits(two)-before)
	}
}
