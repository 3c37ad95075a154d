package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
)

// cohort is this member's part in the cohort: what the barrier drives.
type cohort struct {
	h      *Host
	member *barrier.Member
	stop   context.CancelFunc
	done   sync.WaitGroup
	ended  chan error // receives why the member takes part no more
}

var _ barrier.Host = (*cohort)(nil)

// callTimeout bounds one call to the rollout store that the host makes itself.
func (r *Rollouts) callTimeout() time.Duration {
	if r.Timing.CallTimeout > 0 {
		return r.Timing.CallTimeout
	}
	return barrier.DefaultTiming.CallTimeout
}

// join begins to take part. d is what the source holds, nil when that is not valid; a member that has taken part before boots
// what it has confirmed, and follows what is committed.
func (h *Host) join(ctx context.Context, d *document.Document) error {
	r := h.cfg.Rollouts
	memory, err := r.Slots.Load(ctx)
	if err != nil {
		return fmt.Errorf("the member's memory cannot be read: %w", err)
	}
	if memory.Confirmed.IsZero() {
		err = h.enter(ctx, d)
	} else {
		h.lookAtBaseline(ctx)
	}
	if err != nil {
		return err
	}
	timing := r.Timing
	if timing.SwapTimeout == 0 && d != nil {
		timing.SwapTimeout = d.Bridge.DrainTimeout + swapTimeout
	}
	id := barrier.MemberID(h.cfg.Process.MemberID)
	c := &cohort{h: h, ended: make(chan error, 1)}
	c.member, err = barrier.NewMember(ctx, barrier.MemberOptions{
		ID: id, Store: r.Store, Artefacts: r.Artefacts, Host: c, Slots: r.Slots, Timing: timing, Logger: h.cfg.Logger,
	})
	if err != nil {
		return err
	}
	coordinator := barrier.NewCoordinator(barrier.CoordinatorOptions{
		Store: r.Store, Leases: r.Leases, Holder: string(id), Lease: r.Lease, Poll: timing.Poll, CallTimeout: timing.CallTimeout, Logger: h.cfg.Logger,
	})
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // leaveCohort ends it, before what runs is stopped
	c.stop = stop
	h.mu.Lock()
	h.cohort, h.phase, h.problem = c, Starting, "waits for what the cohort has committed"
	if h.rung = RungOf(d); !h.rung.cohort() {
		h.rung = Coordinated // until what is committed says more
	}
	h.want = d
	h.mu.Unlock()
	c.done.Go(func() { // what it runs first may be there at once, and is told over the above
		if err := c.member.Run(running); err != nil {
			c.ended <- fmt.Errorf("another process has taken this member's place: %w", err)
		}
	})
	c.done.Go(func() { coordinator.Run(running) })
	return nil
}

// enter brings a member that has never taken part into the cohort: its roster is the document's, and something is committed.
func (h *Host) enter(ctx context.Context, d *document.Document) error {
	r := h.cfg.Rollouts
	call, cancel := context.WithTimeout(ctx, 5*r.callTimeout())
	defer cancel()
	row, err := r.Store.Current(call)
	if err != nil {
		return fmt.Errorf("the rollout store does not answer: %w", err)
	}
	members := make([]barrier.MemberID, len(d.Bridge.Cluster.Members))
	for i, m := range d.Bridge.Cluster.Members {
		members[i] = barrier.MemberID(m)
	}
	if row.Roster.Revision == 0 {
		// Others may do the same at this moment: what counts is what stands then.
		if _, err := r.Store.SetRoster(call, 0, members); err != nil && !errors.Is(err, barrier.ErrRoster) {
			return fmt.Errorf("set the cohort's roster: %w", err)
		}
		if row, err = r.Store.Current(call); err != nil {
			return fmt.Errorf("the rollout store does not answer: %w", err)
		}
	}
	if !slices.Equal(row.Roster.Members, members) {
		return fmt.Errorf("cohort %s has the roster %s, and the document has %s: %s", h.cfg.Name, names(row.Roster.Members), names(members), replaceCoordinated)
	}
	return h.adopt(call, d, row)
}

