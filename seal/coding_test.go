package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// coded is an artefact as it travels to a node that holds dictionary.
type coded struct {
	c          Coding
	a          Artefact // without its payload
	dictionary []byte
	payload    []byte // what is to come of it
}

// change is one record of a thousand zones, from version 1 to version 2.
func change(tb testing.TB) coded {
	tb.Helper()
	k := key(tb, 1)
	zones := many(1000)
	before, err := Seal(k, texts(tb, 1, zones))
	if err != nil {
		tb.Fatal(err)
	}
	zones[500] = []string{"changed"}
	after, err := Seal(k, texts(tb, 2, zones))
	if err != nil {
		tb.Fatal(err)
	}
	return coding(tb, k, before.Payload, activated(tb, k, after, activation(2)))
}

func coding(tb testing.TB, k SigningKey, dictionary []byte, a Artefact) coded {
	tb.Helper()
	c, err := Encode(k, a.Payload, dictionary)
	if err != nil {
		tb.Fatal(err)
	}
	x := coded{c: c, a: a, dictionary: dictionary, payload: a.Payload}
	x.a.Payload, x.a.PayloadBLAKE3 = nil, ""
	return x
}

func TestCoding(t *testing.T) {
	x := change(t)
	trusted := trust(t, key(t, 2), key(t, 1))
	got, err := Decode(x.c, x.a, x.dictionary, trusted)
	if err != nil || !bytes.Equal(got, x.payload) {
		t.Fatalf("%d bytes of %d: %v", len(got), len(x.payload), err)
	}
	if len(x.c.Body) > len(x.payload)/10 {
		t.Errorf("%d bytes for a change of %d", len(x.c.Body), len(x.payload))
	}
	x.a.Payload = got
	if _, err := Open(x.a, trusted, nil); err != nil {
		t.Error(err)
	}
	again := coding(t, key(t, 1), x.dictionary, x.a)
	if !bytes.Equal(again.c.Body, x.c.Body) || again.c.Signature != x.c.Signature {
		t.Error("coded again it is another")
	}
	// Other decoders skip the 40 bytes that RFC 9842 puts before the frame.
	dec, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(0, x.dictionary))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	if got, err := dec.DecodeAll(x.c.Body, nil); err != nil || !bytes.Equal(got, x.payload) {
		t.Errorf("a decoder of zstd unpacks %d bytes: %v", len(got), err)
	}
	if tool, err := exec.LookPath("zstd"); err == nil {
		dir := t.TempDir()
		dictionary, body := filepath.Join(dir, "dictionary"), filepath.Join(dir, "body.zst")
		if err := errors.Join(os.WriteFile(dictionary, x.dictionary, 0o600), os.WriteFile(body, x.c.Body, 0o600)); err != nil {
			t.Fatal(err)
		}
		if got, err := exec.Command(tool, "-dc", "-D", dictionary, body).Output(); err != nil || !bytes.Equal(got, x.payload) {
			t.Errorf("zstd -d unpacks %d bytes: %v", len(got), err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	k := key(t, 1)
	large := make([]byte, MaxDictionary+1)
	for _, row := range []struct {
		name                string
		payload, dictionary []byte
	}{
		{"nothing in common", []byte(noise(1, 1000)), []byte(noise(2, 1000))},
		{"no dictionary", []byte(noise(1, 1000)), nil},
		{"no payload", nil, []byte(noise(1, 1000))},
		{"a dictionary that is too large", []byte(noise(1, 1000)), large},
		{"a payload that is too large", large, []byte(noise(1, 1000))},
		{"more than a decoder's window", make([]byte, maxWindow+1), make([]byte, 1000)},
	} {
		if _, err := Encode(k, row.payload, row.dictionary); !errors.Is(err, ErrNoGain) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if _, err := Encode(SigningKey{}, large[:1000], large[:1000]); !errors.Is(err, errNoSigningKey) {
		t.Error(err)
	}
}

// lies are what a control plane, or who stands before it, may send instead, where key 1 and key 2 are trusted.
func lies(tb testing.TB) map[string]struct {
	x    coded
	says string
} {
	k, other, thief := key(tb, 1), key(tb, 2), key(tb, 3)
	good := change(tb)
	id := DictionaryOf(good.dictionary)
	with := func(f func(*coded)) coded {
		x := good
		x.c.Body = slices.Clone(x.c.Body)
		f(&x)
		return x
	}
	// What the key itself signed, gone wrong.
	signed := func(f func([]byte) []byte) coded {
		return with(func(x *coded) {
			x.c.Body = f(x.c.Body)
			x.c.Signature = k.sign(signedCoding(id, x.c.Body))
		})
	}
	frame := func(f []byte) coded { return signed(func(b []byte) []byte { return append(b[:40:40], f...) }) }
	type lie = struct {
		x    coded
		says string
	}
	second := good.dictionary[1:]
	return map[string]lie{
		"unsigned":                          {with(func(x *coded) { x.c.Signature = "" }), "128 lower-case hex digits"},
		"the signature in upper case":       {with(func(x *coded) { x.c.Signature = strings.ToUpper(x.c.Signature) }), "128 lower-case hex digits"},
		"the signature with S + L":          {with(func(x *coded) { x.c.Signature = plusL(x.c.Signature) }), "does not verify"},
		"the signature of the payload":      {with(func(x *coded) { x.c.Signature = x.a.Signature }), "does not verify"},
		"the body signed without prefix":    {with(func(x *coded) { x.c.Signature = k.sign(x.c.Body) }), "does not verify"},
		"signed with another trusted key":   {with(func(x *coded) { x.c.Signature = other.sign(signedCoding(id, x.c.Body)) }), "does not verify"},
		"signed with a key that is not":     {with(func(x *coded) { x.a.KeyID = thief.ID(); x.c.Signature = thief.sign(signedCoding(id, x.c.Body)) }), "not trusted"},
		"another body":                      {with(func(x *coded) { x.c.Body = flip(x.c.Body, len(x.c.Body)-9) }), "does not verify"},
		"an empty body":                     {with(func(x *coded) { x.c.Body = nil }), "does not verify"},
		"cut short":                         {with(func(x *coded) { x.c.Body = x.c.Body[:len(x.c.Body)-1] }), "does not verify"},
		"the node holds something else":     {with(func(x *coded) { x.dictionary = second }), "does not verify"},
		"the node holds nothing":            {with(func(x *coded) { x.dictionary = nil }), "no dictionary"},
		"the signature is of another":       {with(func(x *coded) { x.c.Signature = k.sign(signedCoding(DictionaryOf(second), x.c.Body)) }), "does not verify"},
		"the hash is of another":            {signed(func(b []byte) []byte { return flip(b, 20) }), "hash of the dictionary"},
		"another magic number":              {signed(func(b []byte) []byte { return flip(b, 0) }), "magic number"},
		"no frame":                          {signed(func(b []byte) []byte { return b[:40] }), "not a zstd frame"},
		"signed, and cut short":             {signed(func(b []byte) []byte { return b[:len(b)-1] }), "ends too early"},
		"bytes follow":                      {signed(func(b []byte) []byte { return append(b, 0) }), "follow its frame"},
		"two frames":                        {signed(func(b []byte) []byte { return append(b, b[40:]...) }), "follow its frame"},
		"a frame that does not tell a size": {frame(unsized(tb, strings.Repeat("x", 1000))), "does not say"},
		"a bomb":                            {frame(repeated(65536, 128<<10, 8<<30, 13<<3)), "the most is"},
		"a bomb that lies":                  {frame(repeated(65536, 128<<10, uint64(len(good.payload)), 10<<3)), "size"},
		"a larger window":                   {frame(repeated(4, 128<<10, uint64(len(good.payload)), 20<<3)), "window"},
		"less than is promised":             {frame(repeated(1, 100, 100, 10<<3)), "the activation says"},
		"of another payload":                {frame(repeated(len(good.payload)/1000, 1000, uint64(len(good.payload)/1000*1000), 10<<3)), "the activation"},
		"the activation of another payload": {with(func(x *coded) { x.a.Activation = artefact(tb, k, 42, 7).Activation }), ""},
		"the activation of another key":     {with(func(x *coded) { x.a.Activation = artefact(tb, other, 42, 7).Activation }), "does not verify"},
		"no activation":                     {with(func(x *coded) { x.a.Activation = "" }), "no activation"},
		"what the node holds, once more": {with(func(x *coded) {
			x.c = coding(tb, k, x.dictionary, activated(tb, k, Sealed{Payload: x.dictionary, Version: 1, ContentHash: strings.Repeat("a", 64), KeyID: k.ID()}, activation(7))).c
		}), ""},
	}
}

func TestDecodeRefuses(t *testing.T) {
	trusted := trust(t, key(t, 1), key(t, 2))
	for name, l := range lies(t) {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(l.x.c, l.x.a, l.x.dictionary, trusted)
			if err == nil || got != nil || !strings.Contains(err.Error(), l.says) {
				t.Errorf("%d bytes, %v; want %q", len(got), err, l.says)
			}
			var r *Refusal
			if errors.As(err, &r) && r.Code != CodeActivationInvalid {
				t.Errorf("it refuses the artefact itself: %s", r.Code)
			}
		})
	}
}

// Whatever two payloads have in common, in whatever order and however long, comes out as it was.
func TestDeltaProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dictionary := []byte(noise(rapid.Int().Draw(t, "seed"), rapid.IntRange(0, 400<<10).Draw(t, "held")))
		if rapid.Bool().Draw(t, "repeats") {
			dictionary = append(dictionary, bytes.Repeat([]byte("ab"), 5000)...)
		}
		var payload []byte
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				payload = append(payload, noise(rapid.Int().Draw(t, "seed"), rapid.IntRange(0, 5000).Draw(t, "new"))...)
			case 1:
				from := rapid.IntRange(0, len(dictionary)).Draw(t, "from")
				payload = append(payload, dictionary[from:rapid.IntRange(from, len(dictionary)).Draw(t, "to")]...)
			case 2:
				payload = append(payload, bytes.Repeat([]byte("ab"), rapid.IntRange(0, 5000).Draw(t, "times"))...)
			}
		}
		if len(payload) == 0 || len(dictionary) == 0 {
			return
		}
		frame := appendDelta(nil, payload, dictionary)
		got, err := undo(frame, dictionary, int64(len(payload)))
		if err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("%d bytes of %d: %v", len(got), len(payload), err)
		}
		if most := len(payload) + len(payload)/maxBlock*blockHeader + 100; len(frame) > most {
			t.Fatalf("%d bytes for %d", len(frame), len(payload))
		}
	})
}

