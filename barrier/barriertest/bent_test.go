package barriertest

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// bent is an adapter that breaks the rules whose names it is given, one at a time. It shows the transitions
// something else than what is stored, or writes something else than what they return.
type bent struct {
	rule string
	mu   sync.Mutex

	head      barrier.Head
	roster    barrier.Roster
	epoch     []barrier.MemberID
	regs      map[barrier.MemberID]barrier.Registration
	ballots   map[barrier.MemberID]barrier.Ballot
	holder    string
	token     barrier.Token
	until     time.Time
	artefacts map[barrier.Digest][]byte
	first     *barrier.Row // what "reads are cached" has read first
	reads     int
	watches   []watch
}

// watch is one that "a watch holds writers up" writes to.
type watch struct {
	ctx   context.Context
	hints chan struct{}
}

func newBent(rule string) *bent {
	var head barrier.Head
	if rule == "a cohort begins with something" {
		head.Revision = 1
	}
	return &bent{
		head:      head,
		rule:      rule,
		regs:      map[barrier.MemberID]barrier.Registration{},
		ballots:   map[barrier.MemberID]barrier.Ballot{},
		artefacts: map[barrier.Digest][]byte{},
	}
}

func (b *bent) is(rule string) bool { return b.rule == rule }

// pause lets others in between a load and its write, in the rules that lack the condition on the write.
func (b *bent) pause(rule string) {
	if b.rule != rule {
		return
	}
	b.mu.Unlock()
	for range 200 {
		runtime.Gosched()
	}
	b.mu.Lock()
}

// now runs ten times as fast as the clock, since the suite waits for it alone.
func (b *bent) now() time.Time { return begin.Add(10 * time.Since(begin)).UTC().Round(0) }

var begin = time.Now()

func (b *bent) seat(m barrier.MemberID) *barrier.Seat {
	if !slices.Contains(b.members(), m) {
		return nil
	}
	return &barrier.Seat{Member: m, Registration: b.regs[m], Ballot: b.ballots[m]}
}

func (b *bent) members() []barrier.MemberID {
	if b.is("the epoch follows the roster") && b.head.Rollout != nil {
		return b.roster.Members
	}
	return b.epoch
}

func (b *bent) seats() []barrier.Seat {
	var seats []barrier.Seat
	for _, m := range b.members() {
		seats = append(seats, *b.seat(m))
	}
	return seats
}

func (b *bent) Current(context.Context) (barrier.Row, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row := barrier.Row{Head: b.head, Roster: b.roster, Now: b.now()}
	b.pause("a row is read in two steps")
	row.Seats = b.seats()
	if b.is("reads share the store's memory") {
		return row, nil
	}
	row.Roster.Members, row.Head = slices.Clone(row.Roster.Members), own(row.Head)
	if b.reads++; b.is("reads are behind") {
		if b.first == nil || b.reads%3 == 0 {
			b.first = &row
		}
		old := *b.first
		old.Now = row.Now
		return old, nil
	}
	if b.is("the time stands still") {
		row.Now = time.Unix(1_000_000_000, 0)
	}
	return row, nil
}

// own returns a copy of h that shares nothing with it.
func own(h barrier.Head) barrier.Head {
	h = normal(h)
	if h.Previous != nil {
		p := *h.Previous
		h.Previous = &p
	}
	return h
}

func (b *bent) Look(_ context.Context, m barrier.MemberID) (barrier.View, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := barrier.View{Head: own(b.head), Registration: b.regs[m], Now: b.now()}
	if s := b.seat(m); s != nil || b.is("everybody is in the epoch") {
		v.InEpoch, v.Ballot = true, b.ballots[m]
	}
	if b.is("a look forgets the ballot") {
		v.Ballot = barrier.Ballot{}
	}
	return v, nil
}

func (b *bent) Watch(ctx context.Context, _ barrier.Topic) <-chan struct{} {
	c := make(chan struct{})
	if b.is("a watch holds writers up") {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.watches = append(b.watches, watch{ctx, c})
	}
	if !b.is("a watch never closes") && !b.is("a watch holds writers up") {
		context.AfterFunc(ctx, func() { close(c) })
	}
	return c
}

