package cache

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// flightShards part the flights, so that few requests wait for one lock.
const flightShards = 64

type flightShard struct {
	mu sync.Mutex
	m  map[flightKey]*Flight
}

type flightKey struct{ hash, variant uint64 }

type flightState uint8

const (
	stateAsking   flightState = iota // the head is awaited
	stateBringing                    // the object is known, its body comes
	stateDone                        // the object is whole
	stateStale                       // the origin failed, and what is stale may be served
	stateFailed                      // nobody has an answer
	stateReleased                    // the answer is not to be shared
)

// Flight is an answer on its way into the cache: one exchange brings it, and other requests for the same key wait for it. The exchange
// calls Begin and Write and then End, or one of Complete, Stale, Fail and Release; waiters call Head and Next.
type Flight struct {
	cache  *Cache
	key    Key
	id     flightKey
	policy *Policy
	since  purged
	// Base is the stale object that is being validated, nil for none.
	Base *Object

	mu         sync.Mutex
	state      flightState
	registered bool // others may join
	spoilt     bool // not to be joined nor stored
	waited     bool // somebody joined
	users      int  // who want the answer
	cancel     func()
	cancelled  bool
	context    context.Context
	endContext context.CancelFunc
	changed    chan struct{} // closed at the next change, nil while nobody waits
	object     *Object
	body       []byte
	length     int64 // of the body, -1 while it is not known
	reserved   int64
	status     int // of a failure, or 304 when the object was validated
	err        error
}

// Join returns the flight that brings the answer to a request, which leads when it is new: then the caller brings the answer, and
// must end it. The flight is nil when the one under way is of another policy or key. found is what Lookup found.
func (c *Cache) Join(k *Key, p *Policy, found *Found) (f *Flight, leads bool) {
	id := flightKey{found.hash, found.variant}
	s := &c.flights[id.hash%flightShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if f = s.m[id]; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.spoilt && !f.cancelled && f.registered {
			if f.key != *k || *f.policy != *p {
				return nil, false
			}
			f.users++
			f.waited = true
			return f, false
		}
		f.registered = false
	}
	f = c.flight(k, p, found)
	f.registered = true
	s.m[id] = f
	return f, true
}

// Share lets another request wait for the answer that the caller brings.
func (f *Flight) Share() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users++
	f.waited = true
}

// Alone returns a flight that nobody joins.
func (c *Cache) Alone(k *Key, p *Policy, found *Found) *Flight { return c.flight(k, p, found) }

func (c *Cache) flight(k *Key, p *Policy, found *Found) *Flight {
	policy := *p
	return &Flight{
		cache: c, key: k.clone(), id: flightKey{found.hash, found.variant}, policy: &policy, since: found.since,
		Base: found.Object, users: 1,
	}
}

// unregister lets no more requests join. mu of the flight is not held.
func (f *Flight) unregister() {
	s := &f.cache.flights[f.id.hash%flightShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.registered {
		f.registered = false
		delete(s.m, f.id)
	}
}

// spoil keeps flights of a hash from being joined and stored.
func (c *Cache) spoil(hash uint64, which func(*Flight) bool) {
	s := &c.flights[hash%flightShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range s.m {
		if id.hash == hash && which(f) {
			f.mu.Lock()
			f.spoilt = true
			f.mu.Unlock()
		}
	}
}

func (c *Cache) spoilAll(which func(*Flight) bool) {
	for i := range c.flights {
		s := &c.flights[i]
		s.mu.Lock()
		for _, f := range s.m {
			if which(f) {
				f.mu.Lock()
				f.spoilt = true
				f.mu.Unlock()
			}
		}
		s.mu.Unlock()
	}
}

// Policy is what the flight is judged by.
func (f *Flight) Policy() *Policy { return f.policy }

// Cancels names what ends the exchange once nobody wants its answer, nil for nothing now. It is called at once when that is so already.
func (f *Flight) Cancels(end func()) {
	f.mu.Lock()
	f.cancel = end
	cancelled := f.cancelled
	f.mu.Unlock()
	if cancelled && end != nil {
		end()
	}
}

// Cancelled reports whether nobody wants the answer any more.
func (f *Flight) Cancelled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancelled
}

// Context ends when nobody wants the answer any more, and with parent, of the first call.
func (f *Flight) Context(parent context.Context) context.Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.context == nil {
		f.context, f.endContext = context.WithCancel(parent)
		if f.cancelled {
			f.endContext()
		}
	}
	return f.context
}

// Leave is called by a request that does not want the answer any more, once.
func (f *Flight) Leave() {
	f.mu.Lock()
	f.users--
	var end, endContext func()
	if f.users == 0 {
		f.cancelled = true
		end, endContext = f.cancel, f.endContext
	}
	f.mu.Unlock()
	if endContext != nil {
		endContext()
	}
	if end != nil {
		end()
	}
}

// change wakes who waits. mu is held.
func (f *Flight) change() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// reserve takes memory for a body of n octets. mu is held.
func (f *Flight) reserve(n int64) string {
	switch {
	case n > f.cache.maxObject:
		return ReasonSize
	case n <= f.reserved:
		return ""
	case f.cache.fills.Add(n-f.reserved) > f.cache.maxFills:
		f.cache.fills.Add(f.reserved - n)
		return ReasonMemory
	}
	f.reserved = n
	return ""
}

// giveBack gives reserved memory back. mu is held.
func (f *Flight) giveBack() {
	f.cache.fills.Add(-f.reserved)
	f.reserved = 0
}

