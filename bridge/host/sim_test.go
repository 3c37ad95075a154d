package host_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sim"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/host"
)

// bridges are the simulator's artefacts as documents: some differ in what may roll, some in what may not.
type bridges struct {
	t    testing.TB
	docs map[barrier.Digest]*document.Document

	refused, rolled int
}

// doc is the document that an artefact stands for.
func (b *bridges) doc(d barrier.Digest) *document.Document {
	if d == "" {
		return nil
	}
	if b.docs[d] == nil {
		var n int
		if _, err := fmt.Sscanf(string(d), "sim:%d", &n); err != nil {
			n = 0 // the baseline
		}
		text := "bridge:\n  deployment_mode: clustered\n  cluster: {rollout: coordinated, members: [m1, m2, ROSTER], deadline: DEADLINE}\n" +
			"sessions:\n  - {id: plant, kind: mqtt, url: \"mqtt://plant\", client_id: gdn-CLIENT, clean_start: false, session_expiry: 1h, exclusive: true}\n" +
			"  - {id: cloud, kind: nats, url: \"nats://CLOUD\"}\nroutes:\n  - {id: r, from: {session: plant, topic: FILTER}, to: {session: cloud, topic: \"TARGET\"}}\n"
		pick := func(name string, every int, usual, other string) {
			value := usual
			if every > 0 && n%every == every-1 {
				value = other
			}
			text = strings.ReplaceAll(text, name, value)
		}
		pick("ROSTER", 11, "m3", "m4")
		pick("CLIENT", 7, "plant", "works")
		pick("FILTER", 13, "plant/+", "works/+")
		pick("DEADLINE", 2, "1m", "2m")
		pick("CLOUD", 3, "cloud", "sky")
		text = strings.ReplaceAll(text, "TARGET", fmt.Sprint("t.", n))
		parsed, err := document.Parse([]byte(text))
		if err != nil {
			b.t.Fatal(err)
		}
		b.docs[d] = parsed
	}
	return b.docs[d]
}

// Refuses implements sim.Classes.
func (b *bridges) Refuses(running, candidate barrier.Digest) bool {
	r := host.Refuses(b.doc(running), b.doc(candidate))
	if r {
		b.refused++
	}
	return r
}

// Committed implements sim.Classes.
func (b *bridges) Committed(before, after barrier.Digest) {
	b.rolled++
	if c := document.Compare(b.doc(before), b.doc(after)); before != "" && c.Class == document.Replacement {
		b.t.Errorf("%s was rolled out over %s, and it is %s: %+v", after, before, c.Class, c.Of(document.Replacement))
	}
}

// TestSimulated runs the barrier's simulator with this host's classes: whatever befalls the cohort, what must not roll never does, and
// every promise of the protocol is kept.
func TestSimulated(t *testing.T) {
	b := &bridges{t: t, docs: map[barrier.Digest]*document.Document{}}
	for seed := range uint64(400) {
		if r := sim.Run(sim.Options{Seed: seed, Classes: b}); r.Violation != nil {
			t.Fatalf("seed %d: %v", seed, r.Violation)
		}
		if t.Failed() {
			t.Fatalf("in schedule %d", seed)
		}
	}
	if b.refused < 100 || b.rolled < 100 {
		t.Errorf("refused %d times, and %d were rolled out: too few to prove anything", b.refused, b.rolled)
	}
}
