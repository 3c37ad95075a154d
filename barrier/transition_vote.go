package barrier

import (
	"fmt"
	"time"
)

// Transitions are pure: they take what the store holds and its time, and return what it holds next, or a
// named error and nothing changed. An adapter loads, calls one, and writes the result under a condition
// that what it loaded still stands. A Head whose Revision is the old one is not changed.

// touch returns h as one that was changed.
func (h Head) touch() Head {
	h.Revision++
	return h
}

// Join registers boot as the current process of m; reg is m's registration, seated whether m is in the
// epoch of h.Rollout. The head changes when that voids what m has said in an open rollout.
func (h Head) Join(reg Registration, seated bool, boot BootID, incarnation uint64) (Head, Registration, error) {
	if reg.Boot == boot {
		return h, reg, nil
	}
	if reg.Incarnation != incarnation {
		return h, reg, fmt.Errorf("%w: process %s at incarnation %d", ErrSuperseded, reg.Boot, reg.Incarnation)
	}
	if seated && h.open() != nil {
		h = h.touch()
	}
	return h, Registration{Boot: boot, Incarnation: incarnation + 1, Joined: h.Generation}, nil
}

// current returns the newest rollout if r names it.
func (h Head) current(r Ref) (Rollout, error) {
	if h.Rollout == nil || h.Rollout.Ref != r {
		have := "there is none"
		if h.Rollout != nil {
			have = "that is " + h.Rollout.Ref.String()
		}
		return Rollout{}, fmt.Errorf("%w: %v; %s", ErrUnknown, r, have)
	}
	return *h.Rollout, nil
}

// speaks says whether boot may speak for the seat in ro; nil is no seat.
func (s *Seat) speaks(ro Rollout, boot BootID) error {
	switch {
	case s == nil:
		return fmt.Errorf("%w: of %v", ErrStranger, ro.Ref)
	case s.Registration.Boot != boot:
		return fmt.Errorf("%w: process %s", ErrSuperseded, s.Registration.Boot)
	case s.Registration.Joined >= ro.Generation:
		return fmt.Errorf("%w of %v", ErrJoinedLate, ro.Ref)
	}
	return nil
}

// Ack votes for the rollout; seat is the member's, nil when it has none.
func (h Head) Ack(r Ref, seat *Seat, boot BootID, buildDigest string, now time.Time) (Ballot, error) {
	if p := buildDigestProblem(buildDigest); p != "" {
		return Ballot{}, fmt.Errorf("%w: %s", ErrInvalid, p)
	}
	return h.vote(r, seat, Ballot{Boot: boot, Vote: Acked, BuildDigest: buildDigest, VotedAt: now})
}

// Nack votes against the rollout.
func (h Head) Nack(r Ref, seat *Seat, boot BootID, reason string, now time.Time) (Ballot, error) {
	return h.vote(r, seat, Ballot{Boot: boot, Vote: Nacked, Reason: cut(reason), VotedAt: now})
}

func (h Head) vote(r Ref, seat *Seat, b Ballot) (Ballot, error) {
	ro, err := h.current(r)
	if err != nil {
		return Ballot{}, err
	}
	if err := seat.speaks(ro, b.Boot); err != nil {
		return Ballot{}, err
	}
	if cast := seat.Ballot; cast.Boot == b.Boot && cast.Vote != NoVote {
		// A reason may be worded anew by a process that lost the answer; the vote is the same.
		if cast.Vote != b.Vote || cast.BuildDigest != b.BuildDigest {
			return Ballot{}, fmt.Errorf("%w: %s", ErrVoted, cast.Vote)
		}
		return cast, nil
	}
	if !ro.Voting() {
		return Ballot{}, ro.decided()
	}
	if b.VotedAt.After(ro.Deadline) {
		return Ballot{}, fmt.Errorf("%w: for votes on %v", ErrLate, ro.Ref)
	}
	return b, nil
}

func (r Rollout) decided() error {
	return &DecidedError{Ref: r.Ref, State: r.State, Reason: r.Reason}
}

// onTrial returns the rollout if r names it, its window is open, and boot is the process that acked it.
func (h Head) onTrial(r Ref, seat *Seat, boot BootID) (Rollout, error) {
	ro, err := h.current(r)
	if err != nil {
		return Rollout{}, err
	}
	if err := seat.speaks(ro, boot); err != nil {
		return Rollout{}, err
	}
	switch {
	case ro.Voting(), ro.State == Committed && ro.Window == 0:
		return Rollout{}, fmt.Errorf("%w: %v is %s", ErrNoWindow, ro.Ref, ro.State)
	case !ro.OnTrial():
		return Rollout{}, ro.decided()
	}
	return ro, nil
}

// Converge writes or renews evidence (I6).
func (h Head) Converge(r Ref, seat *Seat, boot BootID, detail string, now time.Time) (Ballot, error) {
	ro, err := h.onTrial(r, seat, boot)
	if err != nil {
		return Ballot{}, err
	}
	b := seat.Ballot
	if b.Withdrawn != "" {
		return Ballot{}, fmt.Errorf("%w: %s", ErrWithdrawn, b.Withdrawn)
	}
	switch age := now.Sub(b.RenewedAt); {
	case b.ConvergedSince.IsZero() || age.Abs() > ro.EvidenceTTL: // none yet, expired, or the store's clock stepped back
		b.ConvergedSince, b.RenewedAt = now, now
	case age > 0:
		b.RenewedAt = now
	}
	b.Detail = cut(detail)
	return b, nil
}

// Withdraw takes evidence back. The head changes: a Confirm that was about to be written fails.
func (h Head) Withdraw(r Ref, seat *Seat, boot BootID, reason string, now time.Time) (Head, Ballot, error) {
	if _, err := h.onTrial(r, seat, boot); err != nil {
		return h, Ballot{}, err
	}
	b := seat.Ballot
	if b.Withdrawn != "" {
		return h, b, nil
	}
	if reason == "" {
		reason = "no reason given"
	}
	b.ConvergedSince, b.RenewedAt = time.Time{}, time.Time{}
	b.Withdrawn, b.WithdrawnAt = cut(reason), now
	return h.touch(), b, nil
}
