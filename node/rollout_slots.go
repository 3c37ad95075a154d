package node

import (
	"bytes"
	"context"
	"fmt"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// What a member remembers is in the node's state, beside the marks, so that both move in one write. What it has confirmed is the
// store's word; what a node boots from is what an activation says for good, and follows when that has come.

// Load implements barrier.Slots.
func (c *cohort) Load(context.Context) (barrier.Memory, error) {
	c.a.work.Lock()
	defer c.a.work.Unlock()
	if c.a.unsaved {
		// The write that failed may have been done all the same.
		s, err := readState(c.a.cfg.Dir)
		if err != nil {
			return barrier.Memory{}, err
		}
		c.a.state = s
	}
	return c.a.state.Rollout, nil
}

// Save implements barrier.Slots.
func (c *cohort) Save(_ context.Context, m barrier.Memory) error {
	a := c.a
	a.work.Lock()
	defer a.work.Unlock()
	next := a.state
	next.Rollout = m
	if next.Trial != "" && !remembers(m, next.Trial) && !a.served.provisional() {
		next.Trial = ""
	}
	if next.Candidate != "" && !remembers(m, next.Candidate) && (a.held == nil || candidateName(a.held.pointer.Generation) != next.Candidate) {
		next.Candidate = ""
	}
	if err := a.save(next); err != nil {
		return err
	}
	if a.served.provisional() && m.Trial == nil && m.Confirmed.Generation == a.served.Activation().Generation {
		a.nudge() // for the activation that says so
	}
	if err := sweepSlots(a.cfg.Dir, a.state); err != nil {
		a.log.Warn("old slots not removed", "error", err)
	}
	return nil
}

// remembers tells whether m names the generation of a file.
func remembers(m barrier.Memory, file string) bool {
	g := generationOf(file)
	return g == fmt.Sprint(m.Confirmed.Generation) || m.Trial != nil && g == fmt.Sprint(m.Trial.Pointer.Generation)
}

// Keep implements barrier.Slots: it writes down what was prepared last. What is served is on disk already.
func (c *cohort) Keep(_ context.Context, d barrier.Digest, _ []byte) error {
	a := c.a
	a.work.Lock()
	defer a.work.Unlock()
	h := a.held
	if h == nil || h.pointer.Digest != d || h.kept {
		return nil
	}
	name := candidateName(h.pointer.Generation)
	if err := a.cfg.Dir.Write(name, h.raw); err != nil {
		return &diskError{err}
	}
	next := a.state.loaded(h.c.PayloadBLAKE3())
	next.Candidate = name
	if err := a.save(next); err != nil {
		return err
	}
	h.kept = true
	return nil
}

// Bytes implements barrier.Slots. A rollout that is voted on is not found here: its content may be old, and its version and
// margin are its own.
func (c *cohort) Bytes(_ context.Context, d barrier.Digest) ([]byte, error) {
	a := c.a
	a.work.Lock()
	defer a.work.Unlock()
	m := a.state.Rollout
	pointers := []barrier.Pointer{m.Confirmed}
	if m.Trial != nil {
		pointers = append(pointers, m.Trial.Pointer)
	}
	if v := c.view.Load(); v != nil {
		pointers = append(pointers, v.Committed)
	}
	for _, p := range pointers {
		if p.Digest != d || d == "" {
			continue
		}
		if a.serves(p) || a.home != nil && a.home.stands(p) {
			return append(bytes.Clone(onHand), d...), nil
		}
		for _, name := range []string{a.state.Candidate, a.state.Trial} {
			if name == "" || generationOf(name) != fmt.Sprint(p.Generation) {
				continue
			}
			if raw, ok := c.stored(name, p); ok {
				return raw, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: %s", barrier.ErrNoArtefact, d)
}

// stored reads a file that should have what p points to.
func (c *cohort) stored(name string, p barrier.Pointer) ([]byte, bool) {
	raw, err := c.a.readFile(name)
	if err != nil {
		c.a.log.Warn("what was kept for a rollout cannot be read", "file", name, "error", err)
		return nil, false
	}
	art, _, err := decodeSlot(raw)
	ok := err == nil && art.Version == p.Version && nodeproto.CandidateDigest(art.ContentHash) == string(p.Digest) &&
		hashOf(art.Payload) == art.PayloadBLAKE3
	return raw, ok
}
