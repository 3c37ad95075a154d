package control

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// checkMessage judges the message of an operation; nil when it will do.
func checkMessage(message string) *Problem {
	if len(message) > MaxMessage || !utf8.ValidString(message) || strings.IndexByte(message, 0) >= 0 {
		return &Problem{
			Object: "message", Code: "message_invalid",
			Message: fmt.Sprintf("a message is at most %d bytes of UTF-8 without NUL characters", MaxMessage),
		}
	}
	return nil
}

func checkExpected(hash string) *Problem {
	if hash != "" && !isHex(hash, 64) {
		return &Problem{
			Object: "expected_content_hash", Code: "hash_invalid",
			Message: "a content hash is 64 lower-case hex digits, as the plan shows it",
		}
	}
	return nil
}

func checkKey(key string) *Problem {
	if len(key) > MaxIdempotencyKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return &Problem{
			Object: "idempotency_key", Code: "idempotency_key_invalid",
			Message: fmt.Sprintf("an idempotency key is 1 to %d printable ASCII characters without spaces", MaxIdempotencyKey),
		}
	}
	return nil
}

// joinProblems is the *ProblemsError of those that are not nil, nil of none.
func joinProblems(found ...*Problem) error {
	found = slices.DeleteFunc(found, func(p *Problem) bool { return p == nil })
	if len(found) == 0 {
		return nil
	}
	e := &ProblemsError{Problems: make([]Problem, len(found))}
	for i, p := range found {
		e.Problems[i] = *p
	}
	return e
}
