package cli

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

func TestDecodeYAMLRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		want       string // in the message, or in one of the lines
	}{
		{"empty", "", "the file is empty"},
		{"comment alone", "# nothing\n", "the file is empty"},
		{"unknown member", "kind: ip\nitem: [192.0.2.1]\n", `f.yaml:2: unknown member "item"`},
		{"repeated member", "kind: ip\nitems: []\nkind: string\n", `f.yaml:3: "kind" stands already on line 1`},
		{"second document", "kind: ip\n---\nkind: ip\n", "a second document"},
		{"alias", "kind: &a ip\nitems: [*a]\n", "f.yaml:1: anchors and aliases are not read"},
		{"merge", "<<: {kind: ip}\n", "f.yaml:1: a member's name must be plain text"},
		{"tag", "kind: !!str ip\n", "f.yaml:1: tags are not read"},
		{"number for text", "kind: ip\nitems:\n  - 192.0.2.1\n  - 80\n", "f.yaml:4: items.1: a number does not belong here"},
		{"fraction", "kind: ip\nitems: [1.5]\n", "f.yaml:2: 1.5: fractions are not used"},
		{"sequence at the top", "- kind\n", "must hold members"},
		{"syntax", "kind: [\n", "f.yaml:1: "},
		{"deep", strings.Repeat("[", 80) + strings.Repeat("]", 80), "nested deeper than 64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var l zone.List
			err := decodeYAML([]byte(tt.text), "f.yaml", &l)
			if err == nil {
				t.Fatalf("decodeYAML took %q as %+v", tt.text, l)
			}
			all := err.Error()
			var lines *lineErrors
			if errors.As(err, &lines) {
				all += "\n" + strings.Join(lines.lines, "\n")
			}
			if !strings.Contains(all, tt.want) {
				t.Errorf("error is %q, want %q in it", all, tt.want)
			}
		})
	}
}

func TestDecodeYAMLTellsEveryProblem(t *testing.T) {
	err := decodeYAML([]byte("kind: ip\nkind: ip\nitems:\n  - 1.5\n  - !x y\n"), "f.yaml", new(zone.List))
	var lines *lineErrors
	if !errors.As(err, &lines) {
		t.Fatalf("error is %v, want lines", err)
	}
	if len(lines.lines) != 3 {
		t.Errorf("lines are %q, want 3", lines.lines)
	}
	for name, row := range map[string]struct {
		text string
		to   any
		want []string
	}{
		"unknown members": {"kind: ip\nitms: [a]\nfoo: 1\n", new(zone.List), []string{`f:2: unknown member "itms"`, `f:3: unknown member "foo"`}},
		"at every depth": {
			"rules:\n  - expresion: \"true\"\n    action: block\n    foo: 1\n  - {action: 3}\nbar: 2\n", new(api.Ruleset),
			[]string{`f:2: unknown member "rules.0.expresion"`, `f:4: unknown member "rules.0.foo"`, "f:5: rules.1.action: a number does not belong here", `f:6: unknown member "bar"`},
		},
		"no value": {"rules:\n", new(api.Ruleset), []string{"f:1: there is no value here; write one, or leave the member out"}},
		"null":     {"null\n", new(api.Ruleset), []string{"f:1: there is no value here; write one, or leave the member out"}},
	} {
		err := decodeYAML([]byte(row.text), "f", row.to)
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		got := []string{err.Error()}
		if errors.As(err, &lines) {
			got = lines.lines
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s:\n%q, want\n%q", name, got, row.want)
		}
	}
}

func TestYAMLRoundTrip(t *testing.T) {
	off := false
	want := api.Ruleset{Rules: []zone.Rule{
		{
			Description: "reversing \u202e and \x1b[31m colours\u009b, \U000e0041",
			Expression:  `http.path == "/a: b # c"`, Action: zone.ActionBlock,
			Parameters: zone.Parameters{Status: 403, Body: "two\nlines\n"}, Enabled: &off,
		},
		{Description: "no", Expression: "true", Action: zone.ActionAllow},
		{Description: "0x1F", Expression: "2026-08-27", Action: zone.ActionLog},
	}}
	var out bytes.Buffer
	a := &app{Env: Env{Stdout: &out}}
	if err := a.printYAML(want); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e\u009b\U000e0041") {
		t.Errorf("live characters were printed: %q", out.String())
	}
	var got api.Ruleset
	if err := decodeYAML(out.Bytes(), "printed", &got); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed and read back (-want +got):\n%s\n%s", diff, &out)
	}
}

func FuzzDecodeYAML(f *testing.F) {
	for _, seed := range []string{
		"kind: ip\nitems: [192.0.2.0/24, \"2001:db8::/32\"]\n", "a: &x [*x]", "? [a]\n: b\n", "kind: \"\\u202e\"", "---\n...\n", "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var l zone.List
		if decodeYAML(text, "f.yaml", &l) != nil {
			return
		}
		var out bytes.Buffer
		if err := (&app{Env: Env{Stdout: &out}}).printYAML(l); err != nil {
			t.Fatal(err)
		}
		var again zone.List
		if err := decodeYAML(out.Bytes(), "printed", &again); err != nil {
			t.Fatalf("%q printed as %q: %v", text, &out, err)
		}
		if l.Kind != again.Kind || !cmp.Equal(append([]string{}, l.Items...), append([]string{}, again.Items...)) {
			t.Errorf("%+v printed as %q reads back as %+v", l, &out, again)
		}
	})
}
