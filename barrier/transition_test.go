package barrier_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// The states that a head can be in, by name: those of its rollout, and that there is none. Committed with a confirm
// window is "trial".
const (
	none      = "none"
	proposed  = "proposed"
	staging   = "staging"
	committed = "committed"
	aborted   = "aborted"
	trial     = "trial"
	confirmed = "confirmed"
	reverted  = "reverted"
)

var states = []string{none, proposed, staging, committed, aborted, trial, confirmed, reverted}

const (
	claim  barrier.Token = 7
	window               = 90 * time.Second
	soak                 = 10 * time.Second
	grace                = 5 * time.Second
	ttl                  = 5 * time.Second
)

var (
	start    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	deadline = start.Add(5 * time.Minute)
	decided  = start.Add(time.Minute)
	confirm  = decided.Add(window) // D
	ref      = barrier.Ref{ID: "r3", Generation: 3}
	was      = barrier.Pointer{Generation: 2, Digest: "t:d2", Version: 20}
	next     = barrier.Pointer{Generation: 3, Digest: "t:d3", Version: 30}
	roster   = barrier.Roster{Revision: 4, Members: []barrier.MemberID{"a", "b"}}
)

// head returns one that is in the state.
func head(state string) barrier.Head {
	h := barrier.Head{
		Revision: 50, Generation: 3, Claim: claim, Committed: was,
		Previous: &barrier.Outcome{Ref: barrier.Ref{ID: "r2", Generation: 2}, Digest: was.Digest, State: barrier.Committed},
	}
	if state == none {
		h.Generation = 2
		return h
	}
	ro := barrier.Rollout{
		Ref: ref, Digest: next.Digest, Version: next.Version, Proposer: "alice", RosterRevision: 4, EpochSize: 2,
		ProposedAt: start, Deadline: deadline, State: barrier.State(state),
	}
	switch state {
	case trial, confirmed, reverted:
		ro.Window, ro.Soak, ro.Grace, ro.EvidenceTTL = window, soak, grace, ttl
		ro.ConfirmDeadline = confirm
	}
	switch state {
	case trial:
		ro.State = barrier.Committed
		fallthrough
	case committed, confirmed, reverted:
		ro.CommittedAt = decided
	}
	if state == committed || state == confirmed {
		h.Committed = next
	}
	if !ro.Voting() {
		ro.DecidedAt = decided
	}
	h.Rollout = &ro
	return h
}

