package barrier

import (
	"fmt"
	"strings"
	"time"
)

// WithClaim makes t the token whose decisions count, and takes up a rollout that is proposed (I3).
func (h Head) WithClaim(t Token) (Head, error) {
	if t == 0 {
		return h, fmt.Errorf("%w: token 0 is nobody's", ErrInvalid)
	}
	if t > MaxNumber {
		return h, fmt.Errorf("%w: token %d is more than %d", ErrInvalid, t, uint64(MaxNumber))
	}
	if t < h.Claim {
		return h, h.fenced(t)
	}
	proposed := h.Rollout != nil && h.Rollout.State == Proposed
	if t == h.Claim && !proposed {
		return h, nil
	}
	h.Claim = t
	if proposed {
		ro := *h.Rollout
		ro.State = Staging
		h.Rollout = &ro
	}
	return h.touch(), nil
}

func (h Head) fenced(t Token) error {
	return fmt.Errorf("%w: its token is %d, this one's %d", ErrFenced, h.Claim, t)
}

// claimed returns the rollout if r names it and t is the claim.
func (h Head) claimed(r Ref, t Token) (Rollout, error) {
	ro, err := h.current(r)
	if err != nil {
		return Rollout{}, err
	}
	if t != h.Claim || t == 0 {
		return Rollout{}, h.fenced(t)
	}
	return ro, nil
}

// decide returns h with ro in its final or next state.
func (h Head) decide(ro Rollout, s State, by Authority, reason string, now time.Time) Head {
	ro.State, ro.DecidedAt, ro.DecidedBy, ro.Reason = s, now, by.String(), cut(reason)
	h.Rollout = &ro
	return h.touch()
}

// Commit decides for the rollout (I2). seats are all of its epoch; rosterRevision is the roster's now. margin is
// how far now may be off when the write takes effect: 0 in a store that has the time inside of the write.
func (h Head) Commit(r Ref, t Token, seats []Seat, rosterRevision uint64, now time.Time, margin time.Duration) (Head, error) {
	ro, err := h.claimed(r, t)
	if err != nil {
		return h, err
	}
	switch {
	case ro.State == Committed:
		return h, nil
	case ro.State == Proposed:
		return h, fmt.Errorf("%w: %v was not taken up yet", ErrBarrier, ro.Ref)
	case ro.State != Staging:
		return h, ro.decided()
	case rosterRevision != ro.RosterRevision:
		return h, fmt.Errorf("%w: %d, and %v was proposed to %d", ErrRoster, rosterRevision, ro.Ref, ro.RosterRevision)
	case now.Add(margin).After(ro.Deadline):
		return h, fmt.Errorf("%w: for %v", ErrLate, ro.Ref)
	}
	if c := count(ro, seats); len(c.missing)+len(c.nacks)+len(c.late) > 0 || c.differ != "" {
		return h, fmt.Errorf("%w: %s", ErrBarrier, c)
	}
	ro.CommittedAt = now
	if ro.Window > 0 {
		ro.ConfirmDeadline = now.Add(ro.Window)
	} else {
		h.Committed = ro.Pointer()
	}
	return h.decide(ro, Committed, ByClaim(t), "", now), nil
}

// Abort decides against the rollout.
func (h Head) Abort(r Ref, by Authority, reason string, now time.Time) (Head, error) {
	ro, err := h.decidable(r, by)
	if err != nil {
		return h, err
	}
	switch {
	case by.Member != "":
		return h, fmt.Errorf("%w: a deadman reverts, it does not abort", ErrInvalid)
	case ro.State == Aborted:
		return h, nil
	case !ro.Voting():
		return h, ro.decided()
	}
	return h.decide(ro, Aborted, by, reason, now), nil
}

// decidable returns the rollout if r names it and by has the right to decide now.
func (h Head) decidable(r Ref, by Authority) (Rollout, error) {
	if err := by.check(); err != nil {
		return Rollout{}, err
	}
	ro, err := h.current(r)
	if err != nil {
		return Rollout{}, err
	}
	if by.Token != 0 && by.Token != h.Claim {
		return Rollout{}, h.fenced(by.Token)
	}
	return ro, nil
}

// Confirm ends a confirm window well (I7). margin is as in Commit.
func (h Head) Confirm(r Ref, t Token, seats []Seat, now time.Time, margin time.Duration) (Head, error) {
	ro, err := h.claimed(r, t)
	if err != nil {
		return h, err
	}
	switch {
	case ro.State == Confirmed:
		return h, nil
	case ro.Voting(), ro.State == Committed && ro.Window == 0:
		return h, fmt.Errorf("%w: %v is %s", ErrNoWindow, ro.Ref, ro.State)
	case !ro.OnTrial():
		return h, ro.decided()
	case now.Add(margin).After(ro.ConfirmDeadline):
		return h, fmt.Errorf("%w: to confirm %v", ErrLate, ro.Ref)
	}
	if w := weigh(ro, seats, now, margin); !w.confirmed() {
		return h, fmt.Errorf("%w: %s", ErrNotConverged, w)
	}
	h.Committed = ro.Pointer()
	return h.decide(ro, Confirmed, ByClaim(t), "", now), nil
}

