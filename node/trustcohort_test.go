package node_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
)

// TestTrustInRollouts: the rollout store is believed in nothing but what to choose among what is signed. Whatever it says, in whatever
// order, and whatever comes to the polls, a node serves a provisional generation only under an activation that was signed for that
// rollout, given to this process and asked for by a window that it acknowledged; it never boots one; its marks never fall; and
// below them it serves only what it boots. In the end, once both are honest, it serves what is live.
func TestTrustInRollouts(t *testing.T) {
	root, made := inMemory(t), sealery{}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		rapid.SyncTest(rt, func(rt *rapid.T) {
			m := &cohortMachine{dir: dir, made: made, s: testSigner(1), given: map[string]bool{}, acked: map[barrier.RolloutID]bool{}}
			m.live = made.activate(m.s, 1, 1, 1, seal.KindApply)
			m.acts = map[*seal.Artefact]seal.Activation{}
			m.note(m.live.Artefact)
			m.generation, m.versions = 1, 1
			m.view.Committed = pointerOf(m.live.claim)
			m.start(rt)
			m.settle(rt)
			defer m.stop()
			rt.Repeat(rapid.StateMachineActions(m))
			m.recover(rt)
		})
	})
}

func pointerOf(c claim) barrier.Pointer {
	return barrier.Pointer{Generation: c.generation, Digest: digestOf(c.hash), Version: c.version}
}

// cohortMachine is a node, a control plane, and a store and a wire that need not be honest.
type cohortMachine struct {
	dir  string
	made sealery
	s    signer

	mu         sync.Mutex
	view       barrier.View // what the store says
	away       bool         // it, and the control plane
	live       activation
	trial      *seal.Artefact // signed for the rollout on trial
	candidate  nodeproto.Candidate
	generation uint64
	versions   uint64
	signed     []*seal.Artefact // everything that was, and what it says
	acts       map[*seal.Artefact]seal.Activation
	forced     []*seal.Artefact // what the next polls are given, whatever is live
	given      map[string]bool  // to this process
	acked      map[barrier.RolloutID]bool
	hints      chan struct{}

	marks seal.Marks
	disk  *durable.Dir
	host  *host
	agent *node.Agent
	end   func()
}

func (m *cohortMachine) start(rt *rapid.T) {
	var err error
	if m.disk, err = durable.Open(m.dir); err != nil {
		rt.Fatal(err)
	}
	m.given, m.acked = map[string]bool{}, map[barrier.RolloutID]bool{}
	m.host, m.hints = &host{}, make(chan struct{}, 1)
	m.agent, err = node.New(node.Config{Source: machineWire{m}, Host: m.host, Keys: m.s.trust(), Dir: m.disk, Jitter: func() float64 { return 0 }})
	if err != nil {
		rt.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := m.agent.Boot(ctx); err != nil {
		rt.Fatal(err)
	}
	if s := m.agent.Status(); s.Trial != "" {
		rt.Fatalf("boots generation %d, which is on trial", s.Generation)
	}
	var parts sync.WaitGroup
	parts.Go(func() { _ = m.agent.Run(ctx) })
	parts.Go(func() {
		_ = m.agent.RunRollouts(ctx, node.RolloutConfig{Store: machineStore{m}, Source: machineWire{m}, Timing: barrier.Timing{Poll: 2 * time.Second, CallTimeout: 500 * time.Millisecond}})
	})
	m.end = func() {
		cancel()
		parts.Wait()
		_ = m.disk.Close()
	}
}

func (m *cohortMachine) stop() { m.end() }

// settle lets everything happen that follows from what is the case.
func (m *cohortMachine) settle(*rapid.T) {
	time.Sleep(6 * time.Second) // virtual: more than a poll of each
	synctest.Wait()
}

// machineWire is the way to the control plane, and machineStore to the rollout store.
type (
	machineWire  struct{ *cohortMachine }
	machineStore struct{ *cohortMachine }
)

func (m machineWire) Poll(_ context.Context, p nodeproto.Poll) (nodeproto.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nodeproto.Answer{}, errAway
	}
	answer := nodeproto.Answer{Version: m.live.version}
	if p.Nonce != "" {
		answer.Freshness = m.s.fresh(p.Nonce, m.live.Artefact)
	}
	give := func(a *seal.Artefact) (nodeproto.Answer, error) {
		if nodeproto.Fingerprint(a) == p.Rejected {
			answer.Skipped = true
			return answer, nil
		}
		art := *a
		act, _, err := seal.VerifyActivation(a.Activation, m.s.trust())
		if answer.Held = err == nil && p.Held == act.PayloadBLAKE3; answer.Held {
			art.Payload = nil
		}
		m.given[string(a.Activation)] = true
		answer.Artefact = &art
		return answer, nil
	}
	if len(m.forced) > 0 {
		next := m.forced[0]
		m.forced = m.forced[1:]
		return give(next)
	}
	if ro := m.view.Rollout; ro != nil && p.Trial == string(ro.ID) && m.trial != nil && ro.OnTrial() {
		if p.Generation < ro.Generation {
			return give(m.trial)
		}
		return answer, nil
	}
	if p.Generation < m.live.generation || p.Trial != "" && p.Generation == m.live.generation {
		return give(m.live.Artefact)
	}
	return answer, nil
}

