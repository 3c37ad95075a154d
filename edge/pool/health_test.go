package pool

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

const second = zone.Duration(time.Second)

func named(s *Set, name string) *Origin {
	for _, p := range s.pools {
		for _, o := range p.origins {
			if o.Name == name {
				return o
			}
		}
	}
	return nil
}

func picks(s *Set, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(s.PickPool("main", client).Name)
	}
	return b.String()
}

func fails(o *Origin, n int) {
	for range n {
		o.Begin()
		o.End(Result{Status: 502})
	}
}

// What an origin that is down would have got goes to all others, not to its neighbour.
func TestUnhealthyOriginsAreSkippedEvenly(t *testing.T) {
	for _, policy := range []zone.Policy{zone.PolicyRoundRobin, zone.PolicyLeastConn, zone.PolicyRandomTwo, zone.PolicyClientIP} {
		for _, weights := range [][]int{{1, 1, 1, 1}, {2, 1, 2, 1}} {
			t.Run(fmt.Sprint(policy, weights), func(t *testing.T) {
				s := compile(t, onePool(zone.Pool{Policy: policy, Origins: origins(weights...)}), nil)
				seed := uint64(1)
				s.pools["main"].random = func(n int64) int64 {
					seed = mix(seed)
					return int64(seed>>1) % n
				}
				named(s, "b").SetHealth(Unhealthy, "down")
				total := weights[0] + weights[2] + weights[3]
				counts := map[string]int{}
				const n = 10000
				for i := range n * total {
					o := s.PickPool("main", Client{Addr: netip.AddrFrom4([4]byte{198, byte(i >> 16), byte(i >> 8), byte(i)})})
					if policy == zone.PolicyLeastConn || policy == zone.PolicyRandomTwo {
						o.Begin() // what is in flight evens it out
					}
					counts[o.Name]++
				}
				for i, name := range []string{"a", "b", "c", "d"} {
					want := n * weights[i]
					if name == "b" {
						want = 0
					}
					tolerance := 1
					if policy == zone.PolicyClientIP {
						tolerance = 500
					}
					if policy == zone.PolicyRandomTwo {
						tolerance = 50
					}
					if got := counts[name]; got < want-tolerance || got > want+tolerance || name == "b" && got > 0 {
						t.Errorf("%v, want %d on %s", counts, want, name)
					}
				}
			})
		}
	}
}

func TestPanicAndFallback(t *testing.T) {
	one := func(name string) zone.Pool {
		return zone.Pool{Origins: []zone.Origin{{Name: name, Address: "192.0.2." + fmt.Sprint(int(name[0]-'a')+1)}}}
	}
	for _, row := range []struct {
		name     string
		fallback string
		down     string
		want     string
	}{
		{"the first pool", "c", "", "a"},
		{"the next pool", "c", "a", "b"},
		{"the fallback", "c", "ab", "c"},
		{"the fallback, whatever its health", "c", "abc", "c"},
		{"all are down and there is no fallback", "", "ab", "a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := compile(t, &zone.Zone{
				Pools: map[string]zone.Pool{"a": one("a"), "b": one("b"), "c": one("c")},
				LoadBalancers: map[zone.Name]zone.LoadBalancer{
					zone.MustName("www.example.com"): {Pools: []string{"a", "b"}, Fallback: row.fallback},
				},
			}, nil)
			for _, name := range row.down {
				named(s, string(name)).SetHealth(Unhealthy, "down")
			}
			if got := s.Pick("www.example.com", client).Name; got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
	s := compile(t, onePool(zone.Pool{Origins: origins(1, 1)}), nil)
	for _, o := range s.Pool("main") {
		o.SetHealth(Unhealthy, "down")
	}
	if got := picks(s, 4); got != "abab" {
		t.Errorf("a pool that a rule names, all down: %s", got)
	}
}

func TestEjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMonitor()
		s, err := Compile(onePool(zone.Pool{Origins: origins(1, 1, 1, 1)}), nil, m)
		if err != nil {
			t.Fatal(err)
		}
		a, b, c := named(s, "a"), named(s, "b"), named(s, "c")
		fails(a, 4)
		a.Begin()
		a.End(Result{Status: 503}) // what it says of itself is no failure: the run is over
		fails(a, 4)
		a.Begin()
		a.End(Result{Err: context.Canceled}) // says nothing
		if !a.Usable() {
			t.Fatal("ejected after four failures")
		}
		fails(a, 1)
		if a.Usable() || m.Counts().Ejections != 1 {
			t.Fatal("not ejected after five failures")
		}
		fails(b, 5)
		fails(c, 50)
		if b.Usable() || !c.Usable() {
			t.Errorf("b usable %v, c usable %v: half of four may be out", b.Usable(), c.Usable())
		}
		if got := m.Impaired(); len(got) != 2 || !got[0].Ejected || got[0].Reason != "status 502" || !got[0].Until.Equal(time.Now().Add(30*time.Second)) {
			t.Errorf("%+v", got)
		}
		time.Sleep(30*time.Second - 1)
		if a.Usable() {
			t.Error("back before its time")
		}
		time.Sleep(time.Nanosecond)
		if !a.Usable() || !b.Usable() || len(m.Impaired()) != 0 {
			t.Error("not back after 30 s")
		}
		fails(a, 5)
		time.Sleep(60*time.Second - 1)
		if a.Usable() {
			t.Error("the second ejection is no longer than the first")
		}
		time.Sleep(time.Nanosecond)
		if !a.Usable() {
			t.Error("the second ejection is longer than twice the first")
		}
		time.Sleep(time.Minute) // makes up for two
		fails(a, 5)
		time.Sleep(30 * time.Second)
		if !a.Usable() {
			t.Error("an old ejection still counts")
		}
	})
}

// A client that has an origin refuse it does not take the origin from all others.
func TestWhatEjects(t *testing.T) {
	broken := errors.New("broke off")
	for _, row := range []struct {
		name     string
		statuses []int
		result   Result
		ejects   bool
	}{
		{"no connection", nil, Result{Err: broken}, true},
		{"no answer in time", nil, Result{Err: context.DeadlineExceeded}, true},
		{"an answer that breaks off", nil, Result{Status: 200, Err: broken}, true},
		{"a refusal that breaks off", nil, Result{Status: 503, Err: broken}, true},
		{"no server behind it", nil, Result{Status: 502}, true},
		{"none in time behind it", nil, Result{Status: 504}, true},
		{"it is asked for too much", nil, Result{Status: 503}, false},
		{"the client asks for too much", nil, Result{Status: 429}, false},
		{"an error of the site's", nil, Result{Status: 500}, false},
		{"the client left", nil, Result{Err: context.Canceled}, false},
		{"a status that the pool names", []int{500, 503}, Result{Status: 503}, true},
		{"one that it does not name", []int{500, 503}, Result{Status: 502}, false},
		{"no connection, whatever it names", []int{500}, Result{Err: broken}, true},
		{"a status of a pool that names none", []int{}, Result{Status: 502}, false},
		{"no answer from one of such a pool", []int{}, Result{Err: context.DeadlineExceeded}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := compile(t, onePool(zone.Pool{Origins: origins(1, 1), OutlierDetection: &zone.OutlierDetection{FailureStatus: row.statuses}}), nil)
			o := named(s, "a")
			for range 5 {
				o.Begin()
				o.End(row.result)
			}
			if o.Usable() == row.ejects {
				t.Errorf("usable: %v after five", o.Usable())
			}
		})
	}
}

func TestEjectionSparesTheLast(t *testing.T) {
	no := false
	for _, row := range []struct {
		name   string
		pool   zone.Pool
		before string // unhealthy
		want   string // usable after all failed, a first
	}{
		{"one origin", zone.Pool{Origins: origins(1)}, "", "a"},
		{"two origins", zone.Pool{Origins: origins(1, 1)}, "", "b"},
		{"two, all may be ejected", zone.Pool{Origins: origins(1, 1), OutlierDetection: &zone.OutlierDetection{MaxEjectionPercent: 100}}, "", "b"},
		{"three, one percent: always one", zone.Pool{Origins: origins(1, 1, 1), OutlierDetection: &zone.OutlierDetection{MaxEjectionPercent: 1}}, "", "bc"},
		{"the other is unhealthy", zone.Pool{Origins: origins(1, 1)}, "b", "a"},
		{"not enabled", zone.Pool{Origins: origins(1, 1), OutlierDetection: &zone.OutlierDetection{Enabled: &no}}, "", "ab"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := compile(t, onePool(row.pool), nil)
			for _, name := range row.before {
				named(s, string(name)).SetHealth(Unhealthy, "down")
			}
			got := ""
			for _, o := range s.Pool("main") {
				fails(o, 5)
			}
			for _, o := range s.Pool("main") {
				if o.Usable() {
					got += o.Name
				}
			}
			if got != row.want {
				t.Errorf("usable %q, want %q", got, row.want)
			}
		})
	}
}

