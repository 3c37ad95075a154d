package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemo runs what make demo CHECK=1 runs, with a gdn built from this tree.
func TestDemo(t *testing.T) {
	for _, tool := range []string{"curl", "dig"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v: hack/need.sh %s installs it", err, tool)
		}
	}
	gdn := filepath.Join(t.TempDir(), "gdn")
	build := exec.Command("go", "build", "-o", gdn, "../cmd/gdn")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build gdn: %v\n%s", err, out)
	}
	cmd := exec.Command("bash", "demo.sh", gdn)
	cmd.Env = append(os.Environ(), "CHECK=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "  ok: "); n != asserted {
		t.Errorf("%d answers were asserted, want %d\n%s", n, asserted, out)
	}
}

// asserted is how many answers the demo asserts, so that none is passed over.
const asserted = 40
