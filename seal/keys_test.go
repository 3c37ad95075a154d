package seal

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// testSeed is the first test vector of RFC 8032 §7.1.
const (
	testSeed   = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
	testPublic = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
	testKeyID  = "6c31041268f47160"
)

func key(tb testing.TB, fill byte) SigningKey {
	tb.Helper()
	k, err := ParseSigningKey(strings.Repeat(fmt.Sprintf("%02x", fill), 32))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func trust(tb testing.TB, keys ...SigningKey) TrustedKeys {
	tb.Helper()
	var pubs []PublicKey
	for _, k := range keys {
		pubs = append(pubs, k.Public())
	}
	t, err := Trust(pubs...)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func TestKeys(t *testing.T) {
	k, err := ParseSigningKey(testSeed)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.Public().String(); got != testPublic {
		t.Errorf("public %s, want %s", got, testPublic)
	}
	if k.SecretHex() != testSeed {
		t.Error("the secret does not come back")
	}
	if k.ID() != testKeyID || k.Public().ID() != testKeyID {
		t.Errorf("id %s, want %s", k.ID(), testKeyID)
	}
	p, err := ParsePublicKey(strings.ToUpper(testPublic))
	if err != nil || p != k.Public() {
		t.Errorf("upper case: %v", err)
	}
	a, err := GenerateSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := GenerateSigningKey()
	if a.SecretHex() == b.SecretHex() || a.ID() == b.ID() {
		t.Error("two generated keys are equal")
	}
	if _, err := ParsePublicKey(a.Public().String()); err != nil {
		t.Errorf("a generated key is refused: %v", err)
	}
}

func TestParsePublicKeyRefuses(t *testing.T) {
	le := func(n *big.Int, sign byte) string {
		b := n.FillBytes(make([]byte, 32))
		slices.Reverse(b)
		b[31] |= sign << 7
		return hex.EncodeToString(b)
	}
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	plus := func(n int64) *big.Int { return new(big.Int).Add(p, big.NewInt(n)) }
	const order8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
	const order8b = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"
	sign := func(s string) string { b, _ := hex.DecodeString(s); b[31] ^= 0x80; return hex.EncodeToString(b) }
	for name, tc := range map[string]struct{ text, says string }{
		"empty":                    {"", "0 characters"},
		"31 bytes":                 {testPublic[2:], "62 characters"},
		"33 bytes":                 {testPublic + "00", "66 characters"},
		"seed and public":          {testSeed + testPublic, "128 characters"},
		"0x":                       {"0x" + testPublic[2:], "no hex digit"},
		"no hex":                   {strings.Repeat("zz", 32), "no hex digit"},
		"white space":              {" " + testPublic[1:], "no hex digit"},
		"identity":                 {le(big.NewInt(1), 0), "small order"},
		"identity, sign set":       {le(big.NewInt(1), 1), "canonical"},
		"order 2":                  {le(plus(-1), 0), "small order"},
		"order 2, sign set":        {le(plus(-1), 1), "canonical"},
		"order 4":                  {le(big.NewInt(0), 0), "small order"},
		"order 4, sign set":        {le(big.NewInt(0), 1), "small order"},
		"order 8":                  {order8, "small order"},
		"order 8, sign set":        {sign(order8), "small order"},
		"order 8, another":         {order8b, "small order"},
		"order 8, another, sign":   {sign(order8b), "small order"},
		"y is p":                   {le(p, 0), "canonical"},
		"y is p+1":                 {le(plus(1), 0), "canonical"},
		"y is p+1, sign set":       {le(plus(1), 1), "canonical"},
		"y is 2^255-1":             {le(plus(18), 0), "canonical"},
		"y is 2^255-1, sign set":   {le(plus(18), 1), "canonical"},
		"not on the curve (y = 2)": {le(big.NewInt(2), 0), "not a point"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParsePublicKey(tc.text)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q does not say %q", err, tc.says)
			}
			if len(tc.text) >= 62 && strings.Contains(err.Error(), tc.text[:60]) {
				t.Error("the error repeats the text")
			}
			if _, err := ParseTrustedKeys(testPublic + " , " + tc.text); err == nil || !strings.Contains(err.Error(), "entry 2") {
				t.Errorf("in a list: %v", err)
			}
		})
	}
	// Every key that a seed gives is accepted: the arithmetic is the curve's.
	for i := range 64 {
		pub := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i)}, 32))[32:]
		if _, err := ParsePublicKey(hex.EncodeToString(pub)); err != nil {
			t.Errorf("seed %d: %v", i, err)
		}
	}
}