const codingVectors = "testdata/vectors/codings.json"

// codingVector is a coding as it travels, and whether it is to be refused.
type codingVector struct {
	Name       string           `json:"name"`
	Dictionary []byte           `json:"dictionary"` // base64, the payload that the node holds
	Body       []byte           `json:"body"`       // base64
	Signature  string           `json:"signature"`
	KeyID      KeyID            `json:"key_id"`
	Activation SignedActivation `json:"activation"`
	Payload    string           `json:"payload_blake3,omitempty"` // empty: it is refused
}

type codingVectorFile struct {
	About       string         `json:"about"`
	TrustedKeys []string       `json:"trusted_keys"`
	Codings     []codingVector `json:"codings"`
}

func TestCodingVectorsUpdate(t *testing.T) {
	if !*update {
		return
	}
	f := codingVectorFile{
		About:       "Codings (dcz) as they travel to a node that holds the dictionary, and the hash of the payload that each is of; without one it is refused.",
		TrustedKeys: []string{key(t, 1).Public().String(), key(t, 2).Public().String()},
	}
	add := func(name string, x coded, payload string) {
		f.Codings = append(f.Codings, codingVector{name, x.dictionary, x.c.Body, x.c.Signature, x.a.KeyID, x.a.Activation, payload})
	}
	// Small ones: the bytes of the dictionary are the larger part of the file.
	held := []byte(noise(1, 900))
	next := append(append([]byte("new"), held[100:]...), "end"...)
	a := activated(t, key(t, 1), Sealed{Payload: next, Version: 2, ContentHash: strings.Repeat("a", 64), KeyID: key(t, 1).ID()}, activation(7))
	good := coding(t, key(t, 1), held, a)
	add("accepted", good, payloadHash(next))
	bad := good
	bad.c.Body = flip(slices.Clone(good.c.Body), len(good.c.Body)-1)
	add("another body", bad, "")
	bad = good
	bad.dictionary = held[1:]
	add("another dictionary", bad, "")
	bad = good
	bad.c.Signature = key(t, 1).sign(good.c.Body)
	add("signed without the prefix", bad, "")
	bad = good
	bad.c.Signature = ""
	add("unsigned", bad, "")
	for _, bomb := range []struct {
		name  string
		frame []byte
	}{{"a bomb", repeated(4, 128<<10, 8<<30, 13<<3)}, {"less than the activation promises", repeated(1, 100, 100, 10<<3)}} {
		bad = good
		bad.c.Body = append(good.c.Body[:40:40], bomb.frame...)
		bad.c.Signature = key(t, 1).sign(signedCoding(DictionaryOf(held), bad.c.Body))
		add(bomb.name, bad, "")
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(codingVectors, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCodingVectors(t *testing.T) {
	b, err := os.ReadFile(codingVectors)
	if err != nil {
		t.Fatal(err)
	}
	var f codingVectorFile
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	trusted, err := ParseTrustedKeys(strings.Join(f.TrustedKeys, ","))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Codings) < 7 {
		t.Fatalf("only %d vectors", len(f.Codings))
	}
	for _, v := range f.Codings {
		got, err := Decode(Coding{v.Body, v.Signature}, Artefact{Sealed{KeyID: v.KeyID}, v.Activation}, v.Dictionary, trusted)
		if (err == nil) != (v.Payload != "") || err == nil && payloadHash(got) != v.Payload {
			t.Errorf("%s: %d bytes, %v", v.Name, len(got), err)
		}
	}
}
