package host

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
)

func newIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func sealedTo(t *testing.T, to age.Recipient, plain []byte) string {
	t.Helper()
	var out bytes.Buffer
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, to)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err != nil || w.Close() != nil || a.Close() != nil {
		t.Fatal("seal: ", err)
	}
	return out.String()
}

func TestIdentities(t *testing.T) {
	one, two := newIdentity(t), newIdentity(t)
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "identities")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	broken := one.String()[:40] + "B" + one.String()[41:] // a letter that Bech32 does not have
	for _, tc := range []struct {
		name, setting string
		n             int
		errors        []string
	}{
		{"one", one.String(), 1, nil},
		{"two, with spaces", " " + one.String() + " , " + two.String(), 2, nil},
		{"a file as age-keygen writes it", file("# created\n# public key: " + one.Recipient().String() + "\n" + one.String() + "\n\n" + two.String() + "\n"), 2, nil},
		{"the second is broken", one.String() + "," + broken, 0, []string{"entry 2 is not an age identity"}},
		{"two broken lines", file(broken + "\n" + one.String() + "\n" + two.Recipient().String() + "\n"), 0, []string{"line 1 is not", "line 3 is not"}},
		{"an empty entry", one.String() + ",", 0, []string{"entry 2 is not"}},
		{"an empty file", file("# nothing\n"), 0, []string{"no identity"}},
		{"no such file", filepath.Join(t.TempDir(), "SECRET"), 0, []string{"nor a file that can be read"}},
		{"a large file", file(strings.Repeat("#\n", maxIdentityFile)), 0, []string{"more than"}},
		{"too many", strings.Repeat(one.String()+",", maxIdentities) + two.String(), 0, []string{"17 identities"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseIdentities(tc.setting)
			if len(got.list) != tc.n || (err == nil) != (tc.errors == nil) {
				t.Fatalf("%d identities, error %v", len(got.list), err)
			}
			for _, want := range tc.errors {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %s", err, want)
				}
			}
			if err != nil && (strings.Contains(err.Error(), broken[20:]) || strings.Contains(err.Error(), "SECRET/") || strings.Contains(err.Error(), one.String()[20:])) {
				t.Errorf("the error repeats what it read: %v", err)
			}
		})
	}
}

func TestUnseal(t *testing.T) {
	one, two, other := newIdentity(t), newIdentity(t), newIdentity(t)
	ids, err := ParseIdentities(one.String() + "," + two.String())
	if err != nil {
		t.Fatal(err)
	}
	good := sealedTo(t, two.Recipient(), []byte("key"))
	lines := strings.Split(good, "\n")
	for _, tc := range []struct{ name, text, want, err string }{
		{"to the second", good, "key", ""},
		{"to another", sealedTo(t, other.Recipient(), []byte("key")), "", "none of the node's identities"},
		{"not age", "-----BEGIN CERTIFICATE-----", "", "not a whole age file"},
		{"cut off", strings.Join(lines[:len(lines)-3], "\n"), "", "it is"},
		{"too large", sealedTo(t, one.Recipient(), make([]byte, maxUnsealed+1)), "", "more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ids.Unseal(tc.text)
			if string(got) != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, error %v", got, err)
			}
		})
	}
	if _, err := (Identities{}).Unseal(good); err == nil || !strings.Contains(err.Error(), "GUARDYN_SECRET_IDENTITIES") {
		t.Errorf("without identities: %v", err)
	}
}
