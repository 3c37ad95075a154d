package barrier

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// maxActs bounds the acts of one round; the longest way, from an empty process to a running trial, takes nine.
const maxActs = 16

// MemberOptions are what a Member runs on.
type MemberOptions struct {
	ID        MemberID
	Store     Voter
	Artefacts Fetcher
	Host      Host
	Slots     Slots
	Running   Pointer // what the Host runs already; zero: nothing
	Timing    Timing  // zero fields take DefaultTiming's

	Logger *slog.Logger // nil: slog.Default
	// Boot is this process; empty: a random one. Clock is a monotonic clock; nil: the process's.
	Boot  BootID
	Clock func() time.Duration
}

// Fetcher is the part of Artefacts that a member needs.
type Fetcher interface {
	Get(ctx context.Context, d Digest) ([]byte, error)
}

// Member takes part in rollouts for one member of a cohort. Poll and Run are for one goroutine; Status is for any.
type Member struct {
	o        MemberOptions
	sit      Situation
	prepared Prepared // what sit.Local.Built stands for
	last     View     // of the last answer
	seen     time.Duration

	mu     sync.Mutex
	status Status
}

// NewMember loads the member's memory; nothing else happens before Poll or Run. The error is an ErrInvalid or the Slots'.
func NewMember(ctx context.Context, o MemberOptions) (*Member, error) {
	if o.Boot == "" {
		o.Boot = BootID(rand.Text())
	}
	if err := CheckMember(o.ID, o.Boot); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() time.Duration { return time.Since(start) }
	}
	o.Logger = cmp.Or(o.Logger, slog.Default()).With("member", o.ID)
	o.Timing = o.Timing.withDefaults()
	memory, err := o.Slots.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the member's memory: %w", err)
	}
	m := &Member{o: o, sit: Situation{
		Self: o.ID, Boot: o.Boot, Timing: o.Timing, Memory: memory.Restarted(), Local: Local{Running: o.Running},
	}}
	m.publish("")
	return m, nil
}

