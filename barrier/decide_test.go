package barrier_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

func TestDecide(t *testing.T) {
	const lease = 10 * time.Second
	term := barrier.Term{Token: claim, Held: lease, Lease: lease}
	row := func(state string, now time.Time, ss ...*barrier.Seat) barrier.Row {
		return barrier.Row{Head: head(state), Roster: roster, Seats: seats(ss...), Now: now}
	}
	with := func(r barrier.Row, change func(*barrier.Row)) barrier.Row {
		change(&r)
		return r
	}
	margin := func(r *barrier.Row) { r.Margin = time.Second }
	now := decided.Add(20 * time.Second)
	ab := func(a, b func(*barrier.Seat)) []*barrier.Seat { return []*barrier.Seat{seat("a", a), seat("b", b)} }
	silent := func(*barrier.Seat) {}
	since := func(d time.Duration) func(*barrier.Seat) {
		return func(s *barrier.Seat) {
			converged(now)(s)
			s.Ballot.ConvergedSince = now.Add(-d)
		}
	}

	tests := []struct {
		name    string
		row     barrier.Row
		term    barrier.Term
		verb    barrier.Verb
		says    string
		waiting []barrier.MemberID
		again   time.Time
	}{
		{name: "another coordinator has claimed", row: row(staging, start), term: barrier.Term{Token: claim - 1}, verb: barrier.StepDown, says: "the claim is 7, this one's token 6"},
		{name: "its own claim is not written", row: row(none, start), term: barrier.Term{Token: claim + 1}, verb: barrier.Claim},
		{name: "a rollout is to be taken up", row: row(proposed, start), term: term, verb: barrier.Claim},
		{name: "there was never a rollout", row: row(none, start), term: term, verb: barrier.Wait, says: "no rollout is open"},
		{name: "the rollout is aborted", row: row(aborted, start), term: term, verb: barrier.Wait, says: "no rollout is open"},
		{name: "the rollout is committed", row: row(committed, start), term: term, verb: barrier.Wait, says: "no rollout is open"},
		{name: "the rollout is confirmed", row: row(confirmed, start), term: term, verb: barrier.Wait, says: "no rollout is open"},
		{name: "the rollout is reverted", row: row(reverted, start), term: term, verb: barrier.Wait, says: "no rollout is open"},
		{
			name: "a moment before the lock delay is over", row: row(staging, start, ab(acked, acked)...), verb: barrier.Wait, says: "lock delay",
			term: barrier.Term{Token: claim, Held: lease - 1, Lease: lease}, again: start.Add(1),
		},

		{name: "all have acked", row: row(staging, start, ab(acked, acked)...), term: term, verb: barrier.Commit},
		{name: "all have acked, at the deadline", row: row(staging, deadline, ab(acked, acked)...), term: term, verb: barrier.Commit},
		{name: "all have acked, and it is late", row: row(staging, deadline.Add(1), ab(acked, acked)...), term: term, verb: barrier.Abort, says: "all votes were there, and no coordinator in time"},
		{name: "all have acked, and it may be late", row: with(row(staging, deadline, ab(acked, acked)...), margin), term: term, verb: barrier.Abort},
		{name: "one has not voted", row: row(staging, start, ab(acked, silent)...), term: term, verb: barrier.Wait, says: "no vote from b", waiting: []barrier.MemberID{"b"}, again: deadline},
		{name: "one has not voted, with a margin", row: with(row(staging, start, ab(silent, acked)...), margin), term: term, verb: barrier.Wait, waiting: []barrier.MemberID{"a"}, again: deadline.Add(-time.Second)},
		{name: "one has not voted, and it is late", row: row(staging, deadline.Add(1), ab(acked, silent)...), term: term, verb: barrier.Abort, says: "the deadline passed: no vote from b"},
		{name: "one has refused", row: row(staging, start, ab(nacked, silent)...), term: term, verb: barrier.Abort, says: "refused by a: no; no vote from b"},
		{name: "one has restarted", row: row(staging, start, seat("a", acked), seat("b", acked, restarted)), term: term, verb: barrier.Abort, says: "started after the proposal: b"},
		{name: "the roster has changed", row: with(row(staging, start, ab(acked, acked)...), func(r *barrier.Row) { r.Roster.Revision = 5 }), term: term, verb: barrier.Abort, says: "from revision 4 to 5"},
		{name: "not the whole epoch is shown", row: row(staging, start, seat("a", acked)), term: term, verb: barrier.Abort, says: "the epoch has 2 members"},

		{name: "all have converged", row: row(trial, now, ab(converged(now), converged(now))...), term: term, verb: barrier.Confirm},
		{name: "all have converged, at D", row: row(trial, confirm, ab(converged(confirm), converged(confirm))...), term: term, verb: barrier.Confirm},
		{name: "all have converged, and D has passed", row: row(trial, confirm.Add(1), ab(converged(confirm), converged(confirm))...), term: term, verb: barrier.Revert, says: "all had converged, and no coordinator in time"},
		{name: "all have converged, and D may have passed", row: with(row(trial, confirm, ab(converged(confirm), converged(confirm))...), margin), term: term, verb: barrier.Revert},
		{name: "one has no evidence", row: row(trial, now, ab(converged(now), acked)...), term: term, verb: barrier.Wait, says: "not converged: b", waiting: []barrier.MemberID{"b"}, again: confirm},
		{name: "one has no evidence, and D has passed", row: row(trial, confirm.Add(1), ab(converged(confirm), acked)...), term: term, verb: barrier.Revert, says: "not confirmed in time: not converged: b"},
		{name: "one soaks", row: row(trial, now, ab(converged(now), since(8*time.Second))...), term: term, verb: barrier.Wait, says: "converged too recently: b", waiting: []barrier.MemberID{"b"}, again: now.Add(2 * time.Second)},
		{name: "two soak", row: row(trial, now, ab(since(time.Second), since(8*time.Second))...), term: term, verb: barrier.Wait, waiting: []barrier.MemberID{"a", "b"}, again: now.Add(9 * time.Second)},
		{name: "one soaks, with a margin", row: with(row(trial, now, ab(converged(now), since(8*time.Second))...), margin), term: term, verb: barrier.Wait, again: now.Add(3 * time.Second), waiting: []barrier.MemberID{"b"}},
		{name: "one soaks beyond D", row: row(trial, confirm, seat("a", converged(confirm)), seat("b", func(s *barrier.Seat) {
			converged(confirm)(s)
			s.Ballot.ConvergedSince = confirm.Add(-time.Second)
		})), term: term, verb: barrier.Wait, waiting: []barrier.MemberID{"b"}, again: confirm},
		{name: "one has withdrawn", row: row(trial, now, ab(converged(now), withdrawn)...), term: term, verb: barrier.Revert, says: "failed on b: broken"},
		{name: "one has restarted in the window", row: row(trial, now, seat("a", converged(now)), seat("b", converged(now), restarted)), term: term, verb: barrier.Revert, says: "b: restarted in the window"},
		{name: "not the whole epoch is shown in the window", row: row(trial, now, seat("a", converged(now))), term: term, verb: barrier.Wait, says: "does not show the whole epoch", again: confirm},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := barrier.Decide(tt.row, tt.term)
			if d.Verb != tt.verb || !strings.Contains(d.Reason, tt.says) || !slices.Equal(d.Waiting, tt.waiting) {
				t.Errorf("%+v, want %s (%q), waiting for %v", d, tt.verb, tt.says, tt.waiting)
			}
			if d.Verb == barrier.Wait && !d.Again.Equal(tt.again) && !(tt.again.IsZero() && d.Again.IsZero()) {
				t.Errorf("again at %v, want %v", d.Again, tt.again)
			}
			agrees(t, tt.row, tt.term, d)
		})
	}
}

