package session

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTextBytes bounds a topic, and a property's name or value, of MQTT: their length has two bytes (MQTT 5.0 §1.5.4).
const MaxTextBytes = 65535

// TextFault says why s cannot be said as a UTF-8 encoded string of MQTT (5.0 §1.5.4), "" when it can.
func TextFault(s string) string {
	switch {
	case len(s) > MaxTextBytes:
		return fmt.Sprintf("it has %d bytes, more than %d", len(s), MaxTextBytes)
	case !utf8.ValidString(s):
		return "it is not UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "it has the character U+0000"
	}
	return ""
}

// StrictTextFault is TextFault that also finds what a receiver may take for malformed: control characters and non-characters.
func StrictTextFault(s string) string {
	if fault := TextFault(s); fault != "" {
		return fault
	}
	if i := strings.IndexFunc(s, disputed); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return fmt.Sprintf("it has the character %U", r)
	}
	return ""
}

// disputed tells of what brokers may end a connection over.
func disputed(r rune) bool {
	return unicode.IsControl(r) || r >= 0xFDD0 && r <= 0xFDEF || r&0xFFFE == 0xFFFE
}

// Escape makes any bytes text that every target can be told: what StrictTextFault finds becomes \x and two digits for each byte, and a backslash
// two. What has no fault stays as it is. More than MaxTextBytes is cut.
func Escape(s string) string {
	if StrictTextFault(s) == "" {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		var next string
		switch {
		case r == '\\':
			next = `\\`
		case r == utf8.RuneError && n == 1, disputed(r):
			for _, c := range []byte(s[i : i+n]) {
				next += fmt.Sprintf(`\x%02x`, c)
			}
		default:
			next = s[i : i+n]
		}
		if b.Len()+len(next) > MaxTextBytes {
			break
		}
		b.WriteString(next)
		i += n
	}
	return b.String()
}
