package cli_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/guardyn-edge/guardyn/internal/cli"
)

// TestMain lets the test binary be gdn. Scripts and documents ask nodes with curl and dig, which hack/need.sh installs.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gdn": gdn, "wat": assemble})
}

func gdn() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], cli.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()})
	stop()
	os.Exit(code)
}

// startDev runs gdn dev in this process until the test ends and returns what its dev.env exports.
func startDev(t testing.TB, data string) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	ended := make(chan int, 1)
	var stderr strings.Builder
	go func() {
		args := []string{"dev", "--data", data}
		for _, flag := range strings.Fields("api demo-origin demo-origin2 node1-dns node1-http node1-https node1-admin node2-dns node2-http node2-https node2-admin") {
			args = append(args, "--"+flag, "127.0.0.1:0")
		}
		code := cli.Run(ctx, args, cli.Env{Stdin: strings.NewReader(""), Stdout: w, Stderr: &stderr})
		w.Close()
		ended <- code
	}()
	lines := bufio.NewScanner(r)
	ready := false
	for !ready && lines.Scan() {
		ready = strings.HasPrefix(lines.Text(), "Ready.")
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("gdn dev ended with %d: %s", code, &stderr)
		}
		if _, err := os.Stat(filepath.Join(data, "dev.env")); err == nil {
			t.Error("gdn dev ended and left dev.env behind")
		}
	})
	if !ready {
		log, _ := os.ReadFile(filepath.Join(data, "dev.log"))
		code := <-ended
		ended <- code
		t.Fatalf("gdn dev ended with %d before it was ready: %s\n%s", code, &stderr, log)
	}
	return readEnviron(t, filepath.Join(data, "dev.env"))
}

func readEnviron(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %o, want 600", path, info.Mode().Perm())
	}
	var env []string
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// TestScripts runs each script of testdata/script against a fleet of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: false,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, startDev(e.T().(testing.TB), filepath.Join(e.WorkDir, ".fleet"))...)
			examples, err := filepath.Abs("../../examples")
			e.Setenv("EXAMPLES", examples)
			return err
		},
		Cmds: commands,
	})
}

// TestAlone runs the scripts of testdata/alone, which need no fleet.
func TestAlone(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/alone", RequireUniqueNames: true, Cmds: commands})
}

var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"await": await,
}

// await FILE: waits until a file exists that a program in the background makes.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	path := ts.MkAbs(args[0])
	timeout := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			ts.Fatalf("%s does not appear", args[0])
		}
	}
}
