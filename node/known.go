package node

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// installed is a snapshot that is served, or that a node goes back to from a trial.
type installed struct {
	*seal.Verified
	proof  seal.SignedActivation // as it came
	sealed seal.Sealed           // its envelope; the payload is on disk
	// dictionary is the payload's id, by which the next one may be coded with it.
	dictionary seal.DictionaryID
}

// provisional tells whether i is served on trial.
func (i *installed) provisional() bool {
	return i != nil && i.Activation().Kind == seal.KindProvisional
}

// snapshot returns what is served, nil for nothing.
func (i *installed) snapshot() *snapshot.Snapshot {
	if i == nil {
		return nil
	}
	return i.Snapshot()
}

// slot names the file that has the payload of i.
func (i *installed) slot() string { return slotName(i.Activation()) }

// known is a payload that this process has verified.
type known struct {
	c       *seal.Candidate
	sealed  seal.Sealed // the payload may be left out
	payload func() ([]byte, error)
}

// known lists what need not be verified again.
func (a *Agent) known() []known {
	var all []known
	if h := a.held; h != nil {
		all = append(all, known{h.c, h.sealed, func() ([]byte, error) { return h.sealed.Payload, nil }})
	}
	for _, i := range []*installed{a.served, a.home} {
		if i != nil {
			all = append(all, known{i.Candidate(), i.sealed, func() ([]byte, error) { return a.payloadOf(i) }})
		}
	}
	return all
}

// payloadOf reads from disk what is served, and that it still is what was verified.
func (a *Agent) payloadOf(i *installed) ([]byte, error) {
	art, err := readSlot(a.cfg.Dir, i.slot())
	if err != nil {
		return nil, &diskError{err}
	}
	if hashOf(art.Payload) != i.Candidate().PayloadBLAKE3() {
		return nil, &diskError{fmt.Errorf("slot %s: its payload is damaged", i.slot())}
	}
	return art.Payload, nil
}

// decode makes the payload of an answer that is coded with what the node holds. Nothing is said of the artefact when it
// cannot.
func (a *Agent) decode(answer *nodeproto.Answer, with seal.DictionaryID) error {
	for _, i := range []*installed{a.served, a.home} {
		if i == nil || i.dictionary != with {
			continue
		}
		held, err := a.payloadOf(i)
		if err != nil {
			return err
		}
		art := *answer.Artefact
		if art.Payload, err = seal.Decode(*answer.Coding, art, held, a.cfg.Keys); err != nil {
			return err
		}
		answer.Artefact = &art
		a.update(func(s *Status) {
			s.Codings++
			s.CodingSaved += uint64(max(0, len(art.Payload)-len(answer.Coding.Body)))
		})
		return nil
	}
	return errors.New("it is coded with a payload that this node does not hold any more")
}

func hashOf(payload []byte) string {
	sum := blake3.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// envelops tells whether s, whose payload is not looked at, is k's envelope.
func (k known) envelops(s seal.Sealed) bool {
	return k.sealed.Version == s.Version && k.sealed.ContentHash == s.ContentHash && k.sealed.Signature == s.Signature && k.sealed.KeyID == s.KeyID
}

// verify makes a Verified of what came, and returns it as it is to be written to disk. What the node has verified before
// needs its activation alone.
func (a *Agent) verify(o offer) (*seal.Verified, seal.Sealed, error) {
	art := *o.art
	var refused error = &seal.Refusal{Code: seal.CodeActivationInvalid, Message: "the answer left out the payload of an artefact that this node does not hold"}
	for _, k := range a.known() {
		if !k.envelops(art.Sealed) || !o.held && hashOf(art.Payload) != k.c.PayloadBLAKE3() {
			continue
		}
		v, err := k.c.Activate(art.Activation)
		if err != nil {
			refused = err
			if o.held {
				continue
			}
			return nil, seal.Sealed{}, err
		}
		if o.held {
			if art.Payload, err = k.payload(); err != nil {
				a.distrust = true // in what the node holds: the bytes are to come
				return nil, seal.Sealed{}, err
			}
		}
		return v, art.Sealed, nil
	}
	if o.held {
		return nil, seal.Sealed{}, refused
	}
	v, err := seal.Open(art, a.cfg.Keys, a.served.snapshot())
	return v, art.Sealed, err
}

// reject remembers an offer so that its payload is not fetched again, unless it may be what is live: nothing was
// wrong with it but that its proof was missing, or a genuine activation came with other bytes than it promises, which
// were damaged on the way. After one that came without its payload the next is to come with it.
func (a *Agent) reject(o offer, err error) {
	var r *seal.Refusal
	switch {
	case o.held:
		a.distrust = true
		return
	case errors.As(err, &r) && r.Code == codeFreshnessMissing:
		return
	}
	if act, _, err := seal.VerifyActivation(o.art.Activation, a.cfg.Keys); err == nil && act.PayloadBLAKE3 != hashOf(o.art.Payload) {
		return
	}
	a.rejected = nodeproto.Fingerprint(o.art)
}

// heldPayload is what the control plane need not send: the candidate, what is served on trial, or what is served again after one. At no
// other time is it said, since a control plane from before rollouts does not know the question.
func (a *Agent) heldPayload() string {
	switch {
	case a.distrust:
	case a.held != nil:
		return a.held.c.PayloadBLAKE3()
	case a.served.provisional() || a.served != nil && a.returned:
		return a.served.Candidate().PayloadBLAKE3()
	}
	return ""
}

// trialID is the rollout whose provisional activation is served, or "".
func (a *Agent) trialID() string {
	if a.served.provisional() {
		return a.served.Activation().Rollout
	}
	return ""
}
