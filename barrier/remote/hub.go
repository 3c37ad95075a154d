package remote

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// hub turns one subscription to each topic of the store into answers for any number of watches.
type hub struct {
	store    barrier.Reader
	instance string // names this hub among all that ever were: another one's counts mean nothing here

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	topics map[barrier.Topic]*topic // of both topics, never changed

	mu      sync.Mutex
	closed  bool
	max     int
	maxEach int
	waiting int
	each    map[Principal]int
}

// topic counts the hints of one topic.
type topic struct {
	name barrier.Topic
	once sync.Once

	mu      sync.Mutex
	count   uint64
	changed chan struct{} // closed at the next hint
}

func newHub(store barrier.Reader, o Options) *hub {
	h := &hub{
		store: store, instance: rand.Text(),
		max: o.MaxWaiting, maxEach: o.MaxWaitingEach, each: map[Principal]int{},
		topics: map[barrier.Topic]*topic{},
	}
	for _, name := range []barrier.Topic{barrier.TopicHead, barrier.TopicVotes} {
		h.topics[name] = &topic{name: name, changed: make(chan struct{})}
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.wg.Wait()
}

// subscribe returns the topic once its subscription to the store stands, which the first caller makes.
func (h *hub) subscribe(name barrier.Topic) *topic {
	t := h.topics[name]
	t.once.Do(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.closed {
			return
		}
		hints := h.store.Watch(h.ctx, name)
		h.wg.Go(func() { h.follow(t, hints) })
	})
	return t
}

// follow counts hints until the hub closes.
func (h *hub) follow(t *topic, hints <-chan struct{}) {
	retry := time.NewTimer(0)
	defer retry.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case _, ok := <-hints:
			if ok {
				t.bump()
				continue
			}
		}
		// The store ended it before its time: what came since is lost, so the next one begins with a hint.
		retry.Reset(retryAfter)
		select {
		case <-h.ctx.Done():
			return
		case <-retry.C:
		}
		hints = h.store.Watch(h.ctx, t.name)
		t.bump()
	}
}

func (t *topic) bump() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	close(t.changed)
	t.changed = make(chan struct{})
}

// now returns how many hints there were, and what is closed at the next.
func (t *topic) now() (uint64, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count, t.changed
}

// enter admits one more watch of p, for which leave is called when it has ended.
func (h *hub) enter(p Principal) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return unavailable("the handler is closing")
	case h.waiting >= h.max || h.each[p] >= h.maxEach:
		return unavailable("too many watches are waiting: come again later")
	}
	h.waiting++
	h.each[p]++
	return nil
}

func (h *hub) leave(p Principal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting--
	if h.each[p]--; h.each[p] == 0 {
		delete(h.each, p)
	}
}

// mark is what a watch has seen: which hub's count, and the head's revision if it was read.
type mark struct {
	instance string
	count    uint64
	revision string
}

func (m mark) String() string {
	return m.instance + "." + strconv.FormatUint(m.count, 10) + "." + m.revision
}

// parseMark returns the zero mark, which nothing is equal to, for what is none.
func parseMark(s string) mark {
	instance, rest, ok := strings.Cut(s, ".")
	count, revision, ok2 := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(count, 10, 64)
	if !ok || !ok2 || err != nil {
		return mark{}
	}
	return mark{instance: instance, count: n, revision: revision}
}

// watch answers when there was a hint since what the client has seen, or 204 after a while.
func (x *exchange) watch() error {
	q, err := x.query("topic", "seen")
	if err != nil {
		return err
	}
	name := barrier.Topic(q.Get("topic"))
	if _, ok := x.hub.topics[name]; !ok {
		return invalid("there is no topic %.40q", name)
	}
	if name != barrier.TopicHead && !x.p.is(coordinator|operator) {
		return forbidden("members watch the head only")
	}
	if err := x.hub.enter(x.p); err != nil {
		return err
	}
	defer x.hub.leave(x.p)
	// Subscribed and counted first, and only then the row is read: what happens after the read is hinted.
	t := x.hub.subscribe(name)
	count, changed := t.now()
	next := mark{instance: x.hub.instance, count: count}
	seen := parseMark(q.Get("seen"))
	if seen.instance != next.instance && seen.instance != "" && name == barrier.TopicHead {
		// Another handler of the same cohort gave it, or this one before a restart: the row tells whether anything
		// happened, else each poll of a client between two handlers would be answered at once.
		if next.revision, err = x.revision(); err != nil {
			return err
		}
	}
	known := seen.instance == next.instance && seen.count == next.count
	if !known && (next.revision == "" || seen.revision != next.revision) {
		return x.answer(watchAnswer{next.String()})
	}

	timer := time.NewTimer(x.o.Wait)
	defer timer.Stop()
	_ = http.NewResponseController(x.w).SetWriteDeadline(time.Now().Add(x.o.Wait + writeTimeout))
	select {
	case <-changed:
		count, _ := t.now()
		return x.answer(watchAnswer{mark{instance: x.hub.instance, count: count}.String()})
	case <-timer.C:
		x.w.WriteHeader(http.StatusNoContent)
		return nil
	case <-x.r.Context().Done():
		return nil
	case <-x.hub.ctx.Done():
		return unavailable("the handler is closing")
	}
}

// revision returns the head's, in digits.
func (x *exchange) revision() (string, error) {
	m := x.p.Member
	if m == "" {
		m = "watch" // any well-formed id: the head is the same for all
	}
	v, err := x.b.Store.Look(x.ctx, m)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(v.Revision, 10), nil
}
