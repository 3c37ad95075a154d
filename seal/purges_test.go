package seal

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/zone"
)

const (
	purgePlatform = "0190f6a0-0000-7000-8000-000000000000"
	purgeZone     = "example.com"
)

// purgeMark is the place behind purge n of a log.
// names are compared as what they are.
var names = cmp.AllowUnexported(zone.Name{})

func purgeMark(n uint64) PurgeMark {
	if n == 0 {
		return PurgeMark{}
	}
	return PurgeMark{Sequence: n, ID: fmt.Sprintf("0190f6a0-0000-7000-8000-%012x", n)}
}

// purges is the statement that answers a node at after with n purges.
func purges(after uint64, n int) PurgeStatement {
	mark := purgeMark(after)
	p := PurgeStatement{
		Platform: purgePlatform, Epoch: 1, After: &mark, To: purgeMark(after + uint64(n)), Purges: []zone.Purge{},
		IssuedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	for i := range n {
		p.Purges = append(p.Purges, zone.Purge{
			Sequence: after + uint64(i) + 1, Zone: zone.MustName(purgeZone), Kind: zone.PurgeTag, Values: []string{`a"\<>&`}, At: p.IssuedAt,
		})
	}
	return p
}

func TestPurges(t *testing.T) {
	k := key(t, 1)
	trusted, err := Trust(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	at := purgeMark(7)
	floor := purges(7, 0)
	floor.Floor, floor.To = true, purgeMark(3)
	first := purges(0, 0)
	first.After, first.Floor, first.To = nil, true, purgeMark(9)
	more := purges(7, MaxPurges)
	more.More = true
	for _, row := range []struct {
		name  string
		after *PurgeMark
		p     PurgeStatement
	}{
		{"nothing new", &at, purges(7, 0)},
		{"three", &at, purges(7, 3)},
		{"as many as there may be", &at, more},
		{"the beginning", &PurgeMark{}, purges(0, 2)},
		{"lost", &at, floor},
		{"first", nil, first},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := SignPurges(k, row.p)
			if err != nil {
				t.Fatal(err)
			}
			got, err := VerifyPurges(s, trusted, row.after)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.p, got, names); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := SignPurges(SigningKey{}, purges(7, 1)); err == nil {
		t.Error("signed without a key")
	}
}

// resigned is a statement of other text that key signed in the right domain.
func resigned(t *testing.T, k SigningKey, p PurgeStatement, edit func(string) string) string {
	t.Helper()
	s, err := SignPurges(k, p)
	if err != nil {
		t.Fatal(err)
	}
	encoded, _, _ := strings.Cut(s, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	edited := edit(string(text))
	return base64.RawURLEncoding.EncodeToString([]byte(edited)) + "." + k.sign([]byte(purgesPrefix+edited))
}

// refusedPurges are statements that no node accepts which is at 7 and trusts k alone.
func refusedPurges(t *testing.T) []purgeVector {
	t.Helper()
	k, other := key(t, 1), key(t, 2)
	sign := func(p PurgeStatement) string {
		s, err := SignPurges(k, p)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	text := func(old, becomes string) string {
		return resigned(t, k, purges(7, 3), func(s string) string {
			edited := strings.Replace(s, old, becomes, 1)
			if edited == s {
				t.Fatalf("there is no %q in %s", old, s)
			}
			return edited
		})
	}
	genuine := sign(purges(7, 3))
	forged, err := SignPurges(other, purges(7, 3))
	if err != nil {
		t.Fatal(err)
	}
	encoded, signature, _ := strings.Cut(genuine, ".")
	elsewhere := purges(7, 3)
	mark := *elsewhere.After
	mark.ID = strings.Replace(mark.ID, "8000", "9000", 1)
	elsewhere.After = &mark
	lost := purges(7, 0)
	lost.Floor, lost.To = true, purgeMark(9)
	first := lost
	first.After = nil
	fresh, err := SignFreshness(k, FreshnessStatement{
		Nonce: strings.Repeat("a", 16), Epoch: 1, Generation: 1, ContentHash: strings.Repeat("a", 64), IssuedAt: time.Unix(1, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []purgeVector
	for _, row := range [][2]string{
		{"forged", forged},
		{"unsigned", encoded},
		{"signature of another", encoded + "." + strings.Split(sign(purges(7, 2)), ".")[1]},
		{"cut in its text", encoded[:len(encoded)-8] + "." + signature},
		{"replayed: of an earlier place", sign(purges(6, 3))},
		{"of a later place, before those between", sign(purges(8, 3))},
		{"of a log that was lost", sign(elsewhere)},
		{"of a node that starts", sign(first)},
		{"another statement of the same key", fresh},
		{"cut: the last one gone", text(`,{"at":"2026-03-01T12:00:00Z","kind":"tag","sequence":10,"values":["a\"\\<>&"],"zone":"`+purgeZone+`"}`, "")},
		{"cut in the middle", text(`{"at":"2026-03-01T12:00:00Z","kind":"tag","sequence":9,"values":["a\"\\<>&"],"zone":"`+purgeZone+`"},`, "")},
		{"re-ordered", text(`"sequence":9`, `"sequence":10`)},
		{"one twice", text(`"sequence":9`, `"sequence":8`)},
		{"ends elsewhere", text(`"to":{"id":"0190f6a0-0000-7000-8000-00000000000a","sequence":10}`, `"to":{"id":"0190f6a0-0000-7000-8000-00000000000a","sequence":11}`)},
		{"lost, and not empty", text(`"floor":false`, `"floor":true`)},
		{"no platform", text(purgePlatform, "")},
		{"epoch 0", text(`"epoch":1`, `"epoch":0`)},
		{"an unknown member", text(`"epoch":1`, `"epoch":1,"f":1`)},
		{"spaces", text(`"epoch":1`, `"epoch": 1`)},
		{"a zone that is none", text(`"zone":"`+purgeZone, `"zone":"../x`)},
		{"a kind without a name", text(`"kind":"tag"`, `"kind":""`)},
		{"a time elsewhere", text(`"at":"2026-03-01T12:00:00Z"`, `"at":"2026-03-01T12:00:00+01:00"`)},
		{"too many values", text(`"values":["`, `"values":["`+strings.Repeat(`a","`, zone.MaxPurgeValues))},
		{"too large", strings.Repeat("a", MaxPurgeStatement+1)},
		{"empty", ""},
	} {
		at := purgeMark(7).String()
		all = append(all, purgeVector{row[0], row[1], at, CodePurgesInvalid})
	}
	return append(all, purgeVector{"for a node that is at a place, by one that starts", sign(lost), "", CodePurgesInvalid})
}

func TestPurgesRefused(t *testing.T) {
	k := key(t, 1)
	trusted, err := Trust(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	sign := func(p PurgeStatement) string {
		s, err := SignPurges(k, p)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, row := range refusedPurges(t) {
		t.Run(row.Name, func(t *testing.T) { row.check(t, trusted) })
	}
	unknown := purges(7, 1)
	unknown.Purges[0].Kind = "cookie"
	at := purgeMark(7)
	if got, err := VerifyPurges(sign(unknown), trusted, &at); err != nil || got.Purges[0].Kind != "cookie" {
		t.Errorf("a kind of a later version: %+v, %v", got.Purges, err)
	}
}

// purgeVector is a statement, the place that a node asked with ("" for none), and the code of the refusal.
type purgeVector struct {
	Name      string `json:"name"`
	Statement string `json:"statement"`
	After     string `json:"after"`
	Code      string `json:"code,omitempty"`
}

func (v purgeVector) check(t *testing.T, trusted TrustedKeys) {
	t.Helper()
	var after *PurgeMark
	if v.After != "" {
		m, err := ParsePurgeMark(v.After)
		if err != nil {
			t.Fatal(err)
		}
		after = &m
	}
	if _, err := VerifyPurges(v.Statement, trusted, after); code(err) != v.Code {
		t.Errorf("%s: %v, want %q", v.Name, err, v.Code)
	}
}

// purgeVectors is testdata/vectors/purges.json.
type purgeVectors struct {
	About       string        `json:"about"`
	TrustedKeys []string      `json:"trusted_keys"`
	Purges      []purgeVector `json:"purges"`
}

const purgeVectorFile = "testdata/vectors/purges.json"

func TestPurgeVectors(t *testing.T) {
	if *update {
		writePurgeVectors(t)
	}
	b, err := os.ReadFile(purgeVectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var f purgeVectors
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	trusted, err := ParseTrustedKeys(strings.Join(f.TrustedKeys, ","))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Purges) < 20 {
		t.Fatalf("only %d statements", len(f.Purges))
	}
	for _, v := range f.Purges {
		v.check(t, trusted)
	}
}

func writePurgeVectors(t *testing.T) {
	t.Helper()
	k := key(t, 1)
	f := purgeVectors{
		About:       "Statements of purges, the mark that a node asked with (empty: without one), and the code of their refusal where trusted_keys are trusted.",
		TrustedKeys: []string{k.Public().String()},
	}
	floor, start := purges(7, 0), purges(7, 0)
	floor.Floor, floor.To = true, purgeMark(3)
	start.After, start.Floor = nil, true
	for _, row := range []struct {
		name  string
		p     PurgeStatement
		after string
	}{
		{"accepted", purges(7, 3), purgeMark(7).String()},
		{"accepted, nothing new", purges(7, 0), purgeMark(7).String()},
		{"accepted, from the beginning", purges(0, 1), "0"},
		{"accepted, a floor", floor, purgeMark(7).String()},
		{"accepted, of a node that starts", start, ""},
	} {
		s, err := SignPurges(k, row.p)
		if err != nil {
			t.Fatal(err)
		}
		f.Purges = append(f.Purges, purgeVector{Name: row.name, Statement: s, After: row.after})
	}
	for _, v := range refusedPurges(t) {
		if len(v.Statement) <= maxVector {
			f.Purges = append(f.Purges, v)
		}
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = os.WriteFile(purgeVectorFile, append(b, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPurgeMark(t *testing.T) {
	for _, m := range []PurgeMark{{}, purgeMark(1), purgeMark(1 << 40)} {
		got, err := ParsePurgeMark(m.String())
		if err != nil || got != m {
			t.Errorf("%s: %v, %v", m, got, err)
		}
	}
	id := purgeMark(1).ID
	bad := []string{"", "x", "1", "-1:" + id, "01:" + id, "+1:" + id, "0:" + id, "1:" + strings.ToUpper(id), "1:" + id + "x", " 1:" + id, "none", fmt.Sprint(uint64(1<<63)) + ":" + id}
	if slices.ContainsFunc(bad, func(s string) bool { _, err := ParsePurgeMark(s); return err == nil }) {
		t.Error("a mark that is none was read")
	}
}

func FuzzVerifyPurges(f *testing.F) {
	k, err := GenerateSigningKey()
	if err != nil {
		f.Fatal(err)
	}
	trusted, err := Trust(k.Public())
	if err != nil {
		f.Fatal(err)
	}
	for n := range 3 {
		text, err := canonicalJSON(purges(7, n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	at := purgeMark(7)
	f.Fuzz(func(t *testing.T, text string) {
		// Signed: what a key signs by mistake is judged too.
		s := base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + k.sign([]byte(purgesPrefix+text))
		p, err := VerifyPurges(s, trusted, &at)
		if err != nil {
			return
		}
		if p.After == nil || *p.After != at || !p.Floor && p.To.Sequence != at.Sequence+uint64(len(p.Purges)) {
			t.Errorf("accepted %s", text)
		}
		for i, one := range p.Purges {
			if one.Sequence != at.Sequence+uint64(i)+1 {
				t.Errorf("accepted a gap: %s", text)
			}
		}
		again, err := SignPurges(k, p)
		if err != nil {
			t.Fatalf("what was accepted cannot be signed: %v", err)
		}
		if again != s {
			t.Errorf("%s is signed as another text", text)
		}
	})
}
