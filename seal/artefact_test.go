package seal

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/guardyn-edge/guardyn/snapshot"
)

func TestOpen(t *testing.T) {
	k := key(t, 1)
	s := demo(t, 42)
	a := artefact(t, k, 42, 7)
	v, err := Open(a, trust(t, key(t, 2), k), nil)
	if err != nil {
		t.Fatal(err)
	}
	if v.KeyID() != k.ID() || v.Snapshot().ContentHash() != s.ContentHash() || v.Snapshot().Meta() != s.Meta() {
		t.Errorf("opened %s %+v", v.KeyID(), v.Snapshot().Meta())
	}
	want := activation(7).Of(a.Sealed)
	if v.Activation() != want {
		t.Errorf("activation %+v, want %+v", v.Activation(), want)
	}
	if want.Version != 42 || want.PayloadBytes != int64(len(a.Payload)) || want.PayloadBLAKE3 != a.PayloadBLAKE3 {
		t.Errorf("activation %+v", want)
	}
	a.PayloadBLAKE3 = "" // as it is when it comes over HTTP
	next, err := Open(a, trust(t, k), v.Snapshot())
	if err != nil || next.Snapshot().Zone("01890a5d-ac96-774b-bcce-b302099a8057") != v.Snapshot().Zone("01890a5d-ac96-774b-bcce-b302099a8057") {
		t.Errorf("against what is served: %v, or nothing shared", err)
	}
	if got, err := OpenSealed(a.Sealed, trust(t, k)); err != nil || got.ContentHash() != s.ContentHash() {
		t.Errorf("OpenSealed: %v", err)
	}
}

func TestSealRefuses(t *testing.T) {
	if _, err := Seal(key(t, 1), demo(t, 1).WithMeta(snapshot.Meta{})); err == nil || !strings.Contains(err.Error(), "version 0") {
		t.Errorf("a snapshot without a version: %v", err)
	}
}

// refusal is an artefact that must not install. It does not reach the decompressor unless unpacks says so.
type refusal struct {
	a       Artefact
	code    string
	says    string
	unpacks bool
}

