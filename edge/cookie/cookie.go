// Package cookie reads the cookies of requests (RFC 6265 §5.4) in the one way that rules, sticky sessions and origins share.
package cookie

import (
	"iter"
	"strings"
)

// All yields name and value of each cookie in the values of a request's Cookie fields, in their order. Spaces and tabs around
// both are not theirs (RFC 6265 §5.2); quotes are. What has no "=", or no name, is no cookie.
func All(fields []string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, field := range fields {
			for pair := range strings.SplitSeq(field, ";") {
				name, value, found := strings.Cut(pair, "=")
				if name = trim(name); found && name != "" && !yield(name, trim(value)) {
					return
				}
			}
		}
	}
}

// Get returns the value of the first cookie of that name.
func Get(fields []string, name string) (value string, found bool) {
	for n, v := range All(fields) {
		if n == name {
			return v, true
		}
	}
	return "", false
}

// Normalize returns one field that every server reads as All reads fields: those joined (RFC 9113 §8.2.3), without white space that
// some take for a part of a name or value. What is no cookie stays in its place. Fields in normal form, and none, come back as they are.
func Normalize(fields []string) []string {
	if len(fields) == 0 || len(fields) == 1 && normal(fields[0]) {
		return fields
	}
	var b strings.Builder
	for _, field := range fields {
		for pair := range strings.SplitSeq(field, ";") {
			name, value, found := strings.Cut(pair, "=")
			if name = trim(name); name == "" && !found {
				continue
			}
			if b.Len() > 0 {
				b.WriteString("; ")
			}
			b.WriteString(name)
			if found {
				b.WriteByte('=')
				b.WriteString(trim(value))
			}
		}
	}
	return []string{b.String()}
}

// normal reports whether Normalize would change nothing that a server may read in two ways: each space stands between a
// semicolon and a name, or within a name or a value.
func normal(field string) bool {
	named := false // the "=" of the current pair has come
	for i := range len(field) {
		switch field[i] {
		case ';':
			named = false
		case '=':
			if !named && i+1 < len(field) && blank(field[i+1]) {
				return false
			}
			named = true
		case '\t':
			return false
		case ' ':
			switch {
			case i == 0 || i+1 == len(field):
				return false
			case field[i-1] == ';' && !blank(field[i+1]):
			case blank(field[i+1]) || field[i+1] == ';' || field[i+1] == '=' && !named:
				return false
			}
		}
	}
	return true
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func trim(s string) string { return strings.Trim(s, " \t") }
