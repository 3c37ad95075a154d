package node

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

const (
	slotPrefix      = "slot-"      // what was live: a node boots from these
	trialPrefix     = "trial-"     // under a provisional activation
	candidatePrefix = "candidate-" // under none

	maxEnvelope = 64 << 10
)

// slotName names the file of an activation. Two payloads never share one: a generation has one content.
func slotName(a seal.Activation) string {
	prefix := slotPrefix
	if a.Kind == seal.KindProvisional {
		prefix = trialPrefix
	}
	return fmt.Sprintf("%s%d-%d", prefix, a.Epoch, a.Generation)
}

// candidateName names the file of what a rollout of that generation carries.
func candidateName(generation uint64) string { return fmt.Sprintf("%s%d", candidatePrefix, generation) }

// generationOf returns the number that ends a file's name.
func generationOf(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }

// envelope is the first line of a slot file; the payload follows its newline.
type envelope struct {
	Version     uint64                `json:"version"`
	ContentHash string                `json:"content_hash"`
	Signature   string                `json:"signature"`
	KeyID       seal.KeyID            `json:"key_id"`
	Activation  seal.SignedActivation `json:"activation"`
	Payload     string                `json:"payload_blake3"`
	Margin      int                   `json:"margin,omitzero"` // of a candidate
}

// head encodes the first line of a file.
func (e envelope) head() ([]byte, error) {
	head, err := json.Marshal(e)
	return append(head, '\n'), err
}

func writeSlot(d *durable.Dir, name string, a seal.Artefact, payload string) error {
	head, err := envelope{a.Version, a.ContentHash, a.Signature, a.KeyID, a.Activation, payload, 0}.head()
	if err != nil {
		return fmt.Errorf("slot %s: %w", name, err)
	}
	return d.Write(name, head, a.Payload)
}

func readSlot(d *durable.Dir, name string) (seal.Artefact, error) {
	raw, err := d.Read(name, seal.MaxPayload+maxEnvelope)
	if err != nil {
		return seal.Artefact{}, fmt.Errorf("slot %s: %w", name, err)
	}
	a, _, err := decodeSlot(raw)
	if err != nil {
		return seal.Artefact{}, fmt.Errorf("slot %s: %w", name, err)
	}
	return a, nil
}

// decodeSlot takes a file apart; the payload is part of raw.
func decodeSlot(raw []byte) (_ seal.Artefact, margin int, _ error) {
	head, payload, ok := bytes.Cut(raw, []byte{'\n'})
	var e envelope
	if !ok || json.Unmarshal(head, &e, json.RejectUnknownMembers(true)) != nil {
		return seal.Artefact{}, 0, errors.New("its first line is damaged")
	}
	return seal.Artefact{Sealed: seal.Sealed{
		Payload: payload, PayloadBLAKE3: e.Payload, Version: e.Version,
		ContentHash: e.ContentHash, Signature: e.Signature, KeyID: e.KeyID,
	}, Activation: e.Activation}, e.Margin, nil
}

// encodeCandidate makes the file of a candidate, which is also how a member passes one on.
func encodeCandidate(c nodeproto.Candidate) ([]byte, error) {
	head, err := envelope{c.Version, c.ContentHash, c.Signature, c.KeyID, "", c.PayloadBLAKE3, c.Margin}.head()
	if err != nil {
		return nil, err
	}
	return append(head, c.Payload...), nil
}

// sweepSlots removes the slots that the state no longer names. A slot that stays behind does no harm.
func sweepSlots(d *durable.Dir, s state) error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, n := range names {
		switch {
		case !strings.HasPrefix(n, slotPrefix) && !strings.HasPrefix(n, trialPrefix) && !strings.HasPrefix(n, candidatePrefix):
		case n != s.Current && n != s.Previous && n != s.Trial && n != s.Candidate:
			err = errors.Join(err, d.Remove(n))
		}
	}
	return err
}
