package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/internal/originguard"
	"github.com/guardyn-edge/guardyn/zone"
)

// nameserver answers A with what its function says of each query, by UDP on loopback.
func nameserver(t testing.TB, address func(name string) string) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if name := q.Question[0]; name.Qtype == dns.TypeA {
			if a := address(name.Name); a != "" {
				m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: name.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.ParseIP(a)})
			}
		}
		w.WriteMsg(m)
	})}
	done := make(chan struct{})
	go func() { defer close(done); s.ActivateAndServe() }()
	t.Cleanup(func() { pc.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func TestGuardJudgesAddressesAtDial(t *testing.T) {
	resolver := nameserver(t, func(name string) string {
		return map[string]string{"inside.example.": "127.0.0.1", "cloud.example.": "169.254.169.254"}[name]
	})
	for _, tc := range []struct{ name, host, address string }{
		{"loopback", "127.0.0.1:80", ""},
		{"loopback elsewhere", "127.8.8.8:80", ""},
		{"IPv6 loopback", "[::1]:80", ""},
		{"metadata", "169.254.169.254:80", ""},
		{"mapped", "[::ffff:127.0.0.1]:80", ""},
		{"NAT64", "[64:ff9b::7f00:1]:80", ""},
		{"6to4", "[2002:7f00:1::1]:80", ""},
		{"CGNAT", "100.64.0.1:80", ""},
		{"private", "10.0.0.1:80", ""},
		{"unspecified", "0.0.0.0:80", ""},
		{"IPv6 unspecified", "[::]:80", ""},
		{"multicast", "224.0.0.1:80", ""},
		{"ULA", "[fd00::1]:80", ""},
		{"a name for loopback", "inside.example:80", ""},
		{"a name for metadata", "cloud.example:80", ""},
		{"a record's content", "", "127.0.0.1"},
		{"a record's mapped content", "", "::ffff:127.0.0.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var refused atomic.Uint64
			c := Config{Resolver: resolver}.withDefaults()
			d := newDialer(&c, &refused)
			target := &target{host: tc.host}
			if tc.address != "" {
				target = recordTarget(&zone.Zone{ID: "z"}, edge.Origin{Addresses: []netip.Addr{netip.MustParseAddr(tc.address)}}, "h.example")
			}
			conn, err := d.dialTarget(t.Context(), target)
			var refusal *originguard.RefusedError
			if !errors.As(err, &refusal) {
				t.Fatalf("got %v, %v; want a refusal", conn, err)
			}
			if refused.Load() == 0 {
				t.Error("the refusal was not counted")
			}
		})
	}
}

func TestNameThatRebindsGetsNothing(t *testing.T) {
	// What answers is on loopback, which the node of this test does not allow; the name first resolves to an
	// address that passes, and to loopback ever after.
	inside := startOrigin(t)
	_, port, _ := net.SplitHostPort(inside.address())
	var asked atomic.Int64
	resolver := nameserver(t, func(name string) string {
		if name != "rebind.example." {
			return ""
		}
		if asked.Add(1) == 1 {
			return "192.0.2.1"
		}
		return "127.0.0.1"
	})
	if a, err := resolver.LookupNetIP(t.Context(), "ip4", "rebind.example."); err != nil || a[0].String() != "192.0.2.1" {
		t.Fatalf("first look: %v, %v", a, err)
	}
	n := startNode(t, func(c *Config) { c.AllowedOrigins, c.Resolver = nil, resolver })
	n.publish(site("rebind.example:" + port))
	for range 3 {
		got := n.get("/")
		if got.status != http.StatusBadGateway || strings.Contains(got.body, "127.0.0.1") {
			t.Errorf("got %+v, want a plain 502", got)
		}
	}
	if got := inside.take(); len(got) != 0 {
		t.Errorf("the inside was reached: %+v", got)
	}
	if m := n.Metrics(); m.OriginRefused != 3 || m.OriginErrors != 3 {
		t.Errorf("got %+v, want 3 refused", m)
	}
	t.Run("the same name is served when the operator allows it", func(t *testing.T) {
		n := startNode(t, func(c *Config) { c.Resolver = resolver })
		n.publish(site("rebind.example:" + port))
		if got := n.get("/"); got.status != 200 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestRecordContentServes(t *testing.T) {
	// Port 80 of an address of loopback that nothing else listens on.
	l, err := net.Listen("tcp", "127.0.7.80:80")
	if err != nil {
		t.Fatalf("this test needs to listen on port 80: %v", err)
	}
	o := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })}
	go o.Serve(l)
	t.Cleanup(func() { o.Close() })
	resolver := nameserver(t, func(name string) string {
		return map[string]string{"target.example.net.": "127.0.7.80"}[name]
	})
	n := startNode(t, func(c *Config) { c.Resolver = resolver })
	n.publish(&zone.Zone{Name: zone.MustName("example.com"), Records: []zone.Record{
		record("one.example.com", "127.0.7.80"),
		record("two.example.com", "127.0.7.79"), record("two.example.com", "127.0.7.80"),
		{Name: zone.MustName("alias.example.com"), Type: 5, Content: "target.example.net", Proxied: true},
		{Name: zone.MustName("lost.example.com"), Type: 5, Content: "nowhere.example.net", Proxied: true},
		record("*.w.example.com", "127.0.7.80"),
	}})
	for _, tc := range []struct {
		host   string
		status int
	}{
		{"one.example.com", 200},
		{"two.example.com", 200},
		{"two.example.com", 200},
		{"alias.example.com", 200},
		{"a.w.example.com", 200},
		{"lost.example.com", 502},
	} {
		if got := n.ask("GET", tc.host, "/"); got.status != tc.status || tc.status == 200 && got.body != tc.host {
			t.Errorf("%s: got %+v, want %d", tc.host, got, tc.status)
		}
	}
}

func TestOriginOverTLS(t *testing.T) {
	var sni atomic.Value
	o := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }))
	o.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) { sni.Store(h.ServerName); return nil, nil }}
	o.Config.ErrorLog = (&Config{}).stdLogger()
	o.StartTLS()
	t.Cleanup(o.Close)
	roots := x509.NewCertPool()
	roots.AddCert(o.Certificate()) // for example.com and *.example.com
	n := startNode(t, func(c *Config) { c.OriginRoots = roots })
	for _, tc := range []struct {
		name, sni, host   string
		status            int
		wantSNI, wantHost string
	}{
		{"the client's host", "", "", 200, "www.example.com", "www.example.com"},
		{"a host of the origin's", "", "app.example.com", 200, "app.example.com", "app.example.com"},
		{"a server name of its own", "tls.example.com", "app.internal", 200, "tls.example.com", "app.internal"},
		{"a name that the certificate lacks", "other.example.net", "", 502, "other.example.net", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n.publish(site("", func(z *zone.Zone) {
				z.Pools["main"] = zone.Pool{Origins: []zone.Origin{{
					Name: "a", Address: o.Listener.Addr().String(), Scheme: zone.SchemeHTTPS, SNI: tc.sni, HostHeader: tc.host,
				}}}
			}))
			got := n.get("/")
			if got.status != tc.status || tc.status == 200 && got.body != tc.wantHost || sni.Load() != tc.wantSNI {
				t.Errorf("got %+v under SNI %v", got, sni.Load())
			}
		})
	}
}

