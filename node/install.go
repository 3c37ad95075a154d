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

// codeNotOnTrial refuses a provisional activation that no rollout asked this node to take.
const codeNotOnTrial = "not_on_trial"

// offer is an artefact that came from the control plane.
type offer struct {
	art  *seal.Artefact
	held bool // its payload was not sent, since the node has it
	// order is what the cohort decided that the node installs; nil: what every node is offered.
	order *order
}

// install takes an artefact from the wire to serving: verify all of it, compile it, write the payload,
// write the state, swap. Up to the swap nothing that serves is touched, and up to the second write nothing
// that a boot reads. A provisional activation never is what a boot reads. The acknowledgement is the caller's.
func (a *Agent) install(ctx context.Context, o offer) error {
	v, sealed, err := a.verify(o)
	if err != nil {
		return err
	}
	act := v.Activation()
	if err := o.order.allows(act); err != nil {
		return err
	}
	if err := a.admit(act); err != nil {
		return err
	}
	if err := a.fresh.allows(a, act); err != nil {
		return err
	}
	prepared, err := a.compiled(ctx, v)
	if err != nil {
		return err
	}
	name := slotName(act)
	if err := writeSlot(a.cfg.Dir, name, seal.Artefact{Sealed: sealed, Activation: o.art.Activation}, act.PayloadBLAKE3); err != nil {
		return &diskError{err}
	}
	if err := a.save(a.installing(v, name)); err != nil {
		return err
	}
	if o.order != nil && o.order.begin != nil {
		o.order.begin(a.served.snapshot(), v.Snapshot())
	}
	a.swap(newInstalled(v, o.art.Activation, sealed), prepared)
	a.distrust, a.returned, a.whole = false, false, false
	if a.held != nil && a.held.c == v.Candidate() {
		a.held = nil
	}
	if err := sweepSlots(a.cfg.Dir, a.state); err != nil {
		a.log.Warn("old slots not removed", "error", err)
	}
	return nil
}

func newInstalled(v *seal.Verified, proof seal.SignedActivation, sealed seal.Sealed) *installed {
	id := seal.DictionaryOf(sealed.Payload)
	sealed.Payload = nil
	return &installed{v, proof, sealed, id}
}

// installing is the state in which v, whose slot is name, is installed.
func (a *Agent) installing(v *seal.Verified, name string) state {
	act, next := v.Activation(), a.state
	next.Loading, next.Rebuilt = nil, false
	next.Marks = maps.Clone(a.state.Marks)
	next.Marks.Raise(v.KeyID(), act)
	if a.held != nil && a.held.c == v.Candidate() {
		next.Candidate = "" // the slot has its bytes
	}
	if act.Kind == seal.KindProvisional {
		next.Trial = name
		return next
	}
	next.Trial = ""
	if name != next.Current {
		// What is served is what is known to work: after a boot that fell back this is not the slot that
		// was current.
		if a.home != nil {
			next.Previous = a.home.slot()
		}
		next.Current = name
	}
	return next
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

// compiled returns what v is compiled to: nothing when it only changes the kind of what is served, and what was prepared
// before if it is the same.
func (a *Agent) compiled(ctx context.Context, v *seal.Verified) (Prepared, error) {
	act := v.Activation()
	if s := a.served; s != nil && s.Candidate() == v.Candidate() && s.Activation().Epoch == act.Epoch && s.Activation().Generation == act.Generation {
		return nil, nil
	}
	if h := a.held; h != nil && h.c == v.Candidate() && h.epoch == act.Epoch && h.pointer.Generation == act.Generation {
		return h.prepared, nil
	}
	return a.prepare(ctx, v.Candidate(), act.Epoch, act.Generation)
}

// prepare compiles c. The attempt is on disk before it begins: a compilation that takes the process down
// with it is counted by the next one. That it ended well is on disk with the caller's next write.
func (a *Agent) prepare(ctx context.Context, c *seal.Candidate, epoch, generation uint64) (Prepared, error) {
	payload := c.PayloadBLAKE3()
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
	p, err := a.compile(ctx, c, epoch, generation)
	if err != nil {
		// The process lives, so this was no crash.
		return nil, errors.Join(err, a.save(a.state.loaded(payload)))
	}
	a.state = a.state.loaded(payload)
	return p, nil
}

// compile has the host compile c; a panic is a refusal.
func (a *Agent) compile(ctx context.Context, c *seal.Candidate, epoch, generation uint64) (p Prepared, err error) {
	defer func() {
		if r := recover(); r != nil {
			a.log.Error("compiling a snapshot panicked", "panic", r, "stack", string(debug.Stack()))
			p, err = nil, &seal.Refusal{Code: "compile_failed", Message: fmt.Sprintf("compiling the snapshot panicked: %v", r)}
		}
	}()
	p, err = a.cfg.Host.Prepare(ctx, c, epoch, generation)
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
