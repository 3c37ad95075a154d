// Package sourcetest is what every source.Source must pass.
package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// Home is where one document of the test's own is, empty at first. Everything but Open is what people or misfortune do behind the
// source's back, and ends the test when it fails.
type Home struct {
	// Open returns another source of it, as another process has one. The suite closes it.
	Open func(testing.TB) source.Source
	// Write puts text there, at the version that a home keeps apart from it.
	Write func(t testing.TB, version uint64, body string)
	// Delete takes the document away.
	Delete func(testing.TB)
	// Break makes reads fail, until mend is called, although the document is untouched.
	Break func(testing.TB) (mend func())
}

const text = "# ours\nversion: 40\nbridge: {log_level: warn}\n"

// Run runs the suite; home makes a new one for each test.
func Run(t *testing.T, home func(testing.TB) Home) {
	for _, c := range []struct {
		name string
		test func(testing.TB, Home)
	}{
		{"nothing is missing, not an error", missing},
		{"created at version 1, durably", created},
		{"what is there is never created over", createdOver},
		{"saved if the version is right", saved},
		{"not saved if it is not", notSaved},
		{"not saved where nothing is", savedMissing},
		{"one of many creates", manyCreate},
		{"one of many saves", manySave},
		{"what is no document is not saved", noDocument},
		{"the largest document", largest},
		{"what a person writes is read", written},
		{"what cannot be read is not missing", broken},
		{"observed in order", observed},
		{"deleted and created again", recreated},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, home(t)) })
	}
}

