package route

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// Config is what a route is made of.
type Config struct {
	Document *document.Document
	Route    document.Route
	Source   session.Session
	Target   session.Session
	Dead     session.Session // nil: letters go into a file, or only to the log
	Secrets  session.Secrets // that a dead-letter file is below
	Origin   string          // the bridge's name, the same on all members
	Share    float64         // of messages that the route's predecessor refused
	Inactive bool            // the target is not this member's to send by; see SetActive
	Backoff  session.Backoff
	Log      session.Logger
	Now      func() time.Time
}

// Route is one route. It has no goroutine beside that of its dead-letter file: messages are worked on by the goroutine that brings them,
// or by the one that brings a confirmation.
type Route struct {
	cfg    Config
	path   path
	style  styles
	since  time.Time
	retry  atomic.Uint64
	letter *letterFile

	mu       sync.Mutex
	waiting  []*session.Delivery
	open     map[*work]bool   // in flight
	lanes    map[string]*lane // of a target that keeps no order
	seq      uint64
	pumping  bool
	paused   bool
	active   bool // the target is this member's to send by
	starting bool // its predecessor may still have messages that go before
	stopped  bool
	quiet    chan struct{} // closed and replaced when nothing is in flight; see idle
	counts   counts
	marked   counts // at the last swap
	share    float64
	err      string
	stuck    string // why dead letters wait; "": they do not
}

// counts are since the route started.
type counts struct{ taken, filtered, failed, delivered, refused, looped uint64 }

// work is one message in flight.
type work struct {
	d        *session.Delivery
	out      *session.Outgoing
	captures [][]string
	seq      uint64
}

// lane are messages of one topic, the first of them on its way.
type lane struct{ waiting []*work }

// New makes a route, which takes nothing before Start.
func New(cfg Config) *Route {
	r := &Route{
		cfg: cfg, since: cfg.Now(), open: map[*work]bool{}, quiet: make(chan struct{}), share: cfg.Share, active: !cfg.Inactive,
		style: stylesOf(cfg.Document, cfg.Route), path: pathOf(cfg.Document, cfg.Route, cfg.Origin),
	}
	if !cfg.Target.Ordered() {
		r.lanes = map[string]*lane{}
	}
	if cfg.Route.DeadLetter.File != "" {
		r.letter = newLetterFile(cfg.Secrets.Path(document.File(cfg.Route.DeadLetter.File)), cfg.Backoff, r.unwritten, r.mended)
	}
	return r
}

// SubscriptionOf is what a route asks its source for.
func SubscriptionOf(r document.Route, origin string) session.Subscription {
	return session.Subscription{
		Filter: r.From.Topic, Share: r.From.Share, QoS: r.From.QoS, Stream: r.From.Stream, Name: "gdn-" + origin + "-" + r.ID, InFlight: r.InFlight,
	}
}

// Start takes messages. prior, which may be nil, is called when they come here already: it ends the route's predecessor and returns what that has
// not settled, which goes before all else.
func (r *Route) Start(prior func() []*session.Delivery) {
	r.mu.Lock()
	takes := r.active || r.durable()
	r.starting = true
	r.mu.Unlock()
	if takes {
		r.subscribe()
	}
	var left []*session.Delivery
	if prior != nil {
		left = prior()
	}
	r.set(func() {
		r.waiting = append(left, r.waiting...)
		r.starting = false
	})
}

func (r *Route) subscribe() {
	r.cfg.Source.Subscribe(r.cfg.Route.ID, SubscriptionOf(r.cfg.Route, r.cfg.Origin), r.take)
}

// Pause stops intake: what comes waits, unsettled.
func (r *Route) Pause() { r.set(func() { r.paused = true }) }

// Resume takes again.
func (r *Route) Resume() { r.set(func() { r.paused = false }) }

// SetActive says whether this member may send by the target. While it may not the route takes nothing; with a source that keeps no
// messages for this member its subscription ends, so that others of its group take them.
func (r *Route) SetActive(ctx context.Context, active bool) {
	r.mu.Lock()
	changed := r.active != active && !r.stopped
	r.active = active
	r.mu.Unlock()
	switch {
	case !changed || r.durable():
	case active:
		r.subscribe()
	default:
		r.cfg.Source.Unsubscribe(ctx, r.cfg.Route.ID)
		r.giveBack()
	}
	r.pump()
}

