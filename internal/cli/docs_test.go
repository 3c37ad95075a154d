package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/cli"
)

// block is one fenced block of a document.
type block struct {
	line     int // of the fence
	language string
	text     string
}

func readBlocks(t *testing.T, path string) []block {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	open := false
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		switch language, fence := strings.CutPrefix(line, "```"); {
		case fence && open:
			open = false
		case fence:
			open = true
			blocks = append(blocks, block{line: number, language: strings.TrimSpace(language)})
		case open:
			blocks[len(blocks)-1].text += line
		}
	}
	return blocks
}

// step is a command of a console block with what it prints.
type step struct{ command, output string }

func (b block) steps() []step {
	var steps []step
	goesOn := false // the command, behind a backslash at the end of its line
	for line := range strings.Lines(b.text) {
		command, begins := strings.CutPrefix(line, "$ ")
		switch {
		case goesOn:
			steps[len(steps)-1].command += "\n" + strings.TrimSuffix(line, "\n")
		case begins:
			steps = append(steps, step{command: strings.TrimSuffix(command, "\n")})
		case len(steps) > 0:
			steps[len(steps)-1].output += line
		}
		goesOn = (begins || goesOn) && strings.HasSuffix(line, "\\\n")
	}
	return steps
}

// matches compares output with what a document shows: … stands for the rest of a line, or, alone on a line,
// for any lines. Spaces at the ends of lines do not count.
func matches(want, got string) bool {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for line := range strings.Lines(want) {
		if line == "…\n" {
			pattern.WriteString(`(.*\n)*?`)
			continue
		}
		parts := strings.Split(strings.TrimRight(line, " \n"), "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern.WriteString(strings.Join(parts, `.*`) + ` *\n`)
	}
	pattern.WriteString(`\z`)
	return regexp.MustCompile(pattern.String()).MatchString(got)
}

func TestMatches(t *testing.T) {
	tests := []struct {
		name, want, got string
		ok              bool
	}{
		{"same", "a\nb\n", "a\nb\n", true},
		{"other", "a\n", "b\n", false},
		{"more", "a\n", "a\nb\n", false},
		{"rest of a line", "a (…)\n", "a (b)\n", true},
		{"any lines", "a\n…\nd\n", "a\nb\nc\nd\n", true},
		{"no lines", "a\n…\n", "a\n", true},
		{"nothing shown, something printed", "", "a\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := matches(tt.want, tt.got); got != tt.ok {
				t.Errorf("matches(%q, %q) = %v", tt.want, tt.got, got)
			}
		})
	}
}

// TestDocumentsTellTheTruth runs the commands of every document against a fleet of its own and compares what
// they print with what the document shows.
func TestDocumentsTellTheTruth(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../../README.md", "../../docs/guide/*.md", "../../docs/operations/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %d pages", pattern, err, len(found))
		}
		pages = append(pages, found...)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		blocks := readBlocks(t, page)
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			for _, b := range blocks {
				if !slices.Contains([]string{"console", "text", "yaml", "ini"}, b.language) {
					t.Errorf("%s:%d: a block of %q is not run by any test", page, b.line, b.language)
				}
			}
			if !slices.ContainsFunc(blocks, func(b block) bool { return b.language == "console" }) {
				return
			}
			dir := t.TempDir()
			if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
				t.Fatal(err)
			}
			environ := append(os.Environ(), startDev(t, filepath.Join(dir, "guardyn-dev"))...)
			environ = append(environ, "no_proxy=*") // everything is on this machine
			for _, b := range blocks {
				if b.language != "console" {
					continue
				}
				for _, s := range b.steps() {
					runStep(t, fmt.Sprintf("%s:%d", page, b.line), dir, environ, s)
				}
			}
		})
	}
}

func runStep(t *testing.T, where, dir string, environ []string, s step) {
	t.Helper()
	cmd := exec.Command("bash", "-c", s.command)
	cmd.Dir, cmd.Env = dir, environ
	if strings.Contains(s.command, " & ") {
		// What it leaves running, a service in the background, ends with the test.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		t.Cleanup(func() {
			if cmd.Process != nil {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nobody may be left
			}
		})
	}
	out, err := cmd.CombinedOutput()
	shown := strings.Contains("\n"+s.output, "\nerror: ") || strings.Contains("\n"+s.output, "\n{\"error\":")
	if (err != nil) != shown {
		t.Errorf("%s: %s: %v\n%s", where, s.command, err, out)
	}
	if !matches(s.output, string(out)) {
		t.Errorf("%s: %s\nprinted:\n%s\nthe document shows:\n%s", where, s.command, out, s.output)
	}
}

func TestCommandReferenceIsCurrent(t *testing.T) {
	want, err := os.ReadFile("../../docs/guide/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := cli.WriteReference(&got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		t.Error("docs/guide/commands.md is not what the commands say: run make docs")
	}
}
