package seal

import (
	"errors"
	"strings"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// Verified is a snapshot that passed all of §6. Only Open makes one.
type Verified struct {
	snap *snapshot.Snapshot
	act  Activation
	key  KeyID
}

// Snapshot returns what was verified.
func (v *Verified) Snapshot() *snapshot.Snapshot { return v.snap }

// Activation returns the statement that made it live.
func (v *Verified) Activation() Activation { return v.act }

// KeyID returns the id of the key that signed both.
func (v *Verified) KeyID() KeyID { return v.key }

// Open verifies in the order of §6, stopping at the first failure. prev (may be nil) is what the caller
// serves, for structural sharing. Errors are *Refusal.
func Open(a Artefact, t TrustedKeys, prev *snapshot.Snapshot) (*Verified, error) {
	return newOpener().open(a, t, prev)
}

// OpenSealed verifies a sealed snapshot without an activation (steps 1-4, 6, 7): the control plane's own
// check before it stores one. Errors are *Refusal.
func OpenSealed(s Sealed, t TrustedKeys) (*snapshot.Snapshot, error) {
	o := newOpener()
	if _, err := o.signature(s, t); err != nil {
		return nil, err
	}
	return o.content(s, nil)
}

// opener holds the step that must not run before a signature was verified, so that tests can count it.
type opener struct {
	unpack func(payload []byte) ([]byte, error)
}

func newOpener() opener {
	return opener{func(payload []byte) ([]byte, error) { return unpack(payload, MaxDocument) }}
}

func (o opener) open(a Artefact, t TrustedKeys, prev *snapshot.Snapshot) (*Verified, error) {
	key, err := o.signature(a.Sealed, t)
	if err != nil {
		return nil, err
	}
	act, err := o.activation(a, key)
	if err != nil {
		return nil, err
	}
	snap, err := o.content(a.Sealed, prev)
	if err != nil {
		return nil, err
	}
	return &Verified{snap: snap, act: act, key: key.ID()}, nil
}

// signature is steps 1 to 4.
func (o opener) signature(s Sealed, t TrustedKeys) (PublicKey, error) {
	if strings.TrimSpace(s.Signature) == "" {
		return PublicKey{}, errUnsigned()
	}
	if len(s.Payload) > MaxPayload {
		return PublicKey{}, refuse(CodeTooLarge, "the payload is larger than %d bytes", int64(MaxPayload))
	}
	key, ok := t.find(s.KeyID)
	if !ok {
		return PublicKey{}, refuse(CodeKeyUntrusted, "the snapshot is signed with key %s, which is not trusted here; trusted keys: %s", quote(s.KeyID), t.list())
	}
	sig, err := parseSignature(s.Signature)
	if err != nil {
		return PublicKey{}, refuse(CodeSignatureMalformed, "the signature %v", err)
	}
	if !key.verify(s.Payload, sig) {
		return PublicKey{}, refuse(CodeSignatureInvalid, "the signature does not verify over the payload with key %s", key.ID())
	}
	return key, nil
}

// activation is step 5: signed by the same key, and of these bytes under this envelope.
func (o opener) activation(a Artefact, key PublicKey) (Activation, error) {
	act, _, err := openActivation(a.Activation, []PublicKey{key})
	if err != nil {
		return Activation{}, err
	}
	switch hash := payloadHash(a.Payload); {
	case act.PayloadBytes != int64(len(a.Payload)) || act.PayloadBLAKE3 != hash:
		return Activation{}, refuse(CodeActivationInvalid, "the activation is of another payload: %s with %d bytes, not %s with %d", act.PayloadBLAKE3, act.PayloadBytes, hash, len(a.Payload))
	case act.Version != a.Version:
		return Activation{}, refuse(CodeActivationInvalid, "the activation is of version %d, the envelope says %d", act.Version, a.Version)
	case act.ContentHash != a.ContentHash:
		return Activation{}, refuse(CodeActivationInvalid, "the activation is of content %s, the envelope says %s", act.ContentHash, quote(a.ContentHash))
	case a.PayloadBLAKE3 != "" && a.PayloadBLAKE3 != hash:
		return Activation{}, refuse(CodeEnvelopeMismatch, "the envelope says payload %s, it is %s", quote(a.PayloadBLAKE3), hash)
	}
	return act, nil
}

// content is steps 6 and 7.
func (o opener) content(s Sealed, prev *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	doc, err := o.unpack(s.Payload)
	if err != nil {
		return nil, refuse(CodePayloadMalformed, "the payload is refused: %v", err)
	}
	snap, err := snapshot.Parse(doc, prev)
	if err != nil {
		code := CodePayloadMalformed
		var d *snapshot.DocumentError
		if errors.As(err, &d) {
			code = d.Code
		}
		return nil, refuse(code, "%v", err)
	}
	if v := snap.Meta().Version; v != s.Version {
		return nil, refuse(CodeEnvelopeMismatch, "the envelope says version %d, the snapshot is version %d", s.Version, v)
	}
	if h := snap.ContentHash(); h != s.ContentHash {
		return nil, refuse(CodeEnvelopeMismatch, "the envelope says content %s, the snapshot is %s", quote(s.ContentHash), h)
	}
	return snap, nil
}

func errUnsigned() *Refusal {
	return refuse(CodeUnsigned, "the snapshot carries no signature: there is no mode in which an unsigned snapshot is accepted")
}