func (b *bent) Join(_ context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	if err := barrier.CheckMember(m, boot); err != nil && !b.is("ids are not checked") {
		return barrier.Registration{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.regs[m]
	if b.is("a join again is a new process") && old.Boot == boot {
		old.Boot, incarnation = "other", old.Incarnation
	}
	if b.is("a join of any incarnation") {
		incarnation = old.Incarnation
	}
	head := b.head
	next, reg, err := head.Join(old, b.seat(m) != nil, boot, incarnation)
	if err != nil {
		return reg, err
	}
	b.pause("a join is written without a condition")
	switch b.rule {
	case "a join leaves the head":
	case "a join always changes the head":
		b.head.Revision++
	case "a join is written without a condition":
		b.head.Revision += next.Revision - head.Revision
	default:
		b.head = next
	}
	if b.is("a join takes the old votes over") {
		if ballot, ok := b.ballots[m]; ok {
			ballot.Boot = boot
			b.ballots[m] = ballot
		}
		reg.Joined = old.Joined
	}
	if b.is("a late joiner may vote") {
		reg.Joined = 0
	}
	if !b.is("a registration is not written") {
		b.regs[m] = reg
	}
	return reg, nil
}

// vote writes a ballot.
func (b *bent) vote(m barrier.MemberID, transition func(h barrier.Head, seat *barrier.Seat, now time.Time) (barrier.Ballot, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	seat, head, now := b.seat(m), b.head, b.now()
	switch {
	case seat == nil && b.is("strangers may vote"):
		seat = &barrier.Seat{Member: m, Registration: b.regs[m], Ballot: b.ballots[m]}
	case seat != nil && b.is("a second vote overwrites") && b.ballots[m].ConvergedSince.IsZero():
		seat.Ballot = barrier.Ballot{}
	case seat != nil && b.is("a vote again is refused") && b.ballots[m].Boot != "":
		return barrier.ErrVoted
	case b.is("windows are always open"):
		head = b.opened(head)
	case seat != nil && b.is("evidence after a withdrawal"):
		seat.Ballot.Withdrawn = ""
	case seat != nil && b.is("broken evidence holds on") && !seat.Ballot.RenewedAt.IsZero():
		seat.Ballot.RenewedAt = now
	case seat != nil && b.is("renewed evidence begins anew"):
		seat.Ballot.ConvergedSince = time.Time{}
	case b.is("votes are for staging only") && head.Rollout != nil && head.Rollout.State == barrier.Proposed:
		return barrier.ErrUnknown
	case b.is("late votes count") && head.Rollout != nil:
		ro := *head.Rollout
		ro.Deadline = now.Add(time.Hour)
		head.Rollout = &ro
	case b.is("votes count after the decision") && head.Rollout != nil && head.Rollout.State == barrier.Aborted:
		ro := *head.Rollout
		ro.State = barrier.Staging
		head.Rollout = &ro
	}
	ballot, err := transition(head, seat, now)
	if b.is("a refused vote is written") && err != nil && b.seat(m) != nil {
		b.ballots[m] = barrier.Ballot{Boot: b.regs[m].Boot, Vote: barrier.Nacked}
	}
	if err != nil {
		return err
	}
	b.pause("votes are written without a condition")
	if b.is("a lost vote") && len(b.ballots)%3 == 2 {
		return nil
	}
	b.ballots[m] = ballot
	return nil
}

func (b *bent) Ack(_ context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, built string) error {
	return b.vote(m, func(h barrier.Head, s *barrier.Seat, now time.Time) (barrier.Ballot, error) {
		if b.is("any build digest") {
			built = ""
		}
		return h.Ack(b.ref(r), s, b.boot(m, boot), built, now)
	})
}

func (b *bent) Nack(_ context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return b.vote(m, func(h barrier.Head, s *barrier.Seat, now time.Time) (barrier.Ballot, error) {
		ballot, err := h.Nack(b.ref(r), s, b.boot(m, boot), reason, now)
		switch {
		case b.is("reasons are not cut") && ballot.Vote != "":
			ballot.Reason = reason
		case b.is("reasons are lost"):
			ballot.Reason = ""
		}
		return ballot, err
	})
}

func (b *bent) Converge(_ context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	return b.vote(m, func(h barrier.Head, s *barrier.Seat, now time.Time) (barrier.Ballot, error) {
		ballot, err := h.Converge(b.ref(r), s, b.boot(m, boot), detail, now)
		switch {
		case err == nil && b.is("reasons are not cut"):
			ballot.Detail = detail
		case b.is("reasons are lost"):
			ballot.Detail = ""
		}
		return ballot, err
	})
}

// opened returns h with its rollout on trial.
func (b *bent) opened(h barrier.Head) barrier.Head {
	h, _ = with(h, func(ro *barrier.Rollout) {
		ro.State, ro.Window = barrier.Committed, time.Hour
		ro.ConfirmDeadline = b.now().Add(time.Hour)
	})
	return h
}

func (b *bent) Withdraw(_ context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return b.vote(m, func(h barrier.Head, s *barrier.Seat, now time.Time) (barrier.Ballot, error) {
		if s != nil && b.is("a second withdrawal overwrites") {
			s.Ballot.Withdrawn = ""
		}
		if s != nil && b.is("a withdrawal needs evidence") && s.Ballot.ConvergedSince.IsZero() {
			return s.Ballot, nil
		}
		next, ballot, err := h.Withdraw(b.ref(r), s, b.boot(m, boot), reason, now)
		switch {
		case err != nil:
		case b.is("reasons are not cut"):
			ballot.Withdrawn = reason
		case b.is("a withdrawal keeps the evidence"):
			ballot.ConvergedSince, ballot.RenewedAt = s.Ballot.ConvergedSince, s.Ballot.RenewedAt
		}
		if err == nil && b.is("a withdrawal is written without a condition") {
			b.pause(b.rule)
		}
		if err == nil && !b.is("a withdrawal leaves the head") {
			b.head.Revision += next.Revision - h.Revision
		}
		return ballot, err
	})
}

// ref is what a rule that compares less sees of r.
func (b *bent) ref(r barrier.Ref) barrier.Ref {
	if b.is("only the generation is compared") && b.head.Rollout != nil && b.head.Rollout.Generation == r.Generation {
		return b.head.Rollout.Ref
	}
	if b.is("the rollout is not compared") && b.head.Rollout != nil {
		return b.head.Rollout.Ref
	}
	return r
}

// boot is what a rule that does not compare processes sees of one.
func (b *bent) boot(m barrier.MemberID, boot barrier.BootID) barrier.BootID {
	if b.is("processes are not compared") {
		return b.regs[m].Boot
	}
	return boot
}
