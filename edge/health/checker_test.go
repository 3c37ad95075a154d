package health

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// fleet is a Checker over views that a test serves, whose checks find what the test says.
type fleet struct {
	*Checker
	t       *testing.T
	view    *edge.View
	monitor *pool.Monitor
	version uint64
	stop    func()

	mu   sync.Mutex
	down map[string]bool // by origin name
	made map[string]int  // checks
	last map[string]subject
	hang bool // checks go on until their time is over
}

func startFleet(t *testing.T, c Config) *fleet {
	f := &fleet{t: t, monitor: pool.NewMonitor(), down: map[string]bool{}, made: map[string]int{}, last: map[string]subject{}}
	c.Monitor = f.monitor
	f.Checker = New(c)
	f.check = func(ctx context.Context, s *subject) error {
		f.mu.Lock()
		f.made[s.origin.Name]++
		f.last[s.origin.Name] = *s
		down, hang := f.down[s.origin.Name], f.hang
		f.mu.Unlock()
		if hang {
			<-ctx.Done()
			return ctx.Err()
		}
		if down {
			return errors.New("connection refused")
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(ended)
	}()
	f.stop = func() {
		cancel()
		<-ended
	}
	return f
}

func (f *fleet) set(name string, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[name] = down
}

func (f *fleet) checks(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made[name]
}

// serve swaps to these zones.
func (f *fleet) serve(zones ...*zone.Zone) {
	f.t.Helper()
	f.version++
	in := snapshot.Input{Now: time.Unix(1, 0), AllowedOrigins: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for _, z := range zones {
		if err := z.Normalize(); err != nil {
			f.t.Fatal(err)
		}
		in.Zones = append(in.Zones, snapshot.ZoneInput{Workspace: "w", Zone: z.Served()})
	}
	s, _, err := snapshot.Build(in, snapshot.Meta{Version: f.version, CreatedAt: time.Unix(1, 0)})
	if err != nil {
		f.t.Fatal(err)
	}
	v, err := edge.Compile(f.view, s, f.version, edge.Options{Monitor: f.monitor})
	if err != nil {
		f.t.Fatal(err)
	}
	old := f.view
	f.view = v
	f.Swapped(old, v)
}

func (f *fleet) origin(apex, name string) *pool.Origin {
	f.t.Helper()
	for _, o := range f.view.Host(apex).Pools.Pool("main") {
		if o.Name == name {
			return o
		}
	}
	f.t.Fatalf("no origin %s", name)
	return nil
}

// verdicts of a zone's origins, by name.
func (f *fleet) verdicts(apex string) string {
	var list []string
	for _, o := range f.view.Host(apex).Pools.Pool("main") {
		list = append(list, o.Name+" "+o.Health().String())
	}
	return strings.Join(list, ", ")
}

func (f *fleet) wants(apex, want string) {
	f.t.Helper()
	synctest.Wait()
	if got := f.verdicts(apex); got != want {
		f.t.Errorf("%s: %s, want %s", apex, got, want)
	}
}

func site(i int, check *zone.HealthCheck, names ...string) *zone.Zone {
	name := zone.MustName(fmt.Sprintf("zone-%d.example", i))
	p := zone.Pool{Health: check}
	for j, n := range names {
		p.Origins = append(p.Origins, zone.Origin{Name: n, Address: fmt.Sprintf("192.0.2.%d:80", 10*i+j)})
	}
	return &zone.Zone{
		ID: zone.ID(fmt.Sprintf("0198c5a0-0000-7000-8000-%012d", i)), Name: name, Pools: map[string]zone.Pool{"main": p},
	}
}

func every(d time.Duration) *zone.HealthCheck { return &zone.HealthCheck{Interval: zone.Duration(d)} }

// The first result decides by itself, later ones by their thresholds.
func TestThresholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, Config{})
		defer f.stop()
		f.set("b", true)
		f.serve(site(1, every(10*time.Second), "a", "b"))
		f.wants("zone-1.example", "a unchecked, b unchecked")
		if !f.origin("zone-1.example", "b").Usable() {
			t.Error("an origin that was not checked yet takes no traffic")
		}
		time.Sleep(firstWithin)
		f.wants("zone-1.example", "a healthy, b unhealthy")

		f.set("a", true)
		f.set("b", false)
		for checks := 1; ; {
			synctest.Wait()
			// Two good ones after the first, bad one bring b back; three bad ones after the first, good one take a out.
			a, b := f.checks("a"), f.checks("b")
			want := "a healthy, b unhealthy"
			switch {
			case a >= 4 && b >= 3:
				want = "a unhealthy, b healthy"
			case a >= 4:
				want = "a unhealthy, b unhealthy"
			case b >= 3:
				want = "a healthy, b healthy"
			}
			f.wants("zone-1.example", want)
			if checks++; a >= 5 && b >= 5 || checks > 100 {
				break
			}
			time.Sleep(time.Second)
		}
		if got := f.monitor.Impaired(); len(got) != 1 || got[0].Origin != "a" || !got[0].Unhealthy || got[0].Reason != "connection refused" {
			t.Errorf("impaired %+v", got)
		}
	})
}

func TestIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, Config{})
		defer f.stop()
		f.serve(site(1, every(10*time.Second), "a"), site(2, every(time.Hour), "b"))
		time.Sleep(1000 * time.Second)
		synctest.Wait()
		if n := f.checks("a"); n < 95 || n > 106 {
			t.Errorf("%d checks in 1000 s at one each 10 s", n)
		}
		if n := f.checks("b"); n != 1 {
			t.Errorf("%d checks at one an hour", n)
		}
		c := f.Counts()
		if int(c.Made) != f.checks("a")+1 || c.Failed != 0 || c.Origins != 2 || c.Latency.Count != c.Made {
			t.Errorf("%+v", c)
		}
	})
}

// What the swap does not change stays as it was found; the rest is forgotten, or found out anew.
func TestSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, Config{})
		defer f.stop()
		f.set("b", true)
		check := func() *zone.HealthCheck { return every(time.Minute) }
		f.serve(site(1, check(), "a", "b"), site(2, check(), "c"))
		time.Sleep(firstWithin)
		f.wants("zone-1.example", "a healthy, b unhealthy")
		made := f.checks("b")

		t.Log("an origin more, and another zone's pool")
		f.serve(site(1, check(), "a", "b", "d"), site(2, check(), "c", "e"))
		f.wants("zone-1.example", "a healthy, b unhealthy, d unchecked")
		f.wants("zone-2.example", "c healthy, e unchecked")
		time.Sleep(firstWithin)
		f.wants("zone-1.example", "a healthy, b unhealthy, d healthy")
		if n := f.checks("b"); n != made {
			t.Errorf("the swap had an unchanged origin checked again: %d, then %d", made, n)
		}

		t.Log("a check that differs is made soon, and what was found stands until then")
		f.set("b", false)
		other := check()
		other.Path = "/alive"
		f.serve(site(1, other, "a", "b", "d"), site(2, check(), "c", "e"))
		f.wants("zone-1.example", "a healthy, b unhealthy, d healthy")
		time.Sleep(firstWithin)
		synctest.Wait()
		if n := f.checks("b"); n != made+1 {
			t.Errorf("%d checks, want %d", n, made+1)
		}
		f.wants("zone-1.example", "a healthy, b unhealthy, d healthy") // one of two

		t.Log("a check that goes leaves no verdict")
		f.serve(site(1, nil, "a", "b", "d"), site(2, check(), "c", "e"))
		f.wants("zone-1.example", "a unchecked, b unchecked, d unchecked")
		if c := f.Counts(); c.Origins != 2 || len(f.monitor.Impaired()) != 0 {
			t.Errorf("%+v, impaired %+v", c, f.monitor.Impaired())
		}

		t.Log("so does a zone")
		f.set("c", true)
		f.serve(site(1, nil, "a"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if c := f.Counts(); c.Origins != 0 || len(f.monitor.Impaired()) != 0 {
			t.Errorf("%+v, impaired %+v", c, f.monitor.Impaired())
		}
	})
}

