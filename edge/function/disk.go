package function

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/internal/durable"
)

// disk is the directory of machine code. The runtime names the files there by a hash of its own; beside them stands, for each
// program, a file <key>.code with the name of its file and the BLAKE3-256 of what was written there. The runtime believes most of what it reads,
// so a file is given to it only while that is still what it wrote.
type disk struct {
	dir   string
	known map[string]bool // paths of the runtime's files, below dir
}

const codeSuffix = ".code"

func openDisk(dir string) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := &disk{dir: dir, known: make(map[string]bool)}
	return d, d.files(func(path string) error {
		d.known[path] = true
		return nil
	})
}

// files calls f for the path, below dir, of each file of the runtime's.
func (d *disk) files(f func(path string) error) error {
	return filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, codeSuffix) {
			return err
		}
		if path, err = filepath.Rel(d.dir, path); err != nil {
			return err
		}
		return f(path)
	})
}

func (d *disk) notePath(key [32]byte) string {
	return filepath.Join(d.dir, hex.EncodeToString(key[:])+codeSuffix)
}

// read returns the path and the hash of a program's file; ok is false when there is none that is known.
func (d *disk) read(key [32]byte) (path, hash string, ok bool) {
	text, err := os.ReadFile(d.notePath(key))
	if err != nil {
		return "", "", false
	}
	path, hash, ok = strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
	if !ok || !filepath.IsLocal(path) || len(hash) != 64 {
		return "", "", false
	}
	return path, hash, true
}

func (d *disk) hash(path string) (string, error) {
	b, err := os.ReadFile(filepath.Join(d.dir, path))
	if err != nil {
		return "", err
	}
	sum := blake3.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// check reports whether the runtime will find a program's file and may read it. What it must not read is taken away.
func (d *disk) check(key [32]byte) bool {
	path, want, ok := d.read(key)
	if ok {
		if got, err := d.hash(path); err == nil && got == want {
			return true
		}
	}
	d.drop(key)
	return false
}

// drop takes a program's file away. When it is not known which one that is, every one without a note goes: it may be any of them.
func (d *disk) drop(key [32]byte) {
	path, _, ok := d.read(key)
	_ = os.Remove(d.notePath(key)) // what cannot be removed is not read for its hash
	if ok {
		_ = os.Remove(filepath.Join(d.dir, path))
		delete(d.known, path)
		return
	}
	_ = d.prune(func([32]byte) bool { return true })
}

// note writes down which file the runtime has just written, in place of one that it could not use. written is false when it wrote none: it read the
// file that is known, or still had the program.
func (d *disk) note(key [32]byte) (written bool, err error) {
	var fresh []string
	err = d.files(func(path string) error {
		if !d.known[path] {
			fresh = append(fresh, path)
			d.known[path] = true
		}
		return nil
	})
	if err != nil || len(fresh) == 0 {
		return false, err
	}
	if len(fresh) > 1 {
		return true, fmt.Errorf("%d files are new in %s, where one was expected", len(fresh), d.dir)
	}
	if before, _, ok := d.read(key); ok && before != fresh[0] {
		_ = os.Remove(filepath.Join(d.dir, before)) // of another version of the runtime, or another processor; pruned else
		delete(d.known, before)
	}
	hash, err := d.hash(fresh[0])
	if err != nil {
		return true, err
	}
	return true, durable.WriteFile(d.notePath(key), []byte(fresh[0]+" "+hash+"\n"), 0o600)
}

// prune removes the files of programs that are not live, and those that no note names.
func (d *disk) prune(live func(key [32]byte) bool) error {
	notes, err := filepath.Glob(filepath.Join(d.dir, "*"+codeSuffix))
	if err != nil {
		return err
	}
	keep := make(map[string]bool)
	var problems []error
	for _, note := range notes {
		var key [32]byte
		raw, err := hex.DecodeString(strings.TrimSuffix(filepath.Base(note), codeSuffix))
		if err == nil && len(raw) == len(key) {
			copy(key[:], raw)
			if path, _, ok := d.read(key); ok && live(key) {
				keep[path] = true
				continue
			}
		}
		problems = append(problems, os.Remove(note))
	}
	problems = append(problems, d.files(func(path string) error {
		if keep[path] {
			return nil
		}
		delete(d.known, path)
		return os.Remove(filepath.Join(d.dir, path))
	}))
	return errors.Join(problems...)
}
