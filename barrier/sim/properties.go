package sim

// Property is a promise of the protocol that is checked at every step.
type Property string

// The properties. S1 to S9 are those of the specification; the sentence of each is in Sentences.
const (
	S1 Property = "S1"
	S2 Property = "S2"
	S3 Property = "S3"
	S4 Property = "S4"
	S5 Property = "S5"
	S6 Property = "S6"
	S7 Property = "S7"
	S8 Property = "S8"
	S9 Property = "S9"

	I3       Property = "I3"
	I4       Property = "I4"
	I5       Property = "I5"
	I7       Property = "I7"
	I8       Property = "I8"
	I9       Property = "I9"
	Pointers Property = "pointer"
	Bytes    Property = "bytes"
	Durable  Property = "durable"
	Highest  Property = "highest"
	Boots    Property = "boots"
	Informed Property = "informed"
	Once     Property = "once"
	Progress Property = "progress"
	Follows  Property = "follows"
	Goes     Property = "goes"
)

// Sentences says what each property promises.
var Sentences = map[Property]string{
	S1: "at most one rollout is open",
	S2: "nobody runs a generation before its commit, and in a window only a process that acknowledged it",
	S3: "a final state never changes, and a state is only left for one that may follow it",
	S4: "at a confirm every process whose evidence counts runs the generation and has not taken it back",
	S5: "a process that reaches the store never takes back a confirmed generation",
	S6: "who leaves a trial that was not confirmed lands on the committed pointer",
	S7: "a process that has the store's word and nothing in its way runs the committed pointer or its own open trial",
	S8: "lease tokens strictly increase",
	S9: "a commit counts the acknowledgements of the current processes of the whole epoch, in time, of one build, under the epoch's roster",

	I3:       "a coordinator decides only with the token that is the claim, and the claim never falls",
	I4:       "the same decision again by the claim's holder is a success without effect",
	I5:       "a process votes once, and only a member's current process writes its ballot",
	I7:       "a confirm takes effect at D at the latest, on unexpired evidence of current processes that has held for soak",
	I8:       "a deadman reverts only after D + grace",
	I9:       "nobody runs a lower generation than the highest final one it has applied, nor than its highest but what it goes back to",
	Pointers: "the committed pointer moves in the write that decides, to what was decided",
	Bytes:    "the committed bytes can be fetched",
	Durable:  "nobody swaps before its durable memory names what it swaps to and holds its bytes",
	Highest:  "the highest generation that a disk remembers never falls, nor the confirmed one",
	Boots:    "what a member's disk says to boot was decided for good",
	Once:     "a proposal opens one rollout, however often and late its copies come",
	Informed: "a process that knows the end of a trial that failed does not begin it",

	Progress: "with the faults over, every rollout is final within D, grace, a poll and an election",
	Follows:  "with the faults over, every member runs the committed pointer",
	Goes:     "with the faults over, a new proposal is accepted and is committed, or confirmed",
}

// Violation is a broken promise.
type Violation struct {
	Property Property
	Detail   string
}

func (v *Violation) Error() string {
	return string(v.Property) + " (" + Sentences[v.Property] + "): " + v.Detail
}
