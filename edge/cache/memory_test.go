package cache

import (
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// TestMemoryBound: whatever is stored by however many, what is stored and on its way never takes more than the bound, which is looked
// at all the while.
func TestMemoryBound(t *testing.T) {
	const memory = 16 << 20
	c := New(memory)
	p := policyOf(t, zone.CachePolicy{})
	stop := make(chan struct{})
	var watch, work sync.WaitGroup
	var most int64
	watch.Go(func() {
		for {
			s := c.Stats()
			most = max(most, s.Bytes+s.FillBytes)
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	for w := range 8 {
		work.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for range 1500 {
				asked := &Asked{Header: http.Header{"A": {path(random.IntN(3))}}, Generation: 1}
				k := key(path(random.IntN(2000)))
				found := c.Lookup(k, p, asked, noon)
				f := c.Alone(k, p, &found)
				size := random.IntN(64 << 10)
				if random.IntN(50) == 0 {
					size = random.IntN(int(c.maxObject))
				}
				o, _ := p.Judge(asked, answer("Cache-Control", "max-age=60", "Vary", "A"))
				if f.Begin(o, -1) != "" {
					continue
				}
				if why, _ := f.Write(make([]byte, size)); why != "" {
					f.Release(noon, false)
					continue
				}
				f.End(Settled{Policy: p, Generation: 1})
			}
		})
	}
	work.Wait()
	close(stop)
	watch.Wait()
	s := c.Stats()
	t.Logf("at most %d of %d bytes, %d keys in the end", most, memory, s.Objects)
	if most > memory {
		t.Errorf("there were %d bytes, the bound is %d", most, memory)
	}
	if most < memory/2 {
		t.Errorf("there were %d bytes at most: nothing was bounded", most)
	}
	if s.FillBytes != 0 {
		t.Errorf("%d bytes are on their way, and nothing is", s.FillBytes)
	}
}

// TestMemoryIsAccounted: what objects are said to take is not less than what the heap grows by.
func TestMemoryIsAccounted(t *testing.T) {
	for _, tc := range []struct {
		name  string
		body  int
		extra int
	}{{"empty", 0, 0}, {"small", 100, 3}, {"many fields", 100, 30}, {"16 KiB", 16 << 10, 10}} {
		t.Run(tc.name, func(t *testing.T) {
			const n = 5000
			c := New(1 << 30)
			p := policyOf(t, zone.CachePolicy{})
			fields := []string{"Cache-Control", "max-age=60"}
			for i := range tc.extra {
				fields = append(fields, "X-Field-"+path(i), "value "+path(i))
			}
			before := heap()
			for i := range n {
				fill(t, c, key(path(i)), p, make([]byte, tc.body), fields...)
			}
			grown := int64(heap() - before)
			said := c.Stats().Bytes
			t.Logf("%d bytes an object are said to be %d", grown/n, said/n)
			if grown > said+said/20 {
				t.Errorf("the heap grew by %d, the cache says %d", grown, said)
			}
			if said > 3*grown {
				t.Errorf("the heap grew by %d, the cache says %d: it wastes memory", grown, said)
			}
			runtime.KeepAlive(c)
		})
	}
}

// TestRoom: what is asked for once does not push out what is asked for again and again, and is not said to be stored.
func TestRoom(t *testing.T) {
	c := New(MinMemory)
	p := policyOf(t, zone.CachePolicy{})
	asked := &Asked{Header: http.Header{}, Generation: 1}
	store := func(k *Key, size int) string {
		o, _ := p.Judge(asked, answer("Cache-Control", "max-age=60"))
		o.setBody(make([]byte, size))
		return c.put(*k, o)
	}
	if why := store(key("/first"), 200<<10); why != "" || !has(c, key("/first"), p) {
		t.Fatalf("in an empty cache: %q", why)
	}
	for i := range 1000 {
		store(key(path(i%250)), 16<<10)
		for range 8 {
			c.Lookup(key(path(i%250)), p, asked, noon)
		}
	}
	refused := 0
	for i := range 20 {
		k := key("/once" + path(i))
		why := store(k, 200<<10)
		if why != "" && why != ReasonRoom || has(c, k, p) != (why == "") {
			t.Fatalf("%d: said %q, is it there: %t", i, why, has(c, k, p))
		}
		if why == ReasonRoom {
			refused++
		}
	}
	if refused == 0 {
		t.Error("there was room for everything")
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestScan: a million objects that are asked for once do not push out those which are asked for again and again.
func TestScan(t *testing.T) {
	c := New(MinMemory)
	p := policyOf(t, zone.CachePolicy{})
	const working = 500
	asked := &Asked{Header: http.Header{}, Generation: 1}
	judged, _ := p.Judge(asked, answer("Cache-Control", "max-age=60"))
	body := make([]byte, 1<<10)
	ask := func(i int) bool {
		k := key(path(i))
		if c.Lookup(k, p, asked, noon).Outcome == Fresh {
			return true
		}
		o := &Object{Status: 200, Fields: judged.Fields, policy: p, received: noon, timing: judged.timing}
		o.setBody(body)
		c.put(*k, o)
		return false
	}
	hits, asks := 0, 0
	for i := range scanned {
		ask(working + i)
		if i%5 == 0 { // the working set is asked for all along
			hit := ask(i / 5 % working)
			if i < scanned/5 {
				continue // who is asked for often is not known at first
			}
			asks++
			if hit {
				hits++
			}
		}
	}
	t.Logf("%d of %d requests for the working set were hits, %+v", hits, asks, c.Stats())
	if hits*100 < asks*97 {
		t.Errorf("%d of %d requests for the working set were hits", hits, asks)
	}
}

// TestVariantsAreBounded: the oldest of one key makes room.
func TestVariantsAreBounded(t *testing.T) {
	c := New(0)
	p := policyOf(t, zone.CachePolicy{})
	ask := func(i int) *Asked { return &Asked{Header: http.Header{"Accept": {path(i)}}, Generation: 1} }
	for i := range maxVariants + 1 {
		found := c.Lookup(key("/"), p, ask(i), noon)
		if i > 0 && found.Outcome != Unselected {
			t.Fatalf("%d: %v", i, found.Outcome)
		}
		bring(t, c.Alone(key("/"), p, &found), ask(i), []byte{byte(i)}, "Cache-Control", "max-age=60", "Vary", "accept")
	}
	for i := range maxVariants + 1 {
		found := c.Lookup(key("/"), p, ask(i), noon)
		if i == 0 && found.Outcome != Unselected || i > 0 && (found.Outcome != Fresh || found.Object.Body[0] != byte(i)) {
			t.Errorf("%d: %+v", i, found)
		}
	}
	if n := c.Stats().Objects; n != 1 {
		t.Errorf("there are %d keys", n)
	}
}

func TestHitDoesNotAllocate(t *testing.T) {
	c := New(0)
	p := policyOf(t, zone.CachePolicy{})
	k := key("/index.html")
	fill(t, c, k, p, make([]byte, 1024), "Cache-Control", "max-age=60", "Vary", "Accept-Encoding, Accept-Language")
	asked := &Asked{Header: http.Header{"Accept-Encoding": {"gzip, br"}, "Accept-Language": {"en"}}}
	found := c.Lookup(k, p, asked, noon)
	bring(t, c.Alone(k, p, &found), asked, make([]byte, 1024), "Cache-Control", "max-age=60", "Vary", "Accept-Encoding, Accept-Language")
	if n := testing.AllocsPerRun(1000, func() {
		found := c.Lookup(k, p, asked, noon)
		if found.Outcome != Fresh {
			t.Fatal("no hit")
		}
		found.Object.HitStatus(noon)
	}); n > 0 {
		t.Errorf("a hit allocates %v times", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	c := New(0)
	p := policyOf(b, zone.CachePolicy{})
	for i := range 10000 {
		fill(b, c, key(path(i)), p, make([]byte, 1024))
	}
	k, asked := key(path(7)), &Asked{Header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		found := c.Lookup(k, p, asked, noon)
		found.Object.HitStatus(noon)
	}
}
