package barriertest

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// history is what has been read of a cohort. Reads are linearizable, so one that begins later shows no less.
type history struct {
	mu     sync.Mutex
	head   barrier.Head // the newest that a read has shown
	final  map[barrier.Ref]barrier.State
	roster uint64
}

// begin returns what a read that begins now must show at least.
func (h *history) begin() (barrier.Head, uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head, h.roster
}

// end returns what is wrong with the head that a read has shown.
func (h *history) end(least, got barrier.Head) error {
	for _, n := range []struct {
		what        string
		least, have uint64
	}{
		{"revision", least.Revision, got.Revision},
		{"generation", least.Generation, got.Generation},
		{"claim", uint64(least.Claim), uint64(got.Claim)},
		{"committed generation", least.Committed.Generation, got.Committed.Generation},
	} {
		if n.have < n.least {
			return fmt.Errorf("%s is %d, after it was read as %d", n.what, n.have, n.least)
		}
	}
	if least.Revision == got.Revision && !reflect.DeepEqual(normal(least), normal(got)) {
		return fmt.Errorf("two heads at revision %d:\n%s\n%s", got.Revision, showHead(least), showHead(got))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.head.Revision < got.Revision {
		h.head = got
	}
	if ro := got.Rollout; ro != nil && !ro.Open() {
		if h.final == nil {
			h.final = map[barrier.Ref]barrier.State{}
		}
		if was, ok := h.final[ro.Ref]; ok && was != ro.State {
			return fmt.Errorf("%v was %s, which is final, and is %s (I4)", ro.Ref, was, ro.State)
		}
		h.final[ro.Ref] = ro.State
	}
	if p := got.Previous; p != nil {
		if was, ok := h.final[p.Ref]; ok && was != p.State {
			return fmt.Errorf("%v was %s, which is final, and is told of as %s (I4)", p.Ref, was, p.State)
		}
	}
	return nil
}

// observed judges every read by the invariants and by what was read before.
type observed struct {
	barrier.Store
	c *cohort
}

func (o *observed) Current(ctx context.Context) (barrier.Row, error) {
	least, roster := o.c.history.begin()
	row, err := o.Store.Current(ctx)
	if err != nil {
		return row, err
	}
	if err := o.c.history.end(least, row.Head); err != nil {
		o.c.Errorf("Current: %v", err)
	}
	if row.Roster.Revision < roster {
		o.c.Errorf("Current: roster revision is %d, after it was read as %d", row.Roster.Revision, roster)
	}
	o.c.history.mu.Lock()
	o.c.history.roster = max(o.c.history.roster, row.Roster.Revision)
	o.c.history.mu.Unlock()
	for _, broken := range invariants(row) {
		o.c.Errorf("Current: %s\n%s", broken, show(row))
	}
	return row, nil
}

func (o *observed) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	least, _ := o.c.history.begin()
	v, err := o.Store.Look(ctx, m)
	if err != nil {
		return v, err
	}
	if err := o.c.history.end(least, v.Head); err != nil {
		o.c.Errorf("Look: %v", err)
	}
	return v, nil
}

// normal returns a copy of h whose times are in UTC, without a monotonic reading.
func normal(h barrier.Head) barrier.Head {
	if h.Rollout != nil {
		ro := *h.Rollout
		for _, t := range []*time.Time{&ro.ProposedAt, &ro.Deadline, &ro.CommittedAt, &ro.ConfirmDeadline, &ro.DecidedAt} {
			*t = t.UTC().Round(0)
		}
		h.Rollout = &ro
	}
	return h
}

// same tells whether a and b are the same row, read at different times.
func same(a, b barrier.Row) bool {
	return reflect.DeepEqual(normal(a.Head), normal(b.Head)) && a.Roster.Revision == b.Roster.Revision &&
		fmt.Sprint(a.Roster.Members) == fmt.Sprint(b.Roster.Members) && showSeats(a.Seats) == showSeats(b.Seats)
}

// show prints a row for people.
func show(row barrier.Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  roster %d of %d members, now %s", showHead(row.Head), row.Roster.Revision, len(row.Roster.Members), instant(row.Now))
	const most = 8
	b.WriteString(showSeats(row.Seats[:min(most, len(row.Seats))]))
	if n := len(row.Seats) - most; n > 0 {
		fmt.Fprintf(&b, "\n  and %d seats more", n)
	}
	return b.String()
}

// showHead prints a head for people. A Rollout prints itself as its Ref.
func showHead(h barrier.Head) string {
	var b strings.Builder
	fmt.Fprintf(&b, "revision %d, generation %d, claim %d, committed %v", h.Revision, h.Generation, h.Claim, h.Committed)
	if ro := h.Rollout; ro != nil {
		fmt.Fprintf(&b, "\n  %v is %s: version %d, %s, by %q to %d of roster %d at %s until %s; committed %s, D %s; decided %s by %q: %q",
			ro.Ref, ro.State, ro.Version, ro.Digest, ro.Proposer, ro.EpochSize, ro.RosterRevision, instant(ro.ProposedAt), instant(ro.Deadline),
			instant(ro.CommittedAt), instant(ro.ConfirmDeadline), instant(ro.DecidedAt), ro.DecidedBy, ro.Reason)
		fmt.Fprintf(&b, "\n  window %s, soak %s, grace %s, evidence for %s", ro.Window, ro.Soak, ro.Grace, ro.EvidenceTTL)
	}
	if p := h.Previous; p != nil {
		fmt.Fprintf(&b, "\n  before it %v was %s: version %d, %s: %q", p.Ref, p.State, p.Version, p.Digest, p.Reason)
	}
	return b.String()
}

func showSeats(seats []barrier.Seat) string {
	var b strings.Builder
	for _, s := range seats {
		v := s.Ballot
		fmt.Fprintf(&b, "\n  %s %+v: %s %s built %q %q at %s, converged since %s, renewed %s %q, withdrawn %q %s", s.Member, s.Registration,
			v.Boot, cmp.Or(v.Vote, "-"), v.BuildDigest, v.Reason, instant(v.VotedAt), instant(v.ConvergedSince), instant(v.RenewedAt), v.Detail,
			v.Withdrawn, instant(v.WithdrawnAt))
	}
	return b.String()
}

func instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("15:04:05.999999999")
}