// seat returns a member's, whose only process joined before the rollout, changed by changes.
func seat(m string, changes ...func(*barrier.Seat)) *barrier.Seat {
	s := &barrier.Seat{
		Member:       barrier.MemberID(m),
		Registration: barrier.Registration{Boot: barrier.BootID(m + ".1"), Incarnation: 1, Joined: 2},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func acked(s *barrier.Seat) {
	s.Ballot = barrier.Ballot{Boot: s.Registration.Boot, Vote: barrier.Acked, BuildDigest: "built", VotedAt: start}
}

func nacked(s *barrier.Seat) {
	s.Ballot = barrier.Ballot{Boot: s.Registration.Boot, Vote: barrier.Nacked, Reason: "no", VotedAt: start}
}

// converged is evidence since a second after the decision, renewed at an instant.
func converged(renewed time.Time) func(*barrier.Seat) {
	return func(s *barrier.Seat) {
		acked(s)
		s.Ballot.ConvergedSince, s.Ballot.RenewedAt, s.Ballot.Detail = decided.Add(time.Second), renewed, "works"
	}
}

func withdrawn(s *barrier.Seat) {
	acked(s)
	s.Ballot.Withdrawn, s.Ballot.WithdrawnAt = "broken", decided
}

// restarted is a seat whose process has joined anew, after the proposal.
func restarted(s *barrier.Seat) {
	s.Registration = barrier.Registration{Boot: s.Registration.Boot + "b", Incarnation: 2, Joined: 3}
}

func seats(ss ...*barrier.Seat) []barrier.Seat {
	var all []barrier.Seat
	for _, s := range ss {
		all = append(all, *s)
	}
	return all
}

// outcome is what a call should come to.
type outcome struct {
	err    error // nil: success
	effect bool  // whether the head changes
}

var (
	does  = outcome{effect: true}
	again = outcome{} // a success without effect
)

func fails(err error) outcome { return outcome{err: err} }

// judge asserts that a transition of before has come to want; a failure changes nothing.
func judge(t *testing.T, want outcome, before, after barrier.Head, err error) {
	t.Helper()
	if !errors.Is(err, want.err) || (want.err == nil) != (err == nil) {
		t.Fatalf("error = %v, want %v", err, want.err)
	}
	switch {
	case want.effect && after.Revision != before.Revision+1:
		t.Errorf("the revision went from %d to %d: an effect counts it up by one", before.Revision, after.Revision)
	case !want.effect && !reflect.DeepEqual(before, after):
		t.Errorf("the head changed without an effect\nfrom %+v\nto   %+v", before, after)
	}
	if after.Generation < before.Generation || after.Claim < before.Claim {
		t.Errorf("a counter fell: %+v", after)
	}
}

// matrix runs call on a head in every state.
func matrix(t *testing.T, want map[string]outcome, call func(h barrier.Head) (barrier.Head, error)) {
	t.Helper()
	if len(want) != len(states) {
		t.Fatalf("%d states of %d", len(want), len(states))
	}
	for _, state := range states {
		t.Run("when "+state, func(t *testing.T) {
			h, copied := head(state), head(state)
			after, err := call(h)
			judge(t, want[state], h, after, err)
			if !reflect.DeepEqual(h, copied) {
				t.Errorf("the head that was given was written to")
			}
			if want[state].err == nil && want[state].effect {
				// I4: the same call again is a success without effect.
				repeated, err := call(after)
				judge(t, again, after, repeated, err)
			}
		})
	}
}

func everywhere(err error) map[string]outcome {
	want := map[string]outcome{}
	for _, s := range states {
		want[s] = fails(err)
	}
	return want
}

// except returns want with some states' outcomes replaced.
func except(want map[string]outcome, o outcome, states ...string) map[string]outcome {
	for _, s := range states {
		want[s] = o
	}
	return want
}

func TestWithClaim(t *testing.T) {
	quiet := except(everywhere(nil), does, proposed)
	t.Run("of the present claim", func(t *testing.T) {
		matrix(t, quiet, func(h barrier.Head) (barrier.Head, error) { return h.WithClaim(claim) })
	})
	t.Run("of a later one", func(t *testing.T) {
		matrix(t, except(everywhere(nil), does, states...), func(h barrier.Head) (barrier.Head, error) { return h.WithClaim(claim + 2) })
	})
	t.Run("of an earlier one", func(t *testing.T) {
		matrix(t, everywhere(barrier.ErrFenced), func(h barrier.Head) (barrier.Head, error) { return h.WithClaim(claim - 1) })
	})
	t.Run("of none", func(t *testing.T) {
		matrix(t, everywhere(barrier.ErrInvalid), func(h barrier.Head) (barrier.Head, error) { return h.WithClaim(0) })
		matrix(t, everywhere(barrier.ErrInvalid), func(h barrier.Head) (barrier.Head, error) { return h.WithClaim(barrier.MaxNumber + 1) })
	})
	t.Run("takes up what is proposed", func(t *testing.T) {
		h, err := head(proposed).WithClaim(claim + 1)
		if err != nil || h.Rollout.State != barrier.Staging || h.Claim != claim+1 {
			t.Errorf("%+v, %v", h, err)
		}
	})
}

func TestCommit(t *testing.T) {
	all := seats(seat("a", acked), seat("b", acked))
	commit := func(h barrier.Head) (barrier.Head, error) { return h.Commit(ref, claim, all, 4, decided, 0) }
	matrix(t, map[string]outcome{
		none: fails(barrier.ErrUnknown), proposed: fails(barrier.ErrBarrier), staging: does, committed: again, trial: again,
		aborted: fails(barrier.ErrDecided), confirmed: fails(barrier.ErrDecided), reverted: fails(barrier.ErrDecided),
	}, commit)

	other := seat("b", acked)
	other.Ballot.BuildDigest = "other"
	tests := []struct {
		name   string
		ref    barrier.Ref
		token  barrier.Token
		seats  []barrier.Seat
		roster uint64
		now    time.Time
		margin time.Duration
		want   outcome
		says   string
	}{
		{name: "at the deadline", now: deadline, want: does},
		{name: "a moment later", now: deadline.Add(1), want: fails(barrier.ErrLate)},
		{name: "too near to it for the store's clock", now: deadline, margin: 1, want: fails(barrier.ErrLate)},
		{name: "just far enough", now: deadline.Add(-time.Second), margin: time.Second, want: does},
		{name: "of another rollout with the generation", ref: barrier.Ref{ID: "x", Generation: 3}, want: fails(barrier.ErrUnknown)},
		{name: "of another generation with the id", ref: barrier.Ref{ID: "r3", Generation: 2}, want: fails(barrier.ErrUnknown)},
		{name: "by an earlier claim", token: claim - 1, want: fails(barrier.ErrFenced)},
		{name: "by a later token that never claimed", token: claim + 1, want: fails(barrier.ErrFenced)},
		{name: "after a change of the roster", roster: 5, want: fails(barrier.ErrRoster)},
		{name: "without a vote", seats: seats(seat("a", acked), seat("b")), want: fails(barrier.ErrBarrier), says: "no vote from b"},
		{name: "with a nack", seats: seats(seat("a", acked), seat("b", nacked)), want: fails(barrier.ErrBarrier), says: "refused by b: no"},
		{name: "with an earlier process's vote", seats: seats(seat("a", acked), seat("b", acked, restarted)), want: fails(barrier.ErrBarrier), says: "started after the proposal: b"},
		{name: "with an earlier process's vote, of one that joined in time", want: fails(barrier.ErrBarrier), says: "no vote from b", seats: seats(seat("a", acked), seat("b", acked, func(s *barrier.Seat) {
			s.Registration.Boot = "b.2"
		}))},
		{name: "with different builds", seats: seats(seat("a", acked), other), want: fails(barrier.ErrBarrier), says: `a built "built" and b built "other"`},
		{name: "without a seat", seats: seats(seat("a", acked)), want: fails(barrier.ErrBarrier), says: "the epoch has 2 members and the store shows 1"},
		{name: "with one seat too many", seats: seats(seat("a", acked), seat("b", acked), seat("c", acked)), want: fails(barrier.ErrBarrier)},
		{name: "with a member that never joined", seats: seats(seat("a", acked), &barrier.Seat{Member: "b"}), want: fails(barrier.ErrBarrier)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := head(staging)
			r, token, ss, revision, now := ref, claim, all, uint64(4), decided
			if tt.ref.ID != "" {
				r = tt.ref
			}
			if tt.token != 0 {
				token = tt.token
			}
			if tt.seats != nil {
				ss = tt.seats
			}
			if tt.roster != 0 {
				revision = tt.roster
			}
			if !tt.now.IsZero() {
				now = tt.now
			}
			after, err := h.Commit(r, token, ss, revision, now, tt.margin)
			judge(t, tt.want, h, after, err)
			if tt.says != "" && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q does not say %q", err, tt.says)
			}
		})
	}
	t.Run("by nobody while nobody has claimed", func(t *testing.T) {
		h := head(staging)
		h.Claim = 0
		after, err := h.Commit(ref, 0, all, 4, decided, 0)
		judge(t, fails(barrier.ErrFenced), h, after, err)
	})
	t.Run("moves the pointer when there is no window", func(t *testing.T) {
		after, _ := commit(head(staging))
		ro := *after.Rollout
		if after.Committed != next || ro.State != barrier.Committed || !ro.CommittedAt.Equal(decided) || !ro.ConfirmDeadline.IsZero() ||
			!ro.DecidedAt.Equal(decided) || ro.DecidedBy != "coordinator 7" || ro.Open() || !ro.RevertDue().IsZero() {
			t.Errorf("%+v", after)
		}
	})
	t.Run("stamps D when there is one", func(t *testing.T) {
		h := head(staging)
		h.Rollout.Window, h.Rollout.Grace = window, grace
		after, err := commit(h)
		ro := *after.Rollout
		if err != nil || after.Committed != was || !ro.OnTrial() || !ro.ConfirmDeadline.Equal(confirm) || !ro.RevertDue().Equal(confirm.Add(grace)) {
			t.Errorf("%+v, %v", after, err)
		}
	})
}

