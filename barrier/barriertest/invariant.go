package barriertest

import (
	"fmt"
	"slices"

	"github.com/guardyn-edge/guardyn/barrier"
)

// invariants returns which of I1–I8 a row breaks by itself, whatever led to it.
func invariants(row barrier.Row) []string {
	var broken []string
	must := func(holds bool, format string, args ...any) {
		if !holds {
			broken = append(broken, fmt.Sprintf(format, args...))
		}
	}
	must(slices.IsSorted(row.Roster.Members), "the roster is not sorted")
	must(!row.Now.IsZero(), "the row has no time")
	ro := row.Rollout
	if ro == nil {
		must(len(row.Seats) == 0, "%d seats without a rollout", len(row.Seats))
		must(row.Committed.Generation == 0 && row.Generation == 0, "a generation without a rollout")
		return broken
	}
	must(ro.Generation == row.Generation, "the newest rollout's generation is %d, the head's %d", ro.Generation, row.Generation)
	must(len(row.Seats) == ro.EpochSize, "%d seats, and the epoch has %d", len(row.Seats), ro.EpochSize)
	must(slices.IsSortedFunc(row.Seats, func(a, b barrier.Seat) int {
		if a.Member < b.Member {
			return -1
		}
		return 1
	}), "the seats are not sorted, or one is there twice")
	if ro.Voting() {
		must(row.Roster.Revision == ro.RosterRevision, "the roster has changed and the rollout is %s (I2)", ro.State)
	}
	if p := row.Previous; p != nil {
		must(p.Generation < ro.Generation, "the previous rollout has generation %d", p.Generation)
		must(p.State == barrier.Aborted || p.State == barrier.Confirmed || p.State == barrier.Reverted || p.State == barrier.Committed,
			"the previous rollout is %s and another was proposed (I1)", p.State)
	}
	decided := ro.State == barrier.Confirmed || ro.State == barrier.Committed && ro.Window == 0
	if decided {
		must(row.Committed == ro.Pointer(), "the committed pointer is %v", row.Committed)
	} else {
		must(row.Committed.Generation < ro.Generation, "the committed pointer is %v, and the rollout is %s", row.Committed, ro.State)
	}
	committed := decided || ro.OnTrial() || ro.State == barrier.Reverted
	must(committed != ro.CommittedAt.IsZero(), "%s, and committed at %v", ro.State, ro.CommittedAt)
	if !committed {
		return broken
	}
	must(!ro.CommittedAt.After(ro.Deadline), "committed after the deadline (I2)")
	if ro.Window > 0 {
		must(ro.ConfirmDeadline.Equal(ro.CommittedAt.Add(ro.Window)), "the confirm deadline is not the window after the commit")
	} else {
		must(ro.ConfirmDeadline.IsZero(), "a confirm deadline without a window")
	}
	for _, s := range row.Seats {
		b := s.Ballot
		must(b.Vote == barrier.Acked, "committed, and %s's vote is %q (I2)", s.Member, b.Vote)
		must(!b.VotedAt.After(ro.Deadline), "committed, and %s voted after the deadline (I2)", s.Member)
		must(b.BuildDigest == row.Seats[0].Ballot.BuildDigest, "committed, and %s built something else (I2)", s.Member)
		if ro.State != barrier.Confirmed {
			continue
		}
		must(b.Withdrawn == "", "confirmed, and %s has withdrawn (I7)", s.Member)
		must(!b.RenewedAt.IsZero() && ro.DecidedAt.Sub(b.RenewedAt) <= ro.EvidenceTTL, "confirmed, and %s's evidence had expired (I7)", s.Member)
		must(!b.ConvergedSince.IsZero() && ro.DecidedAt.Sub(b.ConvergedSince) >= ro.Soak, "confirmed, and %s had not soaked (I7)", s.Member)
	}
	switch {
	case ro.State == barrier.Confirmed:
		must(!ro.DecidedAt.After(ro.ConfirmDeadline), "confirmed after D (I7)")
	case ro.State == barrier.Reverted && len(ro.DecidedBy) > 7 && ro.DecidedBy[:7] == "deadman":
		must(ro.DecidedAt.After(ro.RevertDue()), "a deadman has reverted before D + grace (I8)")
	}
	return broken
}
