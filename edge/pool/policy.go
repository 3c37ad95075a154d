package pool

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// pool is one pool's origins and the state of its policy.
type pool struct {
	config    zone.Pool
	origins   []*Origin
	policy    zone.Policy
	slowStart time.Duration
	outlier   outlier
	monitor   *Monitor
	shared    *sharedPool
	all       choice // every origin at its full weight

	turn atomic.Uint64 // where an even rotation, or a comparison of equals, goes on

	mu      sync.Mutex // of current
	current []int64    // accounts of an uneven rotation, by place

	random func(n int64) int64 // in [0, n)
}

// sharedPool is what the pools of one name share over snapshots.
type sharedPool struct {
	ejecting sync.Mutex // one ejection at a time sees how many there are
}

// choice is what a policy chooses from.
type choice struct {
	candidates []candidate
	even       bool // all weights are equal
}

type candidate struct {
	*Origin
	at     int   // place in the pool
	weight int64 // in thousandths of the configured unit, so that shares of it are exact
	sum    int64 // of the weights up to and with this one
}

func (c *choice) add(o *Origin, at int, weight int64) {
	sum := weight
	if n := len(c.candidates); n > 0 {
		sum += c.candidates[n-1].sum
		c.even = c.even && weight == c.candidates[0].weight
	}
	c.candidates = append(c.candidates, candidate{o, at, weight, sum})
}

func (c *choice) total() int64 { return c.candidates[len(c.candidates)-1].sum }

// seal makes p ready for use once it has its origins.
func (p *pool) seal() {
	p.all = choice{candidates: make([]candidate, 0, len(p.origins)), even: true}
	for i, o := range p.origins {
		o.pool = p
		p.all.add(o, i, full*int64(o.Weight))
	}
	p.current = make([]int64, len(p.origins))
	p.random = rand.Int64N
}

// pick chooses a usable origin that is not of tried, nil when there is none.
func (p *pool) pick(client netip.Addr, tried []*Origin) *Origin {
	if len(tried) == 0 && p.unimpaired() {
		return p.choose(&p.all, client)
	}
	var buf [16]candidate
	c := choice{candidates: buf[:0], even: true}
	now := time.Now()
	for i, o := range p.origins {
		share := int64(full)
		if o.state.impaired.Load() != 0 {
			var flags uint32
			if flags, share = o.refresh(now); flags&(unhealthy|ejected) != 0 {
				continue
			}
		}
		if !slices.ContainsFunc(tried, func(t *Origin) bool { return t.state == o.state }) {
			c.add(o, i, share*int64(o.Weight))
		}
	}
	return p.choose(&c, client)
}

// pickAny is pick among all origins, as if each were well.
func (p *pool) pickAny(client netip.Addr, tried []*Origin) *Origin {
	if len(tried) == 0 {
		return p.choose(&p.all, client)
	}
	var buf [16]candidate
	c := choice{candidates: buf[:0], even: true}
	for i, o := range p.origins {
		if !slices.ContainsFunc(tried, func(t *Origin) bool { return t.state == o.state }) {
			c.add(o, i, full*int64(o.Weight))
		}
	}
	return p.choose(&c, client)
}

func (p *pool) unimpaired() bool {
	for _, o := range p.origins {
		if o.state.impaired.Load() != 0 {
			return false
		}
	}
	return true
}

// choose asks the policy.
func (p *pool) choose(c *choice, client netip.Addr) *Origin {
	switch len(c.candidates) {
	case 0:
		return nil
	case 1:
		return c.candidates[0].Origin
	}
	switch p.policy {
	case zone.PolicyLeastConn:
		return p.leastConnections(c)
	case zone.PolicyRandomTwo:
		return p.randomTwo(c)
	case zone.PolicyClientIP:
		return clientHash(c, client)
	default:
		return p.roundRobin(c)
	}
}

// roundRobin gives each origin as many turns of a cycle as its weight says, spread over the cycle: each turn
// adds every weight to its origin's account, the richest serves and pays the sum of the weights.
func (p *pool) roundRobin(c *choice) *Origin {
	if c.even {
		return c.candidates[(p.turn.Add(1)-1)%uint64(len(c.candidates))].Origin
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i := range c.candidates {
		one := &c.candidates[i]
		p.current[one.at] += one.weight
		if best < 0 || p.current[one.at] > p.current[c.candidates[best].at] {
			best = i
		}
	}
	p.current[c.candidates[best].at] -= c.total()
	return c.candidates[best].Origin
}

// leastConnections compares requests in flight per weight, beginning at a place that moves on so that equal
// origins share.
func (p *pool) leastConnections(c *choice) *Origin {
	n := uint64(len(c.candidates))
	start := p.turn.Add(1) - 1
	best := &c.candidates[start%n]
	for i := uint64(1); i < n; i++ {
		if one := &c.candidates[(start+i)%n]; one.lighter(best) {
			best = one
		}
	}
	return best.Origin
}

// randomTwo draws two different origins by weight and takes the lighter one.
func (p *pool) randomTwo(c *choice) *Origin {
	i := p.draw(c, -1)
	j := p.draw(c, i)
	if c.candidates[j].lighter(&c.candidates[i]) {
		return c.candidates[j].Origin
	}
	return c.candidates[i].Origin
}

// draw returns the index of a random candidate by weight, never not.
func (p *pool) draw(c *choice, not int) int {
	total := c.total()
	skipFrom, skip := total, int64(0)
	if not >= 0 {
		skip = c.candidates[not].weight
		skipFrom = c.candidates[not].sum - skip
	}
	r := p.random(total - skip)
	if r >= skipFrom {
		r += skip
	}
	i, _ := slices.BinarySearchFunc(c.candidates, r, func(one candidate, r int64) int {
		if one.sum <= r {
			return -1
		}
		return 1
	})
	return i
}

// lighter reports whether a has fewer requests in flight per weight than b.
func (a *candidate) lighter(b *candidate) bool {
	return (a.Inflight()+1)*b.weight < (b.Inflight()+1)*a.weight
}

// clientHash is weighted rendezvous hashing: a client stays with its origin on every node, and an origin
// that goes or comes moves only the clients that were or will be its own.
func clientHash(c *choice, client netip.Addr) *Origin {
	b := client.Unmap().As16()
	key := mix(binary.BigEndian.Uint64(b[:8])) ^ binary.BigEndian.Uint64(b[8:])
	var best *Origin
	bestScore := math.Inf(-1)
	for i := range c.candidates {
		one := &c.candidates[i]
		// A uniform number in (0,1), with 53 bits so that it is exact.
		u := (float64(mix(key^mix(one.seed))>>11) + 0.5) / (1 << 53)
		if score := float64(one.weight) / -math.Log(u); score > bestScore {
			best, bestScore = one.Origin, score
		}
	}
	return best
}

// mix is a bijection of 64 bits in which each input bit changes about half of the output's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