func TestAbort(t *testing.T) {
	want := map[string]outcome{
		none: fails(barrier.ErrUnknown), proposed: does, staging: does, aborted: again, committed: fails(barrier.ErrDecided),
		trial: fails(barrier.ErrDecided), confirmed: fails(barrier.ErrDecided), reverted: fails(barrier.ErrDecided),
	}
	for name, by := range map[string]barrier.Authority{"by claim": barrier.ByClaim(claim), "by operator": barrier.ByOperator("alice")} {
		t.Run(name, func(t *testing.T) {
			matrix(t, want, func(h barrier.Head) (barrier.Head, error) { return h.Abort(ref, by, "why", decided) })
		})
	}
	tests := []struct {
		name string
		ref  barrier.Ref
		by   barrier.Authority
		want error
	}{
		{"another rollout", barrier.Ref{ID: "x", Generation: 3}, barrier.ByOperator("alice"), barrier.ErrUnknown},
		{"by an earlier claim", ref, barrier.ByClaim(claim - 1), barrier.ErrFenced},
		{"by a token that never claimed", ref, barrier.ByClaim(claim + 1), barrier.ErrFenced},
		{"by a deadman", ref, barrier.ByDeadman("a", "a.1"), barrier.ErrInvalid},
		{"by nobody", ref, barrier.Authority{}, barrier.ErrInvalid},
		{"by two at once", ref, barrier.Authority{Token: claim, Operator: "alice"}, barrier.ErrInvalid},
		{"by a deadman without a boot", ref, barrier.Authority{Member: "a"}, barrier.ErrInvalid},
		{"by a deadman without a member", ref, barrier.Authority{Boot: "a.1"}, barrier.ErrInvalid},
		{"by an operator with too long a name", ref, barrier.ByOperator(strings.Repeat("x", barrier.MaxNameBytes+1)), barrier.ErrInvalid},
		{"by an operator whose name is no text", ref, barrier.ByOperator("a\x00"), barrier.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := head(staging)
			after, err := h.Abort(tt.ref, tt.by, "why", decided)
			judge(t, fails(tt.want), h, after, err)
		})
	}
	t.Run("keeps the pointer and the reason", func(t *testing.T) {
		h, err := head(staging).Abort(ref, barrier.ByOperator("alice"), strings.Repeat("é", 600), decided)
		ro := h.Rollout
		if err != nil || h.Committed != was || ro.State != barrier.Aborted || ro.DecidedBy != "operator alice" || len(ro.Reason) > barrier.MaxReasonBytes ||
			!strings.HasSuffix(ro.Reason, "é…") {
			t.Errorf("%+v, %v", h.Rollout, err)
		}
	})
}

