package barriertest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/guardyn-edge/guardyn/barrier"
)

// clauseTimeout bounds a clause on the slowest store.
const clauseTimeout = 3 * time.Minute

// cohort is what one clause runs on: an empty cohort at first.
type cohort struct {
	testing.TB
	ctx     context.Context
	mode    mode
	fresh   func(t testing.TB) Opener
	open    Opener
	faults  *Faults // in wrapped mode
	history *history

	Handles           // the first process's
	racers  []Handles // of race
	races   int       // that were run
	token   uint64    // the last that claim took
	ids     int       // of rollouts that were made
}

func newCohort(t testing.TB, fresh func(t testing.TB) Opener, m mode, timeout time.Duration) *cohort {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	c := &cohort{TB: t, ctx: ctx, mode: m, fresh: fresh, open: fresh(t), history: &history{}}
	if m == wrapped {
		h := fnv.New64a()
		h.Write([]byte(t.Name()))
		c.faults = Seeded(h.Sum64())
	}
	c.Handles = c.process()
	return c
}

// process returns one more process's handles.
func (c *cohort) process() Handles {
	c.Helper()
	h := c.open(c.TB)
	if c.mode == wrapped {
		h = retrying(Faulty(h, c.faults))
	}
	h.Store = &observed{h.Store, c}
	return h
}

// another returns a cohort that has nothing to do with c.
func (c *cohort) another() *cohort { return newCohort(c.TB, c.fresh, c.mode, clauseTimeout) }

// ok ends the clause if err is not nil.
func (c *cohort) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("unexpected error: %v", err)
	}
}

// is reports it if err is not want.
func (c *cohort) is(err, want error) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("error = %v, want %v", err, want)
	}
}

// row reads the row.
func (c *cohort) row() barrier.Row {
	c.Helper()
	row, err := c.Store.Current(c.ctx)
	c.ok(err)
	return row
}

// refused asserts that call returns want and changes nothing.
func (c *cohort) refused(want error, call func() error) error {
	c.Helper()
	before := c.row()
	err := call()
	c.is(err, want)
	c.unchanged(before)
	return err
}

// idle asserts that call succeeds and changes nothing.
func (c *cohort) idle(call func() error) {
	c.Helper()
	before := c.row()
	c.ok(call())
	c.unchanged(before)
}

func (c *cohort) unchanged(before barrier.Row) {
	c.Helper()
	if after := c.row(); !same(before, after) {
		c.Errorf("the row changed\nfrom %s\nto   %s", show(before), show(after))
	}
}

// past returns when the store's time is after t for every process.
func (c *cohort) past(t time.Time) {
	c.Helper()
	for c.ctx.Err() == nil {
		if row := c.row(); row.Now.Add(-row.Margin).After(t) {
			return
		}
	}
	c.Fatalf("the store's time does not come to %v", t)
}

// growing calls try with longer and longer times until it reports that the store was fast enough.
func (c *cohort) growing(try func(d time.Duration) bool) {
	c.Helper()
	start := barrier.MinDeadline + 4*c.row().Margin
	for d := start; d <= time.Minute; d *= 2 {
		if try(d) {
			return
		}
	}
	c.Fatal("the store is too slow to be tested: a few writes took more than a minute")
}

// inTime tells whether err is nil rather than ErrLate; any other error ends the clause.
func (c *cohort) inTime(err error) bool {
	c.Helper()
	if errors.Is(err, barrier.ErrLate) {
		return false
	}
	c.ok(err)
	return true
}

// late makes call, whose one call of method is held on its way to the store. The function that it returns lets
// it arrive, and returns its answer.
func (c *cohort) late(method string, call func(c *cohort) error) (arrive func() error) {
	c.Helper()
	faults := &Faults{}
	held := faults.Hold(method)
	slow := *c
	slow.Handles = Faulty(c.open(c.TB), faults)
	answer := make(chan error, 1)
	go func() { answer <- call(&slow) }()
	select {
	case <-held.Arrived():
	case err := <-answer:
		c.Fatalf("%s was not called: %v", method, err)
	}
	return func() error {
		held.Let()
		return <-answer
	}
}

// between reports it if t is not a time of the store's between two reads.
func (c *cohort) between(before barrier.Row, t time.Time, after barrier.Row) {
	c.Helper()
	if t.Before(before.Now.Add(-2*before.Margin)) || t.After(after.Now.Add(2*after.Margin)) {
		c.Errorf("time is %v, between reads at %v and %v", t, before.Now, after.Now)
	}
}

// tells reports it if err is not a DecidedError that tells how r was decided.
func (c *cohort) tells(err error, r barrier.Ref, s barrier.State, reason string) {
	c.Helper()
	var decided *barrier.DecidedError
	if !errors.As(err, &decided) {
		c.Errorf("error %v is no *DecidedError", err)
	} else if want := (barrier.DecidedError{Ref: r, State: s, Reason: reason}); *decided != want {
		c.Errorf("error tells %+v, want %+v", *decided, want)
	}
}

