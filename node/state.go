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

	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/seal"
)

const (
	stateFile   = "state.json"
	stateFormat = 1
	slotPrefix  = "slot-"

	maxState    = 1 << 20
	maxEnvelope = 64 << 10
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
}

// loaded returns s once a compilation of payload has ended.
func (s state) loaded(payload string) state {
	s.Loading = maps.Clone(s.Loading)
	delete(s.Loading, payload)
	return s
}

// slotName names the file of an activation. Two payloads never share one: a generation has one content.
func slotName(a seal.Activation) string {
	return fmt.Sprintf("%s%d-%d", slotPrefix, a.Epoch, a.Generation)
}

func readState(d *durable.Dir) (state, error) {
	raw, err := d.Read(stateFile, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return state{Format: stateFormat, Marks: seal.Marks{}}, nil
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
	if s.Format != stateFormat {
		return state{}, fmt.Errorf("node state has format %d, this build reads %d; run the newer build", s.Format, stateFormat)
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
// mark is where it was, unless that slot is damaged too: see state.Rebuilt. Which slots crashed at load is forgotten.
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
	s := state{Format: stateFormat, Marks: seal.Marks{}, Rebuilt: true}
	for _, name := range names {
		if !strings.HasPrefix(name, slotPrefix) {
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
	raw, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("node state: %w", err)
	}
	return d.Write(stateFile, raw, []byte("\n"+stateSum(raw)))
}

// envelope is the first line of a slot file; the payload follows its newline.
type envelope struct {
	Version     uint64                `json:"version"`
	ContentHash string                `json:"content_hash"`
	Signature   string                `json:"signature"`
	KeyID       seal.KeyID            `json:"key_id"`
	Activation  seal.SignedActivation `json:"activation"`
	Payload     string                `json:"payload_blake3"`
}

func writeSlot(d *durable.Dir, name string, a seal.Artefact, payload string) error {
	head, err := json.Marshal(envelope{a.Version, a.ContentHash, a.Signature, a.KeyID, a.Activation, payload})
	if err != nil {
		return fmt.Errorf("slot %s: %w", name, err)
	}
	return d.Write(name, append(head, '\n'), a.Payload)
}

func readSlot(d *durable.Dir, name string) (seal.Artefact, error) {
	raw, err := d.Read(name, seal.MaxPayload+maxEnvelope)
	if err != nil {
		return seal.Artefact{}, fmt.Errorf("slot %s: %w", name, err)
	}
	head, payload, ok := bytes.Cut(raw, []byte{'\n'})
	var e envelope
	if !ok || json.Unmarshal(head, &e, json.RejectUnknownMembers(true)) != nil {
		return seal.Artefact{}, fmt.Errorf("slot %s: its first line is damaged", name)
	}
	return seal.Artefact{Sealed: seal.Sealed{
		Payload: payload, PayloadBLAKE3: e.Payload, Version: e.Version,
		ContentHash: e.ContentHash, Signature: e.Signature, KeyID: e.KeyID,
	}, Activation: e.Activation}, nil
}

// sweepSlots removes the slots that the state no longer names. A slot that stays behind does no harm.
func sweepSlots(d *durable.Dir, s state) error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(n, slotPrefix) && n != s.Current && n != s.Previous {
			err = errors.Join(err, d.Remove(n))
		}
	}
	return err
}
