package node_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"pgregory.net/rapid"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// Poll is a poll that the control plane itself answers.
func (m *trustMachine) Poll(*rapid.T) {
	live := m.live()
	at := claim{epoch: m.ask.Epoch, generation: m.ask.Generation}
	switch c := at.order(live.claim); {
	case c > 0:
		m.deliver(reply{err: fmt.Errorf("%w: 409", nodeproto.ErrAhead)})
	case c == 0:
		r := reply{Answer: nodeproto.Answer{Version: live.Version}}
		if m.ask.Nonce != "" {
			r.Freshness = live.by.fresh(m.ask.Nonce, live.Artefact)
			if m.rules.trusts(live.key) {
				m.rules.proved(&live.claim)
			}
		}
		m.deliver(r)
	default:
		m.offer(live, true, &live)
	}
}

// Apply publishes something new, and the node polls.
func (m *trustMachine) Apply(rt *rapid.T) { m.PublishUnseen(rt); m.Poll(rt) }

// PublishUnseen publishes something new between two polls.
func (m *trustMachine) PublishUnseen(*rapid.T) { m.publish(m.versions+1, seal.KindApply) }

// Rollback activates an older version.
func (m *trustMachine) Rollback(rt *rapid.T) {
	m.publish(m.history[rapid.IntRange(0, len(m.history)-1).Draw(rt, "to")].version, seal.KindRollback)
	m.Poll(rt)
}

// Provisional publishes until somebody confirms.
func (m *trustMachine) Provisional(rt *rapid.T) {
	m.publish(m.versions+1, seal.KindProvisional)
	m.Poll(rt)
}

// Confirm is a signed change of kind: same generation, same content.
func (m *trustMachine) Confirm(rt *rapid.T) {
	live := m.live()
	if live.kind != seal.KindProvisional || live.key != m.signer.key.ID() {
		rt.Skip()
	}
	confirmed := m.made.activate(m.signer, live.version, live.epoch, live.generation, seal.KindConfirmed)
	m.history = append(m.history, confirmed)
	m.offer(confirmed, true, &confirmed)
}

// Replay offers what was genuine once, live perhaps, but with no fresh answer, or one that was recorded.
func (m *trustMachine) Replay(rt *rapid.T) {
	a := m.live()
	if rapid.Bool().Draw(rt, "older") {
		a = m.history[rapid.IntRange(0, len(m.history)-1).Draw(rt, "which")]
	}
	if rapid.Bool().Draw(rt, "recorded proof") {
		m.rules.offer(a.claim, true, nil)
		m.deliver(reply{Answer: nodeproto.Answer{Artefact: a.Artefact, Freshness: a.by.fresh("00112233445566778899aabbccddeeff", a.Artefact)}})
	} else {
		m.offer(a, true, nil)
	}
	m.Check(rt)
	m.Poll(rt) // which the replay must not spoil
}

// Freeze says that nothing is newer, without proof.
func (m *trustMachine) Freeze(*rapid.T) {
	m.deliver(reply{Answer: nodeproto.Answer{Version: m.ask.Have}})
}

// Reorder publishes several and has them arrive in another order, the proof being of the last.
func (m *trustMachine) Reorder(rt *rapid.T) {
	n := rapid.IntRange(2, 4).Draw(rt, "publications")
	for range n {
		m.PublishUnseen(rt)
	}
	live := m.live()
	last := m.history[len(m.history)-n:]
	for _, i := range rapid.Permutation([]int{0, 1, 2, 3}[:n]).Draw(rt, "order") {
		m.offer(last[i], true, &live)
		m.Check(rt)
	}
}

// Away is a control plane that does not answer.
func (m *trustMachine) Away(rt *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(rt, "polls") {
		m.deliver(reply{err: errors.New("connection refused")})
	}
}

