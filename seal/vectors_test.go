package seal

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/vectors anew from the tables")

// vector is an artefact as it travels, and what must become of it.
type vector struct {
	Name       string           `json:"name"`
	Version    uint64           `json:"version"`
	Hash       string           `json:"hash"`
	Signature  string           `json:"signature"`
	KeyID      KeyID            `json:"key_id"`
	Activation SignedActivation `json:"activation"`
	Payload    []byte           `json:"payload"` // base64
	// Code of the refusal, empty when the artefact is accepted.
	Code string `json:"code,omitempty"`
}

// vectorFile is testdata/vectors/artefacts.json.
type vectorFile struct {
	About       string   `json:"about"`
	TrustedKeys []string `json:"trusted_keys"`
	Artefacts   []vector `json:"artefacts"`
	Freshness   []struct {
		Name   string `json:"name"`
		Header string `json:"header"`
		Nonce  string `json:"nonce"`
		Code   string `json:"code,omitempty"`
	} `json:"freshness"`
}

const artefactVectors = "testdata/vectors/artefacts.json"

// maxVector leaves out what would only make the file large.
const maxVector = 4 << 10

func TestVectorsUpdate(t *testing.T) {
	if !*update {
		return
	}
	k, other := key(t, 1), key(t, 2)
	f := vectorFile{
		About:       "Artefacts as they travel, and the code of their refusal where trusted_keys are trusted. The secret of key n is the byte n, 32 times.",
		TrustedKeys: []string{k.Public().String(), other.Public().String()},
	}
	add := func(name string, a Artefact, code string) {
		f.Artefacts = append(f.Artefacts, vector{name, a.Version, a.ContentHash, a.Signature, a.KeyID, a.Activation, a.Payload, code})
	}
	add("accepted", artefact(t, k, 42, 7), "")
	add("accepted, by the other key", artefact(t, other, 43, 8), "")
	rollback := activation(9)
	rollback.Kind, rollback.Rollout = KindProvisional, platformID
	add("accepted, an older version on trial", activated(t, k, artefact(t, k, 42, 7).Sealed, rollback), "")
	rows := refusals(t)
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		if len(r.a.Payload) <= maxVector && r.a.PayloadBLAKE3 != strings.Repeat("0", 64) { // what does not travel is no vector
			add(name, r.a, r.code)
		}
	}
	fresh, err := SignFreshness(k, freshness())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][4]string{
		{"accepted", fresh, freshness().Nonce, ""},
		{"another nonce", fresh, strings.Repeat("0", 16), CodeFreshnessInvalid},
		{"an activation", string(artefact(t, k, 42, 7).Activation), freshness().Nonce, CodeFreshnessInvalid},
	} {
		f.Freshness = append(f.Freshness, struct {
			Name   string `json:"name"`
			Header string `json:"header"`
			Nonce  string `json:"nonce"`
			Code   string `json:"code,omitempty"`
		}{row[0], row[1], row[2], row[3]})
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(artefactVectors), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(artefactVectors, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func loadVectors(tb testing.TB) (vectorFile, TrustedKeys) {
	tb.Helper()
	b, err := os.ReadFile(artefactVectors)
	if err != nil {
		tb.Fatal(err)
	}
	var f vectorFile
	if err := json.Unmarshal(b, &f); err != nil {
		tb.Fatal(err)
	}
	trusted, err := ParseTrustedKeys(strings.Join(f.TrustedKeys, ","))
	if err != nil {
		tb.Fatal(err)
	}
	if len(f.Artefacts) < 80 || len(f.Freshness) < 3 {
		tb.Fatalf("only %d artefacts and %d statements", len(f.Artefacts), len(f.Freshness))
	}
	return f, trusted
}

func (v *vector) artefact() Artefact {
	return Artefact{
		Sealed:     Sealed{Payload: v.Payload, Version: v.Version, ContentHash: v.Hash, Signature: v.Signature, KeyID: v.KeyID},
		Activation: v.Activation,
	}
}

func code(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	if err != nil {
		return "not a Refusal: " + err.Error()
	}
	return ""
}

func TestVectors(t *testing.T) {
	f, trusted := loadVectors(t)
	for _, v := range f.Artefacts {
		if _, err := Open(v.artefact(), trusted, nil); code(err) != v.Code {
			t.Errorf("%s: %v, want %q", v.Name, err, v.Code)
		}
	}
	for _, v := range f.Freshness {
		if _, _, err := VerifyFreshness(v.Header, trusted, v.Nonce); code(err) != v.Code {
			t.Errorf("freshness, %s: %v, want %q", v.Name, err, v.Code)
		}
	}
}

// FuzzOpen: an artefact opens or is refused with a code, and opens only when a trusted key signed these very
// bytes. The last flag has the fuzzer's payload signed, as a thief of the key would.
func FuzzOpen(f *testing.F) {
	vectors, trusted := loadVectors(f)
	k := key(f, 1)
	for _, v := range vectors.Artefacts {
		f.Add(v.Payload, v.Signature, string(v.KeyID), string(v.Activation), v.Version, v.Hash, v.Code == CodePayloadMalformed)
	}
	f.Fuzz(func(t *testing.T, payload []byte, signature, keyID, activation string, version uint64, hash string, signed bool) {
		a := Artefact{Sealed{Payload: payload, Version: version, ContentHash: hash, Signature: signature, KeyID: KeyID(keyID)}, SignedActivation(activation)}
		if signed {
			a.KeyID, a.Signature = k.ID(), k.sign(payload)
			act := Activation{Platform: platformID, Epoch: 1, Generation: 7, Kind: KindApply, IssuedAt: at}
			if s, err := Activate(k, a.Sealed, act); err == nil {
				a.Activation = s
			}
		}
		unpacked := false
		v, err := opener{func(p []byte) ([]byte, error) {
			unpacked = true
			return unpack(p, 1<<20)
		}}.open(a, trusted, nil)
		if unpacked {
			pub, ok := trusted.find(a.KeyID)
			sig, sigErr := parseSignature(a.Signature)
			if !ok || sigErr != nil || !pub.verify(payload, sig) {
				t.Fatal("unpacked what no trusted key signed")
			}
		}
		if err != nil {
			if c := code(err); strings.HasPrefix(c, "not") || v != nil {
				t.Fatal(c)
			}
			return
		}
		if v.Snapshot().ContentHash() != hash || v.Snapshot().Meta().Version != version || v.Activation().PayloadBLAKE3 != payloadHash(payload) {
			t.Fatalf("opened as %+v", v)
		}
	})
}
