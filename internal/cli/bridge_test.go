package cli_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/cli"
)

// startBridgeCommand runs gdn bridge in this process until the test ends, and returns its control surface's URL and what it
// ended with, after stop.
func startBridgeCommand(t *testing.T, environ []string, args ...string) (url string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := cli.Run(ctx, append([]string{"bridge", "--listen", "127.0.0.1:0"}, args...), cli.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: w, Environ: environ})
		w.Close()
		ended <- code
	}()
	stop = func() int {
		cancel()
		code := <-ended
		ended <- code
		return code
	}
	t.Cleanup(func() { stop() })
	lines, log := bufio.NewScanner(r), ""
	answers := regexp.MustCompile(`bridge answers.*control=(\S+)`)
	for lines.Scan() {
		log += lines.Text() + "\n"
		if m := answers.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, r) }()
			return "http://" + m[1], stop
		}
	}
	t.Fatalf("gdn bridge ended: %s", log)
	return "", nil
}

// TestBridge: a member of a cohort of one on a file and SQLite, driven by the commands.
func TestBridge(t *testing.T) {
	dir := t.TempDir()
	file, store := filepath.Join(dir, "bridge.yaml"), "sqlite:"+filepath.Join(dir, "rollouts.db")
	document := func(version, session string) string {
		return "version: " + version + "\nbridge: {deployment_mode: clustered, cluster: {rollout: coordinated, members: [node-a]}}\nsessions:\n  - {id: " + session + ", kind: nats, url: \"nats://127.0.0.1:1\"}\n"
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	environ := []string{"GUARDYN_BRIDGE_TOKEN=let me in", "GUARDYN_BRIDGE_ROLLOUT_STORE=" + store}
	gdn := func(args ...string) (string, int) {
		var out, errs strings.Builder
		code := cli.Run(t.Context(), append([]string{"bridge"}, args...), cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: environ})
		return out.String() + errs.String(), code
	}
	if out, code := gdn("migrate"); code != 0 {
		t.Fatal(out)
	}
	url, stop := startBridgeCommand(t, environ, "--source", "file:"+file, "--member-id", "node-a", "--state-dir", filepath.Join(dir, "state"),
		"--initial", write("first.yaml", document("40", "a")))
	environ = append(environ, "GUARDYN_BRIDGE_URL="+url)
	status := func(want string) {
		t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(time.Minute); ; <-tick.C {
			out, _ := gdn("status")
			if regexp.MustCompile(want).MatchString(out) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("status is\n%s\nwant %s", out, want)
			}
		}
	}
	status(`(?s)state +active, ready\nruns +version 1 \(coordinated\), sha256:.*baseline +skipped: .*SESSION +KIND +STATE.*a +nats +connecting`)
	next := write("next.yaml", document("1", "b"))
	if out, code := gdn("plan", next); code != 0 || !strings.Contains(out, "start b; stop a") || !strings.Contains(out, "every member takes it over, or none") {
		t.Errorf("plan ended with %d: %s", code, out)
	}
	if out, code := gdn("put", next); code != 0 || !strings.Contains(out, "saved version 2: underway: generation 1") {
		t.Errorf("put ended with %d: %s", code, out)
	}
	status(`runs +version 2 `)
	if out, code := gdn("put", next); code != 1 || !strings.Contains(out, "hint: somebody else saved version 2 meanwhile") {
		t.Errorf("put of an old version ended with %d: %s", code, out)
	}
	if out, code := gdn("put", write("roster.yaml", strings.Replace(document("2", "b"), "[node-a]", "[node-a, node-b]", 1))); code != 1 || !strings.Contains(out, "bridge.cluster.members") {
		t.Errorf("put of another roster ended with %d: %s", code, out)
	}
	if out, code := gdn("status", "--json"); code != 0 || !strings.Contains(out, `"baseline_outcome": "skipped"`) {
		t.Errorf("status ended with %d: %s", code, out)
	}
	// The document is taken away: the process ends, to be replaced.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for out, end := "", time.Now().Add(time.Minute); !strings.Contains(out, "is a bridge running there"); <-tick.C {
		if out, _ = gdn("status"); time.Now().After(end) {
			t.Fatalf("it goes on: %s", out)
		}
	}
	if code := stop(); code != 1 {
		t.Errorf("ended with %d", code)
	}
}