// Forge offers what no control plane made, beside the proof of what is live.
func (m *trustMachine) Forge(rt *rapid.T) {
	live := m.live()
	base := live
	if rapid.Bool().Draw(rt, "of the next") {
		base = m.made.activate(m.signer, m.versions+1, m.epoch, live.generation+1, seal.KindApply)
	}
	a := *base.Artefact
	a.Payload = slices.Clone(a.Payload)
	other := m.made.activate(m.signer, base.version+1, base.epoch, base.generation+1, seal.KindApply)
	at := rapid.IntRange(0, len(a.Payload)-1).Draw(rt, "at")
	ways := map[string]func(){
		"another's key":        func() { a = *m.made.activate(stranger, base.version, base.epoch, base.generation, base.kind).Artefact },
		"flipped bit":          func() { a.Payload[at] ^= 1 << (at % 8) },
		"cut short":            func() { a.Payload = a.Payload[:at] },
		"trailing byte":        func() { a.Payload = append(a.Payload, 0) },
		"unsigned":             func() { a.Signature = "" },
		"envelope's version":   func() { a.Version++ },
		"envelope's hash":      func() { a.ContentHash = other.hash },
		"envelope's key":       func() { a.KeyID = stranger.key.ID() },
		"another's bytes":      func() { a.Sealed = other.Sealed },
		"another's activation": func() { a.Activation = other.Activation },
		"stranger's activation": func() {
			a.Activation = m.made.activate(stranger, base.version, base.epoch, base.generation, base.kind).Activation
		},
		"no activation":               func() { a.Activation = "" },
		"flipped bit in activation":   func() { a.Activation = flipped(a.Activation, at) },
		"signature of the activation": func() { a.Signature = string(a.Activation[len(a.Activation)-128:]) },
	}
	way := rapid.SampledFrom(slices.Sorted(maps.Keys(ways))).Draw(rt, "way")
	ways[way]()
	base.Artefact = &a
	m.offer(base, false, &live)
	m.Check(rt)
	m.Poll(rt) // which the forgery must not spoil
}

// flipped turns one character of the signed statement into another that is no white space.
func flipped(s seal.SignedActivation, at int) seal.SignedActivation {
	b := []byte(s)
	b[at%len(b)] ^= 1
	return seal.SignedActivation(b)
}

// Equivocate signs the generation that the node holds for other content, with a key that it trusts.
func (m *trustMachine) Equivocate(rt *rapid.T) {
	high, ok := m.rules.mark()
	if !ok {
		rt.Skip()
	}
	s := m.trusted[rapid.IntRange(0, len(m.trusted)-1).Draw(rt, "key")]
	a := m.made.activate(s, high.version+1, high.epoch, high.generation, seal.KindApply)
	m.offer(a, true, &a)
}

// Jump signs something too far ahead, with a key that the node trusts.
func (m *trustMachine) Jump(rt *rapid.T) {
	high, ok := m.rules.mark()
	if !ok {
		rt.Skip()
	}
	s := m.trusted[rapid.IntRange(0, len(m.trusted)-1).Draw(rt, "key")]
	far := uint64(rapid.IntRange(1, 5).Draw(rt, "beyond")) + 1<<20
	a := m.made.activate(s, m.versions+1, high.epoch, high.generation+far, seal.KindApply)
	if rapid.Bool().Draw(rt, "epoch") {
		a = m.made.activate(s, m.versions+1, high.epoch+far, high.generation+1, seal.KindApply)
	}
	m.offer(a, true, &a)
}

// Steal: somebody has a trusted key, which is not the one in use, and takes the node far ahead; that the key is
// known to be stolen, it is not trusted again once it was dropped.
func (m *trustMachine) Steal(rt *rapid.T) {
	i := rapid.IntRange(0, len(m.trusted)-1).Draw(rt, "key")
	s := m.trusted[i]
	if s.key.ID() == m.signer.key.ID() {
		rt.Skip()
	}
	m.stolen[s.key.ID()] = true
	high, _ := m.rules.mark()
	ahead := uint64(rapid.SampledFrom([]int{1, 2, 1000, 1 << 20}).Draw(rt, "ahead"))
	a := m.made.activate(s, m.versions+100, max(high.epoch, 1), high.generation+ahead, seal.KindApply)
	m.offer(a, true, &a)
}

// AddKey has the operator trust one more key.
func (m *trustMachine) AddKey(rt *rapid.T) {
	s := testSigner(rapid.IntRange(1, keys).Draw(rt, "key"))
	if m.trustsNow(s) || m.stolen[s.key.ID()] {
		rt.Skip()
	}
	m.trusted = append(m.trusted, s)
	m.restart(rt)
}

