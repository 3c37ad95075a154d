package control_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// Nodes that hold one of the payloads that were live last are sent the difference, everybody else all of it.
func TestPollCoded(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	if _, err := w.svc.CreateZone(ctx, w.editor, "small.example"); err != nil {
		t.Fatal(err)
	}
	// So many that, whatever their ids are, the payload is cut in many places (see seal): the next one shares most of it.
	for n := range 24 {
		name := fmt.Sprintf("large%d.example", n)
		if _, err := w.svc.CreateZone(ctx, w.editor, name); err != nil {
			t.Fatal(err)
		}
		var file strings.Builder
		for i := range 100 {
			fmt.Fprintf(&file, "t%d 300 TXT \"%x\"\n", i, sha256.Sum256([]byte{byte(n), byte(i)}))
		}
		if _, err := w.svc.ImportZoneFile(ctx, w.editor, name, strings.NewReader(file.String()), control.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	made, err := w.svc.CreateNode(ctx, w.operator, "fra1")
	if err != nil {
		t.Fatal(err)
	}
	node, err := w.svc.Authenticate(ctx, made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(svc *control.Service, q nodeproto.Poll) control.PollAnswer {
		t.Helper()
		a, err := svc.Poll(ctx, node, q)
		if err != nil || a.Artefact == nil {
			t.Fatalf("polled: %+v, %v", a, err)
		}
		return a
	}
	var payloads [][]byte
	publish := func(svc *control.Service) {
		t.Helper()
		content := fmt.Sprintf("@ 300 TXT \"version %d\"\n", len(payloads))
		if _, err := svc.ImportZoneFile(ctx, w.editor, "small.example", strings.NewReader(content), control.ImportOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := svc.Apply(ctx, w.operator, control.ApplyRequest{AcceptDisruption: true}); err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, ask(svc, nodeproto.Poll{}).Artefact.Payload)
	}
	for range 6 {
		publish(w.svc)
	}
	trusted, err := seal.Trust(w.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	before := w.svc.Stats()
	coded := 0
	for i, held := range payloads {
		a := ask(w.svc, nodeproto.Poll{Dictionary: seal.DictionaryOf(held)})
		if want := i >= len(payloads)-4; (a.Coding != nil) != want {
			t.Errorf("payload %d of %d: coded %v", i, len(payloads), a.Coding != nil)
		}
		if a.Coding == nil {
			continue
		}
		coded++
		got, err := seal.Decode(*a.Coding, *a.Artefact, held, trusted)
		if err != nil || !bytes.Equal(got, payloads[len(payloads)-1]) {
			t.Errorf("payload %d: %v", i, err)
		}
	}
	after := w.svc.Stats()
	if int(after.PollsCoded-before.PollsCoded) != coded || after.CodedSaved <= before.CodedSaved {
		t.Errorf("counted %+v", after)
	}
	last := payloads[len(payloads)-2]
	for name, q := range map[string]nodeproto.Poll{
		"nothing is held":       {},
		"something else is":     {Dictionary: seal.DictionaryOf([]byte("something else"))},
		"the payload itself is": {Dictionary: seal.DictionaryOf(last), Held: ask(w.svc, nodeproto.Poll{}).Artefact.PayloadBLAKE3},
	} {
		if a := ask(w.svc, q); a.Coding != nil {
			t.Errorf("%s: it is coded", name)
		}
	}
	// However many ask at once, it is made once.
	publish(w.svc)
	q := nodeproto.Poll{Dictionary: seal.DictionaryOf(payloads[len(payloads)-2])}
	answers := make([]control.PollAnswer, 20)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i], _ = w.svc.Poll(ctx, node, q) })
	}
	wg.Wait()
	for _, a := range answers {
		if a.Coding == nil || a.Coding != answers[0].Coding {
			t.Fatal("it was made twice, or not at all")
		}
	}
	// Back to the version before: those who hold the newer one are sent the difference to it.
	if _, err := w.svc.Rollback(ctx, w.operator, control.RollbackRequest{AcceptDisruption: true}); err != nil {
		t.Fatal(err)
	}
	if a := ask(w.svc, nodeproto.Poll{Dictionary: seal.DictionaryOf(payloads[len(payloads)-1])}); a.Coding == nil {
		t.Error("after a rollback it is not coded")
	} else if got, err := seal.Decode(*a.Coding, *a.Artefact, payloads[len(payloads)-1], trusted); err != nil || !bytes.Equal(got, payloads[len(payloads)-2]) {
		t.Errorf("after a rollback: %v", err)
	}
	// Another process, with another key: what is live was sealed with the first one, so no coding can be signed.
	key, err := seal.GenerateSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	both, err := seal.Trust(key.Public(), w.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	next := w.service(t, w.store, func(c *control.Config) { c.SigningKey, c.TrustedKeys = key, both })
	if a := ask(next, nodeproto.Poll{Dictionary: seal.DictionaryOf(ask(next, nodeproto.Poll{}).Artefact.Payload)}); a.Coding != nil {
		t.Error("a coding is signed with another key than its payload")
	}
	publish(next)
	if a := ask(next, nodeproto.Poll{Dictionary: seal.DictionaryOf(payloads[len(payloads)-3])}); a.Coding == nil {
		t.Error("with the key that it has it codes nothing")
	} else if _, err := seal.Decode(*a.Coding, *a.Artefact, payloads[len(payloads)-3], both); err != nil {
		t.Error(err)
	}
}
