package zone

import (
	"errors"
	"fmt"
	"strings"
)

// maxCAAValue is the most characters, escapes counted, that the DNS library packs.
const maxCAAValue = 1024

// parseCAA reads flags, tag and value (RFC 8659 §4.1.1). Normal form: the tag in lower case, the value in
// quotes with the escapes of a byte string.
func parseCAA(s string) (string, error) {
	flagText, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	tag, value, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
	value = strings.Trim(value, " \t")
	if flagText == "" || tag == "" || value == "" {
		return "", errors.New(`write flags, tag and value, as in 0 issue "ca.example.net"`)
	}
	var errs []error
	flags, err := parseNumber(flagText, "flags", 0, 255)
	if err != nil {
		errs = append(errs, err)
	}
	tag = strings.ToLower(tag)
	if len(tag) > 255 || strings.Trim(tag, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		errs = append(errs, fmt.Errorf("tag %s is not letters and digits", quote(tag)))
	}
	octets, err := readCAAValue(value)
	if err != nil {
		errs = append(errs, fmt.Errorf("value: %w", err))
	}
	if n := len(appendEscaped(nil, octets)); n > maxCAAValue {
		errs = append(errs, fmt.Errorf("value: it prints as %d characters, the most is %d", n, maxCAAValue))
	}
	if len(errs) > 0 {
		return "", errors.Join(errs...)
	}
	return printCAA(uint8(flags), tag, octets), nil
}

func printCAA(flags uint8, tag string, value []byte) string {
	b := fmt.Appendf(nil, `%d %s "`, flags, tag)
	return string(append(appendEscaped(b, value), '"'))
}

func readCAAValue(s string) ([]byte, error) {
	if s[0] != '"' && strings.ContainsAny(s, " \t") {
		return nil, errors.New("it has spaces: put it in quotes")
	}
	inside, closed := strings.TrimPrefix(s, `"`), s[0] != '"'
	quoted := !closed
	var octets []byte
	var errs []error
	offset := len(s) - len(inside)
	for i := 0; i < len(inside); {
		if inside[i] == '"' {
			if !quoted || i != len(inside)-1 {
				return nil, fmt.Errorf(`at character %d: a quote inside must be \"`, offset+i+1)
			}
			closed = true
			break
		}
		c, n, why := unescape(inside[i:])
		if why != "" {
			errs = append(errs, fmt.Errorf("at character %d: %s", offset+i+1, why))
		}
		octets = append(octets, c)
		i += n
	}
	if !closed {
		errs = append(errs, errors.New("at character 1: the quote is not closed"))
	}
	return octets, errors.Join(errs...)
}