// refusals are the kinds of artefact that must not install where key 1 and key 2 are trusted.
func refusals(t testing.TB) map[string]refusal {
	k, other, thief := key(t, 1), key(t, 2), key(t, 3)
	good := artefact(t, k, 42, 7)
	doc := string(demo(t, 42).JSON())
	hash := demo(t, 42).ContentHash()
	sig := func(f func(string) string) Artefact {
		a := good
		a.Signature = f(a.Signature)
		return a
	}
	with := func(f func(*Artefact)) Artefact {
		a := good
		a.Payload = slices.Clone(a.Payload)
		f(&a)
		return a
	}
	forged := func(payload []byte) Artefact { return forge(t, k, payload, 42, hash) }
	document := func(old, new string) Artefact {
		if !strings.Contains(doc, old) {
			t.Fatalf("the document does not contain %s", old)
		}
		return forged(sized(t, strings.Replace(doc, old, new, 1)))
	}
	statement := func(f func(string) string) Artefact {
		text, err := base64.RawURLEncoding.DecodeString(strings.Split(string(good.Activation), ".")[0])
		if err != nil {
			t.Fatal(err)
		}
		return with(func(a *Artefact) {
			b := []byte(f(string(text)))
			a.Activation = SignedActivation(base64.RawURLEncoding.EncodeToString(b) + "." + k.sign(append([]byte(activationPrefix), b...)))
		})
	}
	member := func(old, new string) Artefact {
		return statement(func(s string) string {
			if !strings.Contains(s, old) {
				t.Fatalf("the activation does not contain %s: %s", old, s)
			}
			return strings.Replace(s, old, new, 1)
		})
	}
	const unsignedWords = "there is no mode in which an unsigned snapshot is accepted"
	return map[string]refusal{
		"signature empty":         {a: sig(func(string) string { return "" }), code: CodeUnsigned, says: unsignedWords},
		"signature white space":   {a: sig(func(string) string { return " \t\n" }), code: CodeUnsigned, says: unsignedWords},
		"signature no-break":      {a: sig(func(string) string { return "\u00a0" }), code: CodeUnsigned, says: unsignedWords},
		"signature 127 digits":    {a: sig(func(s string) string { return s[1:] }), code: CodeSignatureMalformed, says: "128 lower-case hex digits"},
		"signature 130 digits":    {a: sig(func(s string) string { return s + "00" }), code: CodeSignatureMalformed, says: "128 lower-case hex digits"},
		"signature with 0x":       {a: sig(func(s string) string { return "0x" + s }), code: CodeSignatureMalformed},
		"signature with 0x, 128":  {a: sig(func(s string) string { return "0x" + s[2:] }), code: CodeSignatureMalformed},
		"signature upper case":    {a: sig(strings.ToUpper), code: CodeSignatureMalformed},
		"signature with a space":  {a: sig(func(s string) string { return s + " " }), code: CodeSignatureMalformed},
		"signature of zeros":      {a: sig(func(string) string { return strings.Repeat("0", 128) }), code: CodeSignatureInvalid},
		"signature with S + L":    {a: sig(plusL), code: CodeSignatureInvalid},
		"signature bit flipped":   {a: sig(flipHex), code: CodeSignatureInvalid},
		"signed by another key":   {a: with(func(a *Artefact) { a.Signature = other.sign(a.Payload) }), code: CodeSignatureInvalid},
		"key id of another":       {a: with(func(a *Artefact) { a.KeyID = other.ID() }), code: CodeSignatureInvalid},
		"key not trusted":         {a: artefact(t, thief, 42, 7), code: CodeKeyUntrusted, says: string(thief.ID())},
		"key not trusted, listed": {a: artefact(t, thief, 42, 7), code: CodeKeyUntrusted, says: string(k.ID()) + ", " + string(other.ID())},
		"key id empty":            {a: with(func(a *Artefact) { a.KeyID = "" }), code: CodeKeyUntrusted},
		"key id upper case":       {a: with(func(a *Artefact) { a.KeyID = KeyID(strings.ToUpper(string(a.KeyID))) }), code: CodeKeyUntrusted},
		"key id of escapes":       {a: with(func(a *Artefact) { a.KeyID = "\x1b[31m" }), code: CodeKeyUntrusted, says: `\x1b[31m`},
		"payload truncated":       {a: with(func(a *Artefact) { a.Payload = a.Payload[:len(a.Payload)-1] }), code: CodeSignatureInvalid},
		"payload bit flipped":     {a: with(func(a *Artefact) { a.Payload[len(a.Payload)/2] ^= 1 }), code: CodeSignatureInvalid},
		"payload longer":          {a: with(func(a *Artefact) { a.Payload = append(a.Payload, 0) }), code: CodeSignatureInvalid},
		"payload empty":           {a: with(func(a *Artefact) { a.Payload = nil }), code: CodeSignatureInvalid},

		"activation missing":       {a: with(func(a *Artefact) { a.Activation = "" }), code: CodeActivationInvalid, says: "no activation"},
		"activation without a dot": {a: with(func(a *Artefact) { a.Activation = "abc" }), code: CodeActivationInvalid},
		"activation padded": {a: with(func(a *Artefact) {
			a.Activation = SignedActivation(strings.Replace(string(a.Activation), ".", "=.", 1))
		}), code: CodeActivationInvalid, says: "base64url"},
		"activation with a line break": {a: with(func(a *Artefact) { a.Activation = "\n" + a.Activation }), code: CodeActivationInvalid, says: "base64url"},
		"activation unsigned":          {a: with(func(a *Artefact) { a.Activation = SignedActivation(strings.SplitAfter(string(a.Activation), ".")[0]) }), code: CodeActivationInvalid},
		"activation upper case": {a: with(func(a *Artefact) {
			p := strings.Split(string(a.Activation), ".")
			a.Activation = SignedActivation(p[0] + "." + strings.ToUpper(p[1]))
		}), code: CodeActivationInvalid},
		"activation altered": {a: with(func(a *Artefact) { a.Activation = "a" + a.Activation[1:] }), code: CodeActivationInvalid, says: "does not verify"},
		"activation by another trusted": {a: with(func(a *Artefact) {
			s := a.Sealed
			s.KeyID = other.ID()
			a.Activation = activated(t, other, s, activation(7)).Activation
		}), code: CodeActivationInvalid, says: "does not verify"},
		"activation of another version": {a: with(func(a *Artefact) { a.Activation = artefact(t, k, 41, 7).Activation }), code: CodeActivationInvalid, says: "another payload"},
		"another payload under it":      {a: with(func(a *Artefact) { b := artefact(t, k, 41, 7); a.Payload, a.Signature = b.Payload, b.Signature }), code: CodeActivationInvalid, says: "another payload"},
		"activation is the payload's sig": {a: with(func(a *Artefact) {
			a.Activation = SignedActivation(strings.Split(string(a.Activation), ".")[0] + "." + a.Signature)
		}), code: CodeActivationInvalid},
		"activation without the prefix": {a: with(func(a *Artefact) {
			p := strings.Split(string(a.Activation), ".")[0]
			b, _ := base64.RawURLEncoding.DecodeString(p)
			a.Activation = SignedActivation(p + "." + k.sign(b))
		}), code: CodeActivationInvalid},
		"activation is freshness": {a: with(func(a *Artefact) {
			f, err := SignFreshness(k, freshness())
			if err != nil {
				t.Fatal(err)
			}
			a.Activation = SignedActivation(f)
		}), code: CodeActivationInvalid},
		"activation too long":              {a: with(func(a *Artefact) { a.Activation = SignedActivation(strings.Repeat("A", maxStatement)) + a.Activation }), code: CodeActivationInvalid, says: "the most is 4096"},
		"activation not canonical":         {a: statement(func(s string) string { return s[:len(s)-1] + " }" }), code: CodeActivationInvalid, says: "canonical"},
		"activation reordered":             {a: statement(func(s string) string { return strings.Replace(`{"version":42,`+s[1:], `,"version":42}`, `}`, 1) }), code: CodeActivationInvalid, says: "canonical"},
		"activation member twice":          {a: statement(func(s string) string { return `{"version":42,` + s[1:] }), code: CodeActivationInvalid, says: "duplicate"},
		"activation member unknown":        {a: statement(func(s string) string { return s[:len(s)-1] + `,"zzz":1}` }), code: CodeActivationInvalid, says: "unknown"},
		"activation member missing":        {a: member(`,"rollout":""`, ``), code: CodeActivationInvalid, says: "canonical"},
		"activation kind unknown":          {a: member(`"kind":"apply"`, `"kind":"delete"`), code: CodeActivationInvalid, says: `"delete"`},
		"activation generation 2^63":       {a: member(`"generation":7`, `"generation":9223372036854776000`), code: CodeActivationInvalid, says: "2^53"},
		"activation generation 2^64":       {a: member(`"generation":7`, `"generation":18446744073709552000`), code: CodeActivationInvalid},
		"activation generation 0":          {a: member(`"generation":7,"issued_at":"2026-03-01T12:00:00Z","kind":"apply","parent_generation":6`, `"generation":0,"issued_at":"2026-03-01T12:00:00Z","kind":"apply","parent_generation":0`), code: CodeActivationInvalid, says: "generation 0"},
		"activation generation -1":         {a: member(`"generation":7`, `"generation":-1`), code: CodeActivationInvalid},
		"activation generation 7e0":        {a: member(`"generation":7`, `"generation":7e0`), code: CodeActivationInvalid},
		"activation parent not below":      {a: member(`"parent_generation":6`, `"parent_generation":7`), code: CodeActivationInvalid, says: "parent_generation"},
		"activation epoch 0":               {a: member(`"epoch":1`, `"epoch":0`), code: CodeActivationInvalid, says: "epoch 0"},
		"activation version differs":       {a: member(`"version":42`, `"version":43`), code: CodeActivationInvalid, says: "version 43"},
		"activation hash differs":          {a: member(hash, strings.Repeat("0", 64)), code: CodeActivationInvalid, says: "content"},
		"activation bytes differ":          {a: member(fmt.Sprintf(`"payload_bytes":%d`, len(good.Payload)), fmt.Sprintf(`"payload_bytes":%d`, len(good.Payload)+1)), code: CodeActivationInvalid, says: "another payload"},
		"activation platform is no UUID":   {a: member(platformID, "here"), code: CodeActivationInvalid, says: "UUID"},
		"activation time with an offset":   {a: member(`12:00:00Z`, `13:00:00+01:00`), code: CodeActivationInvalid},
		"activation time missing":          {a: member(`2026-03-01T12:00:00Z`, `0001-01-01T00:00:00Z`), code: CodeActivationInvalid, says: "issued_at"},
		"activation hash upper case":       {a: member(hash, strings.ToUpper(hash)), code: CodeActivationInvalid, says: "content_hash"},
		"envelope version differs":         {a: with(func(a *Artefact) { a.Version = 43 }), code: CodeActivationInvalid, says: "43"},
		"envelope hash differs":            {a: with(func(a *Artefact) { a.ContentHash = strings.Repeat("0", 64) }), code: CodeActivationInvalid, says: "envelope"},
		"envelope payload hash differs":    {a: with(func(a *Artefact) { a.PayloadBLAKE3 = strings.Repeat("0", 64) }), code: CodeEnvelopeMismatch, says: "payload"},
		"payload of another version":       {a: forge(t, k, good.Payload, 43, hash), code: CodeEnvelopeMismatch, says: "version 43", unpacks: true},
		"payload of another hash":          {a: forge(t, k, good.Payload, 42, strings.Repeat("0", 64)), code: CodeEnvelopeMismatch, says: "content", unpacks: true},
		"payload is no zstd":               {a: forged([]byte(doc)), code: CodePayloadMalformed, says: "zstd", unpacks: true},
		"payload is one byte":              {a: forged([]byte{0}), code: CodePayloadMalformed, unpacks: true},
		"payload truncated, signed":        {a: forged(good.Payload[:len(good.Payload)-5]), code: CodePayloadMalformed, says: "too early", unpacks: true},
		"payload with bytes after it":      {a: forged(append(slices.Clone(good.Payload), 'x')), code: CodePayloadMalformed, says: "1 bytes follow", unpacks: true},
		"payload of two frames":            {a: forged(append(slices.Clone(good.Payload), sized(t, " ")...)), code: CodePayloadMalformed, says: "follow its frame", unpacks: true},
		"payload, then an empty frame":     {a: forged(append(slices.Clone(good.Payload), sized(t, "")...)), code: CodePayloadMalformed, says: "follow its frame", unpacks: true},
		"payload, then a skippable frame":  {a: forged(append(slices.Clone(good.Payload), 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0)), code: CodePayloadMalformed, says: "follow its frame", unpacks: true},
		"a skippable frame, then payload":  {a: forged(append([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, good.Payload...)), code: CodePayloadMalformed, says: "skippable", unpacks: true},
		"payload with a dictionary":        {a: forged(pack(t, doc, zstd.WithEncoderDictRaw(7, []byte(strings.Repeat("zones", 100))))), code: CodePayloadMalformed, says: "dictionary", unpacks: true},
		"payload with a huge window":       {a: forged(repeated(1, 100, 100, 30<<3)), code: CodePayloadMalformed, says: "window", unpacks: true},
		"payload with a window over 8 MiB": {a: forged(repeated(1, 100, 100, 13<<3|1)), code: CodePayloadMalformed, says: "window", unpacks: true},
		"payload without its size":         {a: forged(unsized(t, doc)), code: CodePayloadMalformed, says: "does not say", unpacks: true},
		"payload that claims 8 GiB":        {a: forged(repeated(65536, 128<<10, 8<<30, 13<<3)), code: CodePayloadMalformed, says: "8589934592", unpacks: true},
		"payload that claims 1 GiB":        {a: forged(repeated(80, 128<<10, 1<<30, 13<<3)), code: CodePayloadMalformed, says: "do not hold", unpacks: true},
		"payload larger than it claims":    {a: forged(repeated(80, 128<<10, 100, 13<<3)), code: CodePayloadMalformed, unpacks: true},
		"payload of a block too large":     {a: forged(repeated(1, 128<<10+1, 100, 13<<3)), code: CodePayloadMalformed, says: "too large", unpacks: true},
		"payload with a checksum error":    {a: forged(flip(good.Payload, len(good.Payload)-1)), code: CodePayloadMalformed, unpacks: true},

		"document: unknown member":  {a: document(`"format":2`, `"format":2,"x":1`), code: CodePayloadMalformed, says: `"x"`, unpacks: true},
		"document: second value":    {a: forged(sized(t, doc+"{}")), code: CodePayloadMalformed, says: "follow the document", unpacks: true},
		"document: nesting 10,001":  {a: document(`"message":""`, `"message":`+strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001)), code: CodePayloadMalformed, says: "nests", unpacks: true},
		"document: version 2^64":    {a: document(`"version":42`, `"version":18446744073709551616`), code: CodePayloadMalformed, says: "version", unpacks: true},
		"document: version 1e2":     {a: document(`"version":42`, `"version":1e2`), code: CodePayloadMalformed, says: "version", unpacks: true},
		"document: format 3":        {a: document(`"format":2`, `"format":3`), code: CodeFormatUnsupported, says: "upgrade the node before the control plane", unpacks: true},
		"document: format 1":        {a: document(`"format":2`, `"format":1`), code: CodeFormatUnsupported, unpacks: true},
		"document: hash missing":    {a: document(`"content_hash":"`+hash+`",`, ``), code: CodeHashMismatch, says: "missing", unpacks: true},
		"document: content altered": {a: document(`version 42`, `version 43`), code: CodeHashMismatch, unpacks: true},
		"document: id of another":   {a: rehashed(t, k, doc, `{"01890a5d-ac96-774b-bcce-b302099a8057":{`, `{"01890a5d-ac96-774b-bcce-b302099a8058":{`), code: CodeZoneIDMismatch, unpacks: true},
		"document: host twice": {
			a:    rehashed(t, k, doc, `"type":"TXT"}]}}}`, `"type":"TXT"}]},"01890a5d-ac96-774b-bcce-b302099a8058":{"id":"01890a5d-ac96-774b-bcce-b302099a8058","name":"lab.example.org"}}}`),
			code: CodeHostDuplicate, says: "lab.example.org", unpacks: true,
		},
	}
}

