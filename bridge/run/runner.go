package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/route"
)

// Runner implements bridge.Runner.
type Runner struct {
	o Options

	// balancing is held while routes are told whether their targets are this member's. It is taken before mu.
	balancing sync.Mutex
	turns     sync.WaitGroup // of wake

	mu       sync.Mutex
	doc      *document.Document // nil: nothing runs
	digest   document.Digest
	sessions map[string]*unit
	routes   map[string]*route.Route
	paused   bool // intake is stopped
	ctx      context.Context
	stop     context.CancelFunc
}

var _ bridge.Runner = (*Runner)(nil)

// New returns a Runner that runs nothing.
func New(o Options) *Runner {
	r := &Runner{o: o.withDefaults(), sessions: map[string]*unit{}, routes: map[string]*route.Route{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Prepare implements bridge.Runner.
func (r *Runner) Prepare(_ context.Context, d *document.Document) (bridge.Prepared, error) {
	r.mu.Lock()
	old := r.doc
	r.mu.Unlock()
	p := &prepared{r: r, old: old, next: d, change: document.Compare(old, d), units: map[string]*unit{}}
	var errs []error
	for _, id := range slices.Concat(p.change.Sessions.Start, p.change.Sessions.Restart) {
		s, _ := d.Session(id)
		u, err := r.build(s, d.Bridge.Mode)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.units[id] = u
	}
	if err := errors.Join(errs...); err != nil {
		p.Discard()
		return nil, err
	}
	return p, nil
}

// Status implements bridge.Runner.
func (r *Runner) Status() bridge.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := bridge.Status{Digest: r.digest, Sessions: []bridge.SessionStatus{}, Routes: []bridge.RouteStatus{}}
	if r.doc == nil {
		return s
	}
	byID := map[string]bridge.SessionStatus{}
	for _, d := range r.doc.Sessions {
		st := r.sessions[d.ID].status()
		if r.paused && st.State != bridge.Standby {
			st.State = bridge.Stopping
		}
		byID[d.ID] = st
		s.Sessions = append(s.Sessions, st)
	}
	for _, d := range r.doc.Routes {
		st := r.routes[d.ID].Status()
		for _, id := range []string{d.From.Session, d.To.Session, d.DeadLetter.Session} {
			if on, ok := byID[id]; ok && !on.Converged && st.Converged {
				st.Converged, st.Detail = false, fmt.Sprintf("session %s: %s", id, on.Detail)
			}
		}
		s.Routes = append(s.Routes, st)
	}
	return s
}

// wake has the routes to a session told that its lease was won or lost. It does not wait for it: who calls is to hold or to stop the session.
func (r *Runner) wake(*unit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() == nil {
		r.turns.Go(func() { r.balance(r.ctx) })
	}
}

// balance tells every route whether this member may send by its target. Subscriptions of those that may not end, so that others of their
// group take the messages.
func (r *Runner) balance(ctx context.Context) {
	r.balancing.Lock()
	defer r.balancing.Unlock()
	type turn struct {
		route  *route.Route
		active bool
	}
	r.mu.Lock()
	var turns []turn
	if r.doc != nil {
		for _, d := range r.doc.Routes {
			turns = append(turns, turn{r.routes[d.ID], r.mayTake(d)})
		}
	}
	r.mu.Unlock()
	for _, t := range turns {
		t.route.SetActive(ctx, t.active)
	}
}

// mayTake tells whether what the route leads to is this member's. mu is held.
func (r *Runner) mayTake(d document.Route) bool {
	for _, id := range []string{d.To.Session, d.DeadLetter.Session} {
		if u := r.sessions[id]; u != nil && !u.held() {
			return false
		}
	}
	return true
}

// Drain implements bridge.Runner.
func (r *Runner) Drain(ctx context.Context) error {
	r.mu.Lock()
	r.paused = true
	all := slices.Collect(maps.Values(r.routes))
	r.mu.Unlock()
	for _, x := range all {
		x.Pause()
	}
	return waitAll(ctx, all)
}

// waitAll waits for routes at the same time.
func waitAll(ctx context.Context, all []*route.Route) error {
	errs := make([]error, len(all))
	var work sync.WaitGroup
	for i, x := range all {
		work.Go(func() { errs[i] = x.Wait(ctx) })
	}
	work.Wait()
	return errors.Join(errs...)
}

// Stop implements bridge.Runner.
func (r *Runner) Stop(ctx context.Context) error {
	r.mu.Lock()
	r.stop() // what waits for a source's answer need not
	r.mu.Unlock()
	r.turns.Wait()
	r.mu.Lock()
	routes, sessions := slices.Collect(maps.Values(r.routes)), slices.Collect(maps.Values(r.sessions))
	r.doc, r.digest, r.paused = nil, "", false
	r.sessions, r.routes = map[string]*unit{}, map[string]*route.Route{}
	r.mu.Unlock()
	for _, x := range routes {
		x.Stop() // its sources deliver again what is not settled
	}
	err := endAll(ctx, sessions)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.stop = context.WithCancel(context.Background())
	return err
}

// endAll ends sessions at the same time.
func endAll(ctx context.Context, all []*unit) error {
	errs := make([]error, len(all))
	var work sync.WaitGroup
	for i, u := range all {
		work.Go(func() { errs[i] = u.end(ctx) })
	}
	work.Wait()
	return errors.Join(errs...)
}
