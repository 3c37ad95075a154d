package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxInteger is the largest integer that JSON numbers hold exactly (RFC 7493 §2.2). Epochs, generations and
// versions stay at or below it, since RFC 8785 prints a larger one as another number.
const maxInteger = 1<<53 - 1

// maxStatement bounds a signed statement as it travels, in bytes. A real one takes under 1 KiB.
const maxStatement = 4 << 10

// signStatement makes base64url(JCS(v)) "." hex(Ed25519(prefix + JCS(v))).
func signStatement(k SigningKey, prefix string, v any) (string, error) {
	if k.IsZero() {
		return "", errNoSigningKey
	}
	text, err := canonicalJSON(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + k.sign(append([]byte(prefix), text...)), nil
}

// openStatement checks the form of a statement, and its signature by one of keys, before it decodes into v,
// strictly: the bytes that were signed must be the canonical ones of what they say. It returns the key.
func openStatement(s, prefix string, keys []PublicKey, v any) (PublicKey, error) {
	return openStatementOf(maxStatement, s, prefix, keys, v)
}

// openStatementOf is openStatement of at most most bytes.
func openStatementOf(most int, s, prefix string, keys []PublicKey, v any) (PublicKey, error) {
	var none PublicKey
	if len(s) > most {
		return none, fmt.Errorf("it has %d bytes, the most is %d", len(s), most)
	}
	encoded, sigText, ok := strings.Cut(s, ".")
	if !ok {
		return none, errors.New("it is not text and signature with a dot between")
	}
	sig, err := parseSignature(sigText)
	if err != nil {
		return none, fmt.Errorf("its signature %w", err)
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return none, errors.New("it is not base64url without padding (RFC 4648 §5)")
	}
	signed := append([]byte(prefix), text...)
	var by PublicKey
	for _, k := range keys {
		if k.verify(signed, sig) {
			by = k
			break
		}
	}
	if by.IsZero() {
		return none, errors.New("its signature does not verify")
	}
	if err := json.Unmarshal(text, v, json.RejectUnknownMembers(true)); err != nil {
		return none, err
	}
	again, err := canonicalJSON(v)
	if err != nil {
		return none, err
	}
	if !bytes.Equal(again, text) {
		return none, errors.New("it is not in canonical form (RFC 8785)")
	}
	return by, nil
}

func canonicalJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	j := jsontext.Value(text)
	if err := j.Canonicalize(); err != nil {
		return nil, err
	}
	return j, nil
}

// parseSignature reads exactly 128 lower-case hex digits. Its errors continue a sentence.
func parseSignature(s string) ([]byte, error) {
	if !lowerHex(s, 128) {
		return nil, errors.New("is not 128 lower-case hex digits")
	}
	return hex.DecodeString(s)
}

func lowerHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// joined makes one line of several errors, nil of none.
func joined(errs ...error) error {
	var parts []string
	for _, err := range errs {
		if err != nil {
			parts = append(parts, err.Error())
		}
	}
	if parts == nil {
		return nil
	}
	return errors.New(strings.Join(parts, "; "))
}

// counter judges an integer of a statement.
func counter(name string, n, least uint64) error {
	if n < least || n > maxInteger {
		return fmt.Errorf("%s %d is not from %d to 2^53-1", name, n, least)
	}
	return nil
}

// issued judges the time of a statement.
func issued(t time.Time) error {
	if t.IsZero() {
		return errors.New("issued_at is missing")
	}
	if t.Location() != time.UTC {
		return errors.New("issued_at is not in UTC")
	}
	return nil
}

// uuid reports whether s is a UUID in lower case (RFC 9562 §4).
func uuid(s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	return lowerHex(strings.ReplaceAll(s, "-", ""), 32)
}