func TestOriginErrors(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := closed.Addr().String()
	closed.Close()
	release := make(chan struct{})
	slow := startOrigin(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	garbage := listen(t, func(c net.Conn) {
		buf := make([]byte, 4096)
		c.Read(buf)
		io.WriteString(c, "not HTTP\r\n\r\n")
	})
	hangup := listen(t, func(c net.Conn) { c.Read(make([]byte, 4096)) })
	for _, tc := range []struct {
		name, address string
		status        int
	}{
		{"refused", refusing, 502},
		{"garbage", garbage, 502},
		{"hangs up", hangup, 502},
		{"slow", slow.address(), 504},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t, func(c *Config) { c.OriginHeaderTimeout = 50 * time.Millisecond })
			n.publish(site(tc.address))
			got := n.get("/")
			if got.status != tc.status || strings.Contains(got.body, "127.0.0.1") {
				t.Errorf("got %+v, want a plain %d", got, tc.status)
			}
			if n.Metrics().OriginErrors != 1 {
				t.Errorf("got %+v", n.Metrics())
			}
		})
	}
}

// listen answers each connection by f, and closes it.
func listen(t testing.TB, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func TestRequestsWithEffectAreSentOnce(t *testing.T) {
	for _, tc := range []struct {
		method string
		lines  []string
		want   int
	}{
		{"POST", nil, 1},
		{"POST", []string{"Idempotency-Key: k"}, 1},
		{"DELETE", []string{"X-Idempotency-Key: k"}, 1},
		{"PUT", []string{"Content-Length: 0"}, 1},
	} {
		t.Run(tc.method+" "+strings.Join(tc.lines, ""), func(t *testing.T) {
			// The origin keeps its first connection after one answer, then hangs up on the next request.
			var sent atomic.Int64
			var keys atomic.Int64
			address := listen(t, func(c net.Conn) {
				buf := make([]byte, 4096)
				for {
					k, err := c.Read(buf)
					if err != nil {
						return
					}
					if strings.HasPrefix(string(buf[:k]), "GET /warm") {
						io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
						continue
					}
					sent.Add(1)
					if strings.Contains(strings.ToLower(string(buf[:k])), "idempotency-key: k") {
						keys.Add(1)
					}
					return
				}
			})
			n := startNode(t)
			n.publish(site(address))
			if got := n.get("/warm"); got.status != 200 {
				t.Fatalf("got %+v", got)
			}
			if got := n.ask(tc.method, "www.example.com", "/effect", tc.lines...); got.status != 502 {
				t.Errorf("got %+v, want 502", got)
			}
			if sent.Load() != int64(tc.want) {
				t.Errorf("sent %d times, want %d", sent.Load(), tc.want)
			}
			if strings.Contains(strings.Join(tc.lines, ""), "Idempotency") && keys.Load() != 1 {
				t.Error("the origin did not get the idempotency key")
			}
		})
	}
}

func TestZonesDoNotShareConnections(t *testing.T) {
	o := startOrigin(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RemoteAddr) })
	n := startNode(t)
	one, two := site(o.address()), site(o.address())
	two.Name = zone.MustName("example.net")
	two.Records = []zone.Record{record("www.example.net", "192.0.2.1")}
	two.LoadBalancers = map[zone.Name]zone.LoadBalancer{zone.MustName("www.example.net"): {Pools: []string{"main"}}}
	n.publish(one, two)
	ask := func(host string) string { return n.ask("GET", host, "/").body }
	a, b := ask("www.example.com"), ask("www.example.net")
	if a == b {
		t.Error("two zones were served over one connection to their origin")
	}
	n.publish(one, two)
	if ask("www.example.com") != a || ask("www.example.net") != b {
		t.Error("idle connections did not survive the swap")
	}
}
