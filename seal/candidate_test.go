package seal

import (
	"strings"
	"testing"
)

// A candidate passes everything but its activation, and becomes a Verified by one of its own bytes and key only.
func TestCandidate(t *testing.T) {
	k, other := key(t, 1), key(t, 2)
	a := artefact(t, k, 42, 7)
	c, err := OpenCandidate(a.Sealed, trust(t, other, k), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.KeyID() != k.ID() || c.PayloadBLAKE3() != a.PayloadBLAKE3 || c.Snapshot().Meta().Version != 42 {
		t.Errorf("candidate %s %s %d", c.KeyID(), c.PayloadBLAKE3(), c.Snapshot().Meta().Version)
	}
	v, err := c.Activate(a.Activation)
	if err != nil || v.Activation() != activation(7).Of(a.Sealed) || v.Snapshot() != c.Snapshot() || v.Candidate() != c {
		t.Errorf("activated: %v %+v", err, v)
	}
	provisional := activation(8)
	provisional.Kind = KindProvisional
	stored, err := ActivateStored(k, k.ID(), provisional.Of(a.Sealed))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.Activate(stored); err != nil || v.Activation().Kind != KindProvisional {
		t.Errorf("from what is stored: %v", err)
	}
	opened, err := Open(a, trust(t, k), nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := opened.Candidate().Activate(stored); err != nil || again.Activation().Generation != 8 {
		t.Errorf("another activation of what is served: %v", err)
	}

	for name, signed := range map[string]SignedActivation{
		"none":               "",
		"of another key":     artefact(t, other, 42, 7).Activation,
		"of another version": artefact(t, k, 43, 7).Activation,
		"altered":            a.Activation[:len(a.Activation)-1] + "0",
	} {
		if _, err := c.Activate(signed); code(err) != CodeActivationInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ActivateStored(other, k.ID(), activation(7).Of(a.Sealed)); err == nil || !strings.Contains(err.Error(), "re-seal") {
		t.Errorf("signed with another key than the payload's: %v", err)
	}
}

// Whatever makes an artefact's payload or envelope unacceptable makes it unacceptable as a candidate.
func TestCandidateRefuses(t *testing.T) {
	keys := trust(t, key(t, 1), key(t, 2))
	for name, r := range refusals(t) {
		if r.code == CodeActivationInvalid {
			continue // of the activation alone
		}
		if _, err := OpenCandidate(r.a.Sealed, keys, nil); code(err) != r.code {
			t.Errorf("%s: %v, want %s", name, err, r.code)
		}
	}
}