func (m machineWire) Ack(context.Context, nodeproto.Ack) error { return nil }

func (m machineWire) Self(context.Context) (nodeproto.Self, error) {
	return nodeproto.Self{ID: "node-0", Cohort: true}, nil
}

func (m machineWire) Candidate(context.Context, string) (nodeproto.Candidate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nodeproto.Candidate{}, errAway
	}
	return m.candidate, nil
}

// say changes what the store says.
func (m *cohortMachine) say(f func(*barrier.View)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.view)
	select {
	case m.hints <- struct{}{}:
	default:
	}
}

func (m machineStore) Look(context.Context, barrier.MemberID) (barrier.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return barrier.View{}, errAway
	}
	v := m.view
	v.Now = time.Now()
	if v.Rollout != nil {
		ro := *v.Rollout
		v.Rollout = &ro
	}
	return v, nil
}

func (m machineStore) Current(context.Context) (barrier.Row, error) {
	return barrier.Row{}, errors.New("not for members")
}

func (m machineStore) Watch(context.Context, barrier.Topic) <-chan struct{} { return m.hints }

func (m machineStore) Join(_ context.Context, _ barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.view.Registration = barrier.Registration{Boot: boot, Incarnation: incarnation + 1}
	return m.view.Registration, nil
}

// ballot is what the member writes.
func (m *cohortMachine) ballot(boot barrier.BootID, f func(*barrier.Ballot)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errAway
	}
	m.view.Ballot.Boot = boot
	f(&m.view.Ballot)
	return nil
}

func (m machineStore) Ack(_ context.Context, r barrier.Ref, _ barrier.MemberID, boot barrier.BootID, _ string) error {
	return m.ballot(boot, func(b *barrier.Ballot) { b.Vote, m.acked[r.ID] = barrier.Acked, true })
}

func (m machineStore) Nack(_ context.Context, _ barrier.Ref, _ barrier.MemberID, boot barrier.BootID, _ string) error {
	return m.ballot(boot, func(b *barrier.Ballot) { b.Vote = barrier.Nacked })
}

func (m machineStore) Converge(_ context.Context, _ barrier.Ref, _ barrier.MemberID, boot barrier.BootID, _ string) error {
	return m.ballot(boot, func(b *barrier.Ballot) { b.ConvergedSince, b.RenewedAt = time.Now(), time.Now() })
}

func (m machineStore) Withdraw(_ context.Context, _ barrier.Ref, _ barrier.MemberID, boot barrier.BootID, reason string) error {
	return m.ballot(boot, func(b *barrier.Ballot) { b.Withdrawn = reason })
}

func (m machineStore) Revert(context.Context, barrier.Ref, barrier.Authority, string) error {
	return nil
}

