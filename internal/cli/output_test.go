package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

func TestInert(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "Amthal Group → ✓", "Amthal Group → ✓"},
		{"terminal escape", "a\x1b]0;x\x07b", `a\x1b]0;x\x07b`},
		{"line end", "a\r\nb", `a\x0d\x0ab`},
		{"eight-bit control", "a\u009b31mb", `a\x9b31mb`},
		{"direction", "a\u202eb", `a\u202eb`},
		{"zero width", "a\u200bb\ufeff", `a\u200bb\ufeff`},
		{"tag characters", "a\U000e0041", `a\U000e0041`},
		{"not UTF-8", "a\xffb", `a\xffb`},
		{"replacement character itself", "a\ufffdb", "a\ufffdb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := inert(tt.in); got != tt.want {
				t.Errorf("inert(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestPrintJSONIsInertAndTrue(t *testing.T) {
	want := "\x1b[31m \u009b \u202e \U000e0041 \n \"quoted\" <&>"
	var out bytes.Buffer
	a := &app{Env: Env{Stdout: &out}}
	if err := a.printJSON(map[string]string{"message": want}); err != nil {
		t.Fatal(err)
	}
	if strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && live(r) }) >= 0 {
		t.Errorf("live characters were printed: %q", out.String())
	}
	var got map[string]string
	if err := json.Unmarshal(bytes.TrimSpace(out.Bytes()), &got); err != nil {
		t.Fatalf("%v in %q", err, &out)
	}
	if got["message"] != want {
		t.Errorf("read back %q, want %q", got["message"], want)
	}
}

func TestTableCellsAreInert(t *testing.T) {
	var out bytes.Buffer
	a := &app{Env: Env{Stdout: &out}}
	tab := &table{head: []string{"NAME", "MESSAGE"}}
	tab.row("a\tb\nc", "")
	if err := a.printTable(tab, nil); err != nil {
		t.Fatal(err)
	}
	want := "NAME         MESSAGE\na\\x09b\\x0ac  -\n"
	if out.String() != want {
		t.Errorf("table is %q, want %q", out.String(), want)
	}
}

func TestColours(t *testing.T) {
	plan := "  + lab.example\n     ! rules      x\n"
	tests := []struct {
		name     string
		terminal bool
		environ  []string
		want     bool
	}{
		{"terminal", true, nil, true},
		{"pipe", false, nil, false},
		{"NO_COLOR", true, []string{"NO_COLOR=1"}, false},
		{"dumb terminal", true, []string{"TERM=dumb"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := &app{Env: Env{StdoutIsTerminal: tt.terminal, Environ: tt.environ}}
			got := a.paintPlan(plan)
			if (got != plan) != tt.want {
				t.Errorf("paintPlan = %q, want colours: %v", got, tt.want)
			}
		})
	}
}
