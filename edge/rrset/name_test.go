package rrset_test

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge/rrset"
)

func TestAppendWire(t *testing.T) {
	label := strings.Repeat("a", 63)
	for _, row := range []struct {
		text string
		ok   bool
	}{
		{"a", true},
		{"example.com", true},
		{label + "." + label + "." + label + "." + label[:61], true},
		{"", false},
		{".", false},
		{"a.", false},
		{".a", false},
		{"a..b", false},
		{label + "a", false},
		{label + "." + label + "." + label + "." + label[:62], false},
	} {
		got, ok := rrset.AppendWire([]byte("x"), row.text)
		if ok != row.ok {
			t.Errorf("%q: %t", row.text, ok)
			continue
		}
		if !ok {
			if string(got) != "x" {
				t.Errorf("%q: dst has become %q", row.text, got)
			}
			continue
		}
		var want [256]byte
		n, err := dns.PackDomainName(row.text+".", want[:], 0, nil, false)
		if err != nil || string(got[1:]) != string(want[:n]) {
			t.Errorf("%q: %q, want %q (%v)", row.text, got[1:], want[:n], err)
		}
	}
}
