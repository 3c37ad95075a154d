// Package durable writes files that survive a crash whole, the old content or the new and never a mixture, and appends lines of which none is
// left in part.
//
// It is the only package that knows how. A file: write a temporary file, fsync it, rename it over the old one,
// fsync the directory. Lines: see Lines. An error from any step means that the write did not happen; an fsync that failed
// is never tried again on the same file, since the kernel may have dropped the pages that it could not
// write and a second fsync would succeed without them.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Step names a durable step. A crash after a step leaves what its comment says.
type Step string

// The steps of a write, in order.
const (
	StepTemp    Step = "temp"     // old content; a temporary file beside it, perhaps incomplete
	StepSync    Step = "fsync"    // old content; the temporary file is complete on disk
	StepRename  Step = "rename"   // new content, which a power cut may still take back
	StepSyncDir Step = "fsyncdir" // new content for good
)

// tempPrefix begins the name of every temporary file, so that Sweep knows them.
const tempPrefix = ".tmp-"

// ErrLocked means that another process holds the directory.
var ErrLocked = errors.New("is in use by another process")

// Dir is a directory whose files are written durably. The zero Dir is not usable; see Open.
type Dir struct {
	path string
	lock *os.File
	// after runs behind each completed step, with the file's name; an error stops the write there. It is
	// how tests crash a process at every step.
	after func(name string, s Step) error
}

// Open creates the directory (mode 0700) if it is missing, takes its lock for this process, and removes
// temporary files that a crash left. The error is ErrLocked when another process, or another Dir of this
// one, holds it. Close gives the lock back; so does the end of the process, however it ends.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("directory %s %w", path, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	d := &Dir{path: path, lock: lock}
	if err := d.sweep(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return d, nil
}

// AfterStep has f run behind each completed step of a write; see Step. It is for tests of crashes and must be
// called before any write.
func (d *Dir) AfterStep(f func(name string, s Step) error) { d.after = f }

// Path returns the directory's path.
func (d *Dir) Path() string { return d.path }

// Close gives the lock back.
func (d *Dir) Close() error { return d.lock.Close() }

// Sync makes durable what an earlier process, which ended before it could, has put in place.
func (d *Dir) Sync() error { return syncDir(d.path) }

func (d *Dir) sweep() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			if err := os.Remove(filepath.Join(d.path, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove temporary file: %w", err)
			}
		}
	}
	return nil
}

// Write replaces the file called name by the parts, one after another, mode 0600. When it returns nil the
// new content is on disk; on an error the old content stands, except that a failed fsync of the directory
// leaves it open which of the two a power cut would leave.
func (d *Dir) Write(name string, parts ...[]byte) (err error) {
	return writeFile(d.path, name, 0o600, os.Rename, d.after, parts...)
}

// WriteFile writes one file durably, without a lock: for files that one process writes once.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return writeFile(filepath.Dir(path), filepath.Base(path), mode, os.Rename, nil, data)
}

// CreateFile writes a file that is not there yet, durably; fs.ErrExist, and what is there is left alone, when it is.
func CreateFile(path string, data []byte, mode fs.FileMode) error {
	return writeFile(filepath.Dir(path), filepath.Base(path), mode, func(temp, path string) error {
		// Unlike a rename, a link never replaces.
		if err := os.Link(temp, path); err != nil {
			return err
		}
		return os.Remove(temp)
	}, nil, data)
}

func writeFile(dir, name string, mode fs.FileMode, place func(temp, path string) error, after func(string, Step) error, parts ...[]byte) (err error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return fmt.Errorf("write %q: not a plain file name", name)
	}
	done := func(s Step) error {
		if after == nil {
			return nil
		}
		return after(name, s)
	}
	f, err := os.CreateTemp(dir, tempPrefix+name+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	temp := f.Name()
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(temp)
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			return err
		}
	}
	if err := done(StepTemp); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := done(StepSync); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := place(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	if err := done(StepRename); err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	return done(StepSyncDir)
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Read returns a file of at most limit bytes; fs.ErrNotExist when there is none.
func (d *Dir) Read(name string, limit int64) ([]byte, error) {
	f, err := os.Open(filepath.Join(d.path, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("read %s: %d bytes, more than the %d allowed", name, info.Size(), limit)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

// Remove deletes a file; one that is not there is no error. It is not durable: a file that comes back
// after a power cut must do no harm.
func (d *Dir) Remove(name string) error {
	err := os.Remove(filepath.Join(d.path, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Names lists the files of the directory but the lock, sorted.
func (d *Dir) Names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Name() != "lock" && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