// Run polls, at every hint and at least every Timing.Poll, until ctx ends (nil) or another process of the
// member takes its place (ErrSuperseded). What runs goes on running.
func (m *Member) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hints := m.o.Store.Watch(ctx, TopicHead)
	for {
		until, err := m.Poll(ctx)
		if err != nil {
			return err
		}
		timer := time.NewTimer(until - m.o.Clock())
		select {
		case <-ctx.Done():
			timer.Stop()
			m.discard()
			return nil
		case _, ok := <-hints:
			if !ok {
				hints = nil
			}
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Poll reads the row and does all that follows from it, and returns when to poll again on the member's clock.
// The error is ErrSuperseded, after which nothing follows.
func (m *Member) Poll(ctx context.Context) (time.Duration, error) {
	for range maxActs {
		m.look(ctx)
		a := Step(m.sit)
		if a.Act == ActWait {
			m.publish(a.Reason)
			return a.Until, nil
		}
		if a.Act == ActStop {
			m.discard()
			m.publish(a.Reason)
			return 0, fmt.Errorf("%w: %s", ErrSuperseded, m.o.ID)
		}
		r := m.do(ctx, a)
		m.sit.Clock = m.o.Clock()
		m.sit = m.sit.After(a, r)
		m.log(ctx, a, r)
		if r.Err != nil && a.writes() {
			break
		}
		if ctx.Err() != nil {
			break
		}
	}
	m.publish("")
	return m.o.Clock() + m.o.Timing.Poll, nil
}

// writes tells whether a goes to the store: after an error there, the row is read again at the next poll.
func (a Action) writes() bool {
	switch a.Act {
	case ActJoin, ActAck, ActNack, ActConverge, ActWithdraw, ActRevert:
		return true
	}
	return false
}

// look reads the row, and asks the Host how a running trial does.
func (m *Member) look(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, m.o.Timing.CallTimeout)
	v, err := m.o.Store.Look(call, m.o.ID)
	cancel()
	m.sit.Clock = m.o.Clock()
	if err != nil {
		m.sit = m.sit.Missed()
		m.o.Logger.DebugContext(ctx, "the rollout store did not answer", "error", err)
		return
	}
	m.sit = m.sit.Observe(v, m.sit.Clock)
	m.last, m.seen = v, m.sit.Clock
	if !m.sit.running() {
		return
	}
	h, err := m.o.Host.Converged(ctx)
	if err != nil {
		h = Health{Detail: err.Error()}
	}
	m.sit.Local.Health = h
	m.sit.Clock = m.o.Clock()
}

// do performs one act.
func (m *Member) do(ctx context.Context, a Action) (r Result) {
	switch a.Act {
	case ActBuild:
		return m.build(ctx, a)
	case ActDiscard:
		m.discard()
		return r
	case ActRemember:
		r.Err = m.o.Slots.Save(ctx, a.Memory)
		return r
	case ActSwap:
		r.Err = m.prepared.Swap(ctx)
		m.prepared = nil
		return r
	}
	call, cancel := context.WithTimeout(ctx, m.o.Timing.CallTimeout)
	defer cancel()
	s, id, boot := m.o.Store, m.o.ID, m.o.Boot
	switch a.Act {
	case ActJoin:
		var reg Registration
		reg, r.Err = s.Join(call, id, boot, a.Incarnation)
		r.Incarnation = reg.Incarnation
	case ActAck:
		r.Err = s.Ack(call, a.Ref, id, boot, a.BuildDigest)
	case ActNack:
		r.Err = s.Nack(call, a.Ref, id, boot, a.Reason)
	case ActConverge:
		r.Err = s.Converge(call, a.Ref, id, boot, a.Reason)
	case ActWithdraw:
		r.Err = s.Withdraw(call, a.Ref, id, boot, a.Reason)
	case ActRevert:
		r.Err = s.Revert(call, a.Ref, ByDeadman(id, boot), a.Reason)
	}
	return r
}

// build fetches, checks, classifies and prepares, and keeps the bytes, so that nothing has to be fetched when
// the decision comes or is taken back.
func (m *Member) build(ctx context.Context, a Action) (r Result) {
	m.discard()
	artefact, err := m.fetch(ctx, a.Pointer.Digest)
	if err != nil {
		return Result{Err: err, Unavailable: true}
	}
	d, err := m.o.Host.Digest(artefact)
	if err != nil {
		return Result{Err: fmt.Errorf("digest: %w", err)}
	}
	if d != a.Pointer.Digest {
		return Result{Err: fmt.Errorf("the bytes have the digest %s, not %s", d, a.Pointer.Digest)}
	}
	if a.Candidate {
		c, err := m.o.Host.Classify(ctx, m.sit.Local.Running, artefact)
		if err != nil {
			return Result{Err: fmt.Errorf("classify: %w", err)}
		}
		if c.Refused {
			return Result{Err: fmt.Errorf("%s: %s", c.Name, c.Reason)}
		}
	}
	p, err := m.o.Host.Prepare(ctx, a.Pointer, artefact)
	if err != nil {
		return Result{Err: err}
	}
	if problem := buildDigestProblem(p.BuildDigest()); problem != "" {
		p.Discard()
		return Result{Err: errors.New(problem)}
	}
	if err := m.o.Slots.Keep(ctx, a.Pointer.Digest, artefact); err != nil {
		p.Discard()
		return Result{Err: fmt.Errorf("keep the bytes: %w", err)}
	}
	m.prepared = p
	return Result{BuildDigest: p.BuildDigest()}
}

// fetch takes the bytes from the member's own disk or, if they are not there, from the store.
func (m *Member) fetch(ctx context.Context, d Digest) ([]byte, error) {
	own, err := m.o.Slots.Bytes(ctx, d)
	if err == nil {
		return own, nil
	}
	if !errors.Is(err, ErrNoArtefact) {
		m.o.Logger.WarnContext(ctx, "cannot read kept bytes", "digest", d, "error", err)
	}
	call, cancel := context.WithTimeout(ctx, m.o.Timing.FetchTimeout)
	defer cancel()
	artefact, err := m.o.Artefacts.Get(call, d)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", d, err)
	}
	return artefact, nil
}

func (m *Member) discard() {
	if m.prepared != nil {
		m.prepared.Discard()
		m.prepared = nil
	}
	m.sit.Local.Built = nil
}

func (m *Member) log(ctx context.Context, a Action, r Result) {
	level := slog.LevelInfo
	if a.Act == ActConverge {
		level = slog.LevelDebug
	}
	if r.Err != nil {
		level = slog.LevelWarn
	}
	args := []any{"act", a.Act, "generation", max(a.Ref.Generation, a.Pointer.Generation)}
	if a.Reason != "" {
		args = append(args, "reason", a.Reason)
	}
	if r.Err != nil {
		args = append(args, "error", r.Err)
	}
	m.o.Logger.Log(ctx, level, "rollout", args...)
}