// DropKey has the operator trust one key less, the one in use perhaps: too early.
func (m *trustMachine) DropKey(rt *rapid.T) {
	if len(m.trusted) == 1 {
		rt.Skip()
	}
	i := rapid.IntRange(0, len(m.trusted)-1).Draw(rt, "key")
	m.trusted = slices.Delete(slices.Clone(m.trusted), i, i+1)
	m.restart(rt)
}

// SwitchKey has the control plane sign with another key from now on.
func (m *trustMachine) SwitchKey(rt *rapid.T) {
	s := testSigner(rapid.IntRange(1, keys).Draw(rt, "key"))
	if m.stolen[s.key.ID()] {
		rt.Skip()
	}
	m.signer = s
	m.Apply(rt)
}

func (m *trustMachine) trustsNow(s signer) bool {
	return slices.ContainsFunc(m.trusted, func(o signer) bool { return o.key.ID() == s.key.ID() })
}

// BumpEpoch: the control plane was restored from an old backup and recovered.
func (m *trustMachine) BumpEpoch(rt *rapid.T) {
	back := rapid.IntRange(0, len(m.history)-1).Draw(rt, "backup")
	m.epoch++
	generation := m.history[back].generation + 1
	m.versions++
	m.history = append(m.history, m.made.activate(m.signer, m.versions, m.epoch, generation, seal.KindApply))
	m.Poll(rt)
}

// Restart is a new process, nothing else.
func (m *trustMachine) Restart(rt *rapid.T) { m.restart(rt) }

// LoseDisk gives the node an empty directory.
func (m *trustMachine) LoseDisk(rt *rapid.T) {
	m.stop()
	m.loseDisk(rt)
	m.start(rt)
}

func (m *trustMachine) loseDisk(rt *rapid.T) {
	names, err := filepath.Glob(filepath.Join(m.dir, "*"))
	if err != nil {
		rt.Fatal(err)
	}
	for _, n := range names {
		if err := os.Remove(n); err != nil {
			rt.Fatal(err)
		}
	}
	m.rules = rules{marks: map[seal.KeyID]claim{}}
}

// DamageSlot spoils one of the two stored artefacts.
func (m *trustMachine) DamageSlot(rt *rapid.T) {
	f := m.rules.current
	if rapid.Bool().Draw(rt, "the one before") {
		f = m.rules.previous
	}
	if f == nil || !f.whole {
		rt.Skip()
	}
	name := filepath.Join(m.dir, fmt.Sprintf("slot-%d-%d", f.epoch, f.generation))
	raw, err := os.ReadFile(name)
	if err != nil {
		rt.Fatal(err)
	}
	m.stop()
	f.whole = false
	switch rapid.SampledFrom([]string{"payload", "cut short", "first line", "gone"}).Draw(rt, "damage") {
	case "payload":
		raw[len(raw)-1-rapid.IntRange(0, 20).Draw(rt, "from the end")] ^= 0x10
	case "cut short":
		raw = raw[:len(raw)-3]
	case "first line":
		raw[0] ^= 0x10
		f.head = false
	case "gone":
		raw, f.head = nil, false
	}
	if raw == nil {
		err = os.Remove(name)
	} else {
		err = os.WriteFile(name, raw, 0o600)
	}
	if err != nil {
		rt.Fatal(err)
	}
	m.start(rt)
}

// DamageState spoils the file that holds the marks.
func (m *trustMachine) DamageState(rt *rapid.T) {
	name := filepath.Join(m.dir, "state.json")
	raw, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) || m.rules.damaged {
		rt.Skip()
	}
	if err != nil {
		rt.Fatal(err)
	}
	m.stop()
	switch rapid.SampledFrom([]string{"garbage", "empty", "cut short", "bit", "bit", "bit"}).Draw(rt, "damage") {
	case "garbage":
		raw = []byte("garbage")
	case "empty":
		raw = nil
	case "cut short":
		raw = raw[:rapid.IntRange(0, len(raw)/2).Draw(rt, "at")]
	case "bit":
		raw[rapid.IntRange(0, len(raw)-1).Draw(rt, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
	}
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		rt.Fatal(err)
	}
	m.rules.damaged = true
	m.start(rt)
}
