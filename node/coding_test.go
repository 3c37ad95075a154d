package node_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// large is an artefact most of whose bytes are those of every other.
func (s signer) large(version, generation uint64) *seal.Artefact {
	var in []snapshot.ZoneInput
	for n := range 200 {
		name := zone.MustName(fmt.Sprintf("zone%d.test", n))
		text := fmt.Sprintf("%x", sha256.Sum256([]byte{byte(n)}))
		if n == 100 {
			text = fmt.Sprintf("version %d", version)
		}
		r, err := zone.ParseRecord(name, "@", "TXT", text, 0, false)
		if err != nil {
			panic(err)
		}
		z := &zone.Zone{ID: zone.ID(fmt.Sprintf("0190f6a0-0000-7000-8000-%012x", n)), Name: name, Records: []zone.Record{r}}
		in = append(in, snapshot.ZoneInput{Workspace: "w", Zone: z})
	}
	snap, _, err := snapshot.Build(snapshot.Input{Zones: in, Now: time.Unix(0, 0)}, snapshot.Meta{Version: version, CreatedAt: time.Unix(0, 0)})
	if err != nil {
		panic(err)
	}
	sealed, err := seal.Seal(s.key, snap)
	if err != nil {
		panic(err)
	}
	signed, err := seal.Activate(s.key, sealed, seal.Activation{
		Platform: platform, Epoch: 1, Generation: generation, Kind: seal.KindApply, ParentGeneration: generation - 1, IssuedAt: time.Unix(int64(generation), 0),
	})
	if err != nil {
		panic(err)
	}
	sealed.PayloadBLAKE3 = ""
	return &seal.Artefact{Sealed: sealed, Activation: signed}
}

// codes offers a as a control plane does that had held live before: coded to who says that it has it. spoil changes
// what is sent.
func codes(s signer, a *seal.Artefact, held []byte, spoil func(*seal.Coding)) answer {
	return func(p nodeproto.Poll) (nodeproto.Answer, error) {
		ans, err := offers(s, a)(p)
		if p.Dictionary == (seal.DictionaryID{}) || p.Dictionary != seal.DictionaryOf(held) || ans.Artefact == nil {
			return ans, err
		}
		c, err := seal.Encode(s.key, a.Payload, held)
		if err != nil {
			panic(err)
		}
		c.Body = bytes.Clone(c.Body)
		if spoil != nil {
			spoil(&c)
		}
		bare := *a
		bare.Payload = nil
		ans.Artefact, ans.Coding = &bare, &c
		return ans, nil
	}
}

func TestTakesDifferences(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, path, h := testSigner(1), t.TempDir(), &host{}
		one, two, three := s.large(1, 1), s.large(2, 2), s.large(3, 3)
		src := &source{answers: []answer{offers(s, one), codes(s, two, one.Payload, nil)}}
		a := run(t, path, s.trust(), h, src)
		if !slices.Equal(h.served, []uint64{1, 2}) {
			t.Errorf("served %v", h.served)
		}
		if src.polls[0].Dictionary != (seal.DictionaryID{}) || src.polls[1].Dictionary != seal.DictionaryOf(one.Payload) {
			t.Errorf("polls say %x, %x", src.polls[0].Dictionary, src.polls[1].Dictionary)
		}
		if got := a.Status(); got.Codings != 1 || got.CodingFailures != 0 || got.CodingSaved == 0 || got.CodingSaved >= uint64(len(two.Payload)) {
			t.Errorf("status %+v", got)
		}
		// A new process holds what is on disk.
		next := &source{answers: []answer{codes(s, three, two.Payload, nil)}}
		a = run(t, path, s.trust(), h, next)
		if h.serving() != 3 || a.Status().Codings != 1 {
			t.Errorf("serving %d, %+v", h.serving(), a.Status())
		}
		if ack := next.lastAck(t); ack.Version != 3 || ack.Error != nil {
			t.Errorf("ack %+v", ack)
		}
	})
}

// Whatever is wrong with a difference, the node asks at once for all of it, refuses nothing for that, and takes the next
// difference again.
func TestDifferencesThatLie(t *testing.T) {
	s, thief := testSigner(1), testSigner(2)
	one, two, three := s.large(1, 1), s.large(2, 2), s.large(3, 3)
	for _, row := range []struct {
		name  string
		spoil func(*seal.Coding)
		held  func(t *testing.T, path string)
	}{
		{name: "unsigned", spoil: func(c *seal.Coding) { c.Signature = "" }},
		{name: "another body", spoil: func(c *seal.Coding) { c.Body[len(c.Body)-1] ^= 1 }},
		{name: "cut short", spoil: func(c *seal.Coding) { c.Body = c.Body[:len(c.Body)-1] }},
		{name: "nothing", spoil: func(c *seal.Coding) { c.Body = nil }},
		{name: "signed by somebody else", spoil: func(c *seal.Coding) {
			*c, _ = seal.Encode(thief.key, two.Payload, one.Payload)
		}},
		{name: "of another payload", spoil: func(c *seal.Coding) {
			*c, _ = seal.Encode(s.key, three.Payload, one.Payload)
		}},
		{name: "with another dictionary", spoil: func(c *seal.Coding) {
			*c, _ = seal.Encode(s.key, two.Payload, three.Payload)
		}},
		{name: "what is held is damaged", held: func(t *testing.T, path string) {
			file := filepath.Join(path, "slot-1-1")
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			raw[len(raw)-1] ^= 1
			if err := os.WriteFile(file, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				path, h := t.TempDir(), &host{}
				first := codes(s, two, one.Payload, row.spoil)
				src := &source{answers: []answer{offers(s, one), func(p nodeproto.Poll) (nodeproto.Answer, error) {
					if row.held != nil {
						row.held(t, path)
					}
					return first(p)
				}, first, codes(s, three, two.Payload, nil)}}
				a := run(t, path, s.trust(), h, src)
				if !slices.Equal(h.served, []uint64{1, 2, 3}) {
					t.Errorf("served %v", h.served)
				}
				if again := src.polls[2]; again.Dictionary != (seal.DictionaryID{}) || again.Rejected != "" || !src.at[2].Equal(src.at[1]) {
					t.Errorf("then it polled %+v, %s later", again, src.at[2].Sub(src.at[1]))
				}
				for _, ack := range src.acks {
					if ack.Error != nil {
						t.Errorf("it reported %+v", ack.Error)
					}
				}
				if got := a.Status(); got.CodingFailures != 1 || got.Codings != 1 || got.LastError != nil {
					t.Errorf("status %+v", got)
				}
			})
		})
	}
}

// A source that answers with a difference to who did not ask for one is asked no faster for that.
func TestDifferenceThatWasNotAskedFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := testSigner(1), &host{}
		a := s.large(1, 1)
		unasked := func(nodeproto.Poll) (nodeproto.Answer, error) {
			return nodeproto.Answer{Artefact: a, Version: 1, Coding: &seal.Coding{}}, nil
		}
		src := &source{answers: []answer{unasked, unasked, offers(s, a)}}
		agent := run(t, t.TempDir(), s.trust(), h, src)
		if h.serving() != 1 || src.at[1].Sub(src.at[0]) < time.Second || src.at[2].Sub(src.at[1]) < time.Second {
			t.Errorf("serving %d, polls at %v", h.serving(), src.at)
		}
		if agent.Status().CodingFailures != 0 {
			t.Errorf("status %+v", agent.Status())
		}
	})
}
