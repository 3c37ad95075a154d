package function

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

func TestMachineCodeIsShared(t *testing.T) {
	e := newEngine(t, Config{})
	module := assemble(t, hello)
	a := compile(t, e, zoneFunction(module))
	b := compile(t, e, zone.Function{Module: module, Timeout: duration(5e6), Environment: map[string]string{"A": "1"}})
	if m := e.Metrics(); m.Compiled != 1 || m.Shared != 1 {
		t.Errorf("%d were compiled, %d shared", m.Compiled, m.Shared)
	}
	answered(t, a, get())
	answered(t, b, get())
}

// TestMachineCodeGoes sees that what no function has is let go, and what one has is not.
func TestMachineCodeGoes(t *testing.T) {
	e := newEngine(t, Config{})
	kept := compile(t, e, zoneFunction(assemble(t, hello)))
	compile(t, e, zoneFunction(assemble(t, `(memory 1) (func (export "_start"))`)))
	left := func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.programs)
	}
	for range 100 {
		if runtime.GC(); left() == 1 {
			break
		}
	}
	if n := left(); n != 1 {
		t.Errorf("%d programs are held", n)
	}
	answered(t, kept, get())
}

func files(t *testing.T, dir string) (code, notes []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
		case strings.HasSuffix(path, codeSuffix):
			notes = append(notes, path)
		default:
			code = append(code, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return code, notes
}

// TestMachineCodeOnDisk starts one engine after another on one directory, with what a crash or a bad disk may leave there.
func TestMachineCodeOnDisk(t *testing.T) {
	module := assemble(t, hello)
	change := func(path string, f func([]byte) []byte) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, f(b), 0o600)
	}
	tests := []struct {
		name   string
		damage func(code, note string) error
		loaded bool
	}{
		{"as it was left", func(string, string) error { return nil }, true},
		{"one bit of the code", func(code, _ string) error {
			return change(code, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}, false},
		{"one bit of where functions begin", func(code, _ string) error {
			return change(code, func(b []byte) []byte { b[20] ^= 0x40; return b })
		}, false},
		{"half of the code", func(code, _ string) error { return change(code, func(b []byte) []byte { return b[:len(b)/2] }) }, false},
		{"no code", func(code, _ string) error { return os.Remove(code) }, false},
		{"no note", func(_, note string) error { return os.Remove(note) }, false},
		{"a note of something else", func(_, note string) error {
			return os.WriteFile(note, []byte("../../etc/passwd "+strings.Repeat("0", 64)+"\n"), 0o600)
		}, false},
		{"an empty note", func(_, note string) error { return os.WriteFile(note, nil, 0o600) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "functions")
			first := newEngine(t, Config{Dir: dir})
			answered(t, compile(t, first, zoneFunction(module)), get())
			code, notes := files(t, dir)
			if len(code) != 1 || len(notes) != 1 {
				t.Fatalf("there are %v and %v", code, notes)
			}
			if err := tt.damage(code[0], notes[0]); err != nil {
				t.Fatal(err)
			}
			for round, loaded := range []bool{tt.loaded, true} {
				e := newEngine(t, Config{Dir: dir})
				f := compile(t, e, zoneFunction(module))
				answered(t, f, get())
				if m := e.Metrics(); (m.Loaded == 1) != loaded || m.Loaded+m.Compiled != 1 {
					t.Errorf("start %d: %d were loaded, %d compiled", round+1, m.Loaded, m.Compiled)
				}
			}
		})
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	e := newEngine(t, Config{Dir: dir})
	kept := compile(t, e, zoneFunction(assemble(t, hello)))
	compile(t, e, zoneFunction(assemble(t, `(memory 1) (func (export "_start"))`)))
	if err := os.WriteFile(filepath.Join(dir, "stray.tmp"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, notes := files(t, dir); len(code) != 3 || len(notes) != 2 {
		t.Fatalf("there are %v and %v", code, notes)
	}
	for range 100 {
		runtime.GC()
		if err := e.Prune(); err != nil {
			t.Fatal(err)
		}
		if code, _ := files(t, dir); len(code) == 1 {
			break
		}
	}
	if code, notes := files(t, dir); len(code) != 1 || len(notes) != 1 {
		t.Errorf("there are %v and %v", code, notes)
	}
	answered(t, kept, get())
	again := newEngine(t, Config{Dir: dir})
	compile(t, again, zoneFunction(assemble(t, hello)))
	if m := again.Metrics(); m.Loaded != 1 {
		t.Errorf("what is served was pruned: %+v", m)
	}
}
