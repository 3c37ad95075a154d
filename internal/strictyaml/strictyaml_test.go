package strictyaml_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/strictyaml"
)

// TestJSONReadsAsYAML: what both can say is read alike, lines included.
func TestJSONReadsAsYAML(t *testing.T) {
	for name, text := range map[string]string{
		"nested":   "{\n  \"a\": [1, true, \"x\", {\"b\": \"\\u00e9\"}],\n  \"c\": {\n    \"d\": -5\n  }\n}\n",
		"repeated": "{\n\"a\": 1,\n\"a\": 2}",
		"null":     "{\n\"a\": null}",
		"fraction": "{\n\"a\": 1.5}",
	} {
		y, j := strictyaml.Read([]byte(text)), strictyaml.ReadJSON([]byte(text))
		if !slices.Equal(y.Problems(), j.Problems()) {
			t.Errorf("%s: problems are %v in JSON and %v in YAML", name, j.Problems(), y.Problems())
		}
		if string(y.Text()) != string(j.Text()) {
			t.Errorf("%s: read as %s and as %s", name, j.Text(), y.Text())
		}
		if y.Line("/c/d") != j.Line("/c/d") {
			t.Errorf("%s: on line %d and %d", name, j.Line("/c/d"), y.Line("/c/d"))
		}
	}
	if y := strictyaml.ReadJSON([]byte("{\n\t\"a\":\t1\n}")); len(y.Problems()) > 0 {
		t.Errorf("tabs: %v", y.Problems())
	}
}

func TestJSONRefused(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		line int
	}{
		"empty": {" \n", 0}, "cut off": {"{\n\"a\": [", 2}, "a comma too many": {"{\n\"a\": 1,\n}", 2}, "a second": {"{}\n{}", 2},
		"no UTF-8": {"{\n\"a\": \"\xff\"}", 2}, "deep": {"[" + string(slices.Repeat([]byte("["), 200)), 1}, "single quotes": {"{\n'a': 1}", 2},
	} {
		d := strictyaml.ReadJSON([]byte(row.text))
		if len(d.Problems()) != 1 || d.Problems()[0].Line != row.line {
			t.Errorf("%s: problems are %v, want one on line %d", name, d.Problems(), row.line)
		}
	}
}

// TestSalvage reads what can be read, and says what it left out.
func TestSalvage(t *testing.T) {
	var v struct {
		A int
		B []struct{ C, D string }
	}
	d := strictyaml.Read([]byte("A: x\nB:\n  - {C: c, D: 5}\n  - {C: d, E: e}\n"))
	rest, problems, cut := d.Salvage(&v)
	if got := fmt.Sprint(problems); got != `[{1 A: a string does not belong here} {3 B.0.D: a number does not belong here} {4 unknown member "B.1.E"}]` {
		t.Errorf("problems are %v", got)
	}
	if rest == nil || !cut("/A") || !cut("/B/0/D") || cut("/B/0/C") || v.B[0].C != "c" || v.B[1].C != "d" {
		t.Errorf("read %+v", v)
	}
	if rest, _, _ := strictyaml.Read([]byte("A: [")).Salvage(&v); rest != nil {
		t.Error("something was read of what is no YAML")
	}
}
