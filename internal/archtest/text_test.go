package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// top returns the module's directory.
func top(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// files calls f for each file of the tree that belongs to the source.
func files(t *testing.T, f func(rel string, body []byte)) {
	t.Helper()
	dir := top(t)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != dir && (name == ".git" || name == "bin" || name == "guardyn-dev") {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > 4<<20 {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		f(filepath.ToSlash(rel), body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryPackageHasItsSentence(t *testing.T) {
	comments := map[string]int{}
	files(t, func(rel string, body []byte) {
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") || strings.Contains(rel, "testdata/") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), rel, body, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		dir := filepath.Dir(rel)
		comments[dir] += 0
		if file.Doc == nil {
			return
		}
		comments[dir]++
		start := "Package " + file.Name.Name + " "
		if file.Name.Name == "main" {
			start = "Command " + filepath.Base(dir) + " "
		}
		if text := file.Doc.Text(); !strings.HasPrefix(text, start) || !strings.Contains(text, ".") {
			t.Errorf("%s: the package comment must be a sentence that starts with %q", rel, start)
		}
	})
	for dir, n := range comments {
		if n != 1 {
			t.Errorf("%s has %d package comments, want 1", dir, n)
		}
	}
}

// forbidden holds what no file may contain. The expressions are written so that they do not match here.
var forbidden = []struct {
	in   string // suffix of the file's name
	what *regexp.Regexp
	why  string
	// unless is what makes it right in a file that has it, or nil.
	unless *regexp.Regexp
}{
	{"", regexp.MustCompile(`/(work|root|home)[/]\w`), "a path of somebody's machine", nil},
	{"", regexp.MustCompile(`proxy[.]golang[.]org|/[l]ibrary/`), "an address of somebody's machine or registry", nil},
	{".go", regexp.MustCompile(`\b(TO[D]O|FIX[M]E|XX[X])\b`), "work left for later", nil},
	{".go", regexp.MustCompile(`panic[(]"unbuil[t]`), "a body that is not there", nil},
	{".go", regexp.MustCompile(`(?m)^func init[(]`), "registration by init", nil},
	{"_test.go", regexp.MustCompile(`time[.]Sleep[(]`), "a sleep; wait on an event", regexp.MustCompile(`"testing/synctest"`)},
	{"_test.go", regexp.MustCompile(`\b[tb][.]Skip(f|Now)?[(]`), "a skipped test", nil},
}

func TestNoForbiddenText(t *testing.T) {
	files(t, func(rel string, body []byte) {
		for _, f := range forbidden {
			if !strings.HasSuffix(rel, f.in) || f.unless != nil && f.unless.Match(body) {
				continue
			}
			if at := f.what.FindIndex(body); at != nil {
				line := 1 + strings.Count(string(body[:at[0]]), "\n")
				t.Errorf("%s:%d: %q is %s", rel, line, body[at[0]:at[1]], f.why)
			}
		}
	})
}
