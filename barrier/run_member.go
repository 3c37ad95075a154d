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

// maxPace is the longest that a member does not look, however many hints come.
const maxPace = 20 * time.Millisecond

// maxGlance is the longest that a member which goes back without the store's word waits for an answer before each act: a store
// that answers at all is heard, one that hangs does not keep it.
const maxGlance = 100 * time.Millisecond

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
	host     guard
	sit      Situation
	prepared Prepared // what sit.Local.Built stands for
	last     View     // of the last answer
	seen     time.Duration
	judging  *aside // the Host's judgement under way
	writing  *aside // the write to the Slots under way
	looking  *aside // the look at the row under way, while a trial is left without the store's word

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
	for what, missing := range map[string]bool{
		"Store": o.Store == nil, "Artefacts": o.Artefacts == nil, "Host": o.Host == nil, "Slots": o.Slots == nil,
	} {
		if missing {
			return nil, fmt.Errorf("%w: a member without %s", ErrInvalid, what)
		}
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
	m := &Member{o: o, host: guard{o.Host, o.Logger}, sit: Situation{
		Self: o.ID, Boot: o.Boot, Timing: o.Timing, Memory: memory.Restarted(), Local: Local{Running: o.Running},
	}}
	m.publish("")
	return m, nil
}

// Run polls, at every hint and at least every Timing.Poll, until ctx ends (nil) or another process of the
// member takes its place (ErrSuperseded). What runs goes on running.
func (m *Member) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer m.finish(ctx)
	defer cancel()
	hints := m.o.Store.Watch(ctx, TopicHead)
	for {
		began := m.o.Clock()
		until, err := m.Poll(ctx)
		if err != nil {
			return err
		}
		// However many hints come, looking takes about half of the time at most.
		if !pause(ctx, min(m.o.Clock()-began, maxPace)) {
			return nil
		}
		timer := time.NewTimer(max(until-m.o.Clock(), time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
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
		m.publish("to " + string(a.Act))
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

// look reads the row, and asks the Host how a running trial does. While the member goes back without the store's word it waits
// for an answer for maxGlance, and takes one that has come since.
func (m *Member) look(ctx context.Context) {
	var v View
	var err error
	if m.sit.Leaving() {
		l := m.lookAside(ctx)
		ended := l.wait(ctx, maxGlance)
		if m.sit.Clock = m.o.Clock(); !ended {
			return
		}
		v, err, m.looking = l.view, l.err, nil
	} else {
		call, cancel := context.WithTimeout(ctx, m.o.Timing.CallTimeout)
		v, err = m.o.Store.Look(call, m.o.ID)
		cancel()
		m.sit.Clock, m.looking = m.o.Clock(), nil // what is under way would be older
	}
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
	m.sit.Local.Health = m.judge(ctx)
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
		return m.remember(ctx, a.Memory)
	case ActSwap:
		call, cancel := context.WithTimeout(ctx, m.o.Timing.SwapTimeout)
		defer cancel()
		r.Err = m.prepared.Swap(call)
		m.prepared, m.judging = nil, nil // a judgement of what ran before is none of this
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

// remember saves memory, and looks what is on the disk when that fails.
func (m *Member) remember(ctx context.Context, memory Memory) (r Result) {
	r.Err = m.disk(ctx, m.o.Timing.DiskTimeout, func(ctx context.Context) error { return m.o.Slots.Save(ctx, memory) })
	if r.Err == nil {
		return r
	}
	var found Memory
	err := m.disk(ctx, m.o.Timing.DiskTimeout, func(ctx context.Context) (err error) {
		found, err = m.o.Slots.Load(ctx)
		return err
	})
	switch {
	case err != nil:
		r.OnDisk = UnknownOnDisk
	case found.equal(memory):
		r.OnDisk = FoundOnDisk
	}
	return r
}

// build fetches, checks, classifies and prepares, and keeps the bytes, so that nothing has to be fetched when
// the decision comes or is taken back.
func (m *Member) build(ctx context.Context, a Action) (r Result) {
	m.discard()
	whole := ctx
	if a.Candidate {
		voting, stop := m.whileVoting(ctx, a.Ref)
		defer stop()
		ctx = voting
	} else {
		limited, cancel := context.WithTimeout(ctx, m.o.Timing.BuildTimeout)
		defer cancel()
		ctx = limited
	}
	defer func() {
		if r.Err != nil && ctx.Err() != nil && whole.Err() == nil {
			r.Unavailable = true // it took too long, or was for nothing: the row tells
		}
	}()
	artefact, own, err := m.fetch(ctx, a.Pointer.Digest)
	if err != nil {
		_, wrong := errors.AsType[wrongBytes](err)
		return Result{Err: err, Unavailable: !wrong}
	}
	if a.Candidate {
		c, err := m.host.Classify(ctx, m.sit.Local.Running, artefact)
		if err != nil {
			return Result{Err: fmt.Errorf("classify: %w", err)}
		}
		if c.Refused {
			return Result{Err: fmt.Errorf("%s: %s", c.Name, c.Reason)}
		}
	}
	p, err := m.host.Prepare(ctx, a.Pointer, artefact)
	if err != nil {
		return Result{Err: err}
	}
	if problem := buildDigestProblem(p.BuildDigest()); problem != "" {
		p.Discard()
		return Result{Err: errors.New(problem)}
	}
	keep := func(ctx context.Context) error { return m.o.Slots.Keep(ctx, a.Pointer.Digest, artefact) }
	if own && !a.Candidate {
		keep = nil // on the way back nothing waits for a disk
	}
	if err := m.disk(ctx, m.o.Timing.BuildTimeout, keep); err != nil {
		p.Discard()
		return Result{Err: fmt.Errorf("keep the bytes: %w", err)}
	}
	m.prepared = p
	return Result{BuildDigest: p.BuildDigest()}
}

// wrongBytes is of bytes that are not those of their digest: fetching them again will not change that.
type wrongBytes struct{ error }

// fetch takes the bytes from the member's own disk or, if they are not there or have rotted, from the store.
func (m *Member) fetch(ctx context.Context, d Digest) (artefact []byte, own bool, err error) {
	artefact, err = m.o.Slots.Bytes(ctx, d)
	if err == nil {
		err = m.check(d, artefact)
	}
	if err == nil {
		return artefact, true, nil
	}
	if !errors.Is(err, ErrNoArtefact) {
		m.o.Logger.WarnContext(ctx, "cannot use kept bytes", "digest", d, "error", err)
	}
	call, cancel := context.WithTimeout(ctx, m.o.Timing.FetchTimeout)
	defer cancel()
	artefact, err = m.o.Artefacts.Get(call, d)
	if err != nil {
		return nil, false, fmt.Errorf("fetch %s: %w", d, err)
	}
	return artefact, false, m.check(d, artefact)
}

// check says whether artefact has the digest d.
func (m *Member) check(d Digest, artefact []byte) error {
	got, err := m.host.Digest(artefact)
	if err != nil {
		return wrongBytes{fmt.Errorf("digest: %w", err)}
	}
	if got != d {
		return wrongBytes{fmt.Errorf("the bytes have the digest %s, not %s", got, d)}
	}
	return nil
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
