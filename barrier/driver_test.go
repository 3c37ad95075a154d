package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
)

var errDown = errors.New("injected")

// step lets a test fail or end things at the calls that a driver makes: it is called with the name of each one.
type step func(call string) error

func (s step) at(call string) error {
	if s == nil {
		return nil
	}
	return s(call)
}

// machine is what outlives a member's process: its disk, and what it served last.
type machine struct {
	id   barrier.MemberID
	step step

	mu     sync.Mutex
	memory barrier.Memory
	bytes  map[barrier.Digest]string
	serves string
	sick   string // why what runs has not converged
	class  barrier.Class
	builds string // the build digest; empty: the artefact's name
	made   []*made
}

// made is a Prepared of a machine.
type made struct {
	m    *machine
	name string
	used int
}

func newMachine(id string) *machine {
	return &machine{id: barrier.MemberID(id), bytes: map[barrier.Digest]string{}}
}

func (m *machine) Load(context.Context) (barrier.Memory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory, m.step.at("load")
}

func (m *machine) Save(ctx context.Context, memory barrier.Memory) error {
	if err := errors.Join(m.step.at("save"), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	m.memory = memory
	maps.DeleteFunc(m.bytes, func(d barrier.Digest, _ string) bool { return !memory.Names(d) })
	m.mu.Unlock()
	return m.step.at("saved") // one that fails here is there all the same
}

func (m *machine) Keep(ctx context.Context, d barrier.Digest, artefact []byte) error {
	if err := errors.Join(m.step.at("keep"), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes[d] = string(artefact)
	return nil
}

func (m *machine) Bytes(_ context.Context, d barrier.Digest) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.bytes[d]
	if !ok {
		return nil, barrier.ErrNoArtefact
	}
	return []byte(b), m.step.at("bytes")
}

func (m *machine) Digest(artefact []byte) (barrier.Digest, error) {
	return barrier.Digest("t:" + string(artefact)), m.step.at("digest")
}

func (m *machine) Classify(context.Context, barrier.Pointer, []byte) (barrier.Class, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.class, m.step.at("classify")
}

func (m *machine) Prepare(_ context.Context, _ barrier.Pointer, artefact []byte) (barrier.Prepared, error) {
	if err := m.step.at("prepare"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &made{m: m, name: string(artefact)}
	m.made = append(m.made, p)
	return p, nil
}

func (m *machine) Converged(context.Context) (barrier.Health, error) {
	if err := m.step.at("converged"); err != nil {
		return barrier.Health{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return barrier.Health{Converged: m.sick == "", Detail: m.sick}, nil
}

func (p *made) BuildDigest() string {
	if p.m.builds != "" {
		return p.m.builds
	}
	return p.name
}

func (p *made) Swap(context.Context) error {
	p.m.mu.Lock()
	p.used++
	p.m.mu.Unlock()
	if err := p.m.step.at("swap"); err != nil {
		return err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.serves = p.name
	return nil
}

func (p *made) Discard() {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.used++
}

// running is what the machine serves now.
func (m *machine) running() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.serves
}

func (m *machine) remembers() barrier.Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memory
}

// leaks asserts that everything that was prepared was used exactly once, but for pending that still wait for a decision.
func (m *machine) leaks(t testing.TB, pending int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	open := 0
	for _, p := range m.made {
		switch {
		case p.used == 0:
			open++
		case p.used > 1:
			t.Errorf("%s: %s was used %d times", m.id, p.name, p.used)
		}
	}
	if open != pending {
		t.Errorf("%s: %d of %d prepared were neither swapped to nor discarded, want %d", m.id, open, len(m.made), pending)
	}
}

// caller is one process's way to the store: each call is a step, before it is made and after it took effect.
type caller struct {
	*memory.Store
	step step
	mute bool // no hints
}

func (c *caller) around(name string, call func() error) error {
	if err := c.step.at(name); err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	return c.step.at(name + " done")
}

func (c *caller) Watch(ctx context.Context, topic barrier.Topic) <-chan struct{} {
	if !c.mute {
		return c.Store.Watch(ctx, topic)
	}
	silent := make(chan struct{})
	context.AfterFunc(ctx, func() { close(silent) })
	return silent
}

func (c *caller) Look(ctx context.Context, m barrier.MemberID) (v barrier.View, err error) {
	err = c.around("look", func() error { v, err = c.Store.Look(ctx, m); return err })
	return v, err
}

func (c *caller) Current(ctx context.Context) (r barrier.Row, err error) {
	err = c.around("current", func() error { r, err = c.Store.Current(ctx); return err })
	return r, err
}

func (c *caller) Join(ctx context.Context, m barrier.MemberID, b barrier.BootID, i uint64) (r barrier.Registration, err error) {
	err = c.around("join", func() error { r, err = c.Store.Join(ctx, m, b, i); return err })
	return r, err
}

func (c *caller) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, b barrier.BootID, build string) error {
	return c.around("ack", func() error { return c.Store.Ack(ctx, r, m, b, build) })
}

func (c *caller) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, b barrier.BootID, why string) error {
	return c.around("nack", func() error { return c.Store.Nack(ctx, r, m, b, why) })
}

func (c *caller) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, b barrier.BootID, detail string) error {
	return c.around("converge", func() error { return c.Store.Converge(ctx, r, m, b, detail) })
}

func (c *caller) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, b barrier.BootID, why string) error {
	return c.around("withdraw", func() error { return c.Store.Withdraw(ctx, r, m, b, why) })
}