// Begin tells the object, whose body follows by Write: length octets, or as many as come when it is -1. The answer is why it cannot
// be taken, and then nothing has changed.
func (f *Flight) Begin(o *Object, length int64) (why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// The object's head may be known to many before it is stored, so it counts from here.
	if why = f.reserve(max(length, 0) + o.size); why != "" {
		return why
	}
	f.object, f.length, f.state = o, length, stateBringing
	if length > 0 {
		f.body = make([]byte, 0, length)
	}
	if length != 0 {
		f.change()
	}
	return ""
}

// errTooLong is an origin's that sends more than it said, which framing prevents.
var errTooLong = errors.New("the body is longer than its length")

// Write takes the next octets of the body. It returns the reason why they could not be taken: then nothing of them was.
func (f *Flight) Write(p []byte) (why string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.length >= 0 {
		if len(f.body)+len(p) > int(f.length) {
			return "", errTooLong
		}
		f.body = append(f.body, p...)
		f.change()
		return "", nil
	}
	if need := len(f.body) + len(p); need > cap(f.body) {
		size := min(max(2*int64(cap(f.body)), 4<<10), f.cache.maxObject-f.object.size)
		size = max(size, int64(need))
		if why = f.reserve(size + f.object.size); why != "" {
			return why, nil
		}
		grown := make([]byte, len(f.body), size)
		copy(grown, f.body)
		f.body = grown
	}
	f.body = append(f.body, p...)
	f.change()
	return "", nil
}

// Settled is what a flight's answer is stored as.
type Settled struct {
	// Discard is why it is not stored after all, empty when it is.
	Discard    string
	Query      string // of the key
	Policy     *Policy
	Generation uint64
}

// End tells that the body is whole, and stores the object as settled: under the view that is served now. It returns the object for
// who asked, and why it is not stored, empty when it is.
func (f *Flight) End(settled Settled) (o *Object, why string) {
	f.mu.Lock()
	body := f.body
	if spare := cap(body) - len(body); spare > len(body)/8+64 {
		body = append(make([]byte, 0, len(body)), body...)
	}
	o = f.object.with(body) // the other one may be read by who waits
	f.mu.Unlock()
	return o, f.settle(o, 0, settled)
}

// Complete tells that the answer is o, as a validation found it, and stores it as settled. It returns why it is not stored, empty when it is.
func (f *Flight) Complete(o *Object, settled Settled) (why string) {
	f.cache.counters.Revalidated.Add(1)
	return f.settle(o, http.StatusNotModified, settled)
}

func (f *Flight) settle(o *Object, status int, settled Settled) (why string) {
	f.mu.Lock()
	spoilt := f.spoilt
	f.mu.Unlock()
	if why = settled.Discard; why == "" && spoilt {
		why = ReasonOvertaken
	}
	if why == "" {
		k, as := f.key, o
		if *settled.Policy != *f.policy {
			k.Query = settled.Query
			policy := *settled.Policy
			as, why = o.Under(&policy, settled.Generation)
		} else {
			as.generation = settled.Generation
		}
		if as != nil {
			why = f.cache.purges.admit(f.cache, k, as, f.since)
		}
	}
	if why == "" || why == ReasonRoom {
		f.cache.counters.Stored.Add(1)
	} else {
		f.cache.counters.NotStored.Add(1)
	}
	f.unregister()
	f.mu.Lock()
	f.object, f.state, f.status = o, stateDone, status
	f.giveBack()
	f.change()
	f.mu.Unlock()
	f.close()
	return why
}

// Stale tells that the origin failed with a status, and that Base may be served instead.
func (f *Flight) Stale(status int, now time.Time) {
	f.Base.Failed(now)
	f.over(stateStale, status, nil)
}

// Unsettled notes that the origin did not say whether Base is its answer yet, so that it is left alone for a while as far as Base may be
// served.
func (f *Flight) Unsettled(now time.Time) {
	if f.Base != nil {
		f.Base.Failed(now)
	}
}

// Trailed tells that fields follow the whole body, which what is stored would not have: it is not stored. Who waits goes on without it, or
// when the length was known, and the body may be with clients already, has it without the fields.
func (f *Flight) Trailed(now time.Time) {
	f.mu.Lock()
	known := f.length >= 0
	f.mu.Unlock()
	if known {
		f.End(Settled{Discard: reasonTrailer})
		return
	}
	f.Release(now, true)
}

// Fail tells that there is no answer: waiters answer with the status of a gateway that the exchange answered with. When the body has begun it is broken off.
func (f *Flight) Fail(status int, err error) { f.over(stateFailed, status, err) }

// Release tells that the answer is its own request's alone: who waits goes on without it. So do requests of the next time when lasting
// is true, or somebody waited.
func (f *Flight) Release(now time.Time, lasting bool) {
	f.cache.counters.NotStored.Add(1)
	f.mu.Lock()
	lasting = lasting || f.waited
	lasting = lasting && !f.spoilt
	f.mu.Unlock()
	if lasting {
		f.cache.pass(&f.key, f.id.hash, now.Add(passFor))
	}
	f.over(stateReleased, 0, nil)
}

// Overtaken takes what the flight was to validate out of the cache: the origin has another answer by now, which is not stored.
func (f *Flight) Overtaken() {
	if f.Base != nil {
		f.cache.Discard(&f.key, f.Base)
	}
}

func (f *Flight) over(state flightState, status int, err error) {
	f.unregister()
	f.mu.Lock()
	f.state, f.status, f.err = state, status, err
	f.giveBack()
	f.change()
	f.mu.Unlock()
	if state != stateReleased {
		f.close()
	}
}

// Drop lets the body go of a flight that was released, once its exchange has no use for it.
func (f *Flight) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.body = nil
}

// Close ends what the flight's context holds. A flight that was released is closed by its exchange.
func (f *Flight) Close() { f.close() }

func (f *Flight) close() {
	f.mu.Lock()
	end := f.endContext
	f.mu.Unlock()
	if end != nil {
		end()
	}
}