// note keeps what was genuinely signed.
func (m *cohortMachine) note(art *seal.Artefact) {
	act, _, err := seal.VerifyActivation(art.Activation, m.s.trust())
	if err != nil {
		panic(err)
	}
	m.signed = append(m.signed, art)
	m.acts[art] = act
}

// sign makes an activation of a version.
func (m *cohortMachine) sign(s signer, version, generation uint64, kind seal.ActivationKind, id barrier.RolloutID) activation {
	sealed := m.made.seal(m.s, version)
	art := m.made.activateFor(s, version, generation, kind, id, sealed)
	if s.key.ID() == m.s.key.ID() {
		m.note(art)
	}
	return activation{claim{s.key.ID(), 1, generation, version, sealed.ContentHash, kind}, art, s}
}

// The control plane and the store agree in these.

// Direct publishes to everybody.
func (m *cohortMachine) Direct(rt *rapid.T) {
	m.say(func(v *barrier.View) {
		if v.Rollout != nil && v.Rollout.Open() {
			return
		}
		m.generation++
		m.versions++
		m.live = m.sign(m.s, m.versions, m.generation, seal.KindApply, "")
		v.Committed = pointerOf(m.live.claim)
	})
	m.settle(rt)
}

// Propose puts something to the cohort.
func (m *cohortMachine) Propose(rt *rapid.T) {
	window := time.Duration(rapid.SampledFrom([]int{0, 2, 60}).Draw(rt, "minutes")) * time.Minute
	old := rapid.Bool().Draw(rt, "an old version")
	m.say(func(v *barrier.View) {
		if v.Rollout != nil && v.Rollout.Open() {
			return
		}
		m.generation++
		version := m.versions + 1
		if old {
			version = 1
		}
		m.versions = max(m.versions, version)
		sealed := m.made.seal(m.s, version)
		m.candidate = nodeproto.Candidate{Sealed: sealed}
		v.Rollout = &barrier.Rollout{
			Ref: barrier.Ref{ID: barrier.RolloutID(uuid.NewString()), Generation: m.generation}, Digest: digestOf(sealed.ContentHash), Version: version,
			Window: window, Soak: time.Second, Grace: time.Second, EvidenceTTL: 5 * time.Second, State: barrier.Staging, Deadline: time.Now().Add(24 * time.Hour),
		}
		v.InEpoch, v.Ballot, m.trial = true, barrier.Ballot{}, nil
	})
	m.settle(rt)
}

// Decide goes on with the rollout that is open, as a coordinator would.
func (m *cohortMachine) Decide(rt *rapid.T) {
	ends := rapid.SampledFrom([]string{"good", "good", "bad"}).Draw(rt, "end")
	signed := rapid.IntRange(0, 4).Draw(rt, "unsigned if 0") > 0
	m.say(func(v *barrier.View) {
		if v.Rollout == nil || !v.Rollout.Open() {
			return
		}
		ro := *v.Rollout
		switch {
		case ro.Voting() && (ends == "bad" || v.Ballot.Vote != barrier.Acked || v.Ballot.Boot != v.Registration.Boot):
			ro.State = barrier.Aborted
		case ro.Voting() && ro.Window == 0:
			ro.State = barrier.Committed
			v.Committed = ro.Pointer()
			m.live = m.sign(m.s, ro.Version, ro.Generation, seal.KindApply, ro.ID)
		case ro.Voting():
			ro.State, ro.ConfirmDeadline = barrier.Committed, time.Now().Add(ro.Window)
			if signed {
				m.trial = m.sign(m.s, ro.Version, ro.Generation, seal.KindProvisional, ro.ID).Artefact
			}
		case ends == "good":
			ro.State = barrier.Confirmed
			v.Committed = ro.Pointer()
			m.live = m.sign(m.s, ro.Version, ro.Generation, seal.KindConfirmed, ro.ID)
		default:
			ro.State = barrier.Reverted
			m.generation++
			m.live = m.sign(m.s, m.live.version, m.generation, seal.KindReverted, ro.ID)
		}
		v.Rollout = &ro
	})
	m.settle(rt)
}

