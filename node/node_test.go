package node_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
)

type answer = func(nodeproto.Poll) (nodeproto.Answer, error)

// inBubble runs a test with a virtual clock: pauses between polls take no time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestInstallsAndBootsWithoutControlPlane(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, path, h := testSigner(1), t.TempDir(), &host{}
		src := &source{answers: []answer{offers(s, s.artefact(1, 1)), offers(s, s.artefact(2, 2))}}
		a := run(t, path, s.trust(), h, src)
		if !slices.Equal(h.served, []uint64{1, 2}) {
			t.Errorf("served %v", h.served)
		}
		if got := a.Status(); got.Version != 2 || got.Generation != 2 {
			t.Errorf("status %+v", got)
		}
		if ack := src.lastAck(t); ack.Version != 2 || ack.Error != nil || len(ack.Boot) != 32 || ack.Freshness != "fresh" {
			t.Errorf("ack %+v", ack)
		}
		// A new process, and nobody there.
		h2, away := &host{}, &source{answers: []answer{fails}}
		run(t, path, s.trust(), h2, away)
		if h2.serving() != 2 {
			t.Errorf("booted version %d, want 2", h2.serving())
		}
		if p := away.polls[0]; p.Have != 2 || p.Generation != 2 || p.Epoch != 1 {
			t.Errorf("first poll after a boot says %+v", p)
		}
	})
}

// TestRefusals: whatever is wrong, the node keeps what it serves, says so, and installs the genuine next one.
func TestRefusals(t *testing.T) {
	s, thief := testSigner(1), testSigner(2)
	good := s.artefact(5, 5)
	edit := func(f func(*seal.Artefact)) *seal.Artefact {
		a := *s.artefact(6, 6)
		a.Payload = slices.Clone(a.Payload)
		f(&a)
		return &a
	}
	for _, row := range []struct {
		name, code string
		offer      *seal.Artefact
	}{
		{"forged", seal.CodeKeyUntrusted, thief.artefact(6, 6)},
		{"unsigned", seal.CodeUnsigned, edit(func(a *seal.Artefact) { a.Signature = "" })},
		{"flipped bit", seal.CodeSignatureInvalid, edit(func(a *seal.Artefact) { a.Payload[20] ^= 1 })},
		{"truncated", seal.CodeSignatureInvalid, edit(func(a *seal.Artefact) { a.Payload = a.Payload[:len(a.Payload)-1] })},
		{"envelope names another version", seal.CodeActivationInvalid, edit(func(a *seal.Artefact) { a.Version = 7 })},
		{"bytes of version 4 under the activation of 6", seal.CodeSignatureInvalid, edit(func(a *seal.Artefact) { a.Payload = s.artefact(4, 4).Payload })},
		{"artefact of version 4 under the activation of 6", seal.CodeActivationInvalid, edit(func(a *seal.Artefact) {
			act := a.Activation
			*a = *s.artefact(4, 4)
			a.Activation = act
		})},
		{"replayed", seal.CodeStaleGeneration, s.artefact(3, 3)},
		{"equivocation", seal.CodeEquivocation, s.artefact(6, 5)},
		{"jump", seal.CodeGenerationJump, s.artefact(6, 5+seal.MaxJump+1)},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := &host{}
				src := &source{answers: []answer{offers(s, good), offers(s, row.offer), offers(s, row.offer), offers(s, s.artefact(6, 6))}}
				if row.name == "forged" {
					// Its freshness statement would be a stranger's too.
					src.answers[1], src.answers[2] = offers(thief, row.offer), offers(thief, row.offer)
				}
				run(t, t.TempDir(), s.trust(), h, src)
				if !slices.Equal(h.served, []uint64{5, 6}) {
					t.Fatalf("served %v, want 5 and then the genuine 6", h.served)
				}
				var refused []nodeproto.Ack
				for _, ack := range src.acks {
					if ack.Error != nil {
						refused = append(refused, ack)
					}
				}
				if len(refused) == 0 || refused[0].Error.Code != row.code || refused[0].Version != 5 || refused[0].Error.Version != row.offer.Version {
					t.Errorf("acknowledged %+v, want code %s while serving 5", refused, row.code)
				}
				if last := src.lastAck(t); last.Error != nil || last.Version != 6 {
					t.Errorf("last acknowledgement %+v", last)
				}
			})
		})
	}
}

func TestRefusedOfferIsNotFetchedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		h.prepare = func(c *seal.Candidate) error {
			if c.Snapshot().Meta().Version == 2 {
				return errors.New("zone example.test: no")
			}
			return nil
		}
		bad := s.artefact(2, 2)
		src := &source{answers: []answer{offers(s, s.artefact(1, 1)), offers(s, bad), offers(s, bad), offers(s, s.artefact(3, 3))}}
		run(t, t.TempDir(), s.trust(), h, src)
		if h.prepared != 3 {
			t.Errorf("compiled %d times, want 3", h.prepared)
		}
		if src.polls[2].Rejected != nodeproto.Fingerprint(bad) {
			t.Errorf("the poll after the refusal does not name the refused offer")
		}
		if !slices.Equal(h.served, []uint64{1, 3}) {
			t.Errorf("served %v", h.served)
		}
	})
}

// TestDamagedBytesAreFetchedAgain: a genuine offer whose payload was damaged on the way must not be given up.
func TestDamagedBytesAreFetchedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		genuine := s.artefact(2, 2)
		damaged := *genuine
		damaged.Payload = slices.Clone(genuine.Payload)
		damaged.Payload[10] ^= 4
		src := &source{answers: []answer{offers(s, s.artefact(1, 1)), offers(s, &damaged), offers(s, genuine)}}
		run(t, t.TempDir(), s.trust(), h, src)
		if !slices.Equal(h.served, []uint64{1, 2}) {
			t.Errorf("served %v", h.served)
		}
	})
}

func TestBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		src := &source{answers: slices.Repeat([]answer{fails}, 9)}
		run(t, t.TempDir(), s.trust(), h, src)
		var pauses []time.Duration
		for i := 1; i < len(src.at); i++ {
			pauses = append(pauses, src.at[i].Sub(src.at[i-1]))
		}
		want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(pauses, want) {
			t.Errorf("pauses %v, want %v", pauses, want)
		}
	})
}

func TestAnImmediate204IsPaced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		current := func(nodeproto.Poll) (nodeproto.Answer, error) { return nodeproto.Answer{Version: 1}, nil }
		src := &source{answers: []answer{offers(s, s.artefact(1, 1)), current, current}}
		run(t, t.TempDir(), s.trust(), h, src)
		for i := 2; i < len(src.at); i++ {
			if p := src.at[i].Sub(src.at[i-1]); p != time.Second {
				t.Errorf("pause %v, want the interval", p)
			}
		}
	})
}

func TestPanicInCompileIsARefusal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		h.prepare = func(c *seal.Candidate) error {
			if c.Snapshot().Meta().Version == 2 {
				panic("index out of range")
			}
			return nil
		}
		src := &source{answers: []answer{offers(s, s.artefact(1, 1)), offers(s, s.artefact(2, 2))}}
		run(t, t.TempDir(), s.trust(), h, src)
		if h.serving() != 1 || src.lastAck(t).Error == nil || src.lastAck(t).Error.Code != "compile_failed" {
			t.Errorf("serving %d, acknowledged %+v", h.serving(), src.lastAck(t).Error)
		}
	})
}

// TestFirstBootNeedsAFreshAnswer: without state nothing tells a replay from the live artefact but the nonce.
func TestFirstBootNeedsAFreshAnswer(t *testing.T) {
	s := testSigner(1)
	old, live := s.artefact(1, 1), s.artefact(2, 2)
	plain := func(a *seal.Artefact) answer {
		return func(nodeproto.Poll) (nodeproto.Answer, error) { return nodeproto.Answer{Artefact: a}, nil }
	}
	recorded := s.fresh("00112233445566778899aabbccddeeff", old)
	for _, row := range []struct {
		name   string
		answer answer
		served []uint64
	}{
		{"no statement", plain(old), nil},
		{"recorded statement", func(nodeproto.Poll) (nodeproto.Answer, error) {
			return nodeproto.Answer{Artefact: old, Freshness: recorded}, nil
		}, nil},
		{"statement names another", func(p nodeproto.Poll) (nodeproto.Answer, error) {
			return nodeproto.Answer{Artefact: old, Freshness: s.fresh(p.Nonce, live)}, nil
		}, nil},
		{"statement of this answer", offers(s, live), []uint64{2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := &host{}
				src := &source{answers: []answer{row.answer}}
				run(t, t.TempDir(), s.trust(), h, src)
				if !slices.Equal(h.served, row.served) {
					t.Errorf("served %v, want %v", h.served, row.served)
				}
				if row.served == nil && src.lastAck(t).Error.Code != "freshness_missing" {
					t.Errorf("acknowledged %+v", src.lastAck(t).Error)
				}
			})
		})
	}
}

