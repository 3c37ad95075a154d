package web

import (
	"sync"
	"time"
)

// idleConns keeps the connections to origins that no exchange has, the last that came first, at most perKey of one
// key and max over all, each for at most timeout. Those that expired, or whose origin has hung up, are found when
// they are asked for and by a sweep; there is no goroutine for each.
type idleConns struct {
	max, perKey int
	timeout     time.Duration

	mu     sync.Mutex
	closed bool
	stacks map[originKey]idleStack
	n      int
	newest *originConn
	oldest *originConn
	sweep  *time.Timer // set while there are connections
}

type idleStack struct {
	top *originConn
	n   int
}

// maxSweep bounds how many connections a sweep looks at while the others wait.
const maxSweep = 256

// get takes the newest connection of key that is open and quiet, nil when there is none.
func (p *idleConns) get(key originKey) *originConn {
	for {
		p.mu.Lock()
		c := p.stacks[key].top
		if c != nil {
			p.remove(c)
		}
		p.mu.Unlock()
		if c == nil {
			return nil
		}
		if time.Now().Before(c.expires) && c.quiet() {
			return c
		}
		c.Close()
	}
}

// put takes c over. When the key has enough of them c is closed, and over the bound of all the oldest one.
func (p *idleConns) put(c *originConn) {
	c.reused, c.idle = true, nil
	c.expires = time.Now().Add(p.timeout)
	if spare := p.push(c); spare != nil {
		spare.Close()
	}
}

func (p *idleConns) push(c *originConn) (spare *originConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stacks[c.key]
	if p.closed || s.n >= p.perKey {
		return c
	}
	if p.n >= p.max {
		spare = p.oldest
		p.remove(spare)
		s = p.stacks[c.key]
	}
	if c.below = s.top; c.below != nil {
		c.below.above = c
	}
	if p.stacks == nil {
		p.stacks = make(map[originKey]idleStack)
	}
	p.stacks[c.key] = idleStack{c, s.n + 1}
	if c.older = p.newest; c.older != nil {
		c.older.newer = c
	} else {
		p.oldest = c
	}
	p.newest = c
	p.n++
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.interval(), p.clean)
	}
	return spare
}

// remove takes c out. The caller holds mu.
func (p *idleConns) remove(c *originConn) {
	s := p.stacks[c.key]
	if s.n--; s.n == 0 {
		delete(p.stacks, c.key)
	} else {
		if s.top == c {
			s.top = c.below
		}
		p.stacks[c.key] = s
	}
	if c.above != nil {
		c.above.below = c.below
	}
	if c.below != nil {
		c.below.above = c.above
	}
	if p.newest == c {
		p.newest = c.older
	} else {
		c.newer.older = c.older
	}
	if p.oldest == c {
		p.oldest = c.newer
	} else {
		c.older.newer = c.newer
	}
	c.above, c.below, c.newer, c.older = nil, nil, nil, nil
	p.n--
}

// interval is how often to clean: a connection stays at most that much longer than timeout.
func (p *idleConns) interval() time.Duration {
	return min(max(p.timeout/16, 10*time.Millisecond), 5*time.Second)
}

// clean closes what has expired or was hung up, and comes again while there are connections.
func (p *idleConns) clean() {
	var gone []*originConn
	p.mu.Lock()
	now := time.Now()
	for c, i := p.oldest, 0; c != nil && i < maxSweep; i++ {
		next := c.newer
		if !now.Before(c.expires) || !c.quiet() {
			p.remove(c)
			gone = append(gone, c)
		}
		c = next
	}
	if p.sweep = nil; p.n > 0 && !p.closed {
		p.sweep = time.AfterFunc(p.interval(), p.clean)
	}
	p.mu.Unlock()
	for _, c := range gone {
		c.Close()
	}
}

// close closes all, and whatever is put from now on.
func (p *idleConns) close() {
	p.mu.Lock()
	p.closed = true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	var all []*originConn
	for p.oldest != nil {
		all = append(all, p.oldest)
		p.remove(p.oldest)
	}
	p.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

// len is how many there are.
func (p *idleConns) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}
