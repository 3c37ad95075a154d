package zone

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

func TestParseMailbox(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"hostmaster.example.com", "hostmaster.example.com"},
		{"Hostmaster.Example.COM.", "hostmaster.example.com"},
		{`john\.doe.example.`, `john\.doe.example`},
		{`John\046Doe.example`, `john\.doe.example`},
		{`a\b.example`, "ab.example"},
		{`a\+b.example`, `a\+b.example`},
		{`a\@b.example`, `a\@b.example`},
		{"admin.bücher.example", "admin.xn--bcher-kva.example"},
		{"", ""},
		{".", ""},
		{"@", ""},
		{"*.example", ""},
		{`\*.example`, ""},
		{"a..example", ""},
		{`a\`, ""},
		{`a\30.example`, ""},
		{`a\300.example`, ""},
		{"john.doe@example.com", ""},
		{"a b.example", ""},
		{strings.Repeat(`\.`, 64) + ".example", ""},
	} {
		m, err := ParseMailbox(tc.in)
		if m.String() != tc.want || (err == nil) != (tc.want != "") || m.IsZero() != (tc.want == "") {
			t.Errorf("%q: %q, %v; want %q", tc.in, m, err, tc.want)
			continue
		}
		if err != nil {
			continue
		}
		if again, err := ParseMailbox(m.String()); err != nil || again != m {
			t.Errorf("%q is not a normal form: %q, %v", m, again, err)
		}
		b, err := json.Marshal(SOA{RName: m})
		var back SOA
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || back.RName != m {
			t.Errorf("%s: %q, %v", b, back.RName, err)
		}
	}
	if _, err := ParseMailbox("john.doe@example.com"); !strings.Contains(err.Error(), `john\\.doe.example.com`) {
		t.Errorf("%v does not tell the domain name", err)
	}
}

func TestReadZoneFileKeepsAMailboxWithADot(t *testing.T) {
	for _, tc := range []struct{ rname, want string }{
		{`john\.doe.example.`, `john\.doe.example`},
		{`john\.doe`, `john\.doe.example.com`},
		{"hostmaster", ""}, // the default
	} {
		f, err := ReadZoneFile(strings.NewReader("@ 60 SOA ns "+tc.rname+" 1 2 3 4 5\n"), MustName("example.com"))
		if err != nil || f.SOA.RName.String() != tc.want {
			t.Errorf("%s: %+v, %v", tc.rname, f, err)
		}
	}
}
