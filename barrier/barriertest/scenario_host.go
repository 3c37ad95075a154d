package barriertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/guardyn-edge/guardyn/barrier"
)

// scheme begins the digests of a script: an artefact's digest is its text, so that a reader sees what is what.
const scheme = "text:"

func digestOf(name string) barrier.Digest { return barrier.Digest(scheme + name) }

func nameOf(d barrier.Digest) string {
	if d == "" {
		return "nothing"
	}
	return strings.TrimPrefix(string(d), scheme)
}

// scriptHost is a barrier.Host that does what the script says.
type scriptHost struct {
	w     *stage
	actor string
	gone  bool // with its process

	fails    map[string]string // step, or step and artefact → reason
	class    barrier.Class
	builds   string // the build digest; empty: the artefact's name
	health   barrier.Health
	prepared []*scriptPrepared // all there have been
}

func (w *stage) newHost(actor string) *scriptHost {
	h := &scriptHost{w: w, actor: actor, fails: map[string]string{}, health: barrier.Health{Converged: true, Detail: "works"}}
	w.hosts = append(w.hosts, h)
	return h
}

func (h *scriptHost) fail(step, artefact string) error {
	for _, key := range []string{step, step + " " + artefact} {
		if why, ok := h.fails[key]; ok {
			return errors.New(why)
		}
	}
	return nil
}

func (h *scriptHost) Digest(artefact []byte) (barrier.Digest, error) {
	return digestOf(string(artefact)), h.fail("digest", string(artefact))
}

func (h *scriptHost) Classify(_ context.Context, _ barrier.Pointer, artefact []byte) (barrier.Class, error) {
	return h.class, h.fail("classify", string(artefact))
}

func (h *scriptHost) Prepare(_ context.Context, p barrier.Pointer, artefact []byte) (barrier.Prepared, error) {
	if err := h.fail("prepare", string(artefact)); err != nil {
		h.w.say(h.actor, "cannot prepare %s: %v", artefact, err)
		return nil, err
	}
	h.w.say(h.actor, "prepares %s", artefact)
	made := &scriptPrepared{h: h, name: string(artefact)}
	h.prepared = append(h.prepared, made)
	return made, nil
}

func (h *scriptHost) Converged(context.Context) (barrier.Health, error) {
	return h.health, h.fail("converged", "")
}

type scriptPrepared struct {
	h    *scriptHost
	name string
	used int
}

func (p *scriptPrepared) BuildDigest() string {
	if p.h.builds != "" {
		return p.h.builds
	}
	return p.name
}

func (p *scriptPrepared) Swap(context.Context) error {
	p.used++
	if err := p.h.fail("swap", p.name); err != nil {
		p.h.w.say(p.h.actor, "cannot swap to %s: %v", p.name, err)
		return err
	}
	p.h.w.say(p.h.actor, "swaps to %s", p.name)
	return nil
}

func (p *scriptPrepared) Discard() {
	p.used++
	p.h.w.say(p.h.actor, "discards %s", p.name)
}

// scriptSlots is a member's disk: it survives the process.
type scriptSlots struct {
	memory barrier.Memory
	bytes  map[barrier.Digest][]byte
	full   bool
}

// mounted is the disk as one process sees it.
type mounted struct {
	*scriptSlots
	w *stage
	l *link // for the actor's name
}

func (s *scriptSlots) mount(w *stage, l *link) *mounted { return &mounted{s, w, l} }

var errFull = errors.New("no space left on device")

func (s *mounted) Load(context.Context) (barrier.Memory, error) { return s.memory, nil }

func (s *mounted) Save(_ context.Context, m barrier.Memory) error {
	text := "confirmed " + nameOf(m.Confirmed.Digest)
	if t := m.Trial; t != nil {
		text += ", on trial " + nameOf(t.Pointer.Digest)
		if t.TakenBack != "" {
			text += fmt.Sprintf(", taken back by %s", t.TakenBack)
		}
	}
	if m.Flaps != s.memory.Flaps {
		text += fmt.Sprintf(", flaps %d", m.Flaps)
	}
	if s.full {
		s.w.say(s.l.actor, "cannot remember: %s: %v", text, errFull)
		return errFull
	}
	s.w.say(s.l.actor, "remembers: %s", text)
	s.memory = m
	for d := range s.bytes {
		if !m.Names(d) {
			delete(s.bytes, d)
		}
	}
	return nil
}

func (s *mounted) Keep(_ context.Context, d barrier.Digest, artefact []byte) error {
	if _, ok := s.bytes[d]; ok {
		return nil
	}
	if s.full {
		s.w.say(s.l.actor, "cannot keep %s: %v", nameOf(d), errFull)
		return errFull
	}
	for old := range s.bytes {
		if !s.memory.Names(old) {
			delete(s.bytes, old)
		}
	}
	s.bytes[d] = artefact
	return nil
}

func (s *mounted) Bytes(_ context.Context, d barrier.Digest) ([]byte, error) {
	if b, ok := s.bytes[d]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("%w: %s", barrier.ErrNoArtefact, d)
}
