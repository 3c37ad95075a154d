package probe

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

func (n *node) wants(converged bool, words ...string) {
	n.t.Helper()
	r := n.check()
	if r.Converged != converged {
		n.t.Errorf("converged %t, want %t: %s", r.Converged, converged, r.Detail)
	}
	for _, w := range words {
		if !strings.Contains(r.Detail, w) {
			n.t.Errorf("%q lacks %q", r.Detail, w)
		}
	}
}

func TestZones(t *testing.T) {
	n := startNode(t)
	one, two := n.snapshot(site(1, "a"), site(2, "a")), n.snapshot(site(1, "b"), site(2, "a"), site(3, "a"))
	n.serve(one)
	n.try(one, two)
	n.wants(true, "zones 2/2")

	// The DNS server still has the old view, which does not know one of the zones.
	old := n.dnsLive.Load()
	three := n.snapshot(site(1, "b"), site(2, "b"), site(4, "a"))
	n.try(two, three)
	n.dnsLive.Store(old)
	n.wants(false, "zone zone-002.example: SOA over udp: ", "want serial", "over tcp", "zone zone-004.example: SOA over udp: REFUSED")
	n.dnsLive.Store(n.live.Load())
	n.wants(true, "zones 2/2")

	// Of zones that go nothing is asked.
	n.try(three, n.snapshot(site(1, "b")))
	n.wants(true, "nothing to ask")
}

func TestHosts(t *testing.T) {
	for name, row := range map[string]struct {
		before, after int // what the origin answers; 0: it is not there
		converged     bool
	}{
		"works":                 {200, 200, true},
		"not found":             {200, 404, true},
		"forbidden":             {200, 403, true},
		"bad gateway":           {200, 502, false},
		"no origin":             {200, 0, false},
		"failed before too":     {500, 500, true},
		"failed before, better": {502, 200, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := startNode(t)
			o := startOrigin(t, row.before)
			one := n.snapshot(site(1, "a", o.zone()))
			z := site(1, "a", o.zone())
			z.Records = append(z.Records, zone.Record{Name: zone.MustName("www.zone-001.example"), Type: 16, Content: `"b"`})
			if row.after == 0 {
				z.Pools = map[string]zone.Pool{"main": {Origins: []zone.Origin{nobody(t)}}}
			}
			two := n.snapshot(z)
			n.serve(one)
			n.Prepare(t.Context(), one, two)
			o.status.Store(int64(row.after))
			n.Begin(one, two, 100)
			n.serve(two)
			if row.converged {
				n.wants(true, "zones 1/1, hosts 1/1")
			} else {
				n.wants(false, "host www.zone-001.example: answers 502 Bad Gateway")
			}
		})
	}
}

// A host that fails now and then does not fail a trial at the first time.
func TestAFailureIsAskedOnceMore(t *testing.T) {
	n := startNode(t)
	calls := 0
	flaky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer flaky.Close()
	one := n.snapshot(site(1, "a"))
	two := n.snapshot(site(1, "a", zone.Origin{Name: "a", Address: flaky.Listener.Addr().String()}))
	n.serve(one)
	n.try(one, two)
	n.wants(true, "hosts 1/1")
	if calls != 2 {
		t.Errorf("asked %d times", calls)
	}
}

