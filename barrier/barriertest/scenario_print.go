package barriertest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// at is a time of the store as a reader of a script counts it.
func at(t time.Time) string { return "+" + t.Sub(opening).String() }

func (w *stage) print(format string, args ...any) {
	w.lines = append(w.lines, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// printRow writes the row for people.
func (w *stage) printRow(ctx context.Context) error {
	row, err := w.store.Store.Current(ctx)
	if err != nil {
		return err
	}
	committed := "nothing"
	if c := row.Committed; !c.IsZero() {
		committed = fmt.Sprintf("%s (generation %d)", nameOf(c.Digest), c.Generation)
	}
	w.print("%s  committed: %s · claim %d · roster %d: %s", at(row.Now), committed, row.Claim, row.Roster.Revision, join(row.Roster.Members))
	if ro := row.Rollout; ro != nil {
		w.printRollout(*ro)
		for _, s := range row.Seats {
			w.print("  %-2s %s", s.Member, seat(s))
		}
	}
	if p := row.Previous; p != nil {
		w.print("before it: %s %s, %s%s", p.Ref, nameOf(p.Digest), p.State, because(p.Reason))
	}
	return nil
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (w *stage) printRollout(ro barrier.Rollout) {
	state := string(ro.State)
	if ro.OnTrial() {
		state = "committed, on trial"
	}
	w.print("%s %s, proposed by %s: %s%s", ro.Ref, nameOf(ro.Digest), ro.Proposer, state, because(ro.Reason))
	times := []string{"proposed " + at(ro.ProposedAt), "votes until " + at(ro.Deadline)}
	if !ro.CommittedAt.IsZero() {
		times = append(times, "committed "+at(ro.CommittedAt))
	}
	if !ro.ConfirmDeadline.IsZero() {
		times = append(times, "to confirm until "+at(ro.ConfirmDeadline), "members revert after "+at(ro.RevertDue()))
	}
	if !ro.DecidedAt.IsZero() {
		times = append(times, fmt.Sprintf("decided %s by %s", at(ro.DecidedAt), ro.DecidedBy))
	}
	w.print("  %s", strings.Join(times, ", "))
}

// seat is what the store knows of one member of the epoch.
func seat(s barrier.Seat) string {
	if s.Registration.Boot == "" {
		return "never joined"
	}
	parts := []string{string(s.Registration.Boot)}
	b := s.Ballot
	switch {
	case b.Boot == "":
		return parts[0] + ": no vote"
	case !s.Counts():
		parts = append(parts, fmt.Sprintf("no vote (that of %s is void)", b.Boot))
	case b.Vote == barrier.Acked:
		parts = append(parts, fmt.Sprintf("acked %s, built %s", at(b.VotedAt), b.BuildDigest))
	case b.Vote == barrier.Nacked:
		parts = append(parts, fmt.Sprintf("nacked %s: %s", at(b.VotedAt), b.Reason))
	}
	if !b.ConvergedSince.IsZero() {
		parts = append(parts, fmt.Sprintf("converged since %s, renewed %s: %s", at(b.ConvergedSince), at(b.RenewedAt), b.Detail))
	}
	if b.Withdrawn != "" {
		parts = append(parts, fmt.Sprintf("withdrawn %s: %s", at(b.WithdrawnAt), b.Withdrawn))
	}
	return parts[0] + ": " + strings.Join(parts[1:], "; ")
}

// printStatus writes what a member knows about itself.
func (w *stage) printStatus(p *player) {
	s := p.member.Status()
	var parts []string
	add := func(yes bool, format string, args ...any) {
		if yes {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(true, "runs %s", nameOf(s.Running.Digest))
	add(true, "applied: %t", s.Applied)
	add(true, "boots %s", nameOf(s.Confirmed.Digest))
	add(s.ConfirmPending, "on trial")
	add(s.TakenBack != "", "trial taken back by %s", s.TakenBack)
	add(s.Flaps > 0, "flaps %d", s.Flaps)
	add(s.Generation > 0, "sees generation %d %s", s.Generation, s.State)
	add(s.Acked, "acked")
	add(s.Nacked, "nacked")
	add(s.Converged, "converged")
	add(s.Stale, "stale for %s", s.Observation)
	add(s.Superseded, "superseded")
	add(s.Diverged != "", "diverged: %s", s.Diverged)
	add(s.TerminalReason != "", "gave up on generation %d for now: %s", s.TerminalGeneration, s.TerminalReason)
	w.say(p.link.actor, "%s", strings.Join(parts, ", "))
}