func TestSilenceRaisesTheFreshnessAlarm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		// 204 for ever, as a recording would give it.
		frozen := func(nodeproto.Poll) (nodeproto.Answer, error) {
			time.Sleep(time.Hour) // virtual: the poll is held
			return nodeproto.Answer{Version: 1}, nil
		}
		src := &source{answers: append([]answer{offers(s, s.artefact(1, 1))}, slices.Repeat([]answer{frozen}, 4)...)}
		a := run(t, t.TempDir(), s.trust(), h, src)
		if !a.Status().Stale {
			t.Error("four hours without a fresh answer raised no alarm")
		}
		if h.serving() != 1 {
			t.Error("serving stopped")
		}
		if src.polls[2].Nonce == "" {
			t.Error("an hour passed and no nonce was sent")
		}
		if len(src.acks) != 2 || src.lastAck(t).Freshness != "stale" {
			t.Errorf("the alarm was not acknowledged: %+v", src.acks)
		}
	})
}

func TestAheadOfControlPlaneIsAnAlarm(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		src := &source{}
		src.answers = []answer{offers(s, s.artefact(1, 1)), func(nodeproto.Poll) (nodeproto.Answer, error) {
			return nodeproto.Answer{}, fmt.Errorf("%w: 409", nodeproto.ErrAhead)
		}}
		a := run(t, t.TempDir(), s.trust(), h, src)
		if h.serving() != 1 {
			t.Error("serving stopped")
		}
		if src.at[2].Sub(src.at[1]) != time.Second {
			t.Errorf("the next poll came after %v, want the back-off's start", src.at[2].Sub(src.at[1]))
		}
		if !a.Status().Ahead {
			t.Error("no alarm")
		}
		// What the poll claims, the acknowledgement that follows proves.
		if len(src.acks) != 2 {
			t.Fatalf("%d acknowledgements", len(src.acks))
		}
		for i, ack := range src.acks {
			act, _, err := seal.VerifyActivation(ack.Activation, s.trust())
			if err != nil || act.Generation != 1 {
				t.Errorf("acknowledgement %d carries %q: %v", i+1, ack.Activation, err)
			}
		}
	})
}

func TestUndeliveredAckIsSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		src := &source{ackErr: errors.New("timeout")}
		src.answers = []answer{offers(s, s.artefact(1, 1)), fails, func(nodeproto.Poll) (nodeproto.Answer, error) {
			src.ackErr = nil
			return nodeproto.Answer{Version: 1}, nil
		}}
		run(t, t.TempDir(), s.trust(), h, src)
		if len(src.acks) != 1 || src.acks[0].Version != 1 {
			t.Errorf("acknowledgements %+v", src.acks)
		}
	})
}

func TestDamagedSlotFallsBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, path := testSigner(1), t.TempDir()
		one, two := s.artefact(1, 1), s.artefact(2, 2)
		run(t, path, s.trust(), &host{}, &source{answers: []answer{offers(s, one), offers(s, two)}})
		slot := filepath.Join(path, "slot-1-2")
		raw, err := os.ReadFile(slot)
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)-5] ^= 0x10
		if err := os.WriteFile(slot, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		h := &host{}
		src := &source{answers: []answer{offers(s, two)}}
		run(t, path, s.trust(), h, src)
		if !slices.Equal(h.served, []uint64{1, 2}) {
			t.Errorf("served %v, want the slot before and then the live one again", h.served)
		}
		if len(src.acks) == 0 || src.acks[0].Error == nil || src.acks[0].Error.Code != "boot_fell_back" || src.acks[0].Version != 1 {
			t.Errorf("acknowledged %+v", src.acks)
		}
	})
}

func TestDroppedStolenKeyDropsItsMark(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		genuine, stolen, path := testSigner(1), testSigner(2), t.TempDir()
		both, err := seal.Trust(genuine.key.Public(), stolen.key.Public())
		if err != nil {
			t.Fatal(err)
		}
		h := &host{}
		run(t, path, both, h, &source{answers: []answer{offers(genuine, genuine.artefact(1, 1)), offers(stolen, stolen.artefact(9, 1_000_000))}})
		if h.serving() != 9 {
			t.Fatalf("serving %d", h.serving())
		}
		h = &host{}
		run(t, path, genuine.trust(), h, &source{answers: []answer{offers(genuine, genuine.artefact(2, 2))}})
		if h.serving() != 2 {
			t.Errorf("serving %d, want the genuine next version", h.serving())
		}
	})
}

func TestFullDiskInstallsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h, path := testSigner(1), &host{}, t.TempDir()
		d, err := durable.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		full := false
		d.AfterStep(func(name string, st durable.Step) error {
			if full && strings.HasPrefix(name, "slot-") && st == durable.StepTemp {
				return errors.New("no space left on device")
			}
			return nil
		})
		two := s.artefact(2, 2)
		src := &source{answers: []answer{offers(s, s.artefact(1, 1)), func(p nodeproto.Poll) (nodeproto.Answer, error) {
			full = true
			return offers(s, two)(p)
		}, offers(s, two), offers(s, two), func(p nodeproto.Poll) (nodeproto.Answer, error) {
			if h.serving() != 1 {
				t.Error("installed on a full disk")
			}
			full = false
			return offers(s, two)(p)
		}}}
		runIn(t, d, s.trust(), h, src)
		if src.acks[1].Error == nil || src.acks[1].Error.Code != "disk_failed" {
			t.Errorf("acknowledged %+v", src.acks[1].Error)
		}
		if h.serving() != 2 {
			t.Errorf("serving %d once there is room again, want 2", h.serving())
		}
	})
}

// TestFullDiskBoots: a node that starts on a full disk serves what it holds, says so, and installs once there is room.
func TestFullDiskBoots(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, path := testSigner(1), t.TempDir()
		run(t, path, s.trust(), &host{}, &source{answers: []answer{offers(s, s.artefact(1, 1)), offers(s, s.artefact(2, 2))}})
		d, err := durable.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		full := true
		d.AfterStep(func(_ string, st durable.Step) error {
			if full && st == durable.StepTemp {
				return errors.New("no space left on device")
			}
			return nil
		})
		h := &host{}
		three := s.artefact(3, 3)
		src := &source{answers: []answer{offers(s, three), func(p nodeproto.Poll) (nodeproto.Answer, error) {
			if h.serving() != 2 {
				t.Errorf("serving %d on a full disk, want what it holds", h.serving())
			}
			full = false
			return offers(s, three)(p)
		}}}
		runIn(t, d, s.trust(), h, src)
		if len(src.acks) == 0 || src.acks[0].Version != 2 || src.acks[0].Error == nil || src.acks[0].Error.Code != "disk_failed" {
			t.Errorf("acknowledged %+v", src.acks)
		}
		if h.serving() != 3 {
			t.Errorf("serving %d once there is room again, want 3", h.serving())
		}
	})
}

// TestDamagedStateIsRebuilt: the slots prove what was installed, so that a damaged state file is no outage, and
// the mark stays where it was.
func TestDamagedStateIsRebuilt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, path := testSigner(1), t.TempDir()
		run(t, path, s.trust(), &host{}, &source{answers: []answer{offers(s, s.artefact(1, 1)), offers(s, s.artefact(2, 2))}})
		if err := os.WriteFile(filepath.Join(path, "state.json"), []byte("garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		h := &host{}
		src := &source{answers: []answer{offers(s, s.artefact(1, 1)), offers(s, s.artefact(3, 3))}}
		run(t, path, s.trust(), h, src)
		if !slices.Equal(h.served, []uint64{2, 3}) {
			t.Errorf("served %v, want 2 from disk and then 3, never the replayed 1", h.served)
		}
	})
}

func TestRefusalIsReportedBeforeThePause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := testSigner(1)
		src := &source{answers: []answer{offers(s, s.artefact(2, 2)), offers(s, s.artefact(1, 1))}}
		src.onAck = func(a nodeproto.Ack) {
			if a.Error != nil && time.Since(src.at[1]) > 0 {
				t.Errorf("the refusal was reported %v after it", time.Since(src.at[1]))
			}
		}
		run(t, t.TempDir(), s.trust(), &host{}, src)
		if src.lastAck(t).Error == nil {
			t.Error("no report")
		}
	})
}

func TestUnreadableStateStopsTheStart(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := durable.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, err = node.New(node.Config{Source: &source{}, Host: &host{}, Keys: testSigner(1).trust(), Dir: d})
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("started from a damaged state: %v", err)
	}
}
