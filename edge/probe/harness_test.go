package probe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/dns"
	"github.com/guardyn-edge/guardyn/edge/web"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// node is a DNS and an HTTP server on loopback over views that a test serves, and their prober.
type node struct {
	*Prober
	t       *testing.T
	live    edge.Live // of the HTTP server and the prober
	dnsLive edge.Live
	web     *web.Server
	version uint64
	now     time.Time
}

func startNode(t *testing.T, change ...func(*Config)) *node {
	t.Helper()
	n := &node{t: t, now: time.Unix(1e9, 0)}
	d, err := dns.NewServer(dns.Config{Live: &n.dnsLive, Addr: "127.0.0.1:0", RateLimit: -1})
	if err != nil {
		t.Fatal(err)
	}
	n.web = web.NewServer(web.Config{View: n.live.Load, Addr: "127.0.0.1:0", AllowedOrigins: loopback, Grace: time.Second})
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	for _, s := range []interface {
		Listen() error
		Serve(context.Context) error
	}{d, n.web} {
		if err := s.Listen(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx) }()
		t.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	c := Config{
		Live: n.live.Load, DNS: d.Addr().String(), HTTP: n.web.Addr().String(), AllowedOrigins: loopback,
		Now: func() time.Time { return n.now },
		Requests: func() Requests {
			var r Requests
			classes := n.web.Metrics().Requests
			for _, k := range classes[1:] {
				r.All += k
			}
			r.Failed = classes[5]
			return r
		},
	}
	for _, f := range change {
		f(&c)
	}
	n.Prober = New(c)
	return n
}

// snapshot makes the next version of these zones.
func (n *node) snapshot(zones ...*zone.Zone) *snapshot.Snapshot {
	n.t.Helper()
	n.version++
	in := snapshot.Input{Now: time.Unix(1, 0), AllowedOrigins: loopback}
	for _, z := range zones {
		if err := z.Normalize(); err != nil {
			n.t.Fatal(err)
		}
		in.Zones = append(in.Zones, snapshot.ZoneInput{Workspace: "w", Zone: z.Served()})
	}
	s, _, err := snapshot.Build(in, snapshot.Meta{Version: n.version, CreatedAt: time.Unix(1, 0)})
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// serve swaps to s, by DNS too.
func (n *node) serve(s *snapshot.Snapshot) {
	n.t.Helper()
	v, err := edge.Compile(n.live.Load(), s, s.Meta().Version, edge.Options{ServiceAddresses: []netip.Addr{netip.MustParseAddr("198.51.100.1")}})
	if err != nil {
		n.t.Fatal(err)
	}
	n.live.Store(v)
	n.dnsLive.Store(v)
}

// try takes the node from before, which is served, to after, as an agent does.
func (n *node) try(before, after *snapshot.Snapshot) {
	n.t.Helper()
	n.Prepare(n.t.Context(), before, after)
	n.Begin(before, after, 100)
	n.serve(after)
}

// check judges as if a while had passed since the last judgement.
func (n *node) check() Report {
	n.now = n.now.Add(2 * time.Second)
	return n.Check(n.t.Context())
}

// site is the i-th zone, zone-i.example, with a note that tells versions apart. Its host www is served by the pool main.
func site(i int, note string, origins ...zone.Origin) *zone.Zone {
	name := zone.MustName(fmt.Sprintf("zone-%03d.example", i))
	host := zone.MustName("www." + name.String())
	z := &zone.Zone{
		ID: zone.ID(fmt.Sprintf("0198c5a0-0000-7000-8000-%012d", i)), Name: name,
		Records: []zone.Record{{Name: zone.MustName("note." + name.String()), Type: 16, Content: `"` + note + `"`}},
	}
	if len(origins) > 0 {
		z.Records = append(z.Records, zone.Record{Name: host, Type: 1, Content: "192.0.2.1", Proxied: true})
		z.Pools = map[string]zone.Pool{"main": {Origins: origins}}
		z.LoadBalancers = map[zone.Name]zone.LoadBalancer{host: {Pools: []string{"main"}}}
	}
	return z
}

// origin is an HTTP server that answers with a status which a test can change.
type origin struct {
	*httptest.Server
	status atomic.Int64
	asked  atomic.Int64
}

func startOrigin(t *testing.T, status int) *origin {
	t.Helper()
	o := new(origin)
	o.status.Store(int64(status))
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		o.asked.Add(1)
		w.WriteHeader(int(o.status.Load()))
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *origin) zone() zone.Origin {
	return zone.Origin{Name: "a", Address: o.Listener.Addr().String()}
}

// nobody is an origin where nothing listens.
func nobody(t *testing.T) zone.Origin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return zone.Origin{Name: "gone", Address: l.Addr().String()}
}
