package pool

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

var client = Client{Addr: netip.MustParseAddr("198.51.100.7")}

func origins(weights ...int) []zone.Origin {
	var out []zone.Origin
	for i, w := range weights {
		name := string(rune('a' + i))
		out = append(out, zone.Origin{Name: name, Address: fmt.Sprintf("192.0.2.%d:80", i+1), Weight: w})
	}
	return out
}

func compile(t *testing.T, z *zone.Zone, old *Set) *Set {
	t.Helper()
	s, err := Compile(z, old, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func onePool(p zone.Pool) *zone.Zone { return &zone.Zone{Pools: map[string]zone.Pool{"main": p}} }

func TestRoundRobin(t *testing.T) {
	for _, tc := range []struct {
		name    string
		weights []int
		want    string
	}{
		{"default weights rotate", []int{0, 0, 0}, "abcabc"},
		{"even weights rotate", []int{5, 5}, "abab"},
		{"uneven weights are spread", []int{5, 1, 1}, "aabacaa" + "aabacaa"},
		{"one origin", []int{3}, "aaa"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := compile(t, onePool(zone.Pool{Origins: origins(tc.weights...)}), nil)
			var got strings.Builder
			for range len(tc.want) {
				got.WriteString(s.PickPool("main", client).Name)
			}
			if got.String() != tc.want {
				t.Errorf("got %s, want %s", got.String(), tc.want)
			}
		})
	}
}

func TestLeastConnections(t *testing.T) {
	s := compile(t, onePool(zone.Pool{Policy: zone.PolicyLeastConn, Origins: origins(2, 1)}), nil)
	counts := map[string]int{}
	for range 30 {
		o := s.PickPool("main", client)
		o.Begin()
		counts[o.Name]++
	}
	if counts["a"] != 20 || counts["b"] != 10 {
		t.Errorf("got %v, want 20 on a and 10 on b", counts)
	}
}

func TestRandomTwo(t *testing.T) {
	t.Run("never the busiest of all", func(t *testing.T) {
		s := compile(t, onePool(zone.Pool{Policy: zone.PolicyRandomTwo, Origins: origins(1, 1, 1)}), nil)
		for _, o := range s.pools["main"].origins {
			if o.Name == "b" {
				o.Begin()
			}
		}
		for range 1000 {
			if o := s.PickPool("main", client); o.Name == "b" {
				t.Fatal("picked the origin with the most requests in flight")
			}
		}
	})
	t.Run("draws follow weights and skip", func(t *testing.T) {
		s := compile(t, onePool(zone.Pool{Policy: zone.PolicyRandomTwo, Origins: origins(1, 8, 1)}), nil)
		p := s.pools["main"]
		var all, less [3]int
		for range 10000 {
			all[p.draw(&p.all, -1)]++
			less[p.draw(&p.all, 1)]++
		}
		if all[1] < 7500 || all[1] > 8500 {
			t.Errorf("draws %v, want 80%% on the second", all)
		}
		if less[1] != 0 || less[0] < 4500 || less[2] < 4500 {
			t.Errorf("draws without the second %v, want halves", less)
		}
	})
}

func TestClientHash(t *testing.T) {
	pick := func(s *Set) map[netip.Addr]string {
		m := make(map[netip.Addr]string)
		for i := range 10000 {
			a := netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)})
			m[a] = s.PickPool("main", Client{Addr: a}).Name
		}
		return m
	}
	three := pick(compile(t, onePool(zone.Pool{Policy: zone.PolicyClientIP, Origins: origins(1, 2, 1)}), nil))
	counts := map[string]int{}
	for _, o := range three {
		counts[o]++
	}
	if counts["b"] < 4700 || counts["b"] > 5300 {
		t.Errorf("shares %v, want half on b", counts)
	}
	two := pick(compile(t, onePool(zone.Pool{Policy: zone.PolicyClientIP, Origins: origins(1, 2)}), nil))
	for a, o := range three {
		if o != "c" && two[a] != o {
			t.Fatalf("client %s moved from %s to %s although its origin stayed", a, o, two[a])
		}
	}
	s := compile(t, onePool(zone.Pool{Policy: zone.PolicyClientIP, Origins: origins(1, 1, 1, 1)}), nil)
	if s.PickPool("main", client) != s.PickPool("main", Client{Addr: netip.AddrFrom16(client.Addr.As16())}) {
		t.Error("an IPv4-mapped client went elsewhere than the same client")
	}
}

