package examples_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDemo runs what make demo and make demo-bridge with CHECK=1 run, with a gdn built from this tree.
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
	// How many answers each asserts, so that none is passed over.
	for script, asserted := range map[string]int{"demo.sh": 47, "demo-bridge.sh": 20} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			walk(t, script, gdn, asserted)
		})
	}
}

// walk runs a demo, which must leave nothing behind.
func walk(t *testing.T, script, gdn string, asserted int) {
	temporary := t.TempDir()
	alive, inherited, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	cmd := exec.Command("bash", script, gdn)
	cmd.Env = append(os.Environ(), "CHECK=1", "TMPDIR="+temporary)
	cmd.ExtraFiles = []*os.File{6: inherited} // 9, which the script does not use
	out, err := cmd.CombinedOutput()
	inherited.Close()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The pipe ends once every process that the script started has.
	if err := alive.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := alive.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a process is left behind: %v", err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("files are left behind: %v %v", left, err)
	}
	if n := strings.Count(string(out), "  ok: "); n != asserted {
		t.Errorf("%d answers were asserted, want %d\n%s", n, asserted, out)
	}
}
