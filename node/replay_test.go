package node_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// unproven offers a without a fresh answer.
func unproven(a *seal.Artefact) answer {
	return func(p nodeproto.Poll) (nodeproto.Answer, error) {
		if nodeproto.Fingerprint(a) == p.Rejected {
			return nodeproto.Answer{Version: a.Version, Skipped: true}, nil
		}
		return nodeproto.Answer{Artefact: a, Version: a.Version}, nil
	}
}

// TestReplayOfWhatIsLiveIsNotRemembered: somebody who plays the live artefact to a node without state, and no proof
// with it, must not keep the node from installing it when the control plane offers it.
func TestReplayOfWhatIsLiveIsNotRemembered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		live := s.artefact(1, 1)
		run(t, t.TempDir(), s.trust(), h, &source{answers: []answer{unproven(live), offers(s, live)}})
		if !slices.Equal(h.served, []uint64{1}) {
			t.Errorf("served %v, want 1 once it is proven", h.served)
		}
	})
}

// TestFlippedBitInStateIsDamage: whichever bit of the state flips, the node boots what it served, an old artefact
// stays refused, and the genuine next one is installed.
func TestFlippedBitInStateIsDamage(t *testing.T) {
	s, path := testSigner(1), t.TempDir()
	run(t, path, s.trust(), &host{}, &source{interval: 1, answers: []answer{offers(s, s.artefact(1, 8)), offers(s, s.artefact(2, 9))}})
	raw, err := os.ReadFile(filepath.Join(path, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"slot-1-8", "slot-1-9"} {
		if files[name], err = os.ReadFile(filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, old, next := inMemory(t), s.artefact(1, 8), s.artefact(3, 10)
	for at := range raw {
		damaged := bytes.Clone(raw)
		damaged[at] ^= 1 << (at % 8)
		dir := filepath.Join(root, "node")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		files["state.json"] = damaged
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		inBubble(t, func(t *testing.T) {
			h := &host{}
			run(t, dir, s.trust(), h, &source{answers: []answer{unproven(old), offers(s, next)}})
			if !slices.Equal(h.served, []uint64{2, 3}) {
				t.Errorf("byte %d (%q) flipped: served %v, want 2 from disk and then 3", at, raw[at], h.served)
			}
		})
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStateBeforeChecksums: a state file that an older build wrote is believed.
func TestStateBeforeChecksums(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, path := testSigner(1), t.TempDir()
		run(t, path, s.trust(), &host{}, &source{answers: []answer{offers(s, s.artefact(1, 1))}})
		file := filepath.Join(path, "state.json")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, _, found := bytes.Cut(raw, []byte{'\n'})
		if err := os.WriteFile(file, text, 0o600); err != nil || !found {
			t.Fatal(found, err)
		}
		h := &host{}
		run(t, path, s.trust(), h, &source{answers: []answer{unproven(s.artefact(2, 2))}})
		if !slices.Equal(h.served, []uint64{1, 2}) {
			t.Errorf("served %v: the state was not believed", h.served)
		}
	})
}

// TestRebuiltStateNeedsProof: with the state and the newest slot lost, the slot before is no memory of what was
// installed since; the generations between are not installed without a fresh answer.
func TestRebuiltStateNeedsProof(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, path := testSigner(1), t.TempDir()
		run(t, path, s.trust(), &host{}, &source{answers: []answer{offers(s, s.artefact(1, 1)), offers(s, s.artefact(9, 9))}})
		for _, name := range []string{"state.json", "slot-1-9"} {
			if err := os.WriteFile(filepath.Join(path, name), []byte("garbage"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h := &host{}
		src := &source{answers: []answer{unproven(s.artefact(5, 5)), fails, offers(s, s.artefact(9, 9))}}
		run(t, path, s.trust(), h, src)
		if !slices.Equal(h.served, []uint64{1, 9}) {
			t.Errorf("served %v, want 1 from disk and then 9, never the replayed 5", h.served)
		}
		// The proof is kept: the next process takes what is newer as every node does.
		h = &host{}
		run(t, path, s.trust(), h, &source{answers: []answer{unproven(s.artefact(10, 10))}})
		if !slices.Equal(h.served, []uint64{9, 10}) {
			t.Errorf("served %v by the process after", h.served)
		}
	})
}
