package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/durable"
)

// TestMain lets the test binary be the process that is killed, or whose disk is full: see TestKilledAtEachStep and TestLinesTakenBack.
func TestMain(m *testing.M) {
	if path := os.Getenv("DURABLE_TEST_FULL"); path != "" {
		os.Exit(appendToFull(path))
	}
	if dir := os.Getenv("DURABLE_TEST_DIR"); dir != "" {
		d, err := durable.Open(dir)
		if err != nil {
			panic(err)
		}
		at := durable.Step(os.Getenv("DURABLE_TEST_STEP"))
		d.AfterStep(func(_ string, s durable.Step) error {
			if s == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
			return nil
		})
		_ = d.Write("state", []byte("new "), []byte("content"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestKilledAtEachStep(t *testing.T) {
	for step, want := range map[durable.Step]string{
		durable.StepTemp: "old", durable.StepSync: "old",
		durable.StepRename: "new content", durable.StepSyncDir: "new content",
	} {
		t.Run(string(step), func(t *testing.T) {
			path := t.TempDir()
			d := open(t, path)
			if err := d.Write("state", []byte("old")); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "DURABLE_TEST_DIR="+path, "DURABLE_TEST_STEP="+string(step))
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("child was not killed: %v", err)
			}
			d = open(t, path) // the lock died with the process
			got, err := d.Read("state", 100)
			if err != nil || string(got) != want {
				t.Errorf("content %q, %v; want %q", got, err, want)
			}
			names, err := d.Names()
			if err != nil || len(names) != 1 {
				t.Errorf("files %v, %v; want the one, without temporary files", names, err)
			}
		})
	}
}

func TestSecondOpenIsRefused(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if _, err := durable.Open(path); !errors.Is(err, durable.ErrLocked) {
		t.Fatalf("second open: %v, want ErrLocked", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestWriteRefusesOtherPlaces(t *testing.T) {
	d := open(t, t.TempDir())
	for _, name := range []string{"", "..", "../x", "a/b", "/x", ".hidden"} {
		if err := d.Write(name, nil); err == nil {
			t.Errorf("write %q succeeded", name)
		}
	}
}

func TestFailedWriteLeavesOldContent(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if err := d.Write("state", []byte("old")); err != nil {
		t.Fatal(err)
	}
	d.AfterStep(func(_ string, s durable.Step) error {
		if s == durable.StepTemp {
			return errors.New("disk full")
		}
		return nil
	})
	if err := d.Write("state", []byte("new")); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Fatalf("write: %v", err)
	}
	if got, err := d.Read("state", 10); err != nil || string(got) != "old" {
		t.Errorf("content %q, %v", got, err)
	}
	if names, _ := d.Names(); len(names) != 1 {
		t.Errorf("files %v", names)
	}
}

func TestReadIsBounded(t *testing.T) {
	d := open(t, t.TempDir())
	if err := d.Write("big", make([]byte, 11)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read("big", 10); err == nil {
		t.Error("read past the limit")
	}
	if _, err := d.Read("none", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

func TestWriteFileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dev.env")
	if err := durable.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func open(t *testing.T, path string) *durable.Dir {
	t.Helper()
	d, err := durable.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestCreateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := durable.CreateFile(path, []byte("first"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := durable.CreateFile(path, []byte("second"), 0o640); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created over: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "first" {
		t.Errorf("it holds %q, %v", got, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}