func names(members []barrier.MemberID) string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = string(m)
	}
	return strings.Join(out, ", ")
}

// leaveCohort ends taking part; what runs goes on running.
func (h *Host) leaveCohort() error {
	h.mu.Lock()
	c := h.cohort
	h.cohort, h.want = nil, nil
	h.mu.Unlock()
	if c == nil {
		return nil
	}
	c.stop()
	c.done.Wait()
	return nil
}

// Digest implements barrier.Host: artefacts are normal forms.
func (c *cohort) Digest(artefact []byte) (barrier.Digest, error) {
	return barrier.Digest(document.DigestOf(artefact)), nil
}

// Classify implements barrier.Host.
func (c *cohort) Classify(_ context.Context, _ barrier.Pointer, artefact []byte) (barrier.Class, error) {
	d, err := document.Parse(artefact)
	if err != nil {
		return barrier.Class{}, err
	}
	return classify(c.h.Running(), d), nil
}

// classify is the class of a change as the barrier has it.
func classify(running, next *document.Document) barrier.Class {
	change := document.Compare(running, next)
	if change.Class != document.Replacement {
		return barrier.Class{Name: string(document.LiveSafe)}
	}
	var why []string
	for _, f := range change.Of(document.Replacement) {
		why = append(why, f.Path+": "+f.Why)
	}
	return barrier.Class{Refused: true, Name: string(document.Replacement), Reason: strings.Join(why, "; ") + ": " + replaceCoordinated}
}

// Prepare implements barrier.Host.
func (c *cohort) Prepare(ctx context.Context, p barrier.Pointer, artefact []byte) (barrier.Prepared, error) {
	h := c.h
	d, err := document.ParseFor(artefact, h.cfg.Process)
	if err != nil {
		return nil, err
	}
	d.Version = p.Version
	h.work.Lock()
	defer h.work.Unlock()
	inner, err := h.cfg.Runner.Prepare(ctx, d)
	if err != nil {
		return nil, err
	}
	return &prepared{h, d, inner}, nil
}

// prepared is a document that this member has built.
type prepared struct {
	h     *Host
	doc   *document.Document
	inner bridge.Prepared
}

// BuildDigest implements barrier.Prepared: what this build understands of the artefact. Builds that understand it differently do not
// commit it.
func (p *prepared) BuildDigest() string { return string(p.doc.Digest()) }

// Swap implements barrier.Prepared.
func (p *prepared) Swap(ctx context.Context) error {
	p.h.work.Lock()
	defer p.h.work.Unlock()
	return p.h.swap(ctx, p.inner, p.doc)
}

// Discard implements barrier.Prepared.
func (p *prepared) Discard() {
	p.h.work.Lock()
	defer p.h.work.Unlock()
	p.inner.Discard()
}

// Converged implements barrier.Host.
func (c *cohort) Converged(context.Context) (barrier.Health, error) {
	running := c.h.Running()
	if running == nil {
		return barrier.Health{Detail: "nothing runs"}, nil
	}
	return converged(running.Digest(), c.h.cfg.Runner.Status()), nil
}

// converged judges what a runner says of itself.
func converged(want document.Digest, s bridge.Status) barrier.Health {
	if s.Digest != want {
		return barrier.Health{Detail: "what runs is not what was swapped to"}
	}
	var missing []string
	for _, x := range s.Sessions {
		if !x.Converged {
			missing = append(missing, fmt.Sprintf("session %s: %s", x.ID, x.Detail))
		}
	}
	for _, x := range s.Routes {
		if !x.Converged {
			missing = append(missing, fmt.Sprintf("route %s: %s", x.ID, x.Detail))
		}
	}
	if n := len(missing); n > 0 {
		const most = 5
		if n > most {
			missing = append(missing[:most], fmt.Sprintf("and %d more", n-most))
		}
		return barrier.Health{Detail: strings.Join(missing, "; ")}
	}
	return barrier.Health{Converged: true, Detail: fmt.Sprintf("sessions: %d, routes: %d", len(s.Sessions), len(s.Routes))}
}
