package seal

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/snapshot"
)

func TestActivateRefuses(t *testing.T) {
	k := key(t, 1)
	sealed := artefact(t, k, 42, 7).Sealed
	for name, tc := range map[string]struct {
		edit func(*Activation, *Sealed)
		says string
	}{
		"platform":        {func(a *Activation, _ *Sealed) { a.Platform = "x" }, "platform"},
		"epoch 0":         {func(a *Activation, _ *Sealed) { a.Epoch = 0 }, "epoch 0"},
		"generation 0":    {func(a *Activation, _ *Sealed) { a.Generation = 0 }, "generation 0"},
		"generation 2^53": {func(a *Activation, _ *Sealed) { a.Generation = 1 << 53 }, "2^53-1"},
		"kind":            {func(a *Activation, _ *Sealed) { a.Kind = "" }, "kind"},
		"parent":          {func(a *Activation, _ *Sealed) { a.ParentGeneration = 7 }, "parent_generation"},
		"rollout":         {func(a *Activation, _ *Sealed) { a.Rollout = "r1" }, "rollout"},
		"time":            {func(a *Activation, _ *Sealed) { a.IssuedAt = time.Time{} }, "issued_at"},
		"version 0":       {func(_ *Activation, s *Sealed) { s.Version = 0 }, "version 0"},
		"another key":     {func(_ *Activation, s *Sealed) { s.KeyID = key(t, 2).ID() }, "re-seal"},
		"no payload":      {func(_ *Activation, s *Sealed) { s.Payload = nil }, "payload_bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			a, s := activation(7), sealed
			tc.edit(&a, &s)
			if _, err := Activate(k, s, a); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v does not say %q", err, tc.says)
			}
		})
	}
	// What the artefact determines is taken from it, whatever the caller put there; the time becomes UTC.
	a := activation(7)
	a.Version, a.ContentHash, a.PayloadBytes = 1, "x", 5
	a.IssuedAt = at.In(time.FixedZone("x", 3600))
	signed, err := Activate(k, sealed, a)
	if err != nil {
		t.Fatal(err)
	}
	got, by, err := VerifyActivation(signed, trust(t, key(t, 2), k))
	if err != nil || by != k.ID() || got != activation(7).Of(sealed) {
		t.Errorf("%+v by %s: %v", got, by, err)
	}
	if _, _, err := VerifyActivation(signed, trust(t, key(t, 2))); err == nil {
		t.Error("verified with a key that did not sign")
	}
}

func mark(epoch, generation uint64, hash string, kind ActivationKind) Mark {
	return Mark{Epoch: epoch, Generation: generation, ContentHash: hash, Kind: kind}
}

