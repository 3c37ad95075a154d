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

// TestMachineCodeOfAnotherRuntime: what a node of another version left is made anew once, and what was left goes.
func TestMachineCodeOfAnotherRuntime(t *testing.T) {
	module := assemble(t, hello)
	dir := t.TempDir()
	compile(t, newEngine(t, Config{Dir: dir}), zoneFunction(module))
	code, notes := files(t, dir)
	own := filepath.Dir(code[0])
	other := filepath.Join(dir, "wazero-0.0.0-test")
	if err := os.Rename(own, other); err != nil {
		t.Fatal(err)
	}
	note, err := os.ReadFile(notes[0])
	if err == nil {
		err = os.WriteFile(notes[0], []byte(strings.Replace(string(note), filepath.Base(own), filepath.Base(other), 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		e := newEngine(t, Config{Dir: dir})
		f := compile(t, e, zoneFunction(module))
		answered(t, f, get())
		if err := e.Prune(); err != nil {
			t.Fatal(err)
		}
		if m := e.Metrics(); m.Loaded+m.Compiled != 1 || (m.Compiled == 1) != (round == 0) {
			t.Errorf("start %d: %d were loaded, %d compiled", round+1, m.Loaded, m.Compiled)
		}
		if code, notes := files(t, dir); len(code) != 1 || len(notes) != 1 || filepath.Dir(code[0]) != own {
			t.Errorf("start %d: there are %v and %v", round+1, code, notes)
		}
		runtime.KeepAlive(f)
	}
}

// TestMachineCodeWithoutADisk: a directory that takes nothing costs the next start its time, and no function.
func TestMachineCodeWithoutADisk(t *testing.T) {
	another := assemble(t, `(memory 1) (func (export "_start") nop)`)
	dir := t.TempDir()
	e := newEngine(t, Config{Dir: dir})
	first := compile(t, e, zoneFunction(assemble(t, hello)))
	code, _ := files(t, dir)
	own := filepath.Dir(code[0])
	if err := os.RemoveAll(own); err != nil {
		t.Fatal(err)
	}
	compile(t, e, zoneFunction(another))
	answered(t, first, get())
	if m := e.Metrics(); m.Compiled != 2 || m.Loaded != 0 {
		t.Errorf("%d were compiled, %d loaded", m.Compiled, m.Loaded)
	}
	for range 100 {
		runtime.GC()
		e.mu.Lock()
		n := len(e.programs)
		e.mu.Unlock()
		if n == 1 {
			break
		}
	}
	compile(t, e, zoneFunction(another)) // its code is gone, as that of any that nobody has

	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e = newEngine(t, Config{Dir: dir})
	answered(t, compile(t, e, zoneFunction(assemble(t, hello))), get())
	if err := e.Prune(); err != nil {
		t.Errorf("pruning: %v", err)
	}
	if m := e.Metrics(); m.Compiled != 1 {
		t.Errorf("%d were compiled", m.Compiled)
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