func open(t testing.TB, h Home) source.Source {
	t.Helper()
	s := h.Open(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// has fails the test unless s holds body at the version.
func has(t testing.TB, s source.Source, version uint64, body string) source.Stored {
	t.Helper()
	got, err := s.Read(t.Context())
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if got.Version != version || string(got.Body) != body {
		t.Fatalf("read version %d, %q; want %d, %q", got.Version, got.Body, version, body)
	}
	return got
}

// at is text with its version.
func at(version uint64) string {
	return strings.Replace(text, "version: 40", fmt.Sprintf("version: %d", version), 1)
}

func must(t testing.TB) func(source.Stored, error) source.Stored {
	return func(s source.Stored, err error) source.Stored {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func missing(t testing.TB, h Home) {
	if got, err := open(t, h).Read(t.Context()); !errors.Is(err, source.ErrMissing) {
		t.Errorf("read %+v, %v", got, err)
	}
}

func created(t testing.TB, h Home) {
	s := open(t, h)
	got := must(t)(s.CreateIfAbsent(t.Context(), []byte(text)))
	if got.Version != 1 || string(got.Body) != at(1) {
		t.Errorf("created version %d, %q", got.Version, got.Body)
	}
	for _, s := range []source.Source{s, open(t, h)} {
		if again := has(t, s, 1, at(1)); again.Lineage != got.Lineage {
			t.Errorf("created with lineage %q, read with %q", got.Lineage, again.Lineage)
		}
	}
}

func createdOver(t testing.TB, h Home) {
	for _, there := range []string{"version: 9\n", "no: document: at all\n"} {
		h.Write(t, 9, there)
		s := open(t, h)
		if got, err := s.CreateIfAbsent(t.Context(), []byte(text)); !errors.Is(err, source.ErrExists) {
			t.Errorf("over %q: %+v, %v", there, got, err)
		}
		if got, err := s.Read(t.Context()); err != nil || string(got.Body) != there {
			t.Errorf("%q became %q, %v", there, got.Body, err)
		}
	}
}

func saved(t testing.TB, h Home) {
	a, b := open(t, h), open(t, h)
	first := must(t)(a.CreateIfAbsent(t.Context(), []byte(text)))
	got := must(t)(b.SaveIfVersion(t.Context(), 1, []byte(text+"sessions: []\n")))
	if got.Version != 2 || string(got.Body) != at(2)+"sessions: []\n" || got.Lineage != first.Lineage {
		t.Errorf("saved %+v", got)
	}
	has(t, a, 2, at(2)+"sessions: []\n")
	must(t)(a.SaveIfVersion(t.Context(), 2, []byte(text)))
	has(t, b, 3, at(3))
}

func notSaved(t testing.TB, h Home) {
	s := open(t, h)
	must(t)(s.CreateIfAbsent(t.Context(), []byte(text)))
	must(t)(s.SaveIfVersion(t.Context(), 1, []byte(text)))
	for _, version := range []uint64{0, 1, 3, 40} {
		got, err := s.SaveIfVersion(t.Context(), version, []byte(text+"sessions: []\n"))
		var v *source.VersionError
		if !errors.As(err, &v) || v.Have != 2 {
			t.Errorf("saved over version %d: %+v, %v", version, got, err)
		}
	}
	has(t, s, 2, at(2))
}

func savedMissing(t testing.TB, h Home) {
	s := open(t, h)
	for _, version := range []uint64{0, 1} {
		if got, err := s.SaveIfVersion(t.Context(), version, []byte(text)); !errors.Is(err, source.ErrMissing) {
			t.Errorf("saved over nothing: %+v, %v", got, err)
		}
	}
	missing(t, h)
}

// many calls f in several goroutines, each with a source of its own, and returns how many succeeded. Others fail with refused.
func many(t testing.TB, h Home, refused error, f func(source.Source) error) int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for range 8 {
		s := open(t, h)
		wg.Go(func() {
			err := f(s)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				n++
			} else if !errors.Is(err, refused) {
				t.Errorf("lost with %v, want %v", err, refused)
			}
		})
	}
	wg.Wait()
	return n
}

func manyCreate(t testing.TB, h Home) {
	if n := many(t, h, source.ErrExists, func(s source.Source) error {
		_, err := s.CreateIfAbsent(t.Context(), []byte(text))
		return err
	}); n != 1 {
		t.Errorf("%d of them created it", n)
	}
}

func manySave(t testing.TB, h Home) {
	must(t)(open(t, h).CreateIfAbsent(t.Context(), []byte(text)))
	for version := range uint64(5) {
		if n := many(t, h, source.ErrVersion, func(s source.Source) error {
			_, err := s.SaveIfVersion(t.Context(), version+1, []byte(text))
			return err
		}); n != 1 {
			t.Errorf("%d of them saved over version %d", n, version+1)
		}
	}
	has(t, open(t, h), 6, at(6))
}

func noDocument(t testing.TB, h Home) {
	s := open(t, h)
	for name, body := range map[string]string{"no mapping": "- a\n", "nothing": "", "no UTF-8": "version: 1\nx: \"\xff\"\n", "too long": strings.Repeat("#", document.MaxBytes) + "\n" + text} {
		if got, err := s.CreateIfAbsent(t.Context(), []byte(body)); err == nil {
			t.Errorf("%s: created as %q", name, got.Body)
		}
	}
	missing(t, h)
	must(t)(s.CreateIfAbsent(t.Context(), []byte(text)))
	if got, err := s.SaveIfVersion(t.Context(), 1, []byte("- a\n")); err == nil || errors.Is(err, source.ErrVersion) {
		t.Errorf("saved %q, %v", got.Body, err)
	}
	has(t, s, 1, at(1))
}

func largest(t testing.TB, h Home) {
	s := open(t, h)
	body := at(1) + "#" + strings.Repeat("é", (document.MaxBytes-len(at(1))-1)/2)
	must(t)(s.CreateIfAbsent(t.Context(), []byte(body)))
	has(t, s, 1, body)
}

func written(t testing.TB, h Home) {
	s := open(t, h)
	must(t)(s.CreateIfAbsent(t.Context(), []byte(text)))
	h.Write(t, 7, at(7)+"sessions: []\n")
	has(t, s, 7, at(7)+"sessions: []\n")
	must(t)(s.SaveIfVersion(t.Context(), 7, []byte(text)))
	has(t, s, 8, at(8))
}

func broken(t testing.TB, h Home) {
	s := open(t, h)
	must(t)(s.CreateIfAbsent(t.Context(), []byte(text)))
	mend := h.Break(t)
	for range 2 {
		if got, err := s.Read(t.Context()); err == nil || errors.Is(err, source.ErrMissing) {
			t.Errorf("read %q, %v", got.Body, err)
		}
	}
	mend()
	has(t, s, 1, at(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Open(t).Read(ctx); errors.Is(err, source.ErrMissing) {
		t.Errorf("a call that was given up: %v", err)
	}
}

// watch returns what is observed next, or "" when ten looks showed nothing new.
func watch(t testing.TB, s source.Source) (next func() string, nudge func()) {
	o := &source.Observer{Source: s}
	out := make(chan source.Observation)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.Run(ctx, out)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return func() string {
		o.Nudge()
		got, ok := <-out
		if !ok {
			return "ended"
		}
		if got.State == source.Present {
			return fmt.Sprintf("present %d", got.Stored.Version)
		}
		return string(got.State)
	}, o.Nudge
}

func expect(t testing.TB, next func() string, want string) {
	t.Helper()
	if got := next(); got != want {
		t.Fatalf("observed %s, want %s", got, want)
	}
}

func observed(t testing.TB, h Home) {
	s := open(t, h)
	next, _ := watch(t, s)
	expect(t, next, "missing")
	must(t)(open(t, h).CreateIfAbsent(t.Context(), []byte(text)))
	expect(t, next, "present 1")
	must(t)(open(t, h).SaveIfVersion(t.Context(), 1, []byte(text)))
	expect(t, next, "present 2")
	mend := h.Break(t)
	expect(t, next, "read error")
	mend()
	expect(t, next, "present 2")
	h.Write(t, 9, at(9))
	expect(t, next, "present 9")
	h.Delete(t)
	expect(t, next, "missing")
}

func recreated(t testing.TB, h Home) {
	s := open(t, h)
	must(t)(s.CreateIfAbsent(t.Context(), []byte(text)))
	must(t)(s.SaveIfVersion(t.Context(), 1, []byte(text)))
	next, _ := watch(t, s)
	expect(t, next, "present 2")
	h.Delete(t)
	if !s.Shared() {
		expect(t, next, "missing") // it must be seen to be missing
	}
	got := must(t)(open(t, h).CreateIfAbsent(t.Context(), []byte(text)))
	if !bytes.Equal(got.Body, []byte(at(1))) {
		t.Errorf("created %q", got.Body)
	}
	if s.Shared() {
		expect(t, next, "missing") // it is told although nobody looked meanwhile
	}
	expect(t, next, "present 1")
}
