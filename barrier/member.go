package barrier

import "time"

// Memory is what a member knows on its own disk; see Slots.
type Memory struct {
	// Confirmed is what the member boots, and what it goes back to from a trial.
	Confirmed Pointer `json:"confirmed,omitzero"`

	// Trial is a windowed rollout that the member has swapped to, or is about to, and whose end it has not seen.
	Trial *Trial `json:"trial,omitzero"`

	// Highest is the highest generation that the member has applied, trials too (I9).
	Highest uint64 `json:"highest"`

	// Flaps counts trials that were taken back by guess and turned out to be confirmed.
	Flaps uint64 `json:"flaps"`
}

// Trial is a rollout in its confirm window, as a member remembers it.
type Trial struct {
	Ref      Ref       `json:"ref"`
	Pointer  Pointer   `json:"pointer"`
	Deadline time.Time `json:"deadline"` // D, for people: the member counts on its monotonic clock

	// TakenBack is why the member runs Confirmed again although it does not know yet how the trial ended; empty
	// while it runs the trial.
	TakenBack TakenBack `json:"taken_back,omitzero"`
}

// TakenBack is why a member left a trial without the store's word.
type TakenBack string

// The reasons. Only a guess can flap: a restart fails the trial.
const (
	ByGuess    TakenBack = "guess"      // the store was out of reach at D + grace
	ByRestart  TakenBack = "restart"    // the process is new: it boots Confirmed
	BySupplant TakenBack = "superseded" // another process of the member has joined
)

// equal tells whether a and b say the same.
func (a Memory) equal(b Memory) bool {
	if a.Trial == nil || b.Trial == nil {
		return a == b
	}
	at, bt := *a.Trial, *b.Trial
	at.Deadline = bt.Deadline // the Ref says whose it is, and an instant may be written in several ways
	a.Trial, b.Trial = nil, nil
	return a == b && at == bt
}

// Names tells whether m refers to the bytes of d.
func (m Memory) Names(d Digest) bool {
	return d == m.Confirmed.Digest || m.Trial != nil && d == m.Trial.Pointer.Digest
}

// Restarted returns what a new process remembers: it never runs a trial that another one began.
func (m Memory) Restarted() Memory {
	if m.Trial != nil && m.Trial.TakenBack == "" {
		t := *m.Trial
		t.TakenBack = ByRestart
		m.Trial = &t
	}
	return m
}

// Local is what a member's process knows and loses with its life. Times on the member's monotonic clock are
// counted from any instant of its own.
type Local struct {
	Incarnation uint64 // of this process's Join; 0 before it
	Superseded  bool   // another process has joined since

	Running Pointer // what the Host runs; zero: nothing
	Built   *Built  // what is prepared, or could not be; one at a time

	// Unsure is what a Memory confirms whose Save failed and of which the disk does not tell whether it is there; zero once
	// another one is.
	Unsure Pointer

	Revert      time.Duration // when, on the monotonic clock, the trial's D + grace is over; 0: no trial was seen
	Misses      int           // reads that failed since the last that did not
	RevertFails int           // Reverts by deadman whose outcome is unknown, since the last that was answered

	Health  Health  // of the running trial, judged before this step
	Failure Failure // of building, remembering or swapping
}

// Built is what the Host made of an artefact.
type Built struct {
	Ref         Ref // of the rollout it was built for; zero for what is decided already
	Pointer     Pointer
	BuildDigest string
	Refusal     string // why it could not be built; then there is nothing to swap
}

// Failure is what keeps a member from building or running Pointer.
type Failure struct {
	Pointer  Pointer
	Attempts int // failed by the artefact or the Host; bytes that could not be fetched yet do not count
	Reason   string
	Again    time.Duration // when the next attempt is due, on the monotonic clock
	Terminal bool          // MaxAttempts have failed: the member says so, and goes on trying at MaxBackoff
}

// Timing is how a member paces itself.
type Timing struct {
	Poll         time.Duration // between looks, when no hint comes
	MaxAttempts  int           // of building and swapping, before a Failure is Terminal
	MaxBackoff   time.Duration // between attempts
	CallTimeout  time.Duration // of one call to the store; less than a rollout's grace
	FetchTimeout time.Duration // of fetching an artefact
	BuildTimeout time.Duration // of Classify, Prepare and Keep; less when the votes' deadline comes first
	SwapTimeout  time.Duration // of Swap
	DiskTimeout  time.Duration // of Save: what hangs longer keeps no trial running
}

// DefaultTiming is what zero fields of a Timing stand for.
var DefaultTiming = Timing{
	Poll: time.Second, MaxAttempts: 5, MaxBackoff: time.Minute, CallTimeout: 2 * time.Second, FetchTimeout: time.Minute,
	BuildTimeout: 5 * time.Minute, SwapTimeout: 30 * time.Second, DiskTimeout: 5 * time.Second,
}

func (t Timing) withDefaults() Timing {
	d := DefaultTiming
	return Timing{
		Poll: orDefault(t.Poll, d.Poll), MaxAttempts: orDefault(t.MaxAttempts, d.MaxAttempts), MaxBackoff: orDefault(t.MaxBackoff, d.MaxBackoff),
		CallTimeout: orDefault(t.CallTimeout, d.CallTimeout), FetchTimeout: orDefault(t.FetchTimeout, d.FetchTimeout),
		BuildTimeout: orDefault(t.BuildTimeout, d.BuildTimeout), SwapTimeout: orDefault(t.SwapTimeout, d.SwapTimeout),
		DiskTimeout: orDefault(t.DiskTimeout, d.DiskTimeout),
	}
}

// orDefault is v, or standard if v is not positive.
func orDefault[T ~int | ~int64](v, standard T) T {
	if v > 0 {
		return v
	}
	return standard
}

// Situation is everything that a member's next step depends on.
type Situation struct {
	Self   MemberID
	Boot   BootID
	Memory Memory
	Local  Local
	Timing Timing

	View  *View         // nil: the store is out of reach
	Clock time.Duration // the member's monotonic clock, now
}

// Act is what a member does next.
type Act string

// The acts. After each the member reads the row again.
const (
	ActWait     Act = "wait"     // until Action.Until, or a hint
	ActStop     Act = "stop"     // superseded: takes part no more
	ActJoin     Act = "join"     // Action.Incarnation is the registration's
	ActBuild    Act = "build"    // fetch Action.Pointer's bytes, check their digest, classify, Prepare
	ActDiscard  Act = "discard"  // what was built
	ActRemember Act = "remember" // save Action.Memory
	ActSwap     Act = "swap"     // to what was built
	ActAck      Act = "ack"
	ActNack     Act = "nack"
	ActConverge Act = "converge"
	ActWithdraw Act = "withdraw"
	ActRevert   Act = "revert" // by deadman
)

// Action is one act with what it needs.
type Action struct {
	Act         Act
	Ref         Ref     // of the rollout that is voted on, built for, converged, withdrawn, reverted
	Pointer     Pointer // of Build and Swap
	Candidate   bool    // of Build: for a vote, not to be run yet: a refusal is an answer
	Memory      Memory  // of Remember
	Incarnation uint64  // of Join
	BuildDigest string  // of Ack
	Reason      string  // of Nack, Withdraw, Revert, Stop; of Converge: the detail; of Wait: what for
	Until       time.Duration
}
