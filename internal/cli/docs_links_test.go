package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// markdownLink is [text](target); targets of this repository have neither spaces nor parentheses.
	markdownLink = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fence        = regexp.MustCompile("(?ms)^```.*?^```$")
	makeTarget   = regexp.MustCompile("`make ([a-z-]+)[^`]*`")
)

// anchor is what a heading is reached by.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ' || r == '-':
			b.WriteByte('-')
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_':
			b.WriteRune(r)
		}
	}
	return b.String()
}

func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{"../../README.md", "../../CHANGELOG.md"}
	err := filepath.WalkDir("../../docs", func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	return pages
}

func prose(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fence.ReplaceAllString(string(text), "")
}

// TestDocumentsLinksLeadSomewhere follows every link between documents, to its heading when it names one, and finds every page of the
// guide and of operations from the README.
func TestDocumentsLinksLeadSomewhere(t *testing.T) {
	links := map[string][]string{} // by page
	for _, page := range documents(t) {
		for _, m := range markdownLink.FindAllStringSubmatch(prose(t, page), -1) {
			target, name, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := page
			if target != "" {
				to = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			links[page] = append(links[page], to)
			if name == "" {
				continue
			}
			if !slices.ContainsFunc(heading.FindAllStringSubmatch(prose(t, to), -1), func(h []string) bool { return anchor(h[1]) == name }) {
				t.Errorf("%s: %s leads to a heading that is not there", page, m[1])
			}
		}
	}
	reached := map[string]bool{}
	var follow func(page string)
	follow = func(page string) {
		if reached[page] {
			return
		}
		reached[page] = true
		for _, to := range links[page] {
			follow(to)
		}
	}
	follow("../../README.md")
	for _, page := range documents(t) {
		if !reached[page] && (strings.Contains(page, "docs/guide/") || strings.Contains(page, "docs/operations/")) {
			t.Errorf("%s cannot be reached from the README: link it there, or from a page that it leads to", page)
		}
	}
}

// TestDocumentsMakeTargetsExist holds that what the documents tell to make can be made.
func TestDocumentsMakeTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range documents(t) {
		for _, m := range makeTarget.FindAllStringSubmatch(prose(t, page), -1) {
			if !strings.Contains("\n"+string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: there is no target for make %s", page, m[1])
			}
		}
	}
}

// TestReadmeIsShort keeps the README what a newcomer reads to its end.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n >= 200 {
		t.Errorf("it has %d lines, want fewer than 200", n)
	}
}