// durable tells whether the source keeps messages for this member alone while it takes none.
func (r *Route) durable() bool {
	s, _ := r.cfg.Document.Session(r.cfg.Route.From.Session)
	return s.Durable()
}

// giveBack has others deliver what this member may not, as far as the source takes it back. What the target has been given, it may still confirm: then
// it has it twice.
func (r *Route) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active || r.stopped {
		return
	}
	open := make([]*work, 0, len(r.open))
	for w := range r.open {
		open = append(open, w)
	}
	slices.SortFunc(open, func(a, b *work) int { return int(int64(a.seq) - int64(b.seq)) })
	for _, w := range open {
		if w.d.Return() {
			delete(r.open, w)
		}
	}
	r.waiting = slices.DeleteFunc(r.waiting, (*session.Delivery).Return)
	if r.idle() {
		close(r.quiet)
		r.quiet = make(chan struct{})
	}
}

func (r *Route) set(f func()) {
	r.mu.Lock()
	f()
	r.mu.Unlock()
	r.pump()
}

// take is the route's sink.
func (r *Route) take(d *session.Delivery) {
	r.mu.Lock()
	if r.stopped || d.QoS == 0 && len(r.waiting) >= max(maxWaiting, 4*r.cfg.Route.InFlight) {
		if !r.stopped {
			r.counts.taken++
			r.counts.refused++
			r.err = "messages of QoS 0 come faster than the target takes them: they are dropped"
		}
		r.mu.Unlock()
		if d.QoS == 0 {
			d.Settle()
		}
		return
	}
	r.waiting = append(r.waiting, d)
	r.mu.Unlock()
	r.pump()
}

// pump works on what waits, as far as in_flight allows. One goroutine at a time does, so that the order is kept; those who come meanwhile leave
// it to it.
func (r *Route) pump() {
	r.mu.Lock()
	if r.pumping {
		r.mu.Unlock()
		return
	}
	r.pumping = true
	for !r.stopped && !r.starting && !r.paused && r.active && len(r.waiting) > 0 && len(r.open) < r.cfg.Route.InFlight {
		w := &work{d: r.waiting[0], seq: r.seq}
		r.seq++
		r.waiting[0] = nil
		if r.waiting = r.waiting[1:]; len(r.waiting) == 0 {
			r.waiting = nil
		}
		r.open[w] = true
		r.counts.taken++
		r.mu.Unlock()
		r.work(w)
		r.mu.Lock()
	}
	r.pumping = false
	r.mu.Unlock()
}

// work sends a message on, or ends it here.
func (r *Route) work(w *work) {
	verdict, err := r.prepare(w)
	switch verdict {
	case send:
		if r.mayGo(w) {
			r.cfg.Target.Send(w.out)
		}
	case refuse:
		r.refuse(w, err)
	case fail:
		r.mu.Lock()
		r.counts.failed++
		r.mu.Unlock()
		r.bury(w, err)
	case drop, loop:
		r.mu.Lock()
		if verdict == loop {
			r.counts.looped++
		} else {
			r.counts.filtered++
		}
		r.mu.Unlock()
		r.settle(w)
	}
}

// mayGo tells whether nothing of w's topic is on its way; else w waits in its lane.
func (r *Route) mayGo(w *work) bool {
	if r.lanes == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lanes[w.d.Topic]; l != nil {
		l.waiting = append(l.waiting, w)
		return false
	}
	r.lanes[w.d.Topic] = &lane{}
	return true
}

// next sends what waits behind w in its lane.
func (r *Route) next(w *work) {
	if r.lanes == nil || w.out == nil {
		return
	}
	r.mu.Lock()
	l := r.lanes[w.d.Topic]
	if l == nil || r.stopped {
		r.mu.Unlock()
		return
	}
	if len(l.waiting) == 0 {
		delete(r.lanes, w.d.Topic)
		r.mu.Unlock()
		return
	}
	following := l.waiting[0]
	l.waiting = l.waiting[1:]
	r.mu.Unlock()
	r.cfg.Target.Send(following.out)
}