func TestOpenRefuses(t *testing.T) {
	trusted := trust(t, key(t, 1), key(t, 2))
	good := artefact(t, key(t, 1), 42, 7)
	for name, tc := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			calls := 0
			o := opener{func(p []byte) ([]byte, error) {
				calls++
				return unpack(p, MaxDocument)
			}}
			for _, prev := range []*snapshot.Snapshot{nil, demo(t, 42)} {
				v, err := o.open(tc.a, trusted, prev)
				var r *Refusal
				if !errors.As(err, &r) || v != nil {
					t.Fatalf("opened, or not a Refusal: %v", err)
				}
				if r.Code != tc.code || !strings.Contains(r.Message, tc.says) {
					t.Errorf("%s: %q, want %s: %q", r.Code, r.Message, tc.code, tc.says)
				}
				if strings.ContainsAny(r.Message, "\n\x1b") || len(r.Message) > 1000 {
					t.Errorf("the message is not inert, or long: %q", r.Message)
				}
			}
			if tc.unpacks != (calls > 0) {
				t.Errorf("the decompressor ran %d times", calls)
			}
		})
	}
	if v, err := Open(good, trusted, nil); err != nil || v == nil {
		t.Fatalf("the artefact that all of these are made from does not open: %v", err)
	}
}

