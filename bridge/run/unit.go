package run

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/lease"
	"github.com/guardyn-edge/guardyn/bridge/mqtt"
	"github.com/guardyn-edge/guardyn/bridge/nats"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/bridge/webhook"
)

// unit is a session that runs, or is about to.
type unit struct {
	doc    document.Session
	s      session.Session
	keeper *lease.Keeper // nil: it is held without
	window atomic.Int64  // the in_flight of all routes from it
	target atomic.Bool   // routes send by it
	since  time.Time

	stop context.CancelFunc // nil: not started
	done chan struct{}
}

// build makes a session's unit, without a connection.
func (r *Runner) build(d document.Session, mode document.Mode) (*unit, error) {
	u := &unit{doc: d, done: make(chan struct{}), since: r.o.Now()}
	cfg := session.Config{
		Session: d, Member: r.o.Member, Secrets: r.o.Secrets, Backoff: r.o.Backoff, Log: r.o.Logger, Now: r.o.Now,
		Shared: mode == document.Clustered && !d.Exclusive,
		Window: func() int { return int(max(u.window.Load(), 1)) }, IsTarget: u.target.Load,
	}
	var err error
	switch d.Kind {
	case document.MQTT:
		u.s, err = mqtt.New(cfg)
	case document.NATS:
		u.s, err = nats.New(cfg)
	case document.HTTP:
		u.s, err = webhook.New(cfg)
	default:
		err = fmt.Errorf("session %s: there is no kind %q", d.ID, d.Kind)
	}
	if err != nil {
		return nil, err
	}
	if d.Exclusive && r.o.Leases != nil {
		u.keeper = &lease.Keeper{
			Open: func() (barrier.Leases, error) { return r.o.Leases.Session(d.ID) }, Member: r.o.Member, TTL: r.o.Lease,
			Log: r.o.Logger.With("session", d.ID), Changed: func(lease.Standing) { r.wake(u) },
		}
	}
	return u, nil
}

// held tells whether this member may use the session.
func (u *unit) held() bool { return u.keeper == nil || u.keeper.Standing().Held }

// start runs the session until end.
func (u *unit) start() {
	ctx, stop := context.WithCancel(context.Background())
	u.stop = stop
	go func() { // end waits for it
		defer close(u.done)
		if u.keeper != nil {
			u.keeper.Run(ctx, u.s.Run)
		} else {
			u.s.Run(ctx)
		}
	}()
}

// end stops the session, if it was started, and answers what it has not confirmed. The error is of one that does not stop.
func (u *unit) end(ctx context.Context) error {
	if u.stop != nil {
		u.stop()
		select {
		case <-u.done:
		case <-ctx.Done():
			return fmt.Errorf("session %s does not stop: %w", u.doc.ID, ctx.Err())
		}
	}
	u.s.Close()
	return nil
}

// fit sets what depends on the document's routes.
func (u *unit) fit(d *document.Document) {
	window, target := 0, false
	for _, r := range d.Routes {
		if r.From.Session == u.doc.ID {
			window += r.InFlight
		}
		target = target || r.To.Session == u.doc.ID || r.DeadLetter.Session == u.doc.ID
	}
	u.window.Store(int64(min(window, math.MaxUint16)))
	u.target.Store(target)
}

// status is the session's, with what its lease says.
func (u *unit) status() bridge.SessionStatus {
	s := u.s.Status()
	s.Exclusive = u.doc.Exclusive
	if u.keeper == nil {
		return s
	}
	standing := u.keeper.Standing()
	if standing.Held {
		return s
	}
	s.State, s.Holder, s.Converged, s.Detail = bridge.Standby, standing.Holder, standing.Holder != "", ""
	if !s.Converged {
		s.Detail = "nobody is known to hold the session"
		if standing.Err != "" {
			s.Detail, s.LastError = "whether another member holds the session is not known: "+standing.Err, standing.Err
		}
	}
	return s
}
