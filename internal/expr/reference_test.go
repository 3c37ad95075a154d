package expr

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
)

func TestReferenceIsCurrent(t *testing.T) {
	want, err := os.ReadFile("../../docs/guide/expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := WriteReference(&got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		t.Error("docs/guide/expressions.md is not what the language is: run make docs")
	}
}

func TestReferenceHasEverythingAndItsExamplesCompile(t *testing.T) {
	env, err := Env()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, v := range env.Variables() {
		known[v.Name()] = cel.FormatCELType(v.Type())
	}
	for _, e := range referenceVariables {
		if got := known[e.name]; got != e.kind {
			t.Errorf("%s is of type %q, the page says %s", e.name, got, e.kind)
		}
		delete(known, e.name)
	}
	for name := range known {
		if strings.HasPrefix(name, "http.") || strings.HasPrefix(name, "ip.") || strings.HasPrefix(name, "tls.") || strings.HasPrefix(name, "zone.") {
			t.Errorf("the page does not have %s", name)
		}
	}
	for _, entries := range [][]referenceEntry{referenceVariables, referenceFunctions} {
		for _, e := range entries {
			if _, err := Check(e.example, Bool); err != nil {
				t.Errorf("the example of %s: %v", e.name, err)
			}
			name, _, _ := strings.Cut(e.name, "(")
			if name = strings.TrimPrefix(name, "cidr."); !strings.Contains(e.example, name) {
				t.Errorf("the example of %s does not use it", e.name)
			}
		}
	}
}
