package run

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/route"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// prepared is what a document needs beyond what runs.
type prepared struct {
	r      *Runner
	old    *document.Document // nil: nothing runs
	next   *document.Document
	change document.Change
	units  map[string]*unit // by id: sessions that start, or take the place of another
}

// Discard implements bridge.Prepared.
func (p *prepared) Discard() {
	for _, u := range p.units {
		u.s.Close()
	}
	p.units = nil
}

// going is a route that ends, with what comes after it.
type going struct {
	id    string
	route *route.Route
	next  *document.Route // nil: none
	// moved: its subscription ends, at a source that stays. What has come is worked on before.
	moved bool
	// stays: its source does, so that what it leaves can be handed on.
	stays bool
}

// Swap implements bridge.Prepared. What the old document's routes have taken is confirmed first, within its drain timeout; then they end. It
// gives no error: what can fail is connecting, which it does not wait for.
func (p *prepared) Swap(ctx context.Context) error {
	r := p.r
	r.balancing.Lock()
	defer r.balancing.Unlock()
	leaving := p.leaving()
	p.drain(ctx, leaving)
	priors, shares := map[string]func() []*session.Delivery{}, map[string]float64{}
	for _, g := range leaving {
		shares[g.id] = g.route.Share()
		switch {
		case !g.stays: // its source delivers again what is not settled
			g.route.Stop()
		case g.next == nil:
			g.route.Abandon(g.route.Stop())
		default: // it goes on taking until its successor does
			priors[g.id] = func() []*session.Delivery {
				taken, lost := divide(g.route.Stop(), *g.next)
				g.route.Abandon(lost)
				return taken
			}
		}
	}
	if err := p.endSessions(ctx); err != nil {
		// The broker has the last word between two of one client id, and a lease that is still held keeps the new one waiting.
		r.o.Logger.Warn("what takes a session's place starts beside it", "error", err)
	}
	p.install(priors, shares)
	return nil
}

// divide tells what the route's filter takes of deliveries from what it does not.
func divide(all []*session.Delivery, next document.Route) (taken, rest []*session.Delivery) {
	for _, d := range all {
		if _, ok := next.From.Topic.Match(d.Topic); ok {
			taken = append(taken, d)
		} else {
			rest = append(rest, d)
		}
	}
	return taken, rest
}

// leaving are the routes that the new document lacks or changes.
func (p *prepared) leaving() []going {
	if p.old == nil {
		return nil
	}
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	ending := slices.Concat(p.change.Sessions.Stop, p.change.Sessions.Restart)
	var all []going
	for _, id := range slices.Concat(p.change.Routes.Stop, p.change.Routes.Restart) {
		was, _ := p.old.Route(id)
		g := going{id: id, route: p.r.routes[id], stays: !slices.Contains(ending, was.From.Session)}
		if is, ok := p.next.Route(id); ok {
			g.next = &is
		}
		g.moved = g.stays && (g.next == nil || !sameSource(was, *g.next))
		if g.moved && g.next != nil && g.next.From.Session != was.From.Session {
			g.next = nil // what is left could not be acknowledged by what follows
		}
		all = append(all, g)
	}
	return all
}

// sameSource tells whether two routes ask the same source for the same.
func sameSource(a, b document.Route) bool {
	x, y := a.From, b.From
	return x.Session == y.Session && x.Topic.String() == y.Topic.String() && x.QoS == y.QoS && x.Share == y.Share && x.Stream == y.Stream
}

// drain ends the intake of what leaves and waits, within the old document's drain timeout, for what was taken.
func (p *prepared) drain(ctx context.Context, leaving []going) {
	if len(leaving) == 0 {
		return
	}
	limited, cancel := context.WithTimeout(ctx, p.old.Bridge.DrainTimeout)
	defer cancel()
	var work sync.WaitGroup
	for _, g := range leaving {
		work.Go(func() {
			if g.moved {
				g.route.Unsubscribe(limited)
			} else {
				g.route.Pause()
			}
			if err := g.route.Wait(limited); err != nil {
				p.r.o.Logger.Warn("a route that changes has unconfirmed messages", "error", err)
			}
		})
	}
	work.Wait()
}

// endSessions stops what the new document lacks or changes.
func (p *prepared) endSessions(ctx context.Context) error {
	r := p.r
	r.mu.Lock()
	var ending []*unit
	for _, id := range slices.Concat(p.change.Sessions.Stop, p.change.Sessions.Restart) {
		ending = append(ending, r.sessions[id])
	}
	r.mu.Unlock()
	return endAll(ctx, ending)
}

// install makes the new document what runs.
func (p *prepared) install(priors map[string]func() []*session.Delivery, shares map[string]float64) {
	r := p.r
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range p.change.Sessions.Stop {
		delete(r.sessions, id)
	}
	maps.Copy(r.sessions, p.units)
	for _, id := range p.change.Routes.Stop {
		delete(r.routes, id)
	}
	for _, u := range r.sessions {
		u.fit(p.next)
	}
	r.doc, r.digest, r.paused = p.next, p.next.Digest(), false
	fresh := slices.Concat(p.change.Routes.Start, p.change.Routes.Restart)
	for _, d := range p.next.Routes {
		if !slices.Contains(fresh, d.ID) {
			r.routes[d.ID].Mark()
			r.routes[d.ID].Resume()
			continue
		}
		r.routes[d.ID] = r.route(p.next, d, shares[d.ID])
	}
	for _, id := range fresh {
		r.routes[id].Start(priors[id]) // before its sessions: they connect knowing what to ask for
	}
	for _, u := range p.units {
		u.start()
	}
	p.units = nil
	r.turns.Go(func() { r.balance(r.ctx) }) // what was won or lost meanwhile
}

// route makes one of the document's routes. mu is held.
func (r *Runner) route(doc *document.Document, d document.Route, share float64) *route.Route {
	c := route.Config{
		Document: doc, Route: d, Source: r.sessions[d.From.Session].s, Target: r.sessions[d.To.Session].s, Secrets: r.o.Secrets,
		Origin: r.o.Origin, Share: share, Inactive: !r.mayTake(d), Backoff: r.o.Backoff, Log: r.o.Logger, Now: r.o.Now,
	}
	if u := r.sessions[d.DeadLetter.Session]; u != nil {
		c.Dead = u.s
	}
	return route.New(c)
}