func TestMarks(t *testing.T) {
	k, second, dropped := key(t, 1), key(t, 2), key(t, 3)
	trusted := trust(t, k, second)
	for name, tc := range map[string]struct {
		marks             Marks
		epoch, generation uint64
		hash              string
		kind              ActivationKind
		install           bool
		code              string
	}{
		"no marks":                         {Marks{}, 1, 5_000_000, "a", KindApply, true, ""},
		"nil marks":                        {nil, 1, 1, "a", KindApply, true, ""},
		"no marks, beyond 2^53":            {Marks{}, 1, 1 << 63, "a", KindApply, false, CodeGenerationJump},
		"only a dropped key's":             {Marks{dropped.ID(): mark(1, 1_000_000, "z", KindApply)}, 1, 45, "a", KindApply, true, ""},
		"lower":                            {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1, 42, "a", KindApply, false, CodeStaleGeneration},
		"lower than the other key's":       {Marks{k.ID(): mark(1, 10, "a", KindApply), second.ID(): mark(1, 44, "b", KindApply)}, 1, 42, "a", KindApply, false, CodeStaleGeneration},
		"lower epoch":                      {Marks{k.ID(): mark(2, 1, "a", KindApply)}, 1, 99, "a", KindApply, false, CodeStaleGeneration},
		"equal":                            {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1, 44, "a", KindApply, false, ""},
		"equal, provisional again":         {Marks{k.ID(): mark(1, 44, "a", KindProvisional)}, 1, 44, "a", KindProvisional, false, ""},
		"equal, confirmed":                 {Marks{k.ID(): mark(1, 44, "a", KindProvisional)}, 1, 44, "a", KindConfirmed, true, ""},
		"equal, provisional after confirm": {Marks{k.ID(): mark(1, 44, "a", KindConfirmed)}, 1, 44, "a", KindProvisional, false, ""},
		"equal, apply then confirmed":      {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1, 44, "a", KindConfirmed, false, ""},
		"equal, other hash":                {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1, 44, "b", KindApply, false, CodeEquivocation},
		"equal, other hash, confirmed":     {Marks{k.ID(): mark(1, 44, "a", KindProvisional)}, 1, 44, "b", KindConfirmed, false, CodeEquivocation},
		"next":                             {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1, 45, "b", KindApply, true, ""},
		"next, same content":               {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1, 45, "a", KindRollback, true, ""},
		"as far as may be":                 {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1, 44 + 1<<20, "b", KindApply, true, ""},
		"too far":                          {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1, 45 + 1<<20, "b", KindApply, false, CodeGenerationJump},
		"2^63":                             {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1, 1 << 63, "b", KindApply, false, CodeGenerationJump},
		"higher epoch, lower generation":   {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 2, 3, "b", KindApply, true, ""},
		"higher epoch, same generation":    {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 2, 44, "b", KindApply, true, ""},
		"higher epoch, too far generation": {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 2, 45 + 1<<20, "b", KindApply, false, CodeGenerationJump},
		"epoch as far as may be":           {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 1 + 1<<20, 1, "b", KindApply, true, ""},
		"epoch too far":                    {Marks{k.ID(): mark(1, 44, "a", KindApply)}, 2 + 1<<20, 1, "b", KindApply, false, CodeGenerationJump},
		"highest is by epoch":              {Marks{k.ID(): mark(2, 1, "a", KindApply), second.ID(): mark(1, 99, "b", KindApply)}, 2, 1, "a", KindApply, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tc.marks)
			install, err := tc.marks.Admit(Activation{Epoch: tc.epoch, Generation: tc.generation, ContentHash: tc.hash, Kind: tc.kind}, trusted)
			code := ""
			var r *Refusal
			if errors.As(err, &r) {
				code = r.Code
			}
			if install != tc.install || code != tc.code || (err != nil) != (tc.code != "") {
				t.Errorf("install %v, %v; want %v, %q", install, err, tc.install, tc.code)
			}
			if !maps.Equal(before, tc.marks) {
				t.Error("asking moved a mark")
			}
		})
	}
}

func TestRaise(t *testing.T) {
	k := key(t, 1).ID()
	m := Marks{}
	for _, tc := range []struct {
		a    Activation
		want Mark
	}{
		{Activation{Epoch: 1, Generation: 5, ContentHash: "a", Kind: KindProvisional}, mark(1, 5, "a", KindProvisional)},
		{Activation{Epoch: 1, Generation: 5, ContentHash: "a", Kind: KindConfirmed}, mark(1, 5, "a", KindConfirmed)},
		{Activation{Epoch: 1, Generation: 5, ContentHash: "a", Kind: KindProvisional}, mark(1, 5, "a", KindConfirmed)},
		{Activation{Epoch: 1, Generation: 5, ContentHash: "b", Kind: KindApply}, mark(1, 5, "a", KindConfirmed)},
		{Activation{Epoch: 1, Generation: 4, ContentHash: "b", Kind: KindApply}, mark(1, 5, "a", KindConfirmed)},
		{Activation{Epoch: 1, Generation: 9, ContentHash: "b", Kind: KindRollback}, mark(1, 9, "b", KindRollback)},
		{Activation{Epoch: 2, Generation: 1, ContentHash: "c", Kind: KindApply}, mark(2, 1, "c", KindApply)},
		{Activation{Epoch: 1, Generation: 10, ContentHash: "d", Kind: KindApply}, mark(2, 1, "c", KindApply)},
	} {
		m.Raise(k, tc.a)
		if m[k] != tc.want {
			t.Errorf("after %+v: %+v, want %+v", tc.a, m[k], tc.want)
		}
	}
}

