// Package slotfile keeps a member's memory in a directory of the machine it runs on.
//
// The directory holds memory.json, which is barrier.Memory with a checksum, and one file for each artefact. Every file is
// written whole and fsynced before it counts, so a crash or a power cut at any instant leaves the old or the
// new, and never a Memory whose bytes are gone.
package slotfile

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
)

// Slots is a barrier.Slots on a directory. It is safe for concurrent use. One process at a time has a
// directory open.
type Slots struct {
	dir *durable.Dir

	mu     sync.Mutex // guards the files and what is below
	loaded bool
	// named are the digests of the Memory on disk, and of those that a failed Save may have left there.
	named map[barrier.Digest]bool
	// unsure are digests whose last write failed: the file may be in place and yet not survive a power cut.
	unsure map[barrier.Digest]bool
}

var _ barrier.Slots = (*Slots)(nil)

// Open creates the directory (mode 0700) if it is missing and takes it for this process until Close; the error wraps
// durable.ErrLocked when another process has it. Nothing is read yet: see Load.
func Open(path string) (*Slots, error) {
	dir, err := durable.Open(path)
	if err != nil {
		return nil, fmt.Errorf("member's memory: %w", err)
	}
	// What a killed process has put in place counts from here on, so a power cut must not take it back.
	if err := dir.Sync(); err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("member's memory %s: %w", path, err)
	}
	return &Slots{dir: dir, named: map[barrier.Digest]bool{}, unsure: map[barrier.Digest]bool{}}, nil
}

// Close gives the directory back. Calls after it fail or have no effect for the process that has it then.
func (s *Slots) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir.Close()
}

// Load implements barrier.Slots: the zero Memory only when there is no memory.json. The error is a *DamagedError
// when it is not what was saved.
func (s *Slots) Load(ctx context.Context) (barrier.Memory, error) {
	if err := ctx.Err(); err != nil {
		return barrier.Memory{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load()
}

func (s *Slots) load() (barrier.Memory, error) {
	m, err := readMemory(s.dir)
	if err != nil {
		return m, err
	}
	if !s.loaded {
		s.loaded = true
		s.name(m)
	}
	return m, nil
}

// name adds what m refers to.
func (s *Slots) name(m barrier.Memory) {
	if !m.Confirmed.IsZero() {
		s.named[m.Confirmed.Digest] = true
	}
	if m.Trial != nil {
		s.named[m.Trial.Pointer.Digest] = true
	}
}

// Save implements barrier.Slots. After an error the old Memory stands or, when only the last fsync failed, either; the bytes of
// both are kept until a Save succeeds. A file that cannot be removed is left to the next Save.
func (s *Slots) Save(ctx context.Context, m barrier.Memory) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded {
		// A damaged memory is not written over.
		if _, err := s.load(); err != nil {
			return err
		}
	}
	content, err := encodeMemory(m)
	if err != nil {
		return err
	}
	s.name(m)
	if err := s.dir.Write(memoryFile, content); err != nil {
		return fmt.Errorf("save the member's memory: %w", err)
	}
	clear(s.named)
	s.name(m)
	s.forget("")
	return nil
}

// Keep implements barrier.Slots; the error is barrier.ErrInvalid for what is not an artefact. At most one artefact that the
// Memory does not name is there afterwards.
func (s *Slots) Keep(ctx context.Context, d barrier.Digest, artefact []byte) error {
	if err := barrier.CheckArtefact(d, artefact); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded {
		if _, err := s.load(); err != nil {
			return err
		}
	}
	s.forget(d)
	// A full disk must not keep a member from going back to what is there already.
	if kept, err := readArtefact(s.dir, d); err == nil && !s.unsure[d] && bytes.Equal(kept, artefact) {
		return nil
	}
	s.unsure[d] = true
	if err := s.dir.Write(artefactFile(d), artefactHeader(d, artefact), artefact); err != nil {
		return fmt.Errorf("keep the bytes of %s: %w", d, err)
	}
	delete(s.unsure, d)
	return nil
}

// forget removes artefacts that are neither named nor d.
func (s *Slots) forget(d barrier.Digest) {
	keep := map[string]bool{artefactFile(d): d != ""}
	for d := range s.named {
		keep[artefactFile(d)] = true
	}
	names, err := s.dir.Names()
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, artefactPrefix) && !keep[name] {
			_ = s.dir.Remove(name)
		}
	}
}

// Bytes implements barrier.Slots. The error is a *DamagedError when they are not what was kept; then they must be
// fetched, and Keep puts them in place again.
func (s *Slots) Bytes(ctx context.Context, d barrier.Digest) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return readArtefact(s.dir, d)
}
