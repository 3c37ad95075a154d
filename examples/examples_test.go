package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemo runs what make demo CHECK=1 runs, with a gdn built from this tree: once as it is here, and once on
// a machine without dig and curl.
func TestDemo(t *testing.T) {
	bin := t.TempDir()
	gdn := filepath.Join(bin, "gdn")
	build := exec.Command("go", "build", "-o", gdn, "../cmd/gdn")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build gdn: %v\n%s", err, out)
	}
	tests := []struct {
		name    string
		environ []string
	}{
		{"with what is installed", nil},
		{"without dig and curl", []string{"BARE=1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("bash", "demo.sh", gdn)
			cmd.Env = append(append(os.Environ(), "CHECK=1"), tt.environ...)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := strings.Count(string(out), "  ok: "); n != 18 {
				t.Errorf("%d answers were asserted, want 18\n%s", n, out)
			}
		})
	}
}