// From here on somebody lies, or something breaks.

// Lie has the store say what nobody decided.
func (m *cohortMachine) Lie(rt *rapid.T) {
	version := uint64(rapid.IntRange(1, int(m.versions)+1).Draw(rt, "version"))
	generation := uint64(rapid.IntRange(1, int(m.generation)+3).Draw(rt, "generation"))
	what := rapid.SampledFrom([]string{"trial", "trial of another's generation", "committed", "confirmed", "lost"}).Draw(rt, "lie")
	m.mu.Lock()
	before := m.view
	m.mu.Unlock()
	m.say(func(v *barrier.View) {
		p := barrier.Pointer{Generation: generation, Digest: digestOf(m.made.seal(m.s, version).ContentHash), Version: version}
		ro := barrier.Rollout{
			Ref: barrier.Ref{ID: barrier.RolloutID(uuid.NewString()), Generation: generation}, Digest: p.Digest, Version: version, State: barrier.Committed,
			Window: time.Hour, Soak: time.Second, Grace: time.Second, EvidenceTTL: 5 * time.Second, ConfirmDeadline: time.Now().Add(time.Hour),
		}
		switch what {
		case "trial":
			v.Rollout, v.InEpoch, v.Ballot = &ro, true, barrier.Ballot{Boot: v.Registration.Boot, Vote: barrier.Acked}
		case "trial of another's generation":
			if v.Rollout == nil {
				return
			}
			ro = *v.Rollout
			ro.Generation, ro.State, ro.ConfirmDeadline = generation, barrier.Committed, time.Now().Add(time.Hour)
			v.Rollout, v.Ballot = &ro, barrier.Ballot{Boot: v.Registration.Boot, Vote: barrier.Acked}
		case "committed":
			v.Committed = p
		case "confirmed":
			if v.Rollout == nil {
				return
			}
			ro = *v.Rollout
			ro.State, v.Committed = barrier.Confirmed, ro.Pointer()
			v.Rollout = &ro
		case "lost":
			v.Committed = barrier.Pointer{}
		}
	})
	m.settle(rt)
	m.Check(rt)
	m.say(func(v *barrier.View) {
		v.Rollout, v.Committed, v.InEpoch = before.Rollout, before.Committed, before.InEpoch
	})
	m.settle(rt)
}

// Force gives the next polls what was signed once, or never.
func (m *cohortMachine) Force(rt *rapid.T) {
	m.mu.Lock()
	for range rapid.IntRange(1, 4).Draw(rt, "answers") {
		art := m.signed[rapid.IntRange(0, len(m.signed)-1).Draw(rt, "which")]
		switch ro := m.view.Rollout; {
		case ro == nil || rapid.Bool().Draw(rt, "replayed"):
		case rapid.Bool().Draw(rt, "stranger's"):
			art = m.sign(stranger, ro.Version, ro.Generation, seal.KindProvisional, ro.ID).Artefact
		default:
			// A trial that never was, genuinely signed: as of another control plane with the same key.
			art = m.sign(m.s, ro.Version, ro.Generation+uint64(rapid.IntRange(0, 2).Draw(rt, "above")), seal.KindProvisional, barrier.RolloutID(uuid.NewString())).Artefact
		}
		m.forced = append(m.forced, art)
	}
	m.mu.Unlock()
	m.settle(rt)
}

// Away takes store and control plane away for longer than some windows.
func (m *cohortMachine) Away(rt *rapid.T) {
	m.say(func(*barrier.View) { m.away = true })
	time.Sleep(time.Duration(rapid.SampledFrom([]int{5, 30, 150}).Draw(rt, "seconds")) * time.Second) // virtual
	synctest.Wait()
	m.Check(rt)
	m.say(func(*barrier.View) { m.away = false })
	m.settle(rt)
}