func TestParseTrustedKeys(t *testing.T) {
	a, b := key(t, 1).Public(), key(t, 2).Public()
	got, err := ParseTrustedKeys(" " + b.String() + ",\n" + a.String() + " ")
	if err != nil || !slices.Equal(got.IDs(), []KeyID{b.ID(), a.ID()}) {
		t.Errorf("ids %v, %v", got.IDs(), err)
	}
	if !got.Has(a.ID()) || got.Has(testKeyID) {
		t.Error("Has is wrong")
	}
	for name, tc := range map[string]struct{ list, says string }{
		"empty":                {"", "at least one"},
		"white space":          {" \t", "at least one"},
		"an empty entry":       {a.String() + ",", "entry 2"},
		"one key twice":        {a.String() + "," + b.String() + "," + a.String(), "entries 1 and 3 have the same id " + string(a.ID())},
		"one key in two cases": {a.String() + "," + strings.ToUpper(a.String()), "entries 1 and 2"},
		"all bad entries":      {"x," + a.String() + ",y", "entry 3"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseTrustedKeys(tc.list); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v does not say %q", err, tc.says)
			}
		})
	}
	if _, err := Trust(); err == nil {
		t.Error("an empty set is trusted")
	}
	if _, err := Trust(PublicKey{}); err == nil {
		t.Error("the zero key is trusted")
	}
}

func TestParseSigningKeyRefuses(t *testing.T) {
	for _, text := range []string{"", testSeed[1:], testSeed + testPublic, "0x" + testSeed[2:], strings.Repeat("g", 64)} {
		_, err := ParseSigningKey(text)
		if err == nil {
			t.Errorf("accepted %q", text)
		} else if len(text) > 32 && strings.Contains(err.Error(), text[:32]) {
			t.Errorf("the error repeats the secret: %v", err)
		}
	}
}

// Whatever prints or encodes a signing key, alone or within something, gives nothing of its secret away.
func TestSigningKeyIsNeverPrinted(t *testing.T) {
	k, err := ParseSigningKey(testSeed)
	if err != nil {
		t.Fatal(err)
	}
	const safe = "[signing key " + testKeyID + "]"
	type config struct {
		Name string
		key  SigningKey
		Key  SigningKey
	}
	holder := config{"x", k, k}
	texts := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%o", "%c", "%U", "%t", "%p"} {
		texts["alone "+verb] = fmt.Sprintf(verb, k)
		texts["pointer "+verb] = fmt.Sprintf(verb, &k)
		texts["within "+verb] = fmt.Sprintf(verb, holder)
		texts["within pointer "+verb] = fmt.Sprintf(verb, &holder)
		texts["slice "+verb] = fmt.Sprintf(verb, []SigningKey{k})
	}
	texts["error"] = fmt.Errorf("with %v", k).Error()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k, "holder", holder)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", k, "holder", holder)
	texts["log"] = log.String()
	j, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	texts["json"] = string(j)
	raw, _ := hex.DecodeString(testSeed)
	for what, s := range texts {
		low := strings.ToLower(s)
		for _, secret := range []string{testSeed[:16], testSeed[48:], string(raw[:8]), strings.Trim(fmt.Sprint(raw[:4]), "[]"), fmt.Sprintf("%#v", raw[:3])[7:20]} {
			if strings.Contains(low, secret) || strings.Contains(s, secret) {
				t.Errorf("%s gives the secret away: %s", what, s)
			}
		}
		if strings.HasPrefix(what, "alone") && what != "alone %p" && s != safe {
			t.Errorf("%s is %q", what, s)
		}
	}
	if k.String() != safe || !strings.Contains(texts["json"], safe) {
		t.Errorf("String %q, JSON %s", k.String(), texts["json"])
	}
}

func TestNoSigningKey(t *testing.T) {
	var k SigningKey
	if !k.IsZero() || k.ID() != "" || !k.Public().IsZero() || k.SecretHex() != "" || k.String() != "[no signing key]" {
		t.Error("the zero key is a key")
	}
	if _, err := Seal(k, demo(t, 1)); err == nil {
		t.Error("sealed without a key")
	}
	if _, err := Activate(k, Sealed{}, Activation{}); err == nil {
		t.Error("activated without a key")
	}
	if _, err := SignFreshness(k, freshness()); err == nil {
		t.Error("signed without a key")
	}
}
