package node

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/seal"
)

const (
	stateFile = "state.json"
	// stateFormat is the highest that this build reads. Format 2 has what a node knows of rollouts; a state that has
	// nothing of it is written in format 1, which builds from before rollouts read.
	stateFormat = 2

	maxState = 1 << 20
	// maxLoads is how often a payload may crash this node while it is loaded before it is left alone.
	maxLoads = 2
	// maxLoading bounds state.Loading; an install empties it.
	maxLoading = 16
)

// state is what a node must remember to be safe: losing it reopens replay, so it is written before each
// swap and only ever whole.
type state struct {
	Format int        `json:"format"`
	Marks  seal.Marks `json:"marks,omitempty"`
	// Current and Previous name the slots to boot from, in this order.
	Current  string `json:"current,omitempty"`
	Previous string `json:"previous,omitempty"`
	// Loading counts, by payload (BLAKE3 hex), how often a compilation was begun and did not end. What it
	// holds when a process starts are compilations that took a process down with them.
	Loading map[string]int `json:"loading,omitempty"`
	// Rebuilt: the marks were put together from the slots, which may not be all that passed here; until a fresh
	// answer says what is live, nothing proves that an old activation is not a replay.
	Rebuilt bool `json:"rebuilt,omitempty"`

	// Rollout is the node's memory as a member of the cohort. Trial names the slot of what is or was served under a
	// provisional activation, Candidate the file of what may be decided; nothing boots from either.
	Rollout   barrier.Memory `json:"rollout,omitzero"`
	Trial     string         `json:"trial,omitempty"`
	Candidate string         `json:"candidate,omitempty"`
}

// tookPart tells whether s says anything of rollouts.
func (s state) tookPart() bool {
	return s.Rollout != barrier.Memory{} || s.Trial != "" || s.Candidate != ""
}

// loaded returns s once a compilation of payload has ended.
func (s state) loaded(payload string) state {
	s.Loading = maps.Clone(s.Loading)
	delete(s.Loading, payload)
	return s
}

func readState(d *durable.Dir) (state, error) {
	raw, err := d.Read(stateFile, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return state{Marks: seal.Marks{}}, nil
	}
	if err != nil {
		return state{}, fmt.Errorf("node state: %w", err)
	}
	raw, err = checkedState(raw)
	if err != nil {
		return state{}, &damagedState{fmt.Errorf("node state %s/%s cannot be read: %w", d.Path(), stateFile, err)}
	}
	var s state
	if err := json.Unmarshal(raw, &s, json.RejectUnknownMembers(true)); err != nil {
		var format struct {
			Format int `json:"format"`
		}
		if json.Unmarshal(raw, &format) == nil && format.Format > stateFormat {
			return state{}, fmt.Errorf("node state has format %d, this build reads %d; run the newer build", format.Format, stateFormat)
		}
		return state{}, &damagedState{fmt.Errorf("node state %s/%s cannot be read: %w", d.Path(), stateFile, err)}
	}
	if s.Format > stateFormat {
		return state{}, fmt.Errorf("node state has format %d, this build reads %d; run the newer build", s.Format, stateFormat)
	}
	if s.Format < 1 || s.Format == 1 && s.tookPart() {
		return state{}, &damagedState{fmt.Errorf("node state %s/%s cannot be read: it is not of format %d", d.Path(), stateFile, s.Format)}
	}
	if s.Marks == nil {
		s.Marks = seal.Marks{}
	}
	return s, nil
}

// checkedState returns the first line of a state file, whose second is its checksum: a bit that flipped in a number
// or a key id would move a mark and still be good JSON. A file without a second line was written by a build before
// the checksum.
func checkedState(raw []byte) ([]byte, error) {
	text, sum, ok := bytes.Cut(raw, []byte{'\n'})
	if ok && string(sum) != stateSum(text) {
		return nil, errors.New("its checksum is another")
	}
	return text, nil
}

func stateSum(text []byte) string {
	sum := blake3.Sum256(text)
	return hex.EncodeToString(sum[:]) + "\n"
}

// damagedState means that the state file is there and makes no sense.
type damagedState struct{ err error }

func (e *damagedState) Error() string { return e.err.Error() }
func (e *damagedState) Unwrap() error { return e.err }

// rebuildState makes the state that the slots prove. The newest slot is the one that raised the mark, so the
// mark is where it was, unless that slot is damaged too: see state.Rebuilt. What was served on trial proves a mark, and is
// never booted. Which slots crashed at load is forgotten, and what the node knew of rollouts: it is a member that was never there.
func rebuildState(d *durable.Dir, keys seal.TrustedKeys, damaged *damagedState) (state, error) {
	names, err := d.Names()
	if err != nil {
		return state{}, err
	}
	type slot struct {
		name string
		act  seal.Activation
	}
	var slots []slot
	s := state{Marks: seal.Marks{}, Rebuilt: true}
	for _, name := range names {
		onTrial := strings.HasPrefix(name, trialPrefix)
		if !onTrial && !strings.HasPrefix(name, slotPrefix) {
			continue
		}
		art, err := readSlot(d, name)
		if err != nil {
			continue
		}
		act, key, err := seal.VerifyActivation(art.Activation, keys)
		if err != nil {
			continue
		}
		s.Marks.Raise(key, act)
		if onTrial || act.Kind == seal.KindProvisional {
			continue
		}
		slots = append(slots, slot{name, act})
	}
	if len(slots) == 0 {
		return state{}, fmt.Errorf("%w, and no slot beside it proves what was installed; "+
			"give the node an empty directory to start from nothing", damaged)
	}
	slices.SortFunc(slots, func(a, b slot) int {
		return cmp.Or(cmp.Compare(b.act.Epoch, a.act.Epoch), cmp.Compare(b.act.Generation, a.act.Generation))
	})
	s.Current = slots[0].name
	if len(slots) > 1 {
		s.Previous = slots[1].name
	}
	return s, nil
}

func writeState(d *durable.Dir, s state) error {
	s.Format = 1
	if s.tookPart() {
		s.Format = 2
	}
	raw, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("node state: %w", err)
	}
	return d.Write(stateFile, raw, []byte("\n"+stateSum(raw)))
}

// readFile reads a slot whole.
func (a *Agent) readFile(name string) ([]byte, error) {
	return a.cfg.Dir.Read(name, seal.MaxPayload+maxEnvelope)
}
