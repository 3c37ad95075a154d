package seal

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
)

// KeyID is the first 16 hex characters of BLAKE3-256 of the 32-byte public key.
type KeyID string

// PublicKey is a checked Ed25519 public key: canonical encoding, not of small order. The zero value is no
// key; it verifies nothing.
type PublicKey struct{ b [32]byte }

// ParsePublicKey reads 64 hex digits, in either case. The error never repeats the text: a secret key may
// have been put in the wrong place.
func ParsePublicKey(hexText string) (PublicKey, error) {
	var k PublicKey
	if err := parse32(k.b[:], hexText); err != nil {
		return PublicKey{}, fmt.Errorf("public key: %w", err)
	}
	if err := checkPoint(k.b); err != nil {
		return PublicKey{}, fmt.Errorf("public key: %w", err)
	}
	return k, nil
}

func parse32(to []byte, hexText string) error {
	if len(hexText) != 64 {
		return fmt.Errorf("it has %d characters where 32 bytes are 64 hex digits", len(hexText))
	}
	if _, err := hex.Decode(to, []byte(hexText)); err != nil {
		return errors.New("it holds a character that is no hex digit")
	}
	return nil
}

// ID returns the key's id.
func (k PublicKey) ID() KeyID {
	sum := blake3.Sum256(k.b[:])
	return KeyID(hex.EncodeToString(sum[:8]))
}

// String returns 64 hex digits.
func (k PublicKey) String() string { return hex.EncodeToString(k.b[:]) }

// IsZero reports whether k is no key.
func (k PublicKey) IsZero() bool { return k == PublicKey{} }

func (k PublicKey) verify(message, signature []byte) bool {
	return !k.IsZero() && ed25519.Verify(k.b[:], message, signature)
}

// SigningKey is a checked Ed25519 seed. Whatever prints, logs or encodes it gets "[signing key ID]", never
// its secret; only SecretHex gives that away. The zero value is no key; what signs with it returns an error.
type SigningKey struct {
	secret *secret
}

// secret is two pointers away from a SigningKey: fmt, asked to print an unexported field that holds a key,
// asks no method of it and follows one pointer, under a wrong verb to its very bytes.
type secret struct{ seed *[32]byte }

func newSigningKey() SigningKey { return SigningKey{&secret{new([32]byte)}} }

// ParseSigningKey reads a seed of 64 hex digits, in either case. The error never repeats the text.
func ParseSigningKey(hexText string) (SigningKey, error) {
	k := newSigningKey()
	if err := parse32(k.secret.seed[:], hexText); err != nil {
		return SigningKey{}, fmt.Errorf("signing key: %w", err)
	}
	if err := checkPoint(k.Public().b); err != nil {
		return SigningKey{}, fmt.Errorf("signing key: %w", err)
	}
	return k, nil
}

// GenerateSigningKey reads the system's randomness.
func GenerateSigningKey() (SigningKey, error) {
	k := newSigningKey()
	if _, err := rand.Read(k.secret.seed[:]); err != nil {
		return SigningKey{}, fmt.Errorf("generating a signing key: %w", err)
	}
	return k, nil
}

// IsZero reports whether k is no key.
func (k SigningKey) IsZero() bool { return k.secret == nil }

// Public returns the public half, the zero PublicKey for the zero SigningKey.
func (k SigningKey) Public() PublicKey {
	if k.IsZero() {
		return PublicKey{}
	}
	return PublicKey{[32]byte(k.private()[32:])}
}

func (k SigningKey) private() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k.secret.seed[:]) }

// sign returns the signature in hex.
func (k SigningKey) sign(message []byte) string {
	return hex.EncodeToString(ed25519.Sign(k.private(), message))
}

// ID returns the id of the public half, "" for the zero SigningKey.
func (k SigningKey) ID() KeyID {
	if k.IsZero() {
		return ""
	}
	return k.Public().ID()
}

// SecretHex returns the seed as 64 hex digits: the secret itself.
func (k SigningKey) SecretHex() string {
	if k.IsZero() {
		return ""
	}
	return hex.EncodeToString(k.secret.seed[:])
}

// String returns "[signing key ID]".
func (k SigningKey) String() string {
	if k.IsZero() {
		return "[no signing key]"
	}
	return "[signing key " + string(k.ID()) + "]"
}

// GoString returns what String does.
func (k SigningKey) GoString() string { return k.String() }

// Format prints what String does, whatever the verb.
func (k SigningKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }

// LogValue returns what String does.
func (k SigningKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText returns what String does; a signing key does not travel.
func (k SigningKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

var errNoSigningKey = errors.New("no signing key is set")

// TrustedKeys is the set that a node trusts, at least one, distinct ids.
type TrustedKeys struct{ keys []PublicKey }

// ParseTrustedKeys reads a comma-separated list, with or without space around the commas; the error joins
// one for each bad entry, named by its position.
func ParseTrustedKeys(list string) (TrustedKeys, error) {
	if strings.TrimSpace(list) == "" {
		return TrustedKeys{}, errors.New("trusted keys: the list is empty; a node needs at least one public key")
	}
	var keys []PublicKey
	var errs []error
	for i, text := range strings.Split(list, ",") {
		k, err := ParsePublicKey(strings.TrimSpace(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("trusted keys: entry %d: %w", i+1, err))
		}
		keys = append(keys, k)
	}
	if err := errors.Join(errs...); err != nil {
		return TrustedKeys{}, err
	}
	return Trust(keys...)
}

// Trust makes a set; two keys of one id are an error.
func Trust(keys ...PublicKey) (TrustedKeys, error) {
	if len(keys) == 0 {
		return TrustedKeys{}, errors.New("trusted keys: at least one public key is needed")
	}
	seen := map[KeyID]int{}
	for i, k := range keys {
		if k.IsZero() {
			return TrustedKeys{}, fmt.Errorf("trusted keys: entry %d is no key", i+1)
		}
		if j, ok := seen[k.ID()]; ok {
			return TrustedKeys{}, fmt.Errorf("trusted keys: entries %d and %d have the same id %s", j+1, i+1, k.ID())
		}
		seen[k.ID()] = i
	}
	return TrustedKeys{slices.Clone(keys)}, nil
}

// IDs returns the ids in order of the list.
func (t TrustedKeys) IDs() []KeyID {
	ids := make([]KeyID, len(t.keys))
	for i, k := range t.keys {
		ids[i] = k.ID()
	}
	return ids
}

// Has reports whether the key of this id is trusted.
func (t TrustedKeys) Has(id KeyID) bool { _, ok := t.find(id); return ok }

func (t TrustedKeys) find(id KeyID) (PublicKey, bool) {
	for _, k := range t.keys {
		if k.ID() == id {
			return k, true
		}
	}
	return PublicKey{}, false
}

func (t TrustedKeys) list() string {
	ids := make([]string, len(t.keys))
	for i, k := range t.keys {
		ids[i] = string(k.ID())
	}
	return strings.Join(ids, ", ")
}
