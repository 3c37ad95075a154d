package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// errNothingToDo means that the artefact is what is served.
var errNothingToDo = errors.New("nothing to do")

// install takes an artefact from the wire to serving: verify all of it, compile it, write the payload,
// write the state, swap. Up to the swap nothing that serves is touched, and up to the second write nothing
// that a boot reads. The acknowledgement is the caller's.
func (a *Agent) install(ctx context.Context, art *seal.Artefact) error {
	v, err := seal.Open(*art, a.cfg.Keys, servedSnapshot(a.served))
	if err != nil {
		return err
	}
	act := v.Activation()
	if err := a.admit(act); err != nil {
		return err
	}
	if err := a.fresh.allows(a, act); err != nil {
		return err
	}
	prepared, err := a.prepare(ctx, v)
	if err != nil {
		return err
	}
	name := slotName(act)
	if err := writeSlot(a.cfg.Dir, name, *art, act.PayloadBLAKE3); err != nil {
		return &diskError{err}
	}
	next := a.state
	next.Loading, next.Rebuilt = nil, false
	next.Marks = maps.Clone(a.state.Marks)
	next.Marks.Raise(v.KeyID(), act)
	if name != next.Current {
		// What is served is what is known to work: after a boot that fell back this is not the slot that
		// was current.
		if a.served != nil {
			next.Previous = slotName(a.served.Activation())
		}
		next.Current = name
	}
	if err := a.save(next); err != nil {
		return err
	}
	a.swap(v, art.Activation, prepared)
	if err := sweepSlots(a.cfg.Dir, a.state); err != nil {
		a.log.Warn("old slots not removed", "error", err)
	}
	return nil
}

// admit applies the table of activations to what passed before. A generation that passed but is not
// served, since its slot was damaged, is installed again.
func (a *Agent) admit(act seal.Activation) error {
	install, err := a.state.Marks.Admit(act, a.cfg.Keys)
	if err != nil {
		return err
	}
	if !install && a.served != nil {
		if s := a.served.Activation(); s.Epoch == act.Epoch && s.Generation == act.Generation {
			return errNothingToDo
		}
	}
	return nil
}

// prepare compiles v. The attempt is on disk before it begins: a compilation that takes the process down
// with it is counted by the next one.
func (a *Agent) prepare(ctx context.Context, v *seal.Verified) (p Prepared, err error) {
	payload := v.Activation().PayloadBLAKE3
	begun := a.state.Loading[payload]
	if begun >= maxLoads {
		return nil, crashed(payload)
	}
	next := a.state
	next.Loading = maps.Clone(a.state.Loading)
	if next.Loading == nil || len(next.Loading) >= maxLoading {
		next.Loading = map[string]int{}
	}
	next.Loading[payload] = begun + 1
	if err := a.save(next); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			a.log.Error("compiling a snapshot panicked", "panic", r, "stack", string(debug.Stack()))
			err = &seal.Refusal{Code: "compile_failed", Message: fmt.Sprintf("compiling the snapshot panicked: %v", r)}
		}
		if err != nil {
			// The process lives, so this was no crash.
			err = errors.Join(err, a.save(a.state.loaded(payload)))
		}
	}()
	p, err = a.cfg.Host.Prepare(ctx, v)
	if err != nil {
		return nil, &seal.Refusal{Code: "compile_failed", Message: err.Error()}
	}
	return p, nil
}

func crashed(payload string) error {
	return &seal.Refusal{Code: "crashed_at_load", Message: fmt.Sprintf(
		"payload %s ended this node %d times while it was loaded; publish another snapshot", payload[:min(16, len(payload))], maxLoads)}
}

// refusal describes why an install failed, for the acknowledgement.
func refusal(err error, version uint64) *nodeproto.AckError {
	var disk *diskError
	if errors.As(err, &disk) {
		return &nodeproto.AckError{Code: "disk_failed", Message: err.Error(), Version: version}
	}
	var r *seal.Refusal
	if errors.As(err, &r) {
		return &nodeproto.AckError{Code: r.Code, Message: r.Message, Version: version}
	}
	return &nodeproto.AckError{Code: "install_failed", Message: err.Error(), Version: version}
}
