package zone

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Mailbox is a mail address as a domain name (RFC 1035 §8) in normal form: as a [Name], but that labels may
// hold any octet, written with escapes: john\.doe.example.com is john.doe@example.com. The zero Mailbox is
// "no mailbox".
type Mailbox struct{ s string }

// ParseMailbox folds a mailbox (case, one trailing dot, U-labels, needless escapes) to its normal form. The root
// and a wildcard are none.
func ParseMailbox(s string) (Mailbox, error) {
	if local, domain, ok := strings.Cut(s, "@"); ok && local != "" && domain != "" && !strings.HasSuffix(local, `\`) {
		return Mailbox{}, fmt.Errorf("mailbox %s: write it as a domain name, %s", quote(s),
			quote(strings.ReplaceAll(local, ".", `\.`)+"."+domain))
	}
	t, err := foldTarget(s, nameBase{})
	switch {
	case err != nil:
		return Mailbox{}, err
	case t == "" || t == ".":
		err = errors.New("the root is no mailbox")
	case strings.HasPrefix(t, "*."):
		err = errors.New("a wildcard is no mailbox")
	}
	if err != nil {
		return Mailbox{}, fmt.Errorf("mailbox %s: %w", quote(s), err)
	}
	return Mailbox{t}, nil
}

// MustMailbox is ParseMailbox for constants and tests; it panics on an error.
func MustMailbox(s string) Mailbox {
	m, err := ParseMailbox(s)
	if err != nil {
		panic(err)
	}
	return m
}

// String returns the text form, without the trailing dot, "" for the zero Mailbox.
func (m Mailbox) String() string { return m.s }

// IsZero reports whether m is the zero Mailbox.
func (m Mailbox) IsZero() bool { return m.s == "" }

// MarshalText returns the text form.
func (m Mailbox) MarshalText() ([]byte, error) { return []byte(m.s), nil }

// UnmarshalText folds as ParseMailbox does; no text is the zero Mailbox.
func (m *Mailbox) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*m = Mailbox{}
		return nil
	}
	n, err := ParseMailbox(string(b))
	if err == nil {
		*m = n
	}
	return err
}

// MarshalJSONTo writes the text form as a JSON string.
func (m Mailbox) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(m.s))
}

// UnmarshalJSONFrom reads a JSON string as UnmarshalText does.
func (m *Mailbox) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	s, err := readString(dec)
	if err != nil {
		return err
	}
	return m.UnmarshalText([]byte(s))
}
