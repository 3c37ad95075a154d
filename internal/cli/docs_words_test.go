package cli_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/cli"
	"github.com/guardyn-edge/guardyn/zone"
)

// TestTheGuideHasEveryWord: what can be written into a rule, a pool, a balancer, a policy or a setting stands in the guide, which is
// for people, and not in the reference of commands alone.
func TestTheGuideHasEveryWord(t *testing.T) {
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	said := make(map[string]bool)
	code := regexp.MustCompile("`[^`\n]+`")
	word := regexp.MustCompile(`[a-z_][a-z0-9_.]*`)
	for _, page := range pages {
		if filepath.Base(page) == "commands.md" {
			continue
		}
		for _, span := range code.FindAllString(prose(t, page), -1) {
			for _, w := range word.FindAllString(span, -1) {
				said[w] = true
			}
		}
		for _, b := range readBlocks(t, page) {
			if b.language == "yaml" {
				for _, w := range word.FindAllString(b.text, -1) {
					said[w] = true
				}
			}
		}
	}
	expect := func(kind, word string) {
		t.Helper()
		if !said[word] {
			t.Errorf("the guide has no %s %s", kind, word)
		}
	}
	for _, phase := range zone.Phases() {
		expect("phase", string(phase))
		for _, action := range phase.Actions() {
			expect("action", string(action))
		}
	}
	for _, v := range []any{
		zone.Rule{},
		zone.Parameters{},
		zone.Pool{},
		zone.Origin{},
		zone.HealthCheck{},
		zone.OutlierDetection{},
		zone.LoadBalancer{},
		zone.Sticky{},
		zone.CachePolicy{},
		zone.List{},
	} {
		of := reflect.TypeOf(v)
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			expect("member of "+of.Name(), name)
		}
	}
	for _, key := range zone.SettingKeys() {
		key, _, _ = strings.Cut(key, ".503") // the page of a status stands for all of them
		if key == "error_pages" {
			key = "error_pages."
		}
		expect("setting", key)
	}
}

// TestRunningAFleetHasEveryVariable: what the two processes of a fleet read from the environment stands in the tables for operators too.
func TestRunningAFleetHasEveryVariable(t *testing.T) {
	page := prose(t, "../../docs/operations/running.md")
	variable := regexp.MustCompile(`GUARDYN_[A-Z0-9_]*[A-Z0-9]`)
	for _, command := range []string{"serve", "edge"} {
		var help, errs bytes.Buffer
		if code := cli.Run(t.Context(), []string{command, "--help"}, cli.Env{Stdout: &help, Stderr: &errs}); code != 0 {
			t.Fatalf("gdn %s --help: %d, %s", command, code, &errs)
		}
		own, _, _ := strings.Cut(help.String(), "\nUsage:\n") // before the flags, which every command has
		names := variable.FindAllString(own, -1)
		if len(names) < 5 {
			t.Fatalf("the help of gdn %s names %d variables", command, len(names))
		}
		for _, name := range names {
			if !strings.Contains(page, "| `"+name+"`") {
				t.Errorf("running.md has no row of %s, which gdn %s reads", name, command)
			}
		}
	}
}
