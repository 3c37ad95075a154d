package seal

import (
	"encoding/hex"
	"fmt"

	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// Sealed is what the control plane stores of a snapshot: payload and its signature.
type Sealed struct {
	Payload       []byte // zstd of the snapshot's JSON
	PayloadBLAKE3 string // hex
	Version       uint64
	ContentHash   string
	Signature     string // hex
	KeyID         KeyID
}

// Artefact is what travels: a sealed snapshot with its activation. What an artefact says beside its payload
// (PayloadBLAKE3 may be empty) is not to be believed before Open.
type Artefact struct {
	Sealed
	Activation SignedActivation
}

func payloadHash(payload []byte) string {
	sum := blake3.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

// Seal is a Sealer's, which has sealed nothing before.
func Seal(k SigningKey, s *snapshot.Snapshot) (Sealed, error) { return new(Sealer).Seal(k, s) }

// Seal compresses and signs. A snapshot without a version, or one whose document or payload is larger than
// a node reads, is an error. It is for the caller to Open what is to be stored.
func (c *Sealer) Seal(k SigningKey, s *snapshot.Snapshot) (Sealed, error) {
	m := s.Meta()
	fail := func(err error) (Sealed, error) {
		return Sealed{}, fmt.Errorf("sealing version %d: %w", m.Version, err)
	}
	if k.IsZero() {
		return fail(errNoSigningKey)
	}
	if err := counter("version", m.Version, 1); err != nil {
		return fail(err)
	}
	if s.Size() > MaxDocument {
		return fail(fmt.Errorf("the document has %d bytes, the most is %d", s.Size(), int64(MaxDocument)))
	}
	payload, err := c.compress(s)
	if err != nil {
		return fail(err)
	}
	if len(payload) > MaxPayload {
		return fail(fmt.Errorf("the payload has %d bytes, the most is %d", len(payload), int64(MaxPayload)))
	}
	return Sealed{
		Payload: payload, PayloadBLAKE3: payloadHash(payload), Version: m.Version, ContentHash: s.ContentHash(),
		Signature: k.sign(payload), KeyID: k.ID(),
	}, nil
}
