package pool

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/guardyn-edge/guardyn/zone"
)

// pool is one pool's origins and the state of its policy.
type pool struct {
	config  zone.Pool
	origins []*Origin
	policy  zone.Policy
	// even says that all weights are equal.
	even bool
	// cumulative holds, for each origin, the sum of the weights up to and with it.
	cumulative []int

	turn atomic.Uint64 // of round robin, even weights

	mu      sync.Mutex // of current, uneven weights
	current []int
}

func newPool(config zone.Pool, origins []*Origin) *pool {
	p := &pool{config: config, origins: origins, policy: config.Policy, even: true}
	sum := 0
	for _, o := range origins {
		sum += o.Weight
		p.cumulative = append(p.cumulative, sum)
		p.even = p.even && o.Weight == origins[0].Weight
	}
	if !p.even {
		p.current = make([]int, len(origins))
	}
	return p
}

// pick chooses an origin, nil when the pool has none.
func (p *pool) pick(client netip.Addr) *Origin {
	switch len(p.origins) {
	case 0:
		return nil
	case 1:
		return p.origins[0]
	}
	switch p.policy {
	case zone.PolicyLeastConn:
		return p.leastConnections()
	case zone.PolicyRandomTwo:
		return p.randomTwo()
	case zone.PolicyClientIP:
		return p.clientHash(client)
	default:
		return p.roundRobin()
	}
}

// roundRobin gives each origin as many turns of a cycle as its weight says, spread over the cycle: each turn
// adds every weight to its origin's account, the richest serves and pays the sum of the weights.
func (p *pool) roundRobin() *Origin {
	if p.even {
		return p.origins[(p.turn.Add(1)-1)%uint64(len(p.origins))]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	best := 0
	for i, o := range p.origins {
		p.current[i] += o.Weight
		if p.current[i] > p.current[best] {
			best = i
		}
	}
	p.current[best] -= p.cumulative[len(p.cumulative)-1]
	return p.origins[best]
}

// leastConnections compares requests in flight per weight, beginning at a place that moves on so that equal
// origins share.
func (p *pool) leastConnections() *Origin {
	n := uint64(len(p.origins))
	start := p.turn.Add(1) - 1
	var best *Origin
	for i := range n {
		o := p.origins[(start+i)%n]
		if best == nil || lighter(o, best) {
			best = o
		}
	}
	return best
}

// randomTwo draws two different origins by weight and takes the lighter one.
func (p *pool) randomTwo() *Origin {
	i := p.draw(-1)
	j := p.draw(i)
	if lighter(p.origins[j], p.origins[i]) {
		return p.origins[j]
	}
	return p.origins[i]
}

// draw returns the index of a random origin by weight, never not.
func (p *pool) draw(not int) int {
	total := p.cumulative[len(p.cumulative)-1]
	skipFrom, skip := total, 0
	if not >= 0 {
		skip = p.origins[not].Weight
		skipFrom = p.cumulative[not] - skip
	}
	r := rand.IntN(total - skip)
	if r >= skipFrom {
		r += skip
	}
	lo, hi := 0, len(p.cumulative)-1
	for lo < hi {
		if mid := (lo + hi) / 2; p.cumulative[mid] > r {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// lighter reports whether a has fewer requests in flight per weight than b.
func lighter(a, b *Origin) bool {
	return (a.Inflight()+1)*int64(b.Weight) < (b.Inflight()+1)*int64(a.Weight)
}

// clientHash is weighted rendezvous hashing: a client stays with its origin on every node, and an origin
// that goes or comes moves only the clients that were or will be its own.
func (p *pool) clientHash(client netip.Addr) *Origin {
	b := client.Unmap().As16()
	key := mix(binary.BigEndian.Uint64(b[:8])) ^ binary.BigEndian.Uint64(b[8:])
	var best *Origin
	bestScore := math.Inf(-1)
	for _, o := range p.origins {
		// A uniform number in (0,1), with 53 bits so that it is exact.
		u := (float64(mix(key^mix(o.seed))>>11) + 0.5) / (1 << 53)
		if score := float64(o.Weight) / -math.Log(u); score > bestScore {
			best, bestScore = o, score
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
