package seal

import (
	"fmt"
	"time"
)

const activationPrefix = "guardyn-activation-v1\n"

// Activation is the statement that makes a stored snapshot live (spec §7). Epoch, Generation and Version
// are from 1 to 2^53-1.
type Activation struct {
	Platform         string         `json:"platform"` // UUID
	Epoch            uint64         `json:"epoch"`
	Generation       uint64         `json:"generation"`
	Kind             ActivationKind `json:"kind"`
	Version          uint64         `json:"version"`
	ContentHash      string         `json:"content_hash"`
	PayloadBLAKE3    string         `json:"payload_blake3"`
	PayloadBytes     int64          `json:"payload_bytes"`
	ParentGeneration uint64         `json:"parent_generation"` // 0: none; always below Generation
	Rollout          string         `json:"rollout"`           // UUID or empty
	IssuedAt         time.Time      `json:"issued_at"`         // UTC
}

// ActivationKind says what an activation is.
type ActivationKind string

// The kinds.
const (
	KindApply       ActivationKind = "apply"
	KindRollback    ActivationKind = "rollback"
	KindProvisional ActivationKind = "provisional"
	KindConfirmed   ActivationKind = "confirmed"
	KindReverted    ActivationKind = "reverted"
)

// SignedActivation is an activation as it travels: base64url (no padding) of the JCS bytes, ".", the
// signature in hex. The signature covers "guardyn-activation-v1\n" and the JCS bytes.
type SignedActivation string

// validate judges what an activation says by itself.
func (a *Activation) validate() error {
	var parent, kind, size error
	if a.ParentGeneration >= a.Generation {
		parent = fmt.Errorf("parent_generation %d is not below generation %d", a.ParentGeneration, a.Generation)
	}
	switch a.Kind {
	case KindApply, KindRollback, KindProvisional, KindConfirmed, KindReverted:
	default:
		kind = fmt.Errorf("kind %s is not known", quote(a.Kind))
	}
	if a.PayloadBytes < 1 || a.PayloadBytes > MaxPayload {
		size = fmt.Errorf("payload_bytes %d is not from 1 to %d", a.PayloadBytes, int64(MaxPayload))
	}
	return joined(
		shape("platform", a.Platform, uuid(a.Platform), "a UUID in lower case"),
		counter("epoch", a.Epoch, 1), counter("generation", a.Generation, 1), parent, kind,
		counter("version", a.Version, 1),
		shape("content_hash", a.ContentHash, lowerHex(a.ContentHash, 64), "64 lower-case hex digits"),
		shape("payload_blake3", a.PayloadBLAKE3, lowerHex(a.PayloadBLAKE3, 64), "64 lower-case hex digits"),
		size,
		shape("rollout", a.Rollout, a.Rollout == "" || uuid(a.Rollout), "a UUID in lower case"),
		issued(a.IssuedAt),
	)
}

func shape(name, value string, ok bool, want string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s %s is not %s", name, quote(value), want)
}

// Activate signs an activation of a sealed snapshot; the fields that the artefact determines (version,
// hashes, bytes) are filled in from it. s must be sealed with k: an artefact and its activation have one key.
// The other fields are judged, since no node would accept a bad one.
func Activate(k SigningKey, s Sealed, a Activation) (SignedActivation, error) {
	return activate(k, s.KeyID, a.Of(s))
}

func activate(k SigningKey, sealedWith KeyID, a Activation) (SignedActivation, error) {
	if k.IsZero() {
		return "", fmt.Errorf("activating version %d: %w", a.Version, errNoSigningKey)
	}
	if sealedWith != k.ID() {
		return "", fmt.Errorf("activating version %d: it is sealed with key %s, the signing key is %s: re-seal it first", a.Version, sealedWith, k.ID())
	}
	a.IssuedAt = a.IssuedAt.UTC().Round(0)
	if err := a.validate(); err != nil {
		return "", fmt.Errorf("activating version %d: %w", a.Version, err)
	}
	text, err := signStatement(k, activationPrefix, &a)
	if err != nil {
		return "", fmt.Errorf("activating version %d: %w", a.Version, err)
	}
	return SignedActivation(text), nil
}

// Of returns a as Activate signs it: what s determines filled in, the time in UTC.
func (a Activation) Of(s Sealed) Activation {
	a.Version, a.ContentHash = s.Version, s.ContentHash
	a.PayloadBLAKE3, a.PayloadBytes = payloadHash(s.Payload), int64(len(s.Payload))
	a.IssuedAt = a.IssuedAt.UTC().Round(0)
	return a
}

// VerifyActivation checks an activation by itself, without its artefact, and says which trusted key signed
// it. The error is a *Refusal.
func VerifyActivation(s SignedActivation, t TrustedKeys) (Activation, KeyID, error) {
	a, by, err := openActivation(s, t.keys)
	if err != nil {
		return Activation{}, "", err
	}
	return a, by.ID(), nil
}

func openActivation(s SignedActivation, keys []PublicKey) (Activation, PublicKey, error) {
	if s == "" {
		return Activation{}, PublicKey{}, refuse(CodeActivationInvalid, "the artefact carries no activation")
	}
	var a Activation
	by, err := openStatement(string(s), activationPrefix, keys, &a)
	if err == nil {
		err = a.validate()
	}
	if err != nil {
		return Activation{}, PublicKey{}, refuse(CodeActivationInvalid, "the activation is refused: %v", err)
	}
	return a, by, nil
}