func TestPools(t *testing.T) {
	t.Run("touched, none healthy", func(t *testing.T) {
		n := startNode(t)
		first, second := nobody(t), nobody(t)
		second.Name = "too"
		one, two := n.snapshot(site(1, "a")), n.snapshot(site(1, "a", first, second))
		n.serve(one)
		n.try(one, two)
		n.wants(false, "pool main of zone-001.example has no healthy origin: ", "gone: ", "connection refused", "too: ")
	})
	t.Run("touched, one of many healthy", func(t *testing.T) {
		n := startNode(t)
		origins := []zone.Origin{startOrigin(t, 200).zone()}
		for range originsAtOnce {
			origins = append([]zone.Origin{nobody(t)}, origins...)
		}
		for i := range origins {
			origins[i].Name = string(rune('a' + i))
		}
		z := site(1, "a", origins...)
		z.LoadBalancers, z.Records = nil, z.Records[:1]
		one, two := n.snapshot(site(1, "a")), n.snapshot(z)
		n.serve(one)
		n.try(one, two)
		n.wants(true, "pools 1/1")
	})
	t.Run("healthy before, dead now", func(t *testing.T) {
		n := startNode(t)
		o, gone := startOrigin(t, 200), nobody(t)
		one := n.snapshot(site(1, "a", o.zone()), site(2, "a"), site(3, "a", gone))
		two := n.snapshot(site(1, "a", o.zone()), site(2, "b"), site(3, "a", gone))
		n.serve(one)
		n.try(one, two)
		n.wants(true, "zones 1/1, pools 1/1") // that of zone 1
		o.Close()
		n.wants(false, "pool main of zone-001.example has no healthy origin")
	})
	t.Run("dead before and now", func(t *testing.T) {
		n := startNode(t)
		gone := nobody(t)
		one := n.snapshot(site(1, "a", gone), site(2, "a"))
		two := n.snapshot(site(1, "a", gone), site(2, "b"))
		n.serve(one)
		n.try(one, two)
		n.wants(true, "zones 1/1")
	})
	t.Run("refused by the guard", func(t *testing.T) {
		n := startNode(t, func(c *Config) { c.AllowedOrigins = nil })
		o := startOrigin(t, 200)
		z := site(1, "a", o.zone())
		one, two := n.snapshot(site(1, "a")), n.snapshot(z)
		n.serve(one)
		n.try(one, two)
		n.wants(false, "pool main of zone-001.example has no healthy origin: a: ", "127.0.0.1")
	})
}

