package sim

import "github.com/guardyn-edge/guardyn/barrier"

// Ablation switches one repair of the protocol off. Nothing but the simulator knows of it.
type Ablation int

// The ablations. The protocol as it is is 0.
const (
	_ Ablation = iota
	// ClockAtSending tests Confirm against the coordinator's clock when it sent it, not the store's inside the write.
	ClockAtSending
	// DeadmanAlone takes a trial back when the member's timer runs out, without trying to write Revert.
	DeadmanAlone
	// DeadmanReads takes a trial back when a fresh row says that it is overdue, without trying to write Revert.
	DeadmanReads
	// AnyBootsVotes counts votes of whichever process of a member.
	AnyBootsVotes
	// AnyBootsEvidence counts evidence of whichever process of a member.
	AnyBootsEvidence
	// NewestOnly shows members no committed pointer but the newest rollout's.
	NewestOnly
	// PointerLater moves the committed pointer in a second write, after the one that decides.
	PointerLater
	// SaveLater has Save return before what it saves is durable: a crash takes it back.
	SaveLater
	// SlotIsRunning makes whatever a member swaps to what it boots and goes back to.
	SlotIsRunning
	// NoClaim does not compare a decision's token with the claim.
	NoClaim
)

var ablationNames = map[Ablation]string{
	0: "none", ClockAtSending: "clock at sending", DeadmanAlone: "deadman alone", DeadmanReads: "deadman reads",
	AnyBootsVotes: "any boot's votes", AnyBootsEvidence: "any boot's evidence", NewestOnly: "newest only",
	PointerLater: "pointer later", SaveLater: "save later", SlotIsRunning: "slot is running", NoClaim: "no claim",
}

func (a Ablation) String() string { return ablationNames[a] }

// anyBoot makes every ballot count.
func anyBoot(seats []barrier.Seat) []barrier.Seat {
	for i := range seats {
		if b := seats[i].Ballot.Boot; b != "" {
			seats[i].Registration.Boot = b
			seats[i].Registration.Joined = 0
		}
	}
	return seats
}

// newestOnly is the committed pointer as far as the newest rollout tells it.
func newestOnly(h barrier.Head) barrier.Pointer {
	ro := h.Rollout
	if ro == nil {
		return h.Committed
	}
	if ro.State == barrier.Confirmed || ro.State == barrier.Committed && ro.Window == 0 {
		return ro.Pointer()
	}
	return barrier.Pointer{}
}