func TestConfirm(t *testing.T) {
	now := decided.Add(20 * time.Second)
	good := seats(seat("a", converged(now)), seat("b", converged(now)))
	do := func(h barrier.Head) (barrier.Head, error) { return h.Confirm(ref, claim, good, now, 0) }
	matrix(t, map[string]outcome{
		none: fails(barrier.ErrUnknown), proposed: fails(barrier.ErrNoWindow), staging: fails(barrier.ErrNoWindow), committed: fails(barrier.ErrNoWindow),
		aborted: fails(barrier.ErrDecided), trial: does, confirmed: again, reverted: fails(barrier.ErrDecided),
	}, do)

	both := func(change func(*barrier.Seat)) []barrier.Seat {
		return seats(seat("a", converged(now)), seat("b", change))
	}
	since := func(at time.Time) func(*barrier.Seat) {
		return func(s *barrier.Seat) {
			converged(now)(s)
			s.Ballot.ConvergedSince = at
		}
	}
	tests := []struct {
		name   string
		token  barrier.Token
		seats  []barrier.Seat
		now    time.Time
		margin time.Duration
		want   outcome
		says   string
	}{
		{name: "at D", seats: seats(seat("a", converged(confirm)), seat("b", converged(confirm))), now: confirm, want: does},
		{name: "a moment after D", seats: seats(seat("a", converged(confirm)), seat("b", converged(confirm))), now: confirm.Add(1), want: fails(barrier.ErrLate)},
		{name: "too near to D for the store's clock", seats: seats(seat("a", converged(confirm)), seat("b", converged(confirm))), now: confirm, margin: 1, want: fails(barrier.ErrLate)},
		{name: "by an earlier claim", token: claim - 1, want: fails(barrier.ErrFenced)},
		{name: "by a token that never claimed", token: claim + 1, want: fails(barrier.ErrFenced)},
		{name: "without evidence", seats: both(acked), want: fails(barrier.ErrNotConverged), says: "not converged: b"},
		{name: "with evidence as old as its time", seats: both(converged(now.Add(-ttl))), want: does},
		{name: "with evidence that has expired", seats: both(converged(now.Add(-ttl - 1))), want: fails(barrier.ErrNotConverged), says: "not converged: b"},
		{name: "with evidence that may have expired", seats: both(converged(now.Add(-ttl))), margin: 1, want: fails(barrier.ErrNotConverged)},
		{name: "with evidence that held for the soak", seats: both(since(now.Add(-soak))), want: does},
		{name: "with evidence that held for less", seats: both(since(now.Add(-soak + 1))), want: fails(barrier.ErrNotConverged), says: "converged too recently: b"},
		{name: "with evidence that may have held for less", seats: both(since(now.Add(-soak))), margin: 1, want: fails(barrier.ErrNotConverged)},
		{name: "with a withdrawal", seats: both(withdrawn), want: fails(barrier.ErrNotConverged), says: "failed on b: broken"},
		{name: "with a process that restarted", seats: seats(seat("a", converged(now)), seat("b", converged(now), restarted)), want: fails(barrier.ErrNotConverged), says: "restarted in the window"},
		{name: "without a seat", seats: seats(seat("a", converged(now))), want: fails(barrier.ErrNotConverged), says: "does not show the whole epoch"},
		{name: "with evidence from the future, but no further than it lasts", seats: both(converged(now.Add(ttl))), want: does},
		{name: "with evidence from the future, as after a step of the store's clock", seats: both(converged(now.Add(ttl + 1))), want: fails(barrier.ErrNotConverged), says: "the store's clock stepped back"},
		{name: "with evidence that may be of the present", seats: both(converged(now.Add(ttl + time.Second))), margin: time.Second, want: does},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := head(trial)
			token, ss, at := claim, good, now
			if tt.token != 0 {
				token = tt.token
			}
			if tt.seats != nil {
				ss = tt.seats
			}
			if !tt.now.IsZero() {
				at = tt.now
			}
			after, err := h.Confirm(ref, token, ss, at, tt.margin)
			judge(t, tt.want, h, after, err)
			if tt.says != "" && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q does not say %q", err, tt.says)
			}
		})
	}
	t.Run("moves the pointer in the same write", func(t *testing.T) {
		h, err := do(head(trial))
		if err != nil || h.Committed != next || h.Rollout.State != barrier.Confirmed || h.Rollout.Open() || h.Rollout.DecidedBy != "coordinator 7" {
			t.Errorf("%+v, %v", h, err)
		}
	})
}