// A check that is under way when its origin goes, or is checked in another way, says nothing.
func TestSwapDuringACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, Config{})
		defer f.stop()
		f.hang = true
		f.serve(site(1, every(10*time.Second), "a"))
		time.Sleep(firstWithin)
		synctest.Wait()
		f.mu.Lock()
		f.hang = false
		f.mu.Unlock()
		other := every(10 * time.Second)
		other.Path = "/alive"
		f.serve(site(1, other, "a"))
		// The first check's time ends. Had it said anything, one good check would not be enough.
		time.Sleep(5*time.Second + time.Millisecond)
		f.wants("zone-1.example", "a healthy")
		if n := f.checks("a"); n != 2 {
			t.Errorf("%d checks, want 2", n)
		}
		if got := f.last["a"].check.Path; got != "/alive" {
			t.Errorf("asked for %s", got)
		}
	})
}

// As many checks are under way as there are workers; the others are late, and are made.
func TestWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFleet(t, Config{Workers: 2})
		defer f.stop()
		f.hang = true
		f.serve(site(1, &zone.HealthCheck{Timeout: zone.Duration(time.Second)}, "a", "b", "c", "d", "e"))
		time.Sleep(firstWithin)
		synctest.Wait()
		if n := f.under(); n != 2 {
			t.Errorf("%d checks under way, want 2", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		f.wants("zone-1.example", f.verdicts("zone-1.example"))
		time.Sleep(2 * time.Second)
		f.wants("zone-1.example", "a unhealthy, b unhealthy, c unhealthy, d unhealthy, e unhealthy")
		if got := f.monitor.Impaired()[0].Reason; got != "no answer within 1s" {
			t.Errorf("reason %q", got)
		}
	})
}

// under is how many checks are under way: entries that are not in the schedule and were asked.
func (f *fleet) under() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.made)
}

func TestHostThatIsAskedFor(t *testing.T) {
	z := site(1, every(time.Second), "a")
	for _, row := range []struct {
		name      string
		balancers map[string]zone.LoadBalancer
		want      string
	}{
		{"no balancer", nil, "zone-1.example"},
		{"the first by name", map[string]zone.LoadBalancer{"www.zone-1.example": {Pools: []string{"main"}}, "app.zone-1.example": {Pools: []string{"x", "main"}}}, "app.zone-1.example"},
		{"as the fallback", map[string]zone.LoadBalancer{"www.zone-1.example": {Pools: []string{"x"}, Fallback: "main"}}, "www.zone-1.example"},
		{"wildcards are no host", map[string]zone.LoadBalancer{"*.zone-1.example": {Pools: []string{"main"}}}, "zone-1.example"},
		{"of another pool", map[string]zone.LoadBalancer{"www.zone-1.example": {Pools: []string{"x"}}}, "zone-1.example"},
	} {
		z.LoadBalancers = map[zone.Name]zone.LoadBalancer{}
		for host, b := range row.balancers {
			z.LoadBalancers[zone.MustName(host)] = b
		}
		if got := hostOf(z, "main"); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestScheduleIsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Config{})
		var at []time.Duration
		for i := range 100 {
			e := &entry{at: time.Now().Add(-time.Duration(i*37%100) * time.Second), place: -1}
			h.due.Push(e)
		}
		slices.SortFunc(h.due, func(a, b *entry) int { return a.at.Compare(b.at) })
		for i, e := range h.due {
			e.place = i
		}
		for {
			e, _ := h.next()
			if e == nil {
				break
			}
			if e.place != -1 {
				t.Fatal("what is taken still has a place")
			}
			at = append(at, time.Until(e.at))
		}
		if len(at) != 100 || !slices.IsSorted(at) {
			t.Errorf("%d entries, %v", len(at), at)
		}
	})
}