func TestBalancers(t *testing.T) {
	z := &zone.Zone{
		Pools: map[string]zone.Pool{
			"empty":  {},
			"first":  {Origins: []zone.Origin{{Name: "f", Address: "192.0.2.1:80"}}},
			"second": {Origins: []zone.Origin{{Name: "s", Address: "192.0.2.2:80"}}},
		},
	}
	s := compile(t, z, nil)
	to := func(names ...string) *Balancer {
		b := new(Balancer)
		for _, name := range names {
			b.pools = append(b.pools, s.pools[name])
		}
		return b
	}
	s.balancers = map[string]*Balancer{
		"www.example.com": to("first"), "down.example.com": to("empty", "second"), "gone.example.com": to("empty"),
	}
	s.wildcards = map[string]*Balancer{"example.com": to("second"), "deep.example.com": to("first")}
	for _, tc := range []struct{ host, want string }{
		{"www.example.com", "f"},
		{"down.example.com", "s"},
		{"gone.example.com", ""},
		{"other.example.com", "s"},
		{"a.b.example.com", "s"},
		{"a.deep.example.com", "f"},
		{"deep.example.com", "s"},
		{"example.com", ""},
		{"com", ""},
		{"", ""},
	} {
		got := ""
		if o := s.Pick(tc.host, client); o != nil {
			got = o.Name
		}
		if got != tc.want {
			t.Errorf("%q got origin %q, want %q", tc.host, got, tc.want)
		}
	}
	var none *Set
	if none.Pick("www.example.com", client) != nil || none.PickPool("main", client) != nil {
		t.Error("a nil set picked an origin")
	}
}

func TestOriginDefaults(t *testing.T) {
	no := false
	s := compile(t, onePool(zone.Pool{Origins: []zone.Origin{
		{Name: "a", Address: "origin.example.net"},
		{Name: "b", Address: "origin.example.net", Scheme: zone.SchemeHTTPS},
		{Name: "c", Address: "[2001:db8::1]"},
		{Name: "d", Address: "[2001:db8::1]:8080"},
		{Name: "off", Address: "192.0.2.9:80", Enabled: &no},
	}}), nil)
	var got []string
	for _, o := range s.pools["main"].origins {
		got = append(got, string(o.Scheme)+" "+o.Address)
	}
	want := "http origin.example.net:80, https origin.example.net:443, http [2001:db8::1]:80, http [2001:db8::1]:8080"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %v\nwant %v", strings.Join(got, ", "), want)
	}
}

func TestStateSurvivesCompile(t *testing.T) {
	old := compile(t, onePool(zone.Pool{Origins: origins(1, 1)}), nil)
	old.PickPool("main", client).Begin() // a
	t.Run("an unchanged pool is the same value", func(t *testing.T) {
		s := compile(t, onePool(zone.Pool{Origins: origins(1, 1)}), old)
		if s.pools["main"] != old.pools["main"] {
			t.Error("the pool was compiled again")
		}
		again := compile(t, onePool(zone.Pool{Origins: origins(1, 3)}), s)
		if got := again.pools["main"].origins[0].Inflight(); got != 1 {
			t.Errorf("two compiles later the origin has %d in flight, want 1", got)
		}
	})
	t.Run("an origin keeps its counters when its weight or policy changes", func(t *testing.T) {
		s := compile(t, onePool(zone.Pool{Policy: zone.PolicyLeastConn, Origins: origins(7, 1, 1)}), old)
		if got := s.pools["main"].origins[0].Inflight(); got != 1 {
			t.Errorf("got %d in flight, want 1", got)
		}
	})
	t.Run("another address starts anew", func(t *testing.T) {
		moved := origins(1, 1)
		moved[0].Address = "192.0.2.77:80"
		s := compile(t, onePool(zone.Pool{Origins: moved}), old)
		if got := s.pools["main"].origins[0].Inflight(); got != 0 {
			t.Errorf("got %d in flight, want 0", got)
		}
	})
}

func TestPickIsSafeForConcurrentUse(t *testing.T) {
	for _, policy := range []zone.Policy{zone.PolicyRoundRobin, zone.PolicyLeastConn, zone.PolicyRandomTwo, zone.PolicyClientIP} {
		s := compile(t, onePool(zone.Pool{Policy: policy, Origins: origins(1, 2, 3)}), nil)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 1000 {
					o := s.PickPool("main", client)
					o.Begin()
					o.End(Result{Status: 200})
				}
			})
		}
		wg.Wait()
		for _, o := range s.pools["main"].origins {
			if o.Inflight() != 0 {
				t.Errorf("%s: %d in flight after all ended", policy, o.Inflight())
			}
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for _, policy := range []zone.Policy{zone.PolicyRoundRobin, zone.PolicyLeastConn, zone.PolicyRandomTwo, zone.PolicyClientIP} {
		b.Run(string(policy), func(b *testing.B) {
			s, _ := Compile(onePool(zone.Pool{Policy: policy, Origins: origins(1, 2, 3, 4, 5)}), nil, nil)
			b.ReportAllocs()
			for b.Loop() {
				s.PickPool("main", client)
			}
		})
	}
}