func TestRevert(t *testing.T) {
	want := map[string]outcome{
		none: fails(barrier.ErrUnknown), proposed: fails(barrier.ErrNoWindow), staging: fails(barrier.ErrNoWindow), committed: fails(barrier.ErrNoWindow),
		aborted: fails(barrier.ErrDecided), trial: does, confirmed: fails(barrier.ErrDecided), reverted: again,
	}
	deadman := barrier.ByDeadman("a", "a.1")
	due := confirm.Add(grace)
	for name, by := range map[string]barrier.Authority{"by claim": barrier.ByClaim(claim), "by operator": barrier.ByOperator("alice"), "by deadman": deadman} {
		t.Run(name, func(t *testing.T) {
			matrix(t, want, func(h barrier.Head) (barrier.Head, error) {
				return h.Revert(ref, by, seat("a", acked), "why", due.Add(1))
			})
		})
	}
	tests := []struct {
		name string
		by   barrier.Authority
		seat *barrier.Seat
		now  time.Time
		want outcome
	}{
		{"by claim at any time", barrier.ByClaim(claim), nil, decided, does},
		{"by operator at any time", barrier.ByOperator("alice"), nil, decided, does},
		{"by an earlier claim", barrier.ByClaim(claim - 1), nil, due.Add(1), fails(barrier.ErrFenced)},
		{"by nobody", barrier.Authority{}, nil, due.Add(1), fails(barrier.ErrInvalid)},
		{"by deadman at D", deadman, seat("a", acked), confirm, fails(barrier.ErrEarly)},
		{"by deadman at D and grace", deadman, seat("a", acked), due, fails(barrier.ErrEarly)},
		{"by deadman a moment later", deadman, seat("a", acked), due.Add(1), does},
		{"by deadman of no member of the epoch", deadman, nil, due.Add(1), fails(barrier.ErrStranger)},
		{"by deadman of an earlier process", deadman, seat("a", acked, restarted), due.Add(1), fails(barrier.ErrSuperseded)},
		{"by deadman of a process that joined since", barrier.ByDeadman("a", "a.1b"), seat("a", acked, restarted), due.Add(1), does},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := head(trial)
			after, err := h.Revert(ref, tt.by, tt.seat, "why", tt.now)
			judge(t, tt.want, h, after, err)
			if err == nil && (after.Committed != was || after.Rollout.State != barrier.Reverted || after.Rollout.Reason != "why" || after.Rollout.DecidedBy != tt.by.String()) {
				t.Errorf("%+v", after)
			}
		})
	}
}