func TestHealthChecks(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/alive" || r.Host != "app.example.com" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(secure.Close)
	plain := startOrigin(t, 503)
	https := zone.Origin{
		Name: "a", Address: secure.Listener.Addr().String(), Scheme: zone.SchemeHTTPS, HostHeader: "app.example.com", SNI: "example.com",
	}
	other := https
	other.SNI = "other.test"
	clear2 := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			w.WriteHeader(505)
		}
	}))
	clear2.Config.Protocols = new(http.Protocols)
	clear2.Config.Protocols.SetUnencryptedHTTP2(true)
	clear2.Start()
	t.Cleanup(clear2.Close)
	h2c := zone.Origin{Name: "h2c", Address: clear2.Listener.Addr().String(), Scheme: zone.SchemeH2C}
	own := x509.NewCertPool()
	own.AddCert(secure.Certificate())
	for name, row := range map[string]struct {
		roots  *x509.CertPool
		origin zone.Origin
		check  *zone.HealthCheck
		fails  string // empty: healthy
	}{
		"connects":                {nil, plain.zone(), nil, ""},
		"tcp":                     {nil, plain.zone(), &zone.HealthCheck{Type: "tcp"}, ""},
		"http, 503":               {nil, plain.zone(), &zone.HealthCheck{}, "/ answers 503"},
		"http, 503 expected":      {nil, plain.zone(), &zone.HealthCheck{ExpectedStatus: []int{503}}, ""},
		"h2c":                     {nil, h2c, &zone.HealthCheck{}, ""},
		"https, own roots":        {own, https, &zone.HealthCheck{Path: "/alive"}, ""},
		"https, another path":     {own, https, &zone.HealthCheck{Path: "/dead"}, "/dead answers 418"},
		"https, system's roots":   {nil, https, &zone.HealthCheck{Path: "/alive"}, "certificate"},
		"https, for another name": {own, other, &zone.HealthCheck{Path: "/alive"}, "other.test"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newOriginClient(loopback, row.roots)
			err := c.check(t.Context(), poolRef{apex: "x", name: "main", pool: zone.Pool{Origins: []zone.Origin{row.origin}, Health: row.check}})
			if row.fails == "" && err != nil || row.fails != "" && (err == nil || !strings.Contains(err.Error(), row.fails)) {
				t.Errorf("%v, want %q", err, row.fails)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	n := startNode(t)
	zones := make([]*zone.Zone, 0, MaxZones+1)
	o := startOrigin(t, 200)
	for i := range MaxZones + 1 {
		zones = append(zones, site(i, "a", o.zone()))
	}
	after := n.snapshot(zones...)
	n.try(nil, after)
	n.wants(true, "zones 200/200, hosts 200/200, pools 201/201")

	many := make([]string, 2000)
	for i := range many {
		many[i] = "host x: répond 500"
	}
	if d := clip(strings.Join(many, "; "), len(many)); len(d) > maxDetail+40 || !strings.HasSuffix(d, "… 2000 failures in all") {
		t.Errorf("%d bytes: %q", len(d), d)
	}
}

func TestWithoutTime(t *testing.T) {
	n := startNode(t)
	o := startOrigin(t, 200)
	one, two := n.snapshot(site(1, "a", o.zone())), n.snapshot(site(1, "b", o.zone()))
	n.serve(one)
	ended, end := context.WithCancel(t.Context())
	end()
	n.Prepare(ended, one, two) // nothing is excused
	n.Begin(one, two, 100)
	n.serve(two)
	if r := n.Check(ended); r.Converged || !strings.Contains(r.Detail, "1 of 1 questions have no answer yet") {
		t.Errorf("before any answer: %+v", r)
	}
	n.wants(true, "zones 1/1")
	// What was found then stands for a while.
	n.now = n.now.Add(10 * time.Second)
	if r := n.Check(ended); !r.Converged {
		t.Errorf("with answers: %+v", r)
	}
	n.now = n.now.Add(10 * time.Second)
	if r := n.Check(ended); r.Converged {
		t.Errorf("with old answers: %+v", r)
	}
}

func TestAYoungJudgementIsGivenAgain(t *testing.T) {
	n := startNode(t)
	o := startOrigin(t, 200)
	one, two := n.snapshot(site(1, "a")), n.snapshot(site(1, "a", o.zone()))
	n.serve(one)
	n.try(one, two)
	n.wants(true, "hosts 1/1")
	asked := o.asked.Load()
	o.status.Store(500)
	n.now = n.now.Add(recheck - time.Millisecond)
	if r := n.Check(t.Context()); !r.Converged || o.asked.Load() != asked {
		t.Errorf("%+v, asked %d times, then %d", r, asked, o.asked.Load())
	}
	n.now = n.now.Add(time.Millisecond)
	if r := n.Check(t.Context()); r.Converged {
		t.Errorf("after a second: %+v", r)
	}
	// A new trial is judged anew.
	three := n.snapshot(site(1, "c"))
	n.try(two, three)
	if r := n.Check(t.Context()); !r.Converged || r.Detail[:9] != "zones 1/1" {
		t.Errorf("of a new trial: %+v", r)
	}
}

func TestOutOfOrder(t *testing.T) {
	n := startNode(t)
	if r := n.Check(t.Context()); r.Converged || r.Detail == "" {
		t.Errorf("before Begin: %+v", r)
	}
	o := startOrigin(t, 500)
	one, two := n.snapshot(site(1, "a", o.zone())), n.snapshot(site(1, "b", o.zone()))
	three := n.snapshot(site(1, "b", nobody(t)))
	n.serve(one)
	for name, prepare := range map[string]func(){
		"not prepared":              func() {},
		"prepared for another":      func() { n.Prepare(t.Context(), one, two) },
		"prepared from another":     func() { n.Prepare(t.Context(), two, three) },
		"prepared, and begun since": func() { n.Prepare(t.Context(), one, three); n.Begin(one, three, 100) },
	} {
		prepare()
		n.Begin(one, three, 100)
		n.serve(three)
		// The host failed before, but nobody looked.
		if r := n.check(); r.Converged || !strings.Contains(r.Detail, "host www.zone-001.example") {
			t.Errorf("%s: %+v", name, r)
		}
		n.serve(one)
	}
	// Preparing the next change does not touch the trial.
	n.Prepare(t.Context(), one, three)
	n.Begin(one, three, 100)
	n.serve(three)
	n.Prepare(t.Context(), three, two)
	n.wants(false, "pool main of zone-001.example")
}

func TestReachable(t *testing.T) {
	for in, want := range map[string]string{
		"0.0.0.0:53": "127.0.0.1:53", "[::]:53": "[::1]:53", ":53": "127.0.0.1:53", "192.0.2.1:53": "192.0.2.1:53",
		"[2001:db8::1]:80": "[2001:db8::1]:80", "localhost:80": "localhost:80", "what": "what",
	} {
		if got := reachable(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Unspecified addresses are asked on loopback.
func TestUnspecifiedAddresses(t *testing.T) {
	port := func(address string) string { return address[strings.LastIndexByte(address, ':'):] }
	n := startNode(t, func(c *Config) { c.DNS, c.HTTP = "0.0.0.0"+port(c.DNS), port(c.HTTP) })
	n.try(nil, n.snapshot(site(1, "a", startOrigin(t, 200).zone())))
	n.wants(true, "zones 1/1, hosts 1/1, pools 1/1")
}

func TestSubjects(t *testing.T) {
	n := startNode(t)
	a := zone.Origin{Name: "a", Address: "127.0.0.1:81"}
	b := zone.Origin{Name: "a", Address: "127.0.0.1:82"}
	wild := func(z *zone.Zone) *zone.Zone {
		z.Records = append(z.Records, zone.Record{Name: zone.MustName("*." + z.Name.String()), Type: 1, Content: "192.0.2.1", Proxied: true})
		return z
	}
	rec := func(z *zone.Zone, name string, proxied bool) *zone.Zone {
		z.Records = append(z.Records, zone.Record{Name: zone.MustName(name + "." + z.Name.String()), Type: 1, Content: "192.0.2.9", Proxied: proxied})
		return z
	}
	for name, row := range map[string]struct {
		before, after *snapshot.Snapshot
		want          string // zones, hosts, known hosts, pools, untouched pools
	}{
		"a new zone":           {nil, n.snapshot(site(1, "a", a)), "zone-001 | www | | main |"},
		"nothing":              {n.snapshot(site(1, "a", a)), n.snapshot(site(1, "a", a)), "| | | | main"},
		"another record":       {n.snapshot(site(1, "a", a)), n.snapshot(site(1, "b", a)), "zone-001 | | | | main"},
		"another origin":       {n.snapshot(site(1, "a", a)), n.snapshot(site(1, "a", b)), "zone-001 | www | www | main |"},
		"a wildcard":           {n.snapshot(site(1, "a", a)), n.snapshot(wild(site(1, "a", a))), "zone-001 | | | | main"},
		"a host":               {n.snapshot(site(1, "a", a)), n.snapshot(rec(site(1, "a", a), "shop", true)), "zone-001 | shop | | | main"},
		"a host by DNS alone":  {n.snapshot(site(1, "a", a)), n.snapshot(rec(site(1, "a", a), "shop", false)), "zone-001 | | | | main"},
		"a host that goes":     {n.snapshot(rec(site(1, "a", a), "shop", true)), n.snapshot(site(1, "a", a)), "zone-001 | | | | main"},
		"the other of two":     {n.snapshot(site(1, "a", a), site(2, "a", a)), n.snapshot(site(1, "a", a), site(2, "b", a)), "zone-002 | | | | main main"},
		"a zone that is moved": {n.snapshot(site(1, "a", a), site(2, "a")), n.snapshot(site(2, "a")), "| | | |"},
	} {
		t.Run(name, func(t *testing.T) {
			s := subjectsOf(row.before, row.after)
			pools := func(refs []poolRef) (names []string) {
				for _, r := range refs {
					names = append(names, r.name)
				}
				return names
			}
			var parts []string
			for _, p := range [][]string{s.zones, s.hosts, s.known, pools(s.pools), pools(untouchedPools(row.before, row.after, s))} {
				for i := range p {
					p[i], _, _ = strings.Cut(p[i], ".")
				}
				parts = append(parts, strings.Join(p, " "))
			}
			if got := strings.Join(strings.Fields(strings.Join(parts, " | ")), " "); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}
