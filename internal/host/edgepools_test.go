package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// poolsOf is an Edge as far as its pools go, over a view of zones.
func poolsOf(t *testing.T, zones ...*zone.Zone) (*Edge, *edge.View) {
	t.Helper()
	e := &Edge{cfg: EdgeConfig{Logger: slog.New(slog.DiscardHandler)}}
	e.watchPools()
	in := snapshot.Input{Now: time.Unix(1, 0)}
	for i, z := range zones {
		z.ID = zone.ID(fmt.Sprintf("0198c5a0-0000-7000-8000-%012d", i+1))
		if err := z.Normalize(); err != nil {
			t.Fatal(err)
		}
		in.Zones = append(in.Zones, snapshot.ZoneInput{Workspace: "w", Zone: z})
	}
	s, _, err := snapshot.Build(in, snapshot.Meta{Version: 1, CreatedAt: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	v, err := edge.Compile(nil, s, 1, edge.Options{Monitor: e.pools})
	if err != nil {
		t.Fatal(err)
	}
	e.checks.Swapped(nil, v)
	return e, v
}

func zoneWithPools(name string, pools map[string]zone.Pool) *zone.Zone {
	return &zone.Zone{Name: zone.MustName(name), Pools: pools}
}

func origins(n int) []zone.Origin {
	list := make([]zone.Origin, n)
	for i := range list {
		list[i] = zone.Origin{Name: fmt.Sprintf("o%03d", i), Address: fmt.Sprintf("192.0.2.%d:%d", i%250+1, 8000+i/250)}
	}
	return list
}

// TestPoolReport: an acknowledgement names the origins that take no requests, why and since when, and no others.
func TestPoolReport(t *testing.T) {
	e, v := poolsOf(t, zoneWithPools("a.example", map[string]zone.Pool{
		"checked": {Origins: origins(3), Health: &zone.HealthCheck{}},
		"slow":    {Origins: origins(2), SlowStart: zone.Duration(time.Hour)},
	}))
	z := v.ZoneFor("a.example")
	if r := e.poolReport(); r.Checked != 3 || len(r.Down) != 0 || r.Down == nil || r.Omitted != 0 {
		t.Errorf("when all is well: %+v", r)
	}
	before := time.Now()
	checked, slow := z.Pools.Pool("checked"), z.Pools.Pool("slow")
	checked[2].SetHealth(pool.Unhealthy, "status\x00 500\n\u202e"+strings.Repeat("x", 300))
	for range 5 { // the default of outlier detection
		slow[1].Begin()
		slow[1].End(pool.Result{Err: errors.New("no connection")})
	}
	slow[0].SetHealth(pool.Unhealthy, "down")
	slow[0].SetHealth(pool.Healthy, "") // in its slow start: it takes requests
	r := e.poolReport()
	if len(r.Down) != 2 || r.Omitted != 0 {
		t.Fatalf("%+v", r)
	}
	unhealthy, ejected := r.Down[0], r.Down[1]
	if unhealthy.Zone != string(z.Config.ID) || unhealthy.Pool != "checked" || unhealthy.Origin != "o002" || unhealthy.State != nodeproto.OriginUnhealthy {
		t.Errorf("%+v", unhealthy)
	}
	if !strings.HasPrefix(unhealthy.Error, "status  500  xxx") || len(unhealthy.Error) > 200 {
		t.Errorf("error %q", unhealthy.Error)
	}
	if ejected.Pool != "slow" || ejected.Origin != "o001" || ejected.State != nodeproto.OriginEjected || ejected.Error != "no connection" {
		t.Errorf("%+v", ejected)
	}
	for _, d := range r.Down {
		if d.Since.Before(before.Truncate(time.Second)) || d.Since.After(time.Now()) || d.Since.Nanosecond() != 0 || d.Since.Location() != time.UTC {
			t.Errorf("%s since %s", d.Origin, d.Since)
		}
	}
	// What was down in a view that is served no more is told of no more.
	e.checks.Swapped(v, compiledWithout(t, v, e))
	if r := e.poolReport(); len(r.Down) != 0 || r.Checked != 0 {
		t.Errorf("after its zone is gone: %+v", r)
	}
}

// compiledWithout is a view without zones.
func compiledWithout(t *testing.T, old *edge.View, e *Edge) *edge.View {
	t.Helper()
	s, _, err := snapshot.Build(snapshot.Input{Now: time.Unix(1, 0)}, snapshot.Meta{Version: 2, CreatedAt: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	v, err := edge.Compile(old, s, 2, edge.Options{Monitor: e.pools})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestPoolReportIsBounded: of many origins that are down an acknowledgement names some and counts the others, and with the longest
// names and errors it fits its 64 KiB.
func TestPoolReportIsBounded(t *testing.T) {
	long := strings.Repeat("n", 60)
	list := origins(nodeproto.MaxOriginsDown + 4)
	for i := range list {
		list[i].Name = fmt.Sprintf("%s%03d", long, i)
	}
	e, v := poolsOf(t, zoneWithPools("a.example", map[string]zone.Pool{long: {Origins: list}}))
	for _, o := range v.ZoneFor("a.example").Pools.Pool(long) {
		o.SetHealth(pool.Unhealthy, strings.Repeat(`"`, 300))
	}
	r := e.poolReport()
	if len(r.Down) != nodeproto.MaxOriginsDown || r.Omitted != 4 {
		t.Errorf("%d named, %d left out", len(r.Down), r.Omitted)
	}
	text, err := json.Marshal(nodeproto.Ack{Pools: r})
	if err != nil || len(text) > 62<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

type collected struct{ e *Edge }

func (collected) Describe(chan<- *prometheus.Desc)       {}
func (c collected) Collect(out chan<- prometheus.Metric) { c.e.collectPools(out) }

// TestPoolMetrics: what is counted of origins and of their checks, without a name among it.
func TestPoolMetrics(t *testing.T) {
	e, v := poolsOf(t, zoneWithPools("a.example", map[string]zone.Pool{"p": {Origins: origins(4), Health: &zone.HealthCheck{}}}))
	o := v.ZoneFor("a.example").Pools.Pool("p")
	for _, r := range []pool.Result{{Status: http.StatusOK, Latency: time.Millisecond}, {Status: 500}, {Status: 502}, {Err: io.ErrUnexpectedEOF}, {}} {
		o[0].Begin()
		o[0].End(r)
	}
	o[1].SetHealth(pool.Unhealthy, "down")
	for range 5 {
		o[2].Begin()
		o[2].End(pool.Result{Status: 502})
	}
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(collected{e}); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "guardyn_edge_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
				if strings.Contains(l.GetValue(), "example") || strings.HasPrefix(l.GetValue(), "o0") {
					t.Errorf("%s names an origin: %s", name, l.GetValue())
				}
			}
			switch {
			case m.Counter != nil:
				got[name] = m.GetCounter().GetValue()
			case m.Gauge != nil:
				got[name] = m.GetGauge().GetValue()
			case m.Histogram != nil:
				got[name] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	for name, want := range map[string]float64{
		"origin_requests_total answered": 1, "origin_requests_total server_error": 1, "origin_requests_total gateway_error": 6,
		"origin_requests_total no_answer": 1, "origin_requests_total canceled": 1, "origin_seconds": 9,
		"origin_ejections_total": 1, "origins_down unhealthy": 1, "origins_down ejected": 1, "origins_checked": 4,
		"health_checks_total passed": 0, "health_checks_total failed": 0, "health_check_seconds": 0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
}