// A stolen key signed generation 10^6 and is then removed: the genuine next generation installs.
func TestStolenKeyIsDropped(t *testing.T) {
	genuine, stolen := key(t, 1), key(t, 2)
	both, one := trust(t, genuine, stolen), trust(t, genuine)
	m := Marks{}
	install := func(k SigningKey, trusted TrustedKeys, version, generation uint64) error {
		v, err := Open(artefact(t, k, version, generation), trusted, nil)
		if err != nil {
			return err
		}
		ok, err := m.Admit(v.Activation(), trusted)
		if err == nil && ok {
			m.Raise(v.KeyID(), v.Activation())
		}
		return err
	}
	if err := install(genuine, both, 1, 7); err != nil {
		t.Fatal(err)
	}
	if err := install(stolen, both, 2, 1_000_000); err != nil {
		t.Fatal(err)
	}
	var r *Refusal
	if err := install(genuine, both, 3, 8); !errors.As(err, &r) || r.Code != CodeStaleGeneration {
		t.Fatalf("while both are trusted: %v", err)
	}
	if err := install(genuine, one, 3, 8); err != nil {
		t.Fatalf("after the key was dropped: %v", err)
	}
	if err := install(stolen, one, 4, 1_000_001); !errors.As(err, &r) || r.Code != CodeKeyUntrusted {
		t.Fatalf("the dropped key: %v", err)
	}
}

func freshness() FreshnessStatement {
	return FreshnessStatement{Nonce: "00112233445566778899aabbccddeeff", Epoch: 1, Generation: 58, ContentHash: strings.Repeat("ab", 32), IssuedAt: at}
}

func TestFreshness(t *testing.T) {
	k := key(t, 1)
	trusted := trust(t, key(t, 2), k)
	f := freshness()
	header, err := SignFreshness(k, f)
	if err != nil {
		t.Fatal(err)
	}
	got, by, err := VerifyFreshness(header, trusted, f.Nonce)
	if err != nil || got != f || by != k.ID() {
		t.Fatalf("%+v by %s: %v", got, by, err)
	}
	a := artefact(t, k, 42, 7)
	for name, tc := range map[string]struct {
		header, nonce string
		trusted       TrustedKeys
	}{
		"another nonce":    {header, strings.Repeat("0", 32), trusted},
		"no nonce":         {header, "", trusted},
		"key not trusted":  {header, f.Nonce, trust(t, key(t, 2))},
		"empty":            {"", f.Nonce, trusted},
		"altered":          {"a" + header[1:], f.Nonce, trusted},
		"is an activation": {string(a.Activation), f.Nonce, trusted},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := VerifyFreshness(tc.header, tc.trusted, tc.nonce)
			var r *Refusal
			if !errors.As(err, &r) || r.Code != CodeFreshnessInvalid {
				t.Errorf("got %v", err)
			}
		})
	}
	for name, edit := range map[string]func(*FreshnessStatement){
		"nonce of 15":       func(f *FreshnessStatement) { f.Nonce = f.Nonce[:15] },
		"nonce of 65":       func(f *FreshnessStatement) { f.Nonce = strings.Repeat("0", 65) },
		"nonce upper case":  func(f *FreshnessStatement) { f.Nonce = strings.ToUpper(f.Nonce) },
		"generation 0":      func(f *FreshnessStatement) { f.Generation = 0 },
		"epoch 2^53":        func(f *FreshnessStatement) { f.Epoch = 1 << 53 },
		"hash":              func(f *FreshnessStatement) { f.ContentHash = "" },
		"time":              func(f *FreshnessStatement) { f.IssuedAt = time.Time{} },
		"nonce with breaks": func(f *FreshnessStatement) { f.Nonce = "0011223344556677\r\n" },
	} {
		f := freshness()
		edit(&f)
		if _, err := SignFreshness(k, f); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}

// What is sealed is the same for equal snapshots: a re-seal with one key changes nothing.
func TestSealIsDeterministic(t *testing.T) {
	k := key(t, 1)
	a, b := artefact(t, k, 42, 7), artefact(t, k, 42, 7)
	if a.PayloadBLAKE3 != b.PayloadBLAKE3 || a.Signature != b.Signature || a.Activation != b.Activation {
		t.Error("two seals of one snapshot differ")
	}
	var s *snapshot.Snapshot = demo(t, 42)
	if a.ContentHash != s.ContentHash() || a.Version != 42 {
		t.Errorf("sealed %s version %d", a.ContentHash, a.Version)
	}
}
