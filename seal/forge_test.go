package seal

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const platformID = "01890a5d-ac96-774b-bcce-b302099a8000"

// demo is a small snapshot; each version has content of its own.
func demo(tb testing.TB, version uint64) *snapshot.Snapshot {
	tb.Helper()
	name := zone.MustName("lab.example.org")
	r, err := zone.ParseRecord(name, "@", "TXT", fmt.Sprintf("version %d", version), 0, false)
	if err != nil {
		tb.Fatal(err)
	}
	z := &zone.Zone{ID: "01890a5d-ac96-774b-bcce-b302099a8057", Name: name, Records: []zone.Record{r}}
	s, _, err := snapshot.Build(snapshot.Input{Zones: []snapshot.ZoneInput{{Zone: z}}, Now: at},
		snapshot.Meta{Version: version, CreatedAt: at, CreatedBy: "ops@example.com"})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func activation(generation uint64) Activation {
	return Activation{Platform: platformID, Epoch: 1, Generation: generation, Kind: KindApply, ParentGeneration: generation - 1, IssuedAt: at}
}

// artefact seals version under generation with k.
func artefact(tb testing.TB, k SigningKey, version, generation uint64) Artefact {
	tb.Helper()
	s, err := Seal(k, demo(tb, version))
	if err != nil {
		tb.Fatal(err)
	}
	return activated(tb, k, s, activation(generation))
}

func activated(tb testing.TB, k SigningKey, s Sealed, a Activation) Artefact {
	tb.Helper()
	signed, err := Activate(k, s, a)
	if err != nil {
		tb.Fatal(err)
	}
	return Artefact{s, signed}
}

// forge signs any payload as k would: what a control plane gone wrong, or a thief of its key, can make.
func forge(tb testing.TB, k SigningKey, payload []byte, version uint64, hash string) Artefact {
	tb.Helper()
	s := Sealed{Payload: payload, PayloadBLAKE3: payloadHash(payload), Version: version, ContentHash: hash, Signature: k.sign(payload), KeyID: k.ID()}
	return activated(tb, k, s, activation(7))
}

func pack(tb testing.TB, doc string, opts ...zstd.EOption) []byte {
	tb.Helper()
	e, err := zstd.NewWriter(nil, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	return e.EncodeAll([]byte(doc), nil)
}

// repeated makes a frame of n blocks, each one byte repeated, that claims to unpack to size bytes.
func repeated(n int, block int, size uint64, window byte) []byte {
	b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xc0, window} // content size in 8 bytes, no single segment
	b = binary.LittleEndian.AppendUint64(b, size)
	for i := range n {
		h := block<<3 | 1<<1
		if i == n-1 {
			h |= 1
		}
		b = append(b, byte(h), byte(h>>8), byte(h>>16), ' ')
	}
	return b
}

// sized packs as Seal does: with the content size in the frame.
func sized(tb testing.TB, doc string) []byte {
	tb.Helper()
	return pack(tb, doc, zstd.WithSingleSegment(true), zstd.WithZeroFrames(true))
}

// unsized packs into a frame that does not say its content size.
func unsized(tb testing.TB, doc string) []byte {
	tb.Helper()
	var out strings.Builder
	e, err := zstd.NewWriter(&out, zstd.WithWindowSize(1<<10))
	if err != nil {
		tb.Fatal(err)
	}
	for _, b := range []byte(strings.Repeat(doc, 5)) {
		if _, err := e.Write([]byte{b}); err != nil {
			tb.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		tb.Fatal(err)
	}
	return []byte(out.String())
}

func flip(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 1
	return b
}

func flipHex(s string) string {
	b, _ := hex.DecodeString(s)
	return hex.EncodeToString(flip(b, 10))
}

// plusL adds the order of the group to S: the same signature to a verifier that does not check S < L.
func plusL(s string) string {
	b, _ := hex.DecodeString(s)
	le := slices.Clone(b[32:])
	slices.Reverse(le)
	l, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	sum := new(big.Int).Add(new(big.Int).SetBytes(le), l).FillBytes(make([]byte, 32))
	slices.Reverse(sum)
	return hex.EncodeToString(append(b[:32:32], sum...))
}

// rehashed alters a document and gives it the hash of what it now holds.
func rehashed(tb testing.TB, k SigningKey, doc, old, new string) Artefact {
	tb.Helper()
	if !strings.Contains(doc, old) {
		tb.Fatalf("the document does not contain %s", old)
	}
	altered := strings.Replace(doc, old, new, 1)
	zones := altered[strings.Index(altered, `"zones":`)+len(`"zones":`) : len(altered)-1]
	hash := payloadHash([]byte(zones)) // BLAKE3-256 in hex, of what is canonical already
	const head = `{"content_hash":"`
	altered = head + hash + altered[len(head)+64:]
	return forge(tb, k, sized(tb, altered), 42, hash)
}
