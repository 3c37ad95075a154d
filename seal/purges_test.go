package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/zone"
)

const (
	purgePlatform = "0190f6a0-0000-7000-8000-000000000000"
	purgeZone     = "0190f6a0-0000-7000-8000-000000000001"
)

// purgeMark is the place behind purge n of a log.
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
			Sequence: after + uint64(i) + 1, Zone: purgeZone, Kind: zone.PurgeTag, Values: []string{`a"\<>&`}, At: p.IssuedAt,
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
			if diff := cmp.Diff(row.p, got); diff != "" {
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

func TestPurgesRefused(t *testing.T) {
	k, other := key(t, 1), key(t, 2)
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
	for _, row := range []struct{ name, statement string }{
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
		t.Run(row.name, func(t *testing.T) {
			at := purgeMark(7)
			_, err := VerifyPurges(row.statement, trusted, &at)
			var r *Refusal
			if !errors.As(err, &r) || r.Code != CodePurgesInvalid {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := VerifyPurges(sign(lost), trusted, nil); err == nil {
		t.Error("a node that starts believes the answer to another")
	}
	unknown := purges(7, 1)
	unknown.Purges[0].Kind = "cookie"
	at := purgeMark(7)
	if got, err := VerifyPurges(sign(unknown), trusted, &at); err != nil || got.Purges[0].Kind != "cookie" {
		t.Errorf("a kind of a later version: %+v, %v", got.Purges, err)
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
