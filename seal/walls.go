// Package seal makes a snapshot provable: Ed25519 keys and their ids, the sealed artefact, the signed
// activation, and the ordered verification that alone makes a Verified snapshot.
package seal

import (
	"net/http"
	"time"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// KeyID is the first 16 hex characters of BLAKE3-256 of the 32-byte public key.
type KeyID string

// PublicKey is a checked Ed25519 public key: canonical encoding, not of small order.
type PublicKey struct{ b [32]byte }

func ParsePublicKey(hexText string) (PublicKey, error) { panic("unbuilt") }
func (k PublicKey) ID() KeyID                          { panic("unbuilt") }
func (k PublicKey) String() string                     { panic("unbuilt") } // 64 hex

// SigningKey is a checked Ed25519 seed. It prints as "[signing key ID]", never its secret.
type SigningKey struct{ seed [32]byte }

func ParseSigningKey(hexText string) (SigningKey, error) { panic("unbuilt") }

// GenerateSigningKey reads the system's randomness.
func GenerateSigningKey() (SigningKey, error) { panic("unbuilt") }
func (k SigningKey) Public() PublicKey        { panic("unbuilt") }
func (k SigningKey) ID() KeyID                { panic("unbuilt") }
func (k SigningKey) SecretHex() string        { panic("unbuilt") }
func (k SigningKey) String() string           { panic("unbuilt") }

// TrustedKeys is the set that a node trusts, at least one, distinct ids.
type TrustedKeys struct{ keys []PublicKey }

// ParseTrustedKeys reads a comma-separated list; the error names the bad entry by position.
func ParseTrustedKeys(list string) (TrustedKeys, error) { panic("unbuilt") }
func Trust(keys ...PublicKey) (TrustedKeys, error)      { panic("unbuilt") }
func (t TrustedKeys) IDs() []KeyID                      { panic("unbuilt") } // in order of the list

// Activation is the statement that makes a stored snapshot live (spec §7).
type Activation struct {
	Platform         string         `json:"platform"`
	Epoch            uint64         `json:"epoch"`
	Generation       uint64         `json:"generation"`
	Kind             ActivationKind `json:"kind"`
	Version          uint64         `json:"version"`
	ContentHash      string         `json:"content_hash"`
	PayloadBLAKE3    string         `json:"payload_blake3"`
	PayloadBytes     int64          `json:"payload_bytes"`
	ParentGeneration uint64         `json:"parent_generation"`
	Rollout          string         `json:"rollout"`
	IssuedAt         time.Time      `json:"issued_at"`
}

// ActivationKind says what an activation is.
type ActivationKind string

const (
	KindApply       ActivationKind = "apply"
	KindRollback    ActivationKind = "rollback"
	KindProvisional ActivationKind = "provisional"
	KindConfirmed   ActivationKind = "confirmed"
	KindReverted    ActivationKind = "reverted"
)

// SignedActivation is an activation as it travels: base64url (no padding) of the JCS bytes, ".", the
// signature in hex.
type SignedActivation string

// Sealed is what the control plane stores of a snapshot: payload and its signature.
type Sealed struct {
	Payload       []byte // zstd of the snapshot's JSON
	PayloadBLAKE3 string // hex
	Version       uint64
	ContentHash   string
	Signature     string // hex
	KeyID         KeyID
}

// Artefact is what travels: a sealed snapshot with its activation.
type Artefact struct {
	Sealed
	Activation SignedActivation
}

// Seal compresses and signs.
func Seal(k SigningKey, s *snapshot.Snapshot) (Sealed, error) { panic("unbuilt") }

// Activate signs an activation of a sealed snapshot; the fields that the artefact determines (version,
// hashes, bytes) are filled in from it.
func Activate(k SigningKey, s Sealed, a Activation) (SignedActivation, error) { panic("unbuilt") }

// Verified is a snapshot that passed all of §6. Only Open makes one.
type Verified struct {
	snap *snapshot.Snapshot
	act  Activation
	key  KeyID
}

func (v *Verified) Snapshot() *snapshot.Snapshot { return v.snap }
func (v *Verified) Activation() Activation       { return v.act }
func (v *Verified) KeyID() KeyID                 { return v.key }

// Open verifies in the order of §6, stopping at the first failure. prev (may be nil) is what the caller
// serves, for structural sharing. Errors are *Refusal.
func Open(a Artefact, t TrustedKeys, prev *snapshot.Snapshot) (*Verified, error) { panic("unbuilt") }

// OpenSealed verifies a sealed snapshot without an activation (steps 1-4, 6, 7): the control plane's own
// check before it stores one.
func OpenSealed(s Sealed, t TrustedKeys) (*snapshot.Snapshot, error) { panic("unbuilt") }

// Refusal says why an artefact was refused. Code is stable: unsigned, too_large, key_untrusted,
// signature_malformed, signature_invalid, activation_invalid, payload_malformed, format_unsupported,
// content_hash_mismatch, zone_id_mismatch, host_duplicate, envelope_mismatch, stale_generation,
// equivocation, generation_jump.
type Refusal struct {
	Code    string
	Message string
}

func (r *Refusal) Error() string { panic("unbuilt") }

// MaxPayload is the largest payload in bytes that is read.
const MaxPayload = 512 << 20

// Mark is the highest (epoch, generation) that fully passed under one key, and its content hash.
type Mark struct {
	Epoch       uint64         `json:"epoch"`
	Generation  uint64         `json:"generation"`
	ContentHash string         `json:"content_hash"`
	Kind        ActivationKind `json:"kind"`
}

// Marks holds one Mark per key that ever signed what this node installed.
type Marks map[KeyID]Mark

// Admit decides by the table of §7 whether a may be installed over what the trusted keys' marks say.
// install false with a nil error means that there is nothing to do.
func (m Marks) Admit(a Activation, t TrustedKeys) (install bool, err error) { panic("unbuilt") }

// Raise records that a passed fully under key k.
func (m Marks) Raise(k KeyID, a Activation) { panic("unbuilt") }

// Header names of the node protocol.
const (
	HeaderVersion    = "x-guardyn-config-version"
	HeaderHash       = "x-guardyn-config-hash"
	HeaderSignature  = "x-guardyn-config-signature"
	HeaderKeyID      = "x-guardyn-config-key-id"
	HeaderActivation = "x-guardyn-config-activation"
	HeaderGeneration = "x-guardyn-config-generation"
	HeaderFreshness  = "x-guardyn-config-freshness"
)

// WriteHeader puts the envelope of a into h. ReadHeader is its strict inverse: a header that appears
// twice, or is missing, is a Refusal. The payload is not touched.
func WriteHeader(h http.Header, a Artefact)      { panic("unbuilt") }
func ReadHeader(h http.Header) (Artefact, error) { panic("unbuilt") }
