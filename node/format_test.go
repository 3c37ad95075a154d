package node_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
)

// before is how a build from before rollouts reads a state: strictly, by its first line.
func before(raw []byte) error {
	text, _, _ := bytes.Cut(raw, []byte{'\n'})
	var s struct {
		Format            int             `json:"format"`
		Marks             json.RawMessage `json:"marks"`
		Current, Previous string
		Loading           map[string]int `json:"loading"`
		Rebuilt           bool           `json:"rebuilt"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&s)
	var format struct{ Format int }
	if json.Unmarshal(text, &format) == nil && format.Format > 1 {
		return fmt.Errorf("node state has format %d, this build reads 1; run the newer build", format.Format)
	}
	return err
}

// withSum is a state file.
func withSum(text string) []byte {
	sum := blake3.Sum256([]byte(text))
	return []byte(text + "\n" + hex.EncodeToString(sum[:]) + "\n")
}

// TestStateFormats: a node that never took part in a rollout can go back to a build from before them; one that did is refused there
// by its format and not by a rebuilt state, which would forget the trial.
func TestStateFormats(t *testing.T) {
	inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		read := func() []byte {
			raw, err := os.ReadFile(filepath.Join(m.dir, "state.json"))
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		if err := before(read()); err == nil || err.Error() != "node state has format 2, this build reads 1; run the newer build" {
			t.Errorf("an older build says %v to a member of a cohort", err)
		}
		// What that build wrote, this one reads.
		m.stop()
		old := bytes.Replace(read(), []byte(`"format":2`), []byte(`"format":1`), 1)
		text, _, _ := bytes.Cut(old, []byte{'\n'})
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		delete(members, "rollout")
		plain, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		if err := before(withSum(string(plain))); err != nil {
			t.Fatalf("the older build's own state: %v", err)
		}
		if err := os.WriteFile(filepath.Join(m.dir, "state.json"), withSum(string(plain)), 0o600); err != nil {
			t.Fatal(err)
		}
		m.start()
		c.serves(1, m)
		c.propose(2, testWindow)
		c.ends(barrier.Confirmed, "")
		c.serves(2, m)
	})
}

func TestStateWithoutRolloutsIsOfTheOldFormat(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, path := testSigner(1), t.TempDir()
		run(t, path, s.trust(), &host{}, &source{answers: []answer{offers(s, s.artefact(1, 1)), offers(s, s.artefact(2, 2))}})
		raw, err := os.ReadFile(filepath.Join(path, "state.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := before(raw); err != nil || !bytes.Contains(raw, []byte(`"format":1`)) {
			t.Errorf("%s: %v", raw, err)
		}
	})
}

func TestStateThatIsNotOfItsFormat(t *testing.T) {
	for _, row := range []struct{ name, text, says string }{
		{"newer", `{"format":3,"news":true}`, "node state has format 3, this build reads 2; run the newer build"},
		{"newer, without news", `{"format":3}`, "node state has format 3, this build reads 2; run the newer build"},
		{"none", `{"marks":{}}`, "cannot be read: it is not of format 0"},
		{"rollouts in the old format", `{"format":1,"trial":"trial-1-2"}`, "cannot be read: it is not of format 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := t.TempDir()
			if err := os.WriteFile(filepath.Join(path, "state.json"), withSum(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := durable.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			_, err = node.New(node.Config{Source: &source{}, Host: &host{}, Keys: testSigner(1).trust(), Dir: d})
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v, want %q", err, row.says)
			}
		})
	}
}

// TestDamagedStateOnTrial: a state that is rebuilt while a trial goes on has the trial's mark, and boots what is confirmed.
func TestDamagedStateOnTrial(t *testing.T) {
	inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		m.prober.set(false, "not yet")
		ro := c.propose(2, testWindow)
		c.onTrial(ro, m)
		m.stop()
		if err := os.WriteFile(filepath.Join(m.dir, "state.json"), []byte("garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		// Nothing below the trial's generation, and nothing provisional, is installed while there is no proof.
		old := c.made.activateFor(c.s, 9, ro.Generation-1, seal.KindApply, "", sealed.seal(c.s, 9))
		m.answers(func(p nodeproto.Poll) (nodeproto.Answer, error, bool) {
			if p.Nonce != "" {
				return nodeproto.Answer{Artefact: old, Freshness: c.s.fresh(p.Nonce, old)}, nil, true
			}
			return nodeproto.Answer{}, errAway, true
		})
		m.start()
		if got := m.host.versions(); !slices.Equal(got, []uint64{1}) {
			t.Fatalf("boots %v", got)
		}
		c.until("the older one is refused", func() bool {
			e := m.agent.Status().LastError
			return e != nil && e.Code == seal.CodeStaleGeneration
		})
		if s := m.saved(); s.Current != "slot-1-1" || s.Marks[c.s.key.ID()].Generation != ro.Generation {
			t.Errorf("remembers %+v", s)
		}
		m.answers(nil)
		c.ends(barrier.Reverted, "")
		c.serves(1, m)
		c.until("the next generation is installed", func() bool { return m.agent.Status().Generation == ro.Generation+1 })
	})
}
