package filesource_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/bridge/source"
	"github.com/guardyn-edge/guardyn/bridge/source/filesource"
	"github.com/guardyn-edge/guardyn/bridge/source/sourcetest"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// replace puts a file there as editors and configuration management do: whole.
func replace(t testing.TB, path, text string) {
	t.Helper()
	ok(t, os.WriteFile(path+".new", []byte(text), 0o600))
	ok(t, os.Rename(path+".new", path))
}

func TestSuite(t *testing.T) {
	sourcetest.Run(t, func(t testing.TB) sourcetest.Home {
		dir := filepath.Join(t.TempDir(), "conf")
		ok(t, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, "bridge.yaml")
		return sourcetest.Home{
			Open:   func(testing.TB) source.Source { return filesource.New(path, time.Millisecond) },
			Write:  func(t testing.TB, _ uint64, body string) { replace(t, path, body) },
			Delete: func(t testing.TB) { ok(t, os.Remove(path)) },
			Break: func(t testing.TB) func() {
				// As when a volume is not there any more.
				ok(t, os.Rename(dir, dir+".gone"))
				return func() { ok(t, os.Rename(dir+".gone", dir)) }
			},
		}
	})
}

// TestSettles: what is halfway written, or moved away to be written anew, is not seen.
func TestSettles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.yaml")
	whole := "version: 1\nsessions: []\n"
	replace(t, path, whole)
	synctest.Test(t, func(t *testing.T) {
		s := filesource.New(path, time.Second)
		read := func() chan string {
			out := make(chan string, 1)
			go func() {
				got, err := s.Read(t.Context())
				if err != nil {
					out <- err.Error()
					return
				}
				out <- string(got.Body)
			}()
			return out
		}
		if got := <-read(); got != whole {
			t.Fatalf("read %q", got)
		}
		began := time.Now()
		if got := <-read(); got != whole || time.Since(began) > 0 {
			t.Fatalf("read %q, after %s, although nothing had changed", got, time.Since(began))
		}
		for name, halfway := range map[string]func(){
			"half of it is written": func() { ok(t, os.WriteFile(path, []byte("version: 2\n"), 0o600)) },
			"it is moved away":      func() { ok(t, os.Rename(path, path+"~")) },
		} {
			halfway()
			out := read()
			time.Sleep(900 * time.Millisecond)
			synctest.Wait()
			replace(t, path, whole+"# "+name+"\n")
			if got := <-out; got != whole+"# "+name+"\n" {
				t.Errorf("%s: read %q", name, got)
			}
		}
		ok(t, os.Remove(path))
		out := read()
		time.Sleep(900 * time.Millisecond)
		select {
		case got := <-out:
			t.Errorf("said %q before it was sure", got)
		default:
		}
		if got := <-out; !strings.Contains(got, "there is no document") {
			t.Errorf("said %q", got)
		}
		// A file that never comes to rest is told.
		stop := make(chan struct{})
		go func() {
			for n := 0; ; n++ {
				replace(t, path, "version: 3\n#"+strings.Repeat("x", n)+"\n")
				select {
				case <-time.After(500 * time.Millisecond):
				case <-stop:
					return
				}
			}
		}()
		synctest.Wait()
		if got := <-read(); !strings.Contains(got, "keeps changing") {
			t.Errorf("said %q", got)
		}
		close(stop)
	})
}

// TestLinks: a document that stands behind links, as Kubernetes mounts one, is replaced behind them.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	target, link := filepath.Join(dir, "data", "real.yaml"), filepath.Join(dir, "bridge.yaml")
	ok(t, os.Symlink(target, link))
	s := filesource.New(link, time.Millisecond)
	if _, err := s.Read(t.Context()); err == nil || errors.Is(err, source.ErrMissing) {
		t.Errorf("a link to nothing: %v", err)
	}
	ok(t, os.WriteFile(target, []byte("version: 4\n"), 0o640))
	if _, err := s.SaveIfVersion(t.Context(), 4, []byte("version: 4\n# new\n")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "version: 5\n# new\n" {
		t.Errorf("behind it is %q, %v", got, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

// TestInvalidIsNotSavedOver: nobody knows whether it is newer.
func TestInvalidIsNotSavedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bridge.yaml")
	replace(t, path, "version: [\n")
	s := filesource.New(path, time.Millisecond)
	if _, err := s.SaveIfVersion(t.Context(), 0, []byte("version: 1\n")); err == nil || errors.Is(err, source.ErrVersion) {
		t.Errorf("saved: %v", err)
	}
	got, err := s.Read(context.Background())
	if err != nil || got.Version != 0 || string(got.Body) != "version: [\n" {
		t.Errorf("read %+v, %v", got, err)
	}
}