func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := compile(t, onePool(zone.Pool{Origins: origins(1, 1), SlowStart: 100 * second}), nil)
		share := func() int { return strings.Count(picks(s, 1000), "b") }
		if got := share(); got != 500 {
			t.Errorf("%d of 1000 at first: nothing was down", got)
		}
		b := named(s, "b")
		b.SetHealth(Unhealthy, "down")
		b.SetHealth(Healthy, "")
		for _, row := range []struct {
			after time.Duration
			want  int
		}{{0, 91}, {50 * time.Second, 333}, {25 * time.Second, 428}, {25 * time.Second, 500}} {
			time.Sleep(row.after)
			if got := share(); got < row.want-3 || got > row.want+3 {
				t.Errorf("%s later: %d of 1000, want %d", row.after, got, row.want)
			}
		}
		fails(b, 5)
		time.Sleep(30 * time.Second)
		if got := share(); got < 88 || got > 94 {
			t.Errorf("after an ejection: %d of 1000", got)
		}
	})
}

func TestHealthSurvivesCompile(t *testing.T) {
	m := NewMonitor()
	z := onePool(zone.Pool{Origins: origins(1, 1, 1)})
	old, _ := Compile(z, nil, m)
	m.Swapped(nil, old)
	named(old, "a").SetHealth(Unhealthy, "down")
	fails(named(old, "b"), 5)
	next, _ := Compile(onePool(zone.Pool{Policy: zone.PolicyLeastConn, Origins: origins(3, 2, 1, 1)}), old, m)
	m.Swapped(old, next)
	if named(next, "a").Usable() || named(next, "b").Usable() || !named(next, "d").Usable() {
		t.Error("what was down is not, or the other way round")
	}
	last, _ := Compile(onePool(zone.Pool{Origins: origins(1)}), next, m)
	m.Swapped(next, last)
	if got := m.Impaired(); len(got) != 1 || got[0].Origin != "a" {
		t.Errorf("an origin that is gone is still known: %+v", got)
	}
	fails(named(next, "c"), 5) // a request of the old view
	if got := m.Impaired(); len(got) != 1 {
		t.Errorf("an origin that is gone came back: %+v", got)
	}
	m.Swapped(last, next) // a trial is taken back
	if got := m.Impaired(); len(got) != 3 {
		t.Errorf("after going back: %+v", got)
	}
}

func TestSticky(t *testing.T) {
	host := zone.MustName("www.example.com")
	z := func(id zone.ID, list ...zone.Origin) *zone.Zone {
		return &zone.Zone{
			ID: id, Pools: map[string]zone.Pool{"main": {Origins: list}},
			LoadBalancers: map[zone.Name]zone.LoadBalancer{host: {Pools: []string{"main"}, Sticky: &zone.Sticky{}}},
		}
	}
	s := compile(t, z("id", origins(1, 1, 1)...), nil)
	sticky := s.Balancer("www.example.com").Sticky()
	if sticky.Cookie != "guardyn_origin" || sticky.TTL != time.Hour {
		t.Errorf("%+v", sticky)
	}
	b := named(s, "b")
	value := sticky.Value(b)
	with := Client{Addr: client.Addr, Sticky: func(cookie string) string {
		if cookie != "guardyn_origin" {
			t.Errorf("asked for cookie %s", cookie)
		}
		return value
	}}
	for range 5 {
		if got := s.Pick("www.example.com", with); got != b {
			t.Fatalf("went to %s", got.Name)
		}
	}
	// Another node, which compiled nothing before, and a swap.
	other := compile(t, z("id", append(origins(1, 9), zone.Origin{Name: "z", Address: "192.0.2.99"})...), nil)
	if got := other.Pick("www.example.com", with); got.Name != "b" {
		t.Errorf("on another node: %s", got.Name)
	}
	if s := compile(t, z("other", origins(1, 1, 1)...), nil); s.Balancer("www.example.com").Sticky().Value(named(s, "b")) == value {
		t.Error("two zones have one value for an address: it can be tried out")
	}
	if strings.Contains(value, "192") || len(value) != 22 {
		t.Errorf("value %q", value)
	}
	b.SetHealth(Unhealthy, "down")
	if got := s.Pick("www.example.com", with); got == b {
		t.Error("stuck to an origin that is down")
	}
	gone := compile(t, z("id", origins(1)...), s)
	if got := gone.Pick("www.example.com", with); got.Name != "a" {
		t.Errorf("got %s", got.Name)
	}
	value = "made up"
	if s.Pick("www.example.com", with) == nil {
		t.Error("a cookie that was made up got nothing")
	}
}