// A bomb: what a decoder unpacks stops at the limit, and a frame that promises more is refused unread.
func TestUnpackIsBounded(t *testing.T) {
	const limit = 1 << 20
	big := sized(t, strings.Repeat("0123456789abcdef", limit/16)+"x")
	if _, err := unpack(big, limit); err == nil || !strings.Contains(err.Error(), "the most is 1048576") {
		t.Errorf("one byte over the limit: %v", err)
	}
	if out, err := unpack(sized(t, strings.Repeat("0123456789abcdef", limit/16)), limit); err != nil || len(out) != limit {
		t.Errorf("exactly the limit: %d bytes, %v", len(out), err)
	}
	liar := sized(t, strings.Repeat("0123456789abcdef", limit/8))
	at := strings.Index(string(liar), string(binary.LittleEndian.AppendUint32(nil, 2*limit)))
	if at < 0 {
		t.Fatal("the frame has no content size of 4 bytes")
	}
	binary.LittleEndian.PutUint32(liar[at:], 1000)
	if out, err := unpack(liar, limit); err == nil || len(out) > limit+maxBlock {
		t.Errorf("a frame that holds more than it says: %d bytes, %v", len(out), err)
	}
	allocated := testing.AllocsPerRun(1, func() { // 8 GiB in 256 KiB
		if err := checkFrame(repeated(65536, 128<<10, 8<<30, 13<<3), MaxDocument, maxWindow); err == nil {
			t.Error("8 GiB passed")
		}
	})
	if allocated > 100 {
		t.Errorf("%v allocations", allocated)
	}
}