// answered is the target's word on w.
func (r *Route) answered(w *work, err error) {
	var refusal *session.Refusal
	switch {
	case err == nil:
		r.mu.Lock()
		r.counts.delivered++
		r.mu.Unlock()
		r.settle(w)
	case errors.As(err, &refusal):
		r.refuse(w, err)
	default:
		return // it stays open: Stop hands it on, or its source delivers it again
	}
	r.next(w)
	r.pump()
}

// settle ends w.
func (r *Route) settle(w *work) {
	w.d.Settle()
	r.end(w)
}

// drop ends w, which goes nowhere.
func (r *Route) drop(w *work, reason string) {
	w.d.Drop(reason)
	r.end(w)
}

func (r *Route) end(w *work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, w)
	if r.idle() {
		close(r.quiet)
		r.quiet = make(chan struct{})
	}
}

// idle tells whether everything that was to be worked on is done. mu is held.
func (r *Route) idle() bool {
	return len(r.open) == 0 && (r.paused || !r.active || len(r.waiting) == 0)
}

// Wait waits until nothing is in flight, and nothing waits unless intake is paused. The error, at ctx's end, says how much is left.
func (r *Route) Wait(ctx context.Context) error {
	for {
		r.mu.Lock()
		if r.stopped || r.idle() {
			r.mu.Unlock()
			return nil
		}
		quiet, left := r.quiet, len(r.open)
		r.mu.Unlock()
		select {
		case <-quiet:
		case <-ctx.Done():
			return fmt.Errorf("route %s: the target has not confirmed %d messages", r.cfg.Route.ID, left)
		}
	}
}

// Unsubscribe ends intake at the source; what has come is worked on.
func (r *Route) Unsubscribe(ctx context.Context) { r.cfg.Source.Unsubscribe(ctx, r.cfg.Route.ID) }

// Stop ends the route and returns what is not settled, in its order. What the target confirms later is settled still.
func (r *Route) Stop() []*session.Delivery {
	r.mu.Lock()
	r.stopped = true
	open := make([]*work, 0, len(r.open))
	for w := range r.open {
		open = append(open, w)
	}
	slices.SortFunc(open, func(a, b *work) int { return int(int64(a.seq) - int64(b.seq)) })
	left := make([]*session.Delivery, 0, len(open)+len(r.waiting))
	for _, w := range open {
		left = append(left, w.d)
	}
	left = append(left, r.waiting...)
	r.waiting = nil
	close(r.quiet)
	r.quiet = make(chan struct{})
	letter := r.letter
	r.mu.Unlock()
	if letter != nil {
		letter.close()
	}
	return left
}

// Mark begins a trial: health is judged by what is refused from now on.
func (r *Route) Mark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := share(r.counts, r.marked); r.counts.taken > r.marked.taken {
		r.share = now
	}
	r.marked = r.counts
}

// Share is the share of messages that were refused since the last Mark.
func (r *Route) Share() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts.taken == r.marked.taken {
		return r.share
	}
	return share(r.counts, r.marked)
}

func share(now, then counts) float64 {
	if now.taken == then.taken {
		return 0
	}
	return float64(now.refused-then.refused) / float64(now.taken-then.taken)
}

// Status is how the route does, its sessions aside.
func (r *Route) Status() bridge.RouteStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts
	s := bridge.RouteStatus{
		ID: r.cfg.Route.ID, Since: r.since, Taken: c.taken, Filtered: c.filtered, Failed: c.failed, Delivered: c.delivered, Refused: c.refused, Looped: c.looped,
		Retried: r.retry.Load(), InFlight: len(r.open), LastError: r.err, Converged: true,
	}
	if r.stuck != "" {
		s.LastError = r.stuck
	}
	rise := (share(c, r.marked) - r.share) * 10000
	if margin := float64(r.cfg.Route.HealthMargin); rise > margin {
		s.Converged = false
		s.Detail = fmt.Sprintf("the target refuses %.2f%% of the messages, %.2f%% before: %s", share(c, r.marked)*100, r.share*100, r.err)
	}
	return s
}
