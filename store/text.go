package store

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/guardyn-edge/guardyn/control"
)

// checkText refuses, on every database alike, text that Postgres cannot hold: with a NUL character, or not
// UTF-8. Every statement's arguments pass here, so that no caller need think of it. Bytes are not text.
func checkText(args []any) error {
	for _, a := range args {
		s, ok := a.(string)
		if !ok {
			v := reflect.ValueOf(a)
			if v.Kind() != reflect.String {
				continue
			}
			s = v.String()
		}
		at := strings.IndexByte(s, 0)
		why := "a NUL character (U+0000)"
		if at < 0 {
			if utf8.ValidString(s) {
				continue
			}
			why = "bytes that are not UTF-8"
			at = strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError })
		}
		return &control.ProblemsError{Problems: []control.Problem{{
			Object: "text", Code: "text_invalid",
			Message: fmt.Sprintf("text cannot hold %s; take it out: %s", why, excerpt(s, max(at, 0))),
		}}}
	}
	return nil
}

// excerpt quotes what stands around a byte of s.
func excerpt(s string, at int) string {
	const around = 20
	return fmt.Sprintf("%q, byte %d", s[max(0, at-around):min(len(s), at+around)], at+1)
}
