package seal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const codingPrefix = "guardyn-dcz-v1\n"

// MaxDictionary is the largest payload in bytes that is coded, or that another is coded with.
const MaxDictionary = 64 << 20

// dictionaryMagic begins a body, and its length field says 32: a skippable frame to other decoders (RFC 9842 §5).
var dictionaryMagic = [8]byte{0x5e, 0x2a, 0x4d, 0x18, sha256.Size}

// DictionaryID is the SHA-256 of a payload that a node holds, by which it is asked to code the next one with it
// (RFC 9842 §2.2). The zero value names none.
type DictionaryID [sha256.Size]byte

// DictionaryOf returns the id of payload, the zero value when it has no bytes or more than MaxDictionary.
func DictionaryOf(payload []byte) DictionaryID {
	if len(payload) == 0 || len(payload) > MaxDictionary {
		return DictionaryID{}
	}
	return sha256.Sum256(payload)
}

// Coding is a payload as it travels to a node that holds another, its dictionary: content coding dcz of RFC 9842. Nothing
// of it is to be believed before Decode.
type Coding struct {
	Body []byte
	// Signature in hex is over "guardyn-dcz-v1\n", the dictionary's 32 bytes of SHA-256, and Body.
	Signature string
}

// ErrNoGain means that a coding would be no smaller than the payload, or that one of the two is larger than MaxDictionary.
var ErrNoGain = errors.New("the payload is sent as it is")

// Encode codes payload with dictionary, which a node holds, and signs it with k, the key that payload is sealed
// with. The error is ErrNoGain when there is nothing to gain.
func Encode(k SigningKey, payload, dictionary []byte) (Coding, error) {
	if k.IsZero() {
		return Coding{}, errNoSigningKey
	}
	id := DictionaryOf(dictionary)
	// A frame of one segment has a window of its content (RFC 8878 §3.1.1.1.2), and a dictionary is gone once more than
	// the window was unpacked.
	if id == (DictionaryID{}) || len(payload) == 0 || len(payload) > codedWindow(len(dictionary)) {
		return Coding{}, ErrNoGain
	}
	body := appendDelta(append(dictionaryMagic[:], id[:]...), payload, dictionary)
	if len(body) >= len(payload) {
		return Coding{}, ErrNoGain
	}
	return Coding{Body: body, Signature: k.sign(signedCoding(id, body))}, nil
}

// codedWindow is the largest window that a decoder of RFC 9842 §5 must have: 8 MiB or a quarter more than the dictionary.
func codedWindow(dictionary int) int {
	return min(max(maxWindow, dictionary+dictionary/4), MaxDictionary)
}

func signedCoding(id DictionaryID, body []byte) []byte {
	return append(append([]byte(codingPrefix), id[:]...), body...)
}

// Decode returns the payload of a, which travelled as c, with the dictionary that was offered. Both c and a's activation
// must be signed by the trusted key that a names. The decompressor sees nothing else, and what it makes is exactly what the
// activation promises. a is not opened by that: Open it with the payload. Errors say nothing about a itself: without the
// dictionary it may be found to be good.
func Decode(c Coding, a Artefact, dictionary []byte, t TrustedKeys) ([]byte, error) {
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, fmt.Errorf("coding of the payload: "+format, args...)
	}
	key, ok := t.find(a.KeyID)
	if !ok {
		return fail("it is signed with key %s, which is not trusted here", quote(a.KeyID))
	}
	sig, err := parseSignature(c.Signature)
	if err != nil {
		return fail("its signature %w", err)
	}
	id := DictionaryOf(dictionary)
	if id == (DictionaryID{}) {
		return fail("there is no dictionary for it")
	}
	if !key.verify(signedCoding(id, c.Body), sig) {
		return fail("its signature does not verify with key %s over this body for this dictionary", key.ID())
	}
	act, _, err := openActivation(a.Activation, []PublicKey{key})
	if err != nil {
		return fail("%w", err)
	}
	frame, ok := bytes.CutPrefix(c.Body, append(dictionaryMagic[:], id[:]...))
	if !ok {
		return fail("it does not begin with the magic number of dcz and the hash of the dictionary")
	}
	payload, err := undo(frame, dictionary, act.PayloadBytes)
	if err != nil {
		return fail("%w", err)
	}
	if hash := payloadHash(payload); hash != act.PayloadBLAKE3 {
		return fail("it is of payload %s, the activation is of %s", hash, act.PayloadBLAKE3)
	}
	return payload, nil
}

// undo unpacks a frame to exactly size bytes.
func undo(frame, dictionary []byte, size int64) ([]byte, error) {
	window := codedWindow(len(dictionary))
	if err := checkFrame(frame, size, window); err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(0, dictionary), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(uint64(window)), zstd.WithDecoderMaxMemory(uint64(max(size, int64(window)))), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	payload, err := dec.DecodeAll(frame, nil)
	if err != nil {
		return nil, err
	}
	if int64(len(payload)) != size {
		return nil, fmt.Errorf("it unpacks to %d bytes, the activation says %d", len(payload), size)
	}
	return payload, nil
}
