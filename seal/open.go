package seal

import (
	"errors"
	"strings"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// Verified is a snapshot that passed all of §6. Only Open and Candidate.Activate make one.
type Verified struct {
	c   *Candidate
	act Activation
}

// Snapshot returns what was verified.
func (v *Verified) Snapshot() *snapshot.Snapshot { return v.c.snap }

// Activation returns the statement that made it live.
func (v *Verified) Activation() Activation { return v.act }

// KeyID returns the id of the key that signed both.
func (v *Verified) KeyID() KeyID { return v.c.key.ID() }

// Candidate returns v without its activation: another activation of the same bytes may follow.
func (v *Verified) Candidate() *Candidate { return v.c }

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
	act, err := activationOf(a.Sealed, a.Activation, key)
	if err != nil {
		return nil, err
	}
	snap, err := o.content(a.Sealed, prev)
	if err != nil {
		return nil, err
	}
	return &Verified{c: newCandidate(a.Sealed, snap, key, act.PayloadBLAKE3), act: act}, nil
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

// activationOf is step 5: signed by the same key, and of these bytes under this envelope.
func activationOf(s Sealed, signed SignedActivation, key PublicKey) (Activation, error) {
	act, _, err := openActivation(signed, []PublicKey{key})
	if err != nil {
		return Activation{}, err
	}
	hash := payloadHash(s.Payload)
	if err := covers(act, hash, int64(len(s.Payload)), s.Version, s.ContentHash); err != nil {
		return Activation{}, err
	}
	if s.PayloadBLAKE3 != "" && s.PayloadBLAKE3 != hash {
		return Activation{}, refuse(CodeEnvelopeMismatch, "the envelope says payload %s, it is %s", quote(s.PayloadBLAKE3), hash)
	}
	return act, nil
}

// covers says whether act is of this payload under an envelope of this version and content.
func covers(act Activation, payload string, size int64, version uint64, content string) error {
	switch {
	case act.PayloadBytes != size || act.PayloadBLAKE3 != payload:
		return refuse(CodeActivationInvalid, "the activation is of another payload: %s with %d bytes, not %s with %d", act.PayloadBLAKE3, act.PayloadBytes, payload, size)
	case act.Version != version:
		return refuse(CodeActivationInvalid, "the activation is of version %d, the envelope says %d", act.Version, version)
	case act.ContentHash != content:
		return refuse(CodeActivationInvalid, "the activation is of content %s, the envelope says %s", act.ContentHash, quote(content))
	}
	return nil
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
