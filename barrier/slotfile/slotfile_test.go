package slotfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/slotfile"
	"github.com/guardyn-edge/guardyn/internal/durable"
)

func open(t *testing.T, path string) *slotfile.Slots {
	t.Helper()
	s, err := slotfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func pointer(gen uint64) barrier.Pointer {
	return barrier.Pointer{Generation: gen, Digest: digest(gen), Version: gen * 10}
}

func digest(gen uint64) barrier.Digest { return barrier.Digest(fmt.Sprintf("test:/../%d", gen)) }

func content(gen uint64) []byte { return []byte(fmt.Sprintf("line\nof %d", gen)) }

func onTrial(confirmed, trial uint64) barrier.Memory {
	return barrier.Memory{
		Confirmed: pointer(confirmed), Highest: trial, Flaps: 3,
		Trial: &barrier.Trial{
			Ref: barrier.Ref{ID: "r", Generation: trial}, Pointer: pointer(trial),
			Deadline: time.Date(2026, 7, 1, 12, 0, 0, 123456789, time.UTC), TakenBack: barrier.ByGuess,
		},
	}
}

func keep(t *testing.T, s *slotfile.Slots, gens ...uint64) {
	t.Helper()
	for _, g := range gens {
		if err := s.Keep(t.Context(), digest(g), content(g)); err != nil {
			t.Fatalf("keep %d: %v", g, err)
		}
	}
}

func save(t *testing.T, s *slotfile.Slots, m barrier.Memory) {
	t.Helper()
	if err := s.Save(t.Context(), m); err != nil {
		t.Fatalf("save: %v", err)
	}
}

// begin has the member confirm generation 1 and try generation 2.
func begin(t *testing.T, s *slotfile.Slots) {
	t.Helper()
	keep(t, s, 1)
	save(t, s, barrier.Memory{Confirmed: pointer(1)})
	keep(t, s, 2)
	save(t, s, onTrial(1, 2))
}

// holds asserts which of the first ten artefacts are there, whole.
func holds(t *testing.T, s *slotfile.Slots, want ...uint64) {
	t.Helper()
	var got []uint64
	for g := range uint64(10) {
		b, err := s.Bytes(t.Context(), digest(g))
		switch {
		case errors.Is(err, barrier.ErrNoArtefact):
		case err != nil:
			t.Errorf("bytes of %d: %v", g, err)
		case !bytes.Equal(b, content(g)):
			t.Errorf("bytes of %d are %q", g, b)
		default:
			got = append(got, g)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("artefacts %v are kept, want %v", got, want)
	}
}

func remembers(t *testing.T, s *slotfile.Slots, want barrier.Memory) {
	t.Helper()
	got, err := s.Load(t.Context())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("memory (-want +got):\n%s", d)
	}
}

func TestFirstMemoryIsZero(t *testing.T) {
	s := open(t, t.TempDir())
	remembers(t, s, barrier.Memory{})
	holds(t, s)
}

func TestWhatWasSavedIsThereInTheNextProcess(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	begin(t, s)
	remembers(t, s, onTrial(1, 2))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	holds(t, s, 1, 2)
	remembers(t, s, onTrial(1, 2))
	save(t, s, barrier.Memory{})
	remembers(t, s, barrier.Memory{})
}

func TestSaveForgetsWhatIsNotNamed(t *testing.T) {
	s := open(t, t.TempDir())
	keep(t, s, 1)
	save(t, s, barrier.Memory{Confirmed: pointer(1)})
	keep(t, s, 2)
	holds(t, s, 1, 2)
	save(t, s, onTrial(1, 2))
	holds(t, s, 1, 2)
	save(t, s, barrier.Memory{Confirmed: pointer(2)})
	holds(t, s, 2)
}

func TestKeepLeavesOneThatIsNotNamed(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	begin(t, s)
	keep(t, s, 3, 4, 1, 5)
	holds(t, s, 1, 2, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path) // names are those on disk, though nothing was loaded
	keep(t, s, 6)
	holds(t, s, 1, 2, 6)
}

// TestFailedSaveForgetsNothing: after a failed fsync of the directory a power cut leaves the old memory or the new one.
func TestFailedSaveForgetsNothing(t *testing.T) {
	for _, step := range []durable.Step{durable.StepTemp, durable.StepSync, durable.StepRename, durable.StepSyncDir} {
		t.Run(string(step), func(t *testing.T) {
			s := open(t, t.TempDir())
			keep(t, s, 1)
			save(t, s, barrier.Memory{Confirmed: pointer(1)})
			keep(t, s, 2)
			full := errors.New("no space left on device")
			s.AfterStep(func(_ string, at durable.Step) error {
				if at == step {
					return full
				}
				return nil
			})
			if err := s.Save(t.Context(), barrier.Memory{Confirmed: pointer(2)}); !errors.Is(err, full) {
				t.Fatalf("save: %v", err)
			}
			s.AfterStep(nil)
			keep(t, s, 3)
			holds(t, s, 1, 2, 3)
			save(t, s, barrier.Memory{Confirmed: pointer(2)})
			holds(t, s, 2)
		})
	}
}

func TestFailedKeepIsWrittenAgain(t *testing.T) {
	s := open(t, t.TempDir())
	keep(t, s, 1)
	save(t, s, barrier.Memory{Confirmed: pointer(1)})
	writes, full := 0, errors.New("no space left on device")
	s.AfterStep(func(_ string, at durable.Step) error {
		if at == durable.StepRename {
			writes++
			return full
		}
		return nil
	})
	keep(t, s, 1) // there already: a full disk does not matter
	for want := 1; want <= 2; want++ {
		if err := s.Keep(t.Context(), digest(2), content(2)); !errors.Is(err, full) || writes != want {
			t.Errorf("keep: %v after %d writes, want %d: what may not be durable is not taken for kept", err, writes, want)
		}
	}
	s.AfterStep(nil)
	keep(t, s, 2)
	holds(t, s, 1, 2)
}

func TestDamagedMemoryIsAnErrorThatSaysWhatToDo(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	begin(t, s)
	file := filepath.Join(path, "memory.json")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damage := map[string][]byte{"torn": whole[:i], "flipped": bytes.Clone(whole), "doubled": append(bytes.Clone(whole[:i]), whole...)}
		damage["flipped"][i] ^= 1
		if i == 0 {
			delete(damage, "doubled")
		}
		for what, content := range damage {
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := s.Load(t.Context())
			var damaged *slotfile.DamagedError
			if !errors.As(err, &damaged) || damaged.Remedy == "" || !strings.Contains(err.Error(), file) {
				t.Fatalf("%s at byte %d: memory %v, error %v; want a DamagedError with its path and a remedy", what, i, m, err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	var damaged *slotfile.DamagedError
	if err := s.Save(t.Context(), barrier.Memory{}); !errors.As(err, &damaged) {
		t.Errorf("save over a damaged memory: %v", err)
	}
	if err := s.Keep(t.Context(), digest(3), content(3)); !errors.As(err, &damaged) {
		t.Errorf("keep beside a damaged memory: %v", err)
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	remembers(t, s, onTrial(1, 2))
	holds(t, s, 1, 2)
}

func TestNewerFormatIsRefused(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	for document, want := range map[string]string{
		`{"format":2,"memory":{"slots":[]}}`:        "run the newer build",
		`{"format":0,"memory":{}}`:                  "is damaged",
		`{"format":1,"memory":{"confirmd":{}}}`:     "is damaged",
		`{"format":1,"memory":{},"memory":{}}`:      "is damaged",
		`{"format":1,"memory":{"highest":"seven"}}`: "is damaged",
	} {
		if err := os.WriteFile(filepath.Join(path, "memory.json"), slotfile.Sealed(document), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: memory %v, error %v, want %q", document, m, err, want)
		}
	}
}

func TestDamagedArtefactIsSeenAndReplaced(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	keep(t, s, 1)
	files, err := filepath.Glob(filepath.Join(path, "artefact-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		for what, content := range map[string][]byte{"torn": whole[:i], "flipped": flipped} {
			if err := os.WriteFile(files[0], content, 0o600); err != nil {
				t.Fatal(err)
			}
			var damaged *slotfile.DamagedError
			if b, err := s.Bytes(t.Context(), digest(1)); !errors.As(err, &damaged) || errors.Is(err, barrier.ErrNoArtefact) {
				t.Fatalf("%s at byte %d: %q, %v; want a DamagedError", what, i, b, err)
			}
		}
	}
	keep(t, s, 1)
	holds(t, s, 1)
}

func TestArtefactOfAnotherDigestIsNotTaken(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	keep(t, s, 1)
	files, _ := filepath.Glob(filepath.Join(path, "artefact-*"))
	keep(t, s, 2)
	other, _ := filepath.Glob(filepath.Join(path, "artefact-*"))
	raw, err := os.ReadFile(other[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *slotfile.DamagedError
	if b, err := s.Bytes(t.Context(), digest(1)); !errors.As(err, &damaged) {
		t.Errorf("bytes: %q, %v", b, err)
	}
}

func TestBounds(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	most := make([]byte, barrier.MaxArtefactBytes)
	long := barrier.Digest("s:" + strings.Repeat("d", barrier.MaxDigestBytes-2))
	if err := s.Keep(t.Context(), long, most); err != nil {
		t.Fatalf("the largest artefact: %v", err)
	}
	if b, err := s.Bytes(t.Context(), long); err != nil || !bytes.Equal(b, most) {
		t.Errorf("the largest artefact: %d bytes, %v", len(b), err)
	}
	if err := s.Keep(t.Context(), long, append(most, 0)); !errors.Is(err, barrier.ErrInvalid) {
		t.Errorf("one byte more: %v", err)
	}
	if err := s.Keep(t.Context(), "no scheme", nil); !errors.Is(err, barrier.ErrInvalid) {
		t.Errorf("no digest: %v", err)
	}
	if err := s.Keep(t.Context(), "s:empty", nil); err != nil {
		t.Errorf("the smallest artefact: %v", err)
	}
	huge := barrier.Memory{Trial: &barrier.Trial{TakenBack: barrier.TakenBack(strings.Repeat("x", 64<<10))}}
	if err := s.Save(t.Context(), huge); !errors.Is(err, barrier.ErrInvalid) {
		t.Errorf("a memory that could not be read back: %v", err)
	}
	if err := os.WriteFile(filepath.Join(path, "memory.json"), make([]byte, 65<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err == nil {
		t.Error("an overlong memory was read")
	}
}

func TestOneProcessAtATime(t *testing.T) {
	path := t.TempDir()
	open(t, path)
	if _, err := slotfile.Open(path); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("second open: %v", err)
	}
}

func TestEndedContextDoesNothing(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Save(ctx, onTrial(1, 2)); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	if err := s.Keep(ctx, digest(1), content(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("keep: %v", err)
	}
	if _, err := s.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v", err)
	}
	if _, err := s.Bytes(ctx, digest(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("bytes: %v", err)
	}
	remembers(t, s, barrier.Memory{})
	holds(t, s)
}