// names reports it if err is not an OpenError that names ro.
func (c *cohort) names(err error, ro barrier.Rollout) {
	c.Helper()
	var open *barrier.OpenError
	if !errors.As(err, &open) {
		c.Errorf("error %v is no *OpenError", err)
	} else if o := open.Rollout; o.Ref != ro.Ref || o.State != ro.State || o.Proposer != ro.Proposer || o.Digest != ro.Digest {
		c.Errorf("error names %+v, want %+v", o, ro)
	}
}

// tooLong has more than MaxReasonBytes bytes, and a character across that limit.
var tooLong = strings.Repeat("reason ✓ ", barrier.MaxReasonBytes/5)

// isCut reports it if s is not the beginning of tooLong, cut at a character.
func (c *cohort) isCut(s string) {
	c.Helper()
	const enough = 100
	if len(s) > barrier.MaxReasonBytes || len(s) < barrier.MaxReasonBytes/2 || !utf8.ValidString(s) || s[:enough] != tooLong[:enough] {
		c.Errorf("%d bytes (at most %d), valid: %v: %.40q…", len(s), barrier.MaxReasonBytes, utf8.ValidString(s), s)
	}
}

// process of a member that has joined.
type member struct {
	id   barrier.MemberID
	boot barrier.BootID
	reg  barrier.Registration
}

func memberID(i int) barrier.MemberID { return barrier.MemberID(fmt.Sprintf("member-%04d", i)) }

// roster makes n members the roster.
func (c *cohort) roster(n int) barrier.Roster {
	c.Helper()
	ids := make([]barrier.MemberID, n)
	for i := range ids {
		ids[i] = memberID(i)
	}
	r, err := c.Store.SetRoster(c.ctx, c.row().Roster.Revision, ids)
	c.ok(err)
	return r
}

// members makes n members the roster, and each of them joins.
func (c *cohort) members(n int) []*member {
	c.Helper()
	c.roster(n)
	ms := make([]*member, n)
	for i := range ms {
		ms[i] = &member{id: memberID(i)}
		c.join(ms[i])
	}
	return ms
}

// join starts a new process of m.
func (c *cohort) join(m *member) {
	c.Helper()
	boot := barrier.BootID(fmt.Sprintf("%s.boot-%d", m.id, m.reg.Incarnation+1))
	reg, err := c.Store.Join(c.ctx, m.id, boot, m.reg.Incarnation)
	c.ok(err)
	m.boot, m.reg = boot, reg
}

// proposal returns one that can be made now, without a window, changed by changes.
func (c *cohort) proposal(changes ...func(*barrier.Proposal)) barrier.Proposal {
	c.Helper()
	c.ids++
	row := c.row()
	p := barrier.Proposal{
		ID:       barrier.RolloutID(fmt.Sprintf("rollout-%d", c.ids)),
		Proposer: "suite",
		Digest:   barrier.Digest(fmt.Sprintf("test:artefact-%d", c.ids)),
		Version:  uint64(c.ids), RosterRevision: row.Roster.Revision, Seen: row.Generation,
		Deadline: time.Hour,
	}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// window gives a proposal a confirm window that can be confirmed at once and that does not end in a test.
func window(p *barrier.Proposal) {
	p.Window, p.Soak, p.Grace, p.EvidenceTTL = 2*time.Hour, time.Millisecond, time.Millisecond, time.Hour
}

// propose opens a rollout.
func (c *cohort) propose(changes ...func(*barrier.Proposal)) barrier.Rollout {
	c.Helper()
	ro, err := c.Store.Propose(c.ctx, c.proposal(changes...))
	c.ok(err)
	return ro
}

// claim takes the claim with a token that is higher than any before.
func (c *cohort) claim() barrier.Token {
	c.Helper()
	c.token++
	t := barrier.Token(c.token)
	c.ok(c.Store.Claim(c.ctx, t))
	return t
}

// ack has all of ms vote for ro.
func (c *cohort) ack(ro barrier.Rollout, ms ...*member) {
	c.Helper()
	for _, m := range ms {
		c.ok(c.Store.Ack(c.ctx, ro.Ref, m.id, m.boot, "built"))
	}
}

// baseline makes it possible to propose a window.
func (c *cohort) baseline() {
	c.Helper()
	_, err := c.Store.AdoptBaseline(c.ctx, barrier.Pointer{Digest: "test:baseline", Version: 1})
	c.ok(err)
}

// commit proposes, claims, has all of ms ack, and commits. A window needs a committed artefact: it is adopted.
func (c *cohort) commit(ms []*member, changes ...func(*barrier.Proposal)) (barrier.Rollout, barrier.Token) {
	c.Helper()
	if c.row().Committed.IsZero() {
		c.baseline()
	}
	ro := c.propose(changes...)
	t := c.claim()
	c.ack(ro, ms...)
	c.ok(c.Store.Commit(c.ctx, ro.Ref, t))
	return *c.row().Rollout, t
}

// converge has all of ms give evidence on ro.
func (c *cohort) converge(ro barrier.Rollout, ms ...*member) {
	c.Helper()
	for _, m := range ms {
		c.ok(c.Store.Converge(c.ctx, ro.Ref, m.id, m.boot, "works"))
	}
}
