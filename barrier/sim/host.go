package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// nature is how an artefact behaves in its hosts.
type nature int

const (
	healthy    nature = iota
	refusedBy         // one member cannot build it, or may not take it over live
	sickOn            // one member runs it and never converges
	flapsOn           // one member converges and fails now and then
	builtOther        // one member's binary builds something else of it
)

// artefact is what is rolled out.
type artefact struct {
	digest barrier.Digest
	nature nature
	on     int // the member it concerns, by index
}

func (w *world) newArtefact(n nature) *artefact {
	a := &artefact{
		digest: barrier.Digest(fmt.Sprintf("sim:%d", len(w.artefacts)+1)), nature: n, on: w.rng.IntN(w.cfg.machines),
	}
	w.artefacts[a.digest] = a
	return a
}

var (
	errBuild = errors.New("it does not build")
	errSwap  = errors.New("the port is taken")
	errDisk  = errors.New("no space left on device")
	errBytes = errors.New("the bytes have another digest")
	errClass = errors.New("the change needs the process to be replaced")
)

// host is the program that a member configures.
type host struct {
	w       *world
	machine int
	running barrier.Pointer
	swapped time.Duration // when
}

func (h *host) is(d barrier.Digest, n nature) bool {
	a := h.w.artefacts[d]
	return !h.w.healed && a.nature == n && a.on == h.machine
}

// prepare returns the build digest.
func (h *host) prepare(d barrier.Digest, candidate bool) (string, error) {
	if candidate && h.is(d, refusedBy) {
		return "", errBuild
	}
	if c := h.w.opt.Classes; c != nil && candidate && !h.w.healed && c.Refuses(h.running.Digest, d) {
		return "", errClass
	}
	if !h.w.healed && h.w.chance(h.w.cfg.prepareFails) {
		return "", errBuild
	}
	build := "build of " + string(d)
	if h.is(d, builtOther) {
		build += " by another binary"
	}
	return build, nil
}

func (h *host) swap(p barrier.Pointer) error {
	if !h.w.healed && h.w.chance(h.w.cfg.swapFails) {
		return errSwap
	}
	h.running, h.swapped = p, h.w.now
	return nil
}

func (h *host) converged() barrier.Health {
	d := h.running.Digest
	switch {
	case h.w.now-h.swapped < 50*time.Millisecond:
		return barrier.Health{Detail: "warming up"}
	case h.is(d, sickOn):
		return barrier.Health{Detail: "the origin does not answer"}
	case h.is(d, flapsOn) && h.w.chance(0.2), !h.w.healed && h.w.chance(h.w.cfg.flaps):
		return barrier.Health{Detail: "the origin does not answer now"}
	}
	return barrier.Health{Converged: true, Detail: "all well"}
}

// disk is where a member's memory is, as barrier.Slots promises it: written whole, or not at all.
type disk struct {
	memory barrier.Memory
	kept   []barrier.Digest
	lazy   *barrier.Memory // saved, and not durable: an ablation

	// For properties: what has been durable, and what has been applied, ever.
	highest   uint64
	confirmed uint64
}

func newDisk() *disk { return &disk{} }

// keep makes bytes durable; what neither the memory nor this call names goes.
func (d *disk) keep(digest barrier.Digest) {
	d.forget(digest)
	if !slices.Contains(d.kept, digest) {
		d.kept = append(d.kept, digest)
	}
}

func (d *disk) has(digest barrier.Digest) bool { return slices.Contains(d.kept, digest) }

func (d *disk) forget(but barrier.Digest) {
	d.kept = slices.DeleteFunc(d.kept, func(k barrier.Digest) bool {
		return k != but && !d.memory.Names(k) && (d.lazy == nil || !d.lazy.Names(k))
	})
}
