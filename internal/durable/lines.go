package durable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of a file of lines.
const (
	// MaxLine is how far back the begin of an unfinished last line is looked for, in bytes; a longer one is ended, not cut.
	MaxLine = 128 << 20
	// LockPatience is how long an append waits for others to be done with the file.
	LockPatience = 5 * time.Second
	lockPoll     = 5 * time.Millisecond
)

// Lines is a file that lines are appended to, by several processes of this machine too. One goroutine at a time uses a Lines.
type Lines struct {
	Path string
	// Mark is what every line begins with that is appended by it: an unfinished last line that begins otherwise is somebody else's, and kept.
	Mark string
	// Whole tells whether a last line lacks nothing but its end. It is asked only of lines with the mark.
	Whole func(line []byte) bool

	placed bool // the directory is known to have the file, on disk
}

// Torn is what a crash, a power cut or a full disk has left of a last line; the zero Torn is of a file whose last line is whole.
type Torn struct {
	Size  int64
	Begin string // its first bytes, 64 at most
	Cut   bool   // it is taken out; else it was ended, and is a line of its own
}

// Mend looks at the last line of the file. One that is not ended is cut off when it is a part of one that was being appended, or zeros that a
// power cut has left in its place, and ended when it is whole or somebody else's. fs.ErrNotExist when there is no file.
func (l *Lines) Mend(ctx context.Context) (Torn, error) {
	f, regular, err := l.open(ctx, 0)
	if err != nil || !regular {
		return Torn{}, errors.Join(err, closed(f))
	}
	torn, err := l.mend(f)
	if err == nil && torn != (Torn{}) {
		err = f.Sync()
	}
	return torn, errors.Join(err, closed(f))
}

// Append mends the file and appends lines, each with its end, in one write. When it returns nil they are on disk; on an error none of them is, as
// far as they could be taken back.
func (l *Lines) Append(ctx context.Context, lines []byte) (torn Torn, err error) {
	f, regular, err := l.open(ctx, os.O_CREATE)
	if err != nil {
		return Torn{}, errors.Join(err, closed(f))
	}
	defer func() { err = errors.Join(err, closed(f)) }()
	var size int64
	if regular {
		if torn, err = l.mend(f); err != nil {
			return torn, err
		}
		info, err := f.Stat()
		if err != nil {
			return torn, err
		}
		size = info.Size()
	}
	if _, err = f.Write(lines); err == nil {
		err = f.Sync()
	}
	if err != nil {
		// What a full disk took of them is not left there. Nor is what fsync failed for: the kernel may have dropped it, and would not write it
		// again for another fsync.
		if info, statErr := f.Stat(); regular && statErr == nil && info.Size() > size {
			err = errors.Join(err, f.Truncate(size))
		}
		return torn, err
	}
	if regular && !l.placed {
		path, err := filepath.EvalSymlinks(l.Path)
		if err == nil {
			err = syncDir(filepath.Dir(path))
		}
		if err != nil {
			return torn, err
		}
		l.placed = true
	}
	return torn, nil
}

func closed(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close() // and with it the lock
}

// open opens the file and takes its lock, if it is a regular one.
func (l *Lines) open(ctx context.Context, flags int) (f *os.File, regular bool, err error) {
	if f, err = os.OpenFile(l.Path, os.O_RDWR|os.O_APPEND, 0); errors.Is(err, fs.ErrNotExist) && flags != 0 {
		l.placed = false
		f, err = os.OpenFile(l.Path, os.O_RDWR|os.O_APPEND|flags, 0o600)
	}
	if err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return f, false, err
	}
	return f, true, lock(ctx, f)
}

// lock waits for the lock of a file. Where locks are not known, as on some network file systems, there is none.
func lock(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, LockPatience)
	defer cancel()
	again := time.NewTicker(lockPoll)
	defer again.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil, errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS):
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("file %s %w", f.Name(), ErrLocked)
		}
	}
}

func (l *Lines) mend(f *os.File) (Torn, error) {
	info, err := f.Stat()
	if err != nil {
		return Torn{}, err
	}
	size := info.Size()
	at, err := lastLine(f, size)
	if err != nil || at == size {
		return Torn{}, err
	}
	first := make([]byte, min(size-max(at, 0), int64(max(64, len(l.Mark)))))
	if _, err := f.ReadAt(first, max(at, 0)); err != nil {
		return Torn{}, err
	}
	torn := Torn{Size: size - max(at, 0), Begin: string(first[:min(len(first), 64)])}
	marked := bytes.HasPrefix(first, []byte(l.Mark)) || bytes.HasPrefix([]byte(l.Mark), first)
	if at >= 0 && (marked || first[0] == 0) {
		line := make([]byte, size-at)
		if _, err := f.ReadAt(line, at); err != nil {
			return Torn{}, err
		}
		torn.Cut = marked && !l.Whole(line) || len(bytes.Trim(line, "\x00")) == 0
	}
	if torn.Cut {
		err = f.Truncate(at)
	} else {
		_, err = f.Write([]byte{'\n'})
	}
	return torn, err
}

// lastLine returns where the last line begins, size when it is ended, and -1 when it has more than MaxLine bytes.
func lastLine(f *os.File, size int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		begin := max(0, end-int64(len(block)))
		part := block[:end-begin]
		if _, err := f.ReadAt(part, begin); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return begin + int64(i) + 1, nil
		}
		if end = begin; size-end > MaxLine {
			return -1, nil
		}
	}
	return 0, nil
}
