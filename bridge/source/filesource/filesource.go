// Package filesource keeps a bridge's document in a file, which people and programs may replace.
package filesource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/source"
	"github.com/guardyn-edge/guardyn/internal/durable"
)

const (
	// DefaultSettle is how long what is in the file, or that it is gone, must stay the same before it counts: who writes it in
	// place, or moves it away to write it anew, is halfway through until then.
	DefaultSettle = 250 * time.Millisecond
	// maxSettles is after how many changes in a row a Read gives up.
	maxSettles = 20
)

// Source is a document in a file. Every member has a file of its own, so one can be behind: Shared is false. The version is
// the one that the document names.
type Source struct {
	path   string
	settle time.Duration

	mu   sync.Mutex // guards last and is held by one Read at a time
	last *look      // that settled
}

var _ source.Source = (*Source)(nil)

// look is what was found.
type look struct {
	body []byte
	gone bool
}

func (l look) equal(m look) bool { return l.gone == m.gone && bytes.Equal(l.body, m.body) }

// New returns the source of the file at path; settle of 0 is DefaultSettle.
func New(path string, settle time.Duration) *Source {
	if settle == 0 {
		settle = DefaultSettle
	}
	return &Source{path: path, settle: settle}
}

// Read returns what has not changed for the settling time; at the first call, and when something is new, it takes that long.
// The file is missing only when its directory can be read and has no such entry.
func (s *Source) Read(ctx context.Context) (source.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.look()
	for n := 0; err == nil && (s.last == nil || !s.last.equal(now)); n++ {
		if n == maxSettles {
			return source.Stored{}, fmt.Errorf("%s: it keeps changing", s.path)
		}
		timer := time.NewTimer(s.settle)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return source.Stored{}, ctx.Err()
		}
		before := now
		if now, err = s.look(); err == nil && now.equal(before) {
			s.last = &now
		}
	}
	if err != nil {
		return source.Stored{}, err
	}
	return now.stored(s.path)
}

func (l look) stored(path string) (source.Stored, error) {
	if l.gone {
		return source.Stored{}, fmt.Errorf("%s: %w", path, source.ErrMissing)
	}
	version, err := document.VersionOf(l.body)
	if err != nil {
		version = 0 // it is for who parses the document to say what is wrong with it
	}
	return source.Stored{Body: l.body, Version: version}, nil
}

// look reads the file once.
func (s *Source) look() (look, error) {
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return look{gone: true}, s.reallyGone()
	}
	if err != nil {
		return look{}, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, document.MaxBytes+1))
	if err != nil {
		return look{}, fmt.Errorf("read %s: %w", s.path, err)
	}
	return look{body: body}, nil
}

// reallyGone is nil when the directory is there and has no such entry.
func (s *Source) reallyGone() error {
	dir := filepath.Dir(s.path)
	if _, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("%s: its directory cannot be looked at: %w", s.path, err)
	}
	if _, err := os.Lstat(s.path); err == nil {
		return fmt.Errorf("%s: it is a link to something that is not there", s.path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// SaveIfVersion implements source.Source. Two that do it at once, in whatever processes of this machine, do it in turn.
func (s *Source) SaveIfVersion(_ context.Context, version uint64, body []byte) (source.Stored, error) {
	return s.write(version+1, body, func(path string, now look, body []byte) error {
		if now.gone {
			return source.ErrMissing
		}
		have, err := document.VersionOf(now.body)
		if err != nil {
			return fmt.Errorf("what is there tells no version to compare: replace the file itself: %w", err)
		}
		if have != version {
			return &source.VersionError{Have: have}
		}
		mode := fs.FileMode(0o600)
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
		return durable.WriteFile(path, body, mode)
	})
}

// CreateIfAbsent implements source.Source.
func (s *Source) CreateIfAbsent(_ context.Context, body []byte) (source.Stored, error) {
	return s.write(1, body, func(path string, now look, body []byte) error {
		if !now.gone {
			return source.ErrExists
		}
		err := durable.CreateFile(path, body, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return source.ErrExists
		}
		return err
	})
}

// write has put write body, at its new version, while no other does the same.
func (s *Source) write(version uint64, body []byte, put func(path string, now look, body []byte) error) (source.Stored, error) {
	body, err := document.WithVersion(body, version)
	if err != nil {
		return source.Stored{}, fmt.Errorf("%s: %w", s.path, err)
	}
	path, err := filepath.EvalSymlinks(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = s.path, nil
	}
	if err != nil {
		return source.Stored{}, err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return source.Stored{}, err
	}
	defer dir.Close() // and with it the lock
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return source.Stored{}, fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	now, err := s.look()
	if err == nil {
		err = put(path, now, body)
	}
	if err != nil {
		return source.Stored{}, fmt.Errorf("%s: %w", s.path, err)
	}
	s.mu.Lock()
	s.last = &look{body: body} // written whole: nothing is left to settle
	s.mu.Unlock()
	return source.Stored{Body: body, Version: version}, nil
}

// Shared implements source.Source.
func (*Source) Shared() bool { return false }

// String implements source.Source.
func (s *Source) String() string { return "file:" + s.path }

// Close implements source.Source.
func (*Source) Close() error { return nil }
