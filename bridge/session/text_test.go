package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// TestText: what MQTT cannot say, what a receiver may dispute, and how it is written instead.
func TestText(t *testing.T) {
	long := strings.Repeat("x", session.MaxTextBytes+1)
	for _, tt := range []struct{ name, text, fault, strict, escaped string }{
		{"plain", `a\ä`, "", "", `a\ä`},
		{"empty", "", "", "", ""},
		{"not UTF-8", "a\xff\\", "not UTF-8", "not UTF-8", `a\xff\\`},
		{"a surrogate", "\xed\xa0\x80", "not UTF-8", "not UTF-8", `\xed\xa0\x80`},
		{"NUL", "a\x00", "U+0000", "U+0000", `a\x00`},
		{"a tab", "a\tb", "", "U+0009", `a\x09b`},
		{"a C1 control", "\u0085", "", "U+0085", `\xc2\x85`},
		{"a non-character", "\U0001FFFE", "", "U+1FFFE", `\xf0\x9f\xbf\xbe`},
		{"too long", long, "more than 65535", "more than 65535", long[:session.MaxTextBytes]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := session.TextFault(tt.text); (got == "") != (tt.fault == "") || !strings.Contains(got, tt.fault) {
				t.Errorf("fault %q", got)
			}
			if got := session.StrictTextFault(tt.text); (got == "") != (tt.strict == "") || !strings.Contains(got, tt.strict) {
				t.Errorf("strict fault %q", got)
			}
			got := session.Escape(tt.text)
			if got != tt.escaped || session.StrictTextFault(got) != "" {
				t.Errorf("escaped %.100q", got)
			}
		})
	}
}

// TestHeld: only what was longer than the longest wait lets waits begin anew.
func TestHeld(t *testing.T) {
	b := session.Backoff{Min: time.Millisecond, Max: time.Second}
	if b.Held(time.Second) || !b.Held(time.Second+1) || (session.Backoff{}).Held(10*time.Second) || !(session.Backoff{}).Held(11*time.Second) {
		t.Error("the longest wait is not the measure")
	}
}