func TestOpenTooLarge(t *testing.T) {
	k := key(t, 1)
	a := artefact(t, k, 42, 7)
	a.Payload = make([]byte, MaxPayload+1) // never touched, so the system maps no page of it
	calls := 0
	_, err := opener{func([]byte) ([]byte, error) { calls++; return nil, nil }}.open(a, trust(t, k), nil)
	var r *Refusal
	if !errors.As(err, &r) || r.Code != CodeTooLarge || calls != 0 {
		t.Errorf("got %v, unpacked %d times", err, calls)
	}
}

// The order is the one of the specification: of an artefact with several faults, the first is told.
func TestOpenOrder(t *testing.T) {
	k, thief := key(t, 1), key(t, 3)
	trusted := trust(t, k)
	bad := Artefact{Sealed: Sealed{Payload: []byte("x"), KeyID: thief.ID(), Signature: "", Version: 9, ContentHash: "?"}}
	steps := []struct {
		code string
		mend func(a *Artefact)
	}{
		{CodeUnsigned, func(a *Artefact) { a.Signature, a.Payload = "xyz", make([]byte, MaxPayload+1) }},
		{CodeTooLarge, func(a *Artefact) { a.Payload = []byte("x") }},
		{CodeKeyUntrusted, func(a *Artefact) { a.KeyID = k.ID() }},
		{CodeSignatureMalformed, func(a *Artefact) { a.Signature = thief.sign(a.Payload) }},
		{CodeSignatureInvalid, func(a *Artefact) { a.Signature = k.sign(a.Payload) }},
		{CodeActivationInvalid, func(a *Artefact) { *a = forge(t, k, []byte("x"), 9, strings.Repeat("0", 64)) }},
		{CodePayloadMalformed, func(a *Artefact) {
			*a = forge(t, k, sized(t, string(demo(t, 42).JSON())), 9, strings.Repeat("0", 64))
		}},
		{CodeEnvelopeMismatch, func(a *Artefact) { *a = artefact(t, k, 42, 7) }},
	}
	for _, s := range steps {
		_, err := Open(bad, trusted, nil)
		var r *Refusal
		if !errors.As(err, &r) || r.Code != s.code {
			t.Fatalf("got %v, want %s", err, s.code)
		}
		s.mend(&bad)
	}
	if _, err := Open(bad, trusted, nil); err != nil {
		t.Fatal(err)
	}
}
