package seal

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestHeader(t *testing.T) {
	a := artefact(t, key(t, 1), 42, 7)
	h := http.Header{}
	h.Set("Content-Type", "application/octet-stream")
	WriteHeader(h, a)
	got, err := ReadHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	got.Payload = a.Payload
	if v, err := Open(got, trust(t, key(t, 1)), nil); err != nil || v.Snapshot().Meta().Version != 42 {
		t.Fatalf("what was read does not open: %v", err)
	}
	all := []string{HeaderVersion, HeaderHash, HeaderSignature, HeaderKeyID, HeaderActivation}
	rows := map[string]struct {
		edit func(http.Header)
		code string
	}{
		"version 0":          {func(h http.Header) { h.Set(HeaderVersion, "0") }, CodeEnvelopeMismatch},
		"version 042":        {func(h http.Header) { h.Set(HeaderVersion, "042") }, CodeEnvelopeMismatch},
		"version +42":        {func(h http.Header) { h.Set(HeaderVersion, "+42") }, CodeEnvelopeMismatch},
		"version 1e2":        {func(h http.Header) { h.Set(HeaderVersion, "1e2") }, CodeEnvelopeMismatch},
		"version 2^64":       {func(h http.Header) { h.Set(HeaderVersion, "18446744073709551616") }, CodeEnvelopeMismatch},
		"version 2^53":       {func(h http.Header) { h.Set(HeaderVersion, "9007199254740992") }, CodeEnvelopeMismatch},
		"hash upper case":    {func(h http.Header) { h.Set(HeaderHash, strings.ToUpper(a.ContentHash)) }, CodeEnvelopeMismatch},
		"hash short":         {func(h http.Header) { h.Set(HeaderHash, a.ContentHash[1:]) }, CodeEnvelopeMismatch},
		"signature missing":  {func(h http.Header) { h.Del(HeaderSignature) }, CodeUnsigned},
		"signature empty":    {func(h http.Header) { h.Set(HeaderSignature, "") }, CodeUnsigned},
		"signature blank":    {func(h http.Header) { h.Set(HeaderSignature, " ") }, CodeUnsigned},
		"two in one, commas": {func(h http.Header) { h.Set(HeaderVersion, "42, 43") }, CodeEnvelopeMismatch},
	}
	for _, name := range all {
		rows[name+" twice"] = struct {
			edit func(http.Header)
			code string
		}{func(h http.Header) { h.Add(name, h.Get(name)) }, CodeEnvelopeMismatch}
		if name != HeaderSignature {
			rows[name+" missing"] = struct {
				edit func(http.Header)
				code string
			}{func(h http.Header) { h.Del(name) }, CodeEnvelopeMismatch}
		}
	}
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			h := h.Clone()
			tc.edit(h)
			_, err := ReadHeader(h)
			var r *Refusal
			if !errors.As(err, &r) || r.Code != tc.code {
				t.Errorf("got %v, want %s", err, tc.code)
			}
		})
	}
}