// agrees asserts that the store does what Decide says, and has no reason to do what Decide does not say.
func agrees(t *testing.T, row barrier.Row, term barrier.Term, d barrier.Decision) {
	t.Helper()
	h, r := row.Head, d.Ref
	if h.Rollout != nil && r.ID == "" {
		r = h.Rollout.Ref
	}
	commits := func() (barrier.Head, error) {
		return h.Commit(r, term.Token, row.Seats, row.Roster.Revision, row.Now, row.Margin)
	}
	confirms := func() (barrier.Head, error) {
		return h.Confirm(r, term.Token, row.Seats, row.Now, row.Margin)
	}
	calls := map[barrier.Verb]func() (barrier.Head, error){
		barrier.Claim:   func() (barrier.Head, error) { return h.WithClaim(term.Token) },
		barrier.Commit:  commits,
		barrier.Abort:   func() (barrier.Head, error) { return h.Abort(r, barrier.ByClaim(term.Token), d.Reason, row.Now) },
		barrier.Confirm: confirms,
		barrier.Revert:  func() (barrier.Head, error) { return h.Revert(r, barrier.ByClaim(term.Token), nil, d.Reason, row.Now) },
	}
	if call := calls[d.Verb]; call != nil {
		if after, err := call(); err != nil || after.Revision == h.Revision {
			t.Errorf("%s has no effect: %v", d.Verb, err)
		}
	}
	if term.Held < term.Lease || d.Verb == barrier.StepDown || d.Verb == barrier.Claim {
		return
	}
	for verb, call := range map[barrier.Verb]func() (barrier.Head, error){barrier.Commit: commits, barrier.Confirm: confirms} {
		if after, err := call(); d.Verb != verb && err == nil && after.Revision != h.Revision {
			t.Errorf("the store would let it %s, and Decide says %s", verb, d.Verb)
		}
	}
}

func TestManyNamesAreCounted(t *testing.T) {
	h := head(staging)
	h.Rollout.EpochSize = 12
	var ss []barrier.Seat
	for _, m := range strings.Split("a b c d e f g h i j k l", " ") {
		ss = append(ss, *seat(m))
	}
	d := barrier.Decide(barrier.Row{Head: h, Roster: roster, Seats: ss, Now: start}, barrier.Term{Token: claim})
	if d.Reason != "no vote from a, b, c, d, e, f, g, h, i, j and 2 more" || len(d.Waiting) != 12 {
		t.Errorf("%+v", d)
	}
}