// Restart is a new process.
func (m *cohortMachine) Restart(rt *rapid.T) {
	m.stop()
	m.start(rt)
	m.settle(rt)
}

// DamageState has a new process rebuild what it knew, as far as a file proves it; what it does not know it needs fresh answers for.
func (m *cohortMachine) DamageState(rt *rapid.T) {
	m.stop()
	proof, err := filepath.Glob(filepath.Join(m.dir, fmt.Sprintf("*-1-%d", m.marks[m.s.key.ID()].Generation)))
	if err != nil {
		rt.Fatal(err)
	}
	if len(proof) == 0 {
		m.marks = nil
	}
	if err := os.WriteFile(filepath.Join(m.dir, "state.json"), []byte("garbage"), 0o600); err != nil {
		rt.Fatal(err)
	}
	m.start(rt)
	m.settle(rt)
}

// Check holds after every action, and within some.
func (m *cohortMachine) Check(rt *rapid.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, disk := m.agent.Status(), (&member{c: &cluster{t: rt}, dir: m.dir}).saved()
	if s.Version != m.host.serving() {
		rt.Fatalf("says that it serves version %d, and serves %d", s.Version, m.host.serving())
	}
	var kinds []seal.ActivationKind
	for _, art := range m.signed {
		act := m.acts[art]
		if act.Generation != s.Generation || act.Version != s.Version || act.ContentHash != s.ContentHash {
			continue
		}
		if act.Kind == seal.KindProvisional && (act.Rollout != s.Trial || !m.given[string(art.Activation)] || !m.acked[barrier.RolloutID(act.Rollout)]) {
			continue
		}
		kinds = append(kinds, act.Kind)
	}
	if on := s.Trial != ""; s.Generation > 0 && !slices.ContainsFunc(kinds, func(k seal.ActivationKind) bool { return on == (k == seal.KindProvisional) }) {
		rt.Fatalf("serves version %d as generation %d, trial %q; signed for that and given: %v", s.Version, s.Generation, s.Trial, kinds)
	}
	slot := fmt.Sprintf("-%d-%d", s.Epoch, s.Generation)
	if s.Trial != "" && (disk.Trial != "trial"+slot || strings.HasSuffix(disk.Current, slot)) {
		rt.Fatalf("serves %s on trial and remembers %+v", slot, disk)
	}
	for _, name := range []string{disk.Current, disk.Previous} {
		if name != "" && !strings.HasPrefix(name, "slot-") {
			rt.Fatalf("would boot from %s", name)
		}
	}
	mark := disk.Marks[m.s.key.ID()]
	if old := m.marks[m.s.key.ID()]; mark.Generation < old.Generation {
		rt.Fatalf("the mark fell from %d to %d", old.Generation, mark.Generation)
	}
	m.marks = maps.Clone(disk.Marks)
	if s.Generation != 0 && s.Generation < mark.Generation && disk.Current != "slot"+slot {
		rt.Fatalf("serves generation %d, below its mark of %d, and would boot %s", s.Generation, mark.Generation, disk.Current)
	}
}

// recover has everybody be honest again, and publishes above all that was signed.
func (m *cohortMachine) recover(rt *rapid.T) {
	m.say(func(v *barrier.View) {
		m.away, m.forced = false, nil
		if v.Rollout != nil && v.Rollout.Open() {
			ro := *v.Rollout
			ro.State = barrier.Aborted
			if v.Rollout.OnTrial() {
				ro.State = barrier.Reverted
			}
			v.Rollout = &ro
		}
		m.generation += 5
	})
	m.Direct(rt)
	time.Sleep(3 * time.Minute) // virtual: pauses after what was refused are over
	synctest.Wait()
	m.Check(rt)
	if s := m.agent.Status(); s.Generation != m.live.generation || s.Version != m.live.version || s.Trial != "" {
		rt.Fatalf("serves version %d as generation %d in the end, on trial of %q; version %d, generation %d is live", s.Version, s.Generation, s.Trial, m.live.version, m.live.generation)
	}
}