// Revert ends a confirm window badly (I8). seat is that of by's member, nil when by is no deadman or its
// member has no seat.
func (h Head) Revert(r Ref, by Authority, seat *Seat, reason string, now time.Time) (Head, error) {
	ro, err := h.decidable(r, by)
	if err != nil {
		return h, err
	}
	if by.Member != "" {
		switch {
		case seat == nil:
			return h, fmt.Errorf("%w: of %v", ErrStranger, ro.Ref)
		case seat.Registration.Boot != by.Boot:
			return h, fmt.Errorf("%w: process %s", ErrSuperseded, seat.Registration.Boot)
		}
	}
	switch {
	case ro.State == Reverted:
		return h, nil
	case ro.Voting(), ro.State == Committed && ro.Window == 0:
		return h, fmt.Errorf("%w: %v is %s", ErrNoWindow, ro.Ref, ro.State)
	case !ro.OnTrial():
		return h, ro.decided()
	case by.Member != "" && !now.After(ro.RevertDue()):
		return h, fmt.Errorf("%w: a member reverts %v only after its confirm deadline and grace", ErrEarly, ro.Ref)
	}
	return h.decide(ro, Reverted, by, reason, now), nil
}

// tally is what the votes of an epoch come to.
type tally struct {
	missing []MemberID // no vote of the current process yet
	late    []MemberID // its current process joined after the proposal: it cannot vote any more
	nacks   []string   // "member: reason"
	differ  string     // which members built different things
}

func count(ro Rollout, seats []Seat) tally {
	var (
		t     tally
		first *Seat
	)
	for i := range seats {
		s := &seats[i]
		switch {
		case s.Registration.Boot != "" && s.Registration.Joined >= ro.Generation:
			t.late = append(t.late, s.Member)
		case !s.Counts() || s.Ballot.Vote == NoVote:
			t.missing = append(t.missing, s.Member)
		case s.Ballot.Vote == Nacked:
			t.nacks = append(t.nacks, fmt.Sprintf("%s: %s", s.Member, s.Ballot.Reason))
		case first == nil:
			first = s
		case s.Ballot.BuildDigest != first.Ballot.BuildDigest && t.differ == "":
			t.differ = fmt.Sprintf("%s built %q and %s built %q", first.Member, first.Ballot.BuildDigest, s.Member, s.Ballot.BuildDigest)
		}
	}
	if len(seats) != ro.EpochSize {
		t.differ = fmt.Sprintf("the epoch has %d members and the store shows %d", ro.EpochSize, len(seats))
	}
	return t
}

func (t tally) String() string {
	var parts []string
	if len(t.nacks) > 0 {
		parts = append(parts, "refused by "+strings.Join(t.nacks, "; "))
	}
	if len(t.late) > 0 {
		parts = append(parts, "started after the proposal: "+names(t.late))
	}
	if t.differ != "" {
		parts = append(parts, t.differ)
	}
	if len(t.missing) > 0 {
		parts = append(parts, "no vote from "+names(t.missing))
	}
	return strings.Join(parts, "; ")
}

// evidence is what an epoch's evidence comes to at one instant.
type evidence struct {
	failed  []string   // "member: reason": withdrawn, restarted or not to be judged; the trial has failed
	missing []MemberID // no unexpired evidence
	soaking []MemberID // unexpired evidence that has not held for long enough
	until   time.Time  // when the last of soaking has, if nothing breaks
	size    bool       // whether all seats of the epoch are there
}

// RestartedInWindow follows a member's id in the reason of a revert for which it restarted.
const RestartedInWindow = ": restarted in the window"

// weigh judges at an instant that is margin before now or margin after it, whichever is worse.
func weigh(ro Rollout, seats []Seat, now time.Time, margin time.Duration) evidence {
	e := evidence{size: len(seats) == ro.EpochSize}
	for _, s := range seats {
		b := s.Ballot
		switch {
		case !s.Counts() || b.Vote != Acked:
			e.failed = append(e.failed, string(s.Member)+RestartedInWindow)
		case b.Withdrawn != "":
			e.failed = append(e.failed, fmt.Sprintf("%s: %s", s.Member, b.Withdrawn))
		case b.RenewedAt.Sub(now) > ro.EvidenceTTL+margin:
			// Nobody knows how old it is, and it would count again when its time comes a second time.
			e.failed = append(e.failed, fmt.Sprintf("%s: its evidence is dated in the future: the store's clock stepped back", s.Member))
		case b.RenewedAt.IsZero() || now.Sub(b.RenewedAt) > ro.EvidenceTTL-margin:
			e.missing = append(e.missing, s.Member)
		case now.Sub(b.ConvergedSince) < ro.Soak+margin:
			e.soaking = append(e.soaking, s.Member)
			if done := b.ConvergedSince.Add(ro.Soak + margin); done.After(e.until) {
				e.until = done
			}
		}
	}
	return e
}

func (e evidence) confirmed() bool {
	return e.size && len(e.failed)+len(e.missing)+len(e.soaking) == 0
}

func (e evidence) String() string {
	var parts []string
	if len(e.failed) > 0 {
		parts = append(parts, "failed on "+strings.Join(e.failed, "; "))
	}
	if len(e.missing) > 0 {
		parts = append(parts, "not converged: "+names(e.missing))
	}
	if len(e.soaking) > 0 {
		parts = append(parts, "converged too recently: "+names(e.soaking))
	}
	if !e.size {
		parts = append(parts, "the store does not show the whole epoch")
	}
	return strings.Join(parts, "; ")
}

// names joins the first ten.
func names(ms []MemberID) string {
	const most = 10
	var b strings.Builder
	for i, m := range ms {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(ms)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(m))
	}
	return b.String()
}