// Who was served by the fallback pool goes back as soon as another origin is well.
func TestNobodyStaysWithTheFallback(t *testing.T) {
	host := zone.MustName("www.example.com")
	s := compile(t, &zone.Zone{
		Pools:         map[string]zone.Pool{"main": {Origins: origins(1)}, "sorry": {Origins: []zone.Origin{{Name: "s", Address: "192.0.2.200"}}}},
		LoadBalancers: map[zone.Name]zone.LoadBalancer{host: {Pools: []string{"main"}, Fallback: "sorry", Sticky: &zone.Sticky{}}},
	}, nil)
	main, sorry := s.Pool("main")[0], s.Pool("sorry")[0]
	main.SetHealth(Unhealthy, "down")
	got := s.Pick("www.example.com", client)
	sticky := s.Balancer("www.example.com").Sticky()
	if got != sorry || sticky.Value(got) != "" || sticky.Value(main) == "" {
		t.Fatalf("served by %s, whose cookie is %q", got.Name, sticky.Value(got))
	}
	main.SetHealth(Healthy, "")
	as := Client{Addr: client.Addr, Sticky: func(string) string { return stickyValue("", sorry) }}
	if got := s.Pick("www.example.com", as); got != main {
		t.Errorf("stuck to %s", got.Name)
	}
}

func TestNext(t *testing.T) {
	m := NewMonitor()
	s, err := Compile(&zone.Zone{
		Pools: map[string]zone.Pool{
			"main": {Origins: origins(1, 1)}, "spare": {Origins: []zone.Origin{{Name: "s", Address: "192.0.2.7"}}},
			"alone": {Origins: []zone.Origin{{Name: "x", Address: "192.0.2.8"}}},
		},
		LoadBalancers: map[zone.Name]zone.LoadBalancer{zone.MustName("www.example.com"): {Pools: []string{"main"}, Fallback: "spare"}},
	}, nil, m)
	if err != nil {
		t.Fatal(err)
	}
	first := s.Pick("www.example.com", client)
	second := s.Next("www.example.com", client, []*Origin{first})
	third := s.Next("www.example.com", client, []*Origin{first, second})
	if first.Name+second.Name+third.Name != "abs" {
		t.Errorf("%s, %s, %s", first.Name, second.Name, third.Name)
	}
	if s.Next("www.example.com", client, []*Origin{first, second, third}) != nil {
		t.Error("a fourth origin was tried")
	}
	if got := m.Counts().Retries; got != 2 {
		t.Errorf("%d retries counted", got)
	}
	if s.Next("www.example.com", client, []*Origin{named(s, "x")}) != nil {
		t.Error("a pool that the balancer does not have went on to its pools")
	}
	named(s, "b").SetHealth(Unhealthy, "down")
	if got := s.Next("www.example.com", client, []*Origin{first}); got.Name != "s" {
		t.Errorf("went on to %s, which is down", got.Name)
	}
}

func TestResultKinds(t *testing.T) {
	for _, row := range []struct {
		r    Result
		want Kind
	}{
		{Result{Status: 200}, Answered},
		{Result{Status: 101}, Answered},
		{Result{Status: 404}, Answered},
		{Result{Status: 500}, ServerError},
		{Result{Status: 502}, GatewayError},
		{Result{Status: 503}, GatewayError},
		{Result{Status: 504}, GatewayError},
		{Result{Err: errors.New("refused")}, NoAnswer},
		{Result{Status: 200, Err: errors.New("broke off")}, NoAnswer},
		{Result{Status: 500, Err: errors.New("broke off")}, NoAnswer},
		{Result{Status: 503, Err: context.DeadlineExceeded}, TimedOut},
		{Result{Status: 503, Err: context.Canceled}, GatewayError},
		{Result{Err: context.DeadlineExceeded}, TimedOut},
		{Result{Err: context.Canceled}, Canceled},
		{Result{}, Canceled},
	} {
		if got := row.r.Kind(); got != row.want {
			t.Errorf("%+v is %s, want %s", row.r, got, row.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h, other Histogram
	for _, d := range []time.Duration{
		-1, 0, 250 * time.Microsecond, 250*time.Microsecond + 1, time.Millisecond, time.Millisecond + 1, time.Second, time.Minute, time.Hour,
	} {
		h.Observe(d)
	}
	v := h.Values()
	for bound, want := range map[float64]uint64{0.00025: 3, 0.0005: 4, 0.001: 5, 0.002: 6, 0.512: 6, 1.024: 7, 32.768: 7, 65.536: 8} {
		if got, ok := v.Buckets[bound]; !ok || got != want {
			t.Errorf("up to %g s: %d, want %d", bound, got, want)
		}
	}
	if v.Count != 9 || h.Count() != 9 || len(v.Buckets) != histogramBuckets {
		t.Errorf("%+v", v)
	}
	other.ObserveEach(time.Second/2, 2)
	if both := Values(&h, &other); both.Count != 11 || both.Buckets[0.512] != 8 || both.Buckets[1.024] != 9 || both.Sum-v.Sum < 0.999 || both.Sum-v.Sum > 1.001 {
		t.Errorf("together %+v", both)
	}
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Second) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