func (c *caller) Claim(ctx context.Context, token barrier.Token) error {
	return c.around("claim", func() error { return c.Store.Claim(ctx, token) })
}

func (c *caller) Commit(ctx context.Context, r barrier.Ref, token barrier.Token) error {
	return c.around("commit", func() error { return c.Store.Commit(ctx, r, token) })
}

func (c *caller) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, why string) error {
	return c.around("abort", func() error { return c.Store.Abort(ctx, r, by, why) })
}

func (c *caller) Confirm(ctx context.Context, r barrier.Ref, token barrier.Token) error {
	return c.around("confirm", func() error { return c.Store.Confirm(ctx, r, token) })
}

func (c *caller) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, why string) error {
	return c.around("revert", func() error { return c.Store.Revert(ctx, r, by, why) })
}

func (c *caller) Acquire(ctx context.Context, holder string, ttl time.Duration) (l barrier.Lease, err error) {
	err = c.around("acquire", func() error { l, err = c.Store.Acquire(ctx, holder, ttl); return err })
	return l, err
}

func (c *caller) Renew(ctx context.Context, l barrier.Lease) error {
	return c.around("renew", func() error { return c.Store.Renew(ctx, l) })
}

func (c *caller) Release(ctx context.Context, l barrier.Lease) error {
	return c.around("release", func() error { return c.Store.Release(ctx, l) })
}

func (c *caller) Get(ctx context.Context, d barrier.Digest) (b []byte, err error) {
	err = c.around("get", func() error { b, err = c.Store.Get(ctx, d); return err })
	return b, err
}

// group is a cohort of machines on one store, whose artefacts' digests are "t:" and their text.
type group struct {
	t        *testing.T
	store    *memory.Store
	machines []*machine
	rollouts int
	quiet    *slog.Logger
}

// newGroup makes n members the roster, with the baseline d0. Nothing runs yet.
func newGroup(t *testing.T, n int) *group {
	t.Helper()
	g := &group{t: t, store: memory.New(memory.Options{}), quiet: slog.New(slog.DiscardHandler)}
	var ids []barrier.MemberID
	for i := range n {
		g.machines = append(g.machines, newMachine(fmt.Sprintf("m%d", i)))
		ids = append(ids, g.machines[i].id)
	}
	if _, err := g.store.SetRoster(t.Context(), 0, ids); err != nil {
		t.Fatal(err)
	}
	g.put("d0")
	if _, err := g.store.AdoptBaseline(t.Context(), barrier.Pointer{Digest: "t:d0"}); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *group) put(name string) {
	g.t.Helper()
	if err := g.store.Put(g.t.Context(), barrier.Digest("t:"+name), []byte(name)); err != nil {
		g.t.Fatal(err)
	}
}

// member starts a new process of m, changed by changes, on its way c to the store.
func (g *group) member(m *machine, c *caller, changes ...func(*barrier.MemberOptions)) *barrier.Member {
	g.t.Helper()
	o := barrier.MemberOptions{ID: m.id, Store: c, Artefacts: c, Host: m, Slots: m, Logger: g.quiet}
	for _, change := range changes {
		change(&o)
	}
	member, err := barrier.NewMember(context.Background(), o)
	if err != nil {
		g.t.Fatal(err)
	}
	return member
}

func (g *group) direct() *caller { return &caller{Store: g.store} }

// process is a driver that runs.
type process struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // when done
}

func run(f func(ctx context.Context) error) *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = f(ctx)
	}()
	return p
}

// end ends the process and returns what Run returned.
func (p *process) end() error {
	p.cancel()
	<-p.done
	return p.err
}

func (g *group) coordinate(c *caller, changes ...func(*barrier.CoordinatorOptions)) *process {
	o := barrier.CoordinatorOptions{Store: c, Leases: c, Logger: g.quiet}
	for _, change := range changes {
		change(&o)
	}
	coordinator := barrier.NewCoordinator(o)
	return run(func(ctx context.Context) error { coordinator.Run(ctx); return nil })
}

// propose puts name to the cohort; with a window it is on trial for a minute, with a soak of five seconds.
func (g *group) propose(name string, window time.Duration) barrier.Ref {
	g.t.Helper()
	g.rollouts++
	p := barrier.Proposal{ID: barrier.RolloutID(fmt.Sprintf("r%d", g.rollouts)), Proposer: "test", Window: window}
	if window > 0 {
		p.Soak = window / 12
	}
	by := barrier.Proposer{Store: g.store, Artefacts: g.store, Host: newMachine("proposer")}
	ro, err := by.Propose(context.Background(), []byte(name), p)
	if err != nil {
		g.t.Fatal(err)
	}
	return ro.Ref
}

func (g *group) row() barrier.Row {
	g.t.Helper()
	row, err := g.store.Current(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	return row
}

// serve asserts what every machine serves.
func (g *group) serve(want string) {
	g.t.Helper()
	var got []string
	for _, m := range g.machines {
		got = append(got, m.running())
	}
	if !slices.Equal(got, slices.Repeat([]string{want}, len(got))) {
		g.t.Errorf("the members serve %v, want %s; rollout: %+v", got, want, g.row().Rollout)
	}
}

func (g *group) is(state barrier.State) {
	g.t.Helper()
	if ro := g.row().Rollout; ro == nil || ro.State != state {
		g.t.Errorf("the rollout is %+v, want %s", ro, state)
	}
}
