package zone

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// quote prints text from outside for an error message: quoted, control characters inert, cut at 80 bytes.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + fmt.Sprintf("… (%d bytes)", len(s))
}

// inert makes the control characters of an error's text harmless to a terminal. What it returns does not
// wrap err.
func inert(err error) error {
	s := err.Error()
	clean := strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0
	if clean && utf8.ValidString(s) {
		return errors.New(s)
	}
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) && r != utf8.RuneError {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return errors.New(b.String())
}

// readString reads the next JSON value, which must be a string.
func readString(dec *jsontext.Decoder) (string, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return "", err
	}
	if tok.Kind() != '"' {
		return "", fmt.Errorf("a string belongs here, not %s", kindWord(tok.Kind()))
	}
	return tok.String(), nil
}

func kindWord(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return "this"
	}
}

// quoteAll prints text whole in quotes, control characters inert.
func quoteAll(s string) string { return strconv.Quote(s) }
