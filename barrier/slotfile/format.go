package slotfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
)

// The files. memory.json is one line of JSON and one with the SHA-256 of the first; an artefact is one line with
// its digest and the SHA-256 of digest and bytes, and then the bytes.
const (
	memoryFile     = "memory.json"
	memoryFormat   = 1
	artefactPrefix = "artefact-"

	maxMemory = 64 << 10
	maxHeader = 512
)

// DamagedError means that a file is not what was written to it.
type DamagedError struct {
	Path   string
	Reason string
	Remedy string // what to do
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: %s: %s", e.Path, e.Reason, e.Remedy)
}

const memoryRemedy = "the member cannot tell what it confirmed. Bring the file back from a backup of this machine or, when the rollout " +
	"store can be reached and no confirm window is open, move the file away: the member then takes what is committed from the store"

type memoryDocument struct {
	Format int            `json:"format"`
	Memory barrier.Memory `json:"memory"`
}

func encodeMemory(m barrier.Memory) ([]byte, error) {
	line, err := json.Marshal(memoryDocument{Format: memoryFormat, Memory: m})
	if err != nil {
		return nil, fmt.Errorf("encode the member's memory: %w", err)
	}
	line = append(line, '\n')
	content := append(line, checksum(line)+"\n"...)
	if len(content) > maxMemory {
		return nil, fmt.Errorf("%w: the member's memory has %d bytes, more than %d", barrier.ErrInvalid, len(content), maxMemory)
	}
	return content, nil
}

func readMemory(dir *durable.Dir) (barrier.Memory, error) {
	var none barrier.Memory
	content, err := dir.Read(memoryFile, maxMemory)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("load the member's memory: %w", err)
	}
	damaged := func(reason string) error {
		return &DamagedError{Path: filepath.Join(dir.Path(), memoryFile), Reason: reason, Remedy: memoryRemedy}
	}
	end := bytes.IndexByte(content, '\n') + 1
	if end == 0 || string(content[end:]) != checksum(content[:end])+"\n" {
		return none, damaged("it does not match its checksum")
	}
	var doc memoryDocument
	err = json.Unmarshal(content[:end], &doc, json.RejectUnknownMembers(true))
	var format struct {
		Format int `json:"format"`
	}
	switch {
	case json.Unmarshal(content[:end], &format) == nil && format.Format > memoryFormat:
		return none, fmt.Errorf("%s has format %d, and this build reads %d: run the newer build", filepath.Join(dir.Path(), memoryFile), format.Format, memoryFormat)
	case err != nil:
		return none, damaged(err.Error())
	case doc.Format != memoryFormat:
		return none, damaged(fmt.Sprintf("format %d", doc.Format))
	}
	return doc.Memory, nil
}

// artefactFile names the file of d, whose characters need not be fit for a file's name.
func artefactFile(d barrier.Digest) string {
	sum := sha256.Sum256([]byte(d))
	return artefactPrefix + hex.EncodeToString(sum[:])
}

func artefactHeader(d barrier.Digest, artefact []byte) []byte {
	return []byte(checksum([]byte(d), artefact) + " " + string(d) + "\n")
}

func readArtefact(dir *durable.Dir, d barrier.Digest) ([]byte, error) {
	name := artefactFile(d)
	content, err := dir.Read(name, maxHeader+barrier.MaxArtefactBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", barrier.ErrNoArtefact, d)
	}
	if err != nil {
		return nil, fmt.Errorf("bytes of %s: %w", d, err)
	}
	end := bytes.IndexByte(content, '\n') + 1
	if artefact := content[end:]; end > 0 && string(content[:end]) == string(artefactHeader(d, artefact)) {
		return artefact, nil
	}
	return nil, &DamagedError{
		Path: filepath.Join(dir.Path(), name), Reason: "it does not match its checksum",
		Remedy: "the bytes of " + string(d) + " are fetched from the rollout store again",
	}
}

// checksum is over parts, each with its length before it.
func checksum(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
