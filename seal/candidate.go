package seal

import "github.com/guardyn-edge/guardyn/snapshot"

// Candidate is a sealed snapshot that passed all of §6 but its activation: it can be compiled, and must not be
// served. Activate makes a Verified of it. Only OpenCandidate and Verified.Candidate give one.
type Candidate struct {
	snap    *snapshot.Snapshot
	key     PublicKey
	payload string // BLAKE3, hex
	bytes   int64
}

func newCandidate(s Sealed, snap *snapshot.Snapshot, key PublicKey, payload string) *Candidate {
	return &Candidate{snap: snap, key: key, payload: payload, bytes: int64(len(s.Payload))}
}

// OpenCandidate verifies a sealed snapshot that nothing makes live yet (steps 1-4, 6, 7). prev is as in Open.
// Errors are *Refusal.
func OpenCandidate(s Sealed, t TrustedKeys, prev *snapshot.Snapshot) (*Candidate, error) {
	o := newOpener()
	key, err := o.signature(s, t)
	if err != nil {
		return nil, err
	}
	hash := payloadHash(s.Payload)
	if s.PayloadBLAKE3 != "" && s.PayloadBLAKE3 != hash {
		return nil, refuse(CodeEnvelopeMismatch, "the envelope says payload %s, it is %s", quote(s.PayloadBLAKE3), hash)
	}
	snap, err := o.content(s, prev)
	if err != nil {
		return nil, err
	}
	return newCandidate(s, snap, key, hash), nil
}

// Snapshot returns what was verified.
func (c *Candidate) Snapshot() *snapshot.Snapshot { return c.snap }

// KeyID returns the id of the key that signed it.
func (c *Candidate) KeyID() KeyID { return c.key.ID() }

// PayloadBLAKE3 returns the hash of the payload that was verified, hex.
func (c *Candidate) PayloadBLAKE3() string { return c.payload }

// Activate is step 5: the activation must be signed with the candidate's key, and be of its bytes. Errors are
// *Refusal.
func (c *Candidate) Activate(signed SignedActivation) (*Verified, error) {
	act, _, err := openActivation(signed, []PublicKey{c.key})
	if err != nil {
		return nil, err
	}
	if err := covers(act, c.payload, c.bytes, c.snap.Meta().Version, c.snap.ContentHash()); err != nil {
		return nil, err
	}
	return &Verified{c: c, act: act}, nil
}

// ActivateStored signs an activation of a payload that is stored and need not be read again: a names its
// version, hashes and size, and sealedWith the key that it was sealed with, which must be k. Else as Activate.
func ActivateStored(k SigningKey, sealedWith KeyID, a Activation) (SignedActivation, error) {
	return activate(k, sealedWith, a)
}
