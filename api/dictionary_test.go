package api

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

func TestHeldDictionary(t *testing.T) {
	d := seal.DictionaryOf([]byte("held"))
	good := ":" + base64.StdEncoding.EncodeToString(d[:]) + ":"
	for _, row := range []struct {
		name      string
		accept    []string
		available []string
		want      bool
	}{
		{"as a node says it", []string{"dcz"}, []string{good}, true},
		{"among others", []string{"gzip, br;q=0.5", "zstd, DCZ ;q=0.1"}, []string{good}, true},
		{"weight 0", []string{"dcz;q=0"}, []string{good}, false},
		{"weight 0.000", []string{"gzip, dcz; q=0.000"}, []string{good}, false},
		{"not accepted", []string{"identity"}, []string{good}, false},
		{"anything is accepted", []string{"*"}, []string{good}, false},
		{"no Accept-Encoding", nil, []string{good}, false},
		{"no dictionary", []string{"dcz"}, nil, false},
		{"twice", []string{"dcz"}, []string{good, good}, false},
		{"without colons", []string{"dcz"}, []string{strings.Trim(good, ":")}, false},
		{"another letter for a colon", []string{"dcz"}, []string{"x" + good[1:]}, false},
		{"base64url", []string{"dcz"}, []string{":" + strings.Repeat("_", 43) + "=:"}, false},
		{"bits after the end", []string{"dcz"}, []string{":" + strings.Repeat("A", 42) + "B=:"}, false},
		{"a parameter", []string{"dcz"}, []string{good + ";a"}, false},
		{"31 bytes", []string{"dcz"}, []string{":" + base64.StdEncoding.EncodeToString(d[1:]) + ":"}, false},
	} {
		got := heldDictionary(http.Header{"Accept-Encoding": row.accept, "Available-Dictionary": row.available})
		if want := (seal.DictionaryID{}); got != want && !row.want || row.want && got != d {
			t.Errorf("%s: %x", row.name, got)
		}
	}
	if got := heldDictionary(dictionaryHeaders(d)); got != d {
		t.Errorf("what a client says is read as %x", got)
	}
}

// What a client makes of an answer's coding, whatever it asked for.
func TestNodeClientCodings(t *testing.T) {
	held := seal.DictionaryOf([]byte("held"))
	for _, row := range []struct {
		name      string
		held      seal.DictionaryID
		encoding  []string
		signature string
		coded     bool
		fails     bool
	}{
		{name: "nothing is held"},
		{name: "a control plane that does not know of it", held: held},
		{name: "coded", held: held, encoding: []string{"dcz"}, signature: "s", coded: true},
		{name: "coded, unsigned: the node judges that", held: held, encoding: []string{"dcz"}, coded: true},
		{name: "not asked for", encoding: []string{"dcz"}, fails: true},
		{name: "recoded on the way", held: held, encoding: []string{"gzip"}, fails: true},
		{name: "twice", held: held, encoding: []string{"dcz", "dcz"}, fails: true},
		{name: "and another", held: held, encoding: []string{"dcz, gzip"}, fails: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := nodeClientOf(t, func(r *http.Request) (*http.Response, error) {
				if got := heldDictionary(r.Header); got != row.held || r.URL.Query().Has("dictionary") {
					t.Errorf("asked with %x: %v", got, r.Header)
				}
				h := artefactHeader()
				h["Content-Encoding"] = row.encoding
				if row.encoding == nil {
					delete(h, "Content-Encoding")
				}
				if row.signature != "" {
					h.Set(seal.HeaderCoding, row.signature)
				}
				b := &body{ctx: r.Context(), n: 10, total: 10}
				return &http.Response{StatusCode: 200, Status: "200 OK", Header: h, Body: b, ContentLength: 10, Request: r}, nil
			})
			a, err := c.Poll(t.Context(), nodeproto.Poll{Dictionary: row.held})
			switch {
			case row.fails:
				if err == nil || a.Artefact != nil {
					t.Errorf("%+v, %v", a, err)
				}
			case err != nil || a.Artefact == nil || (a.Coding != nil) != row.coded:
				t.Errorf("%+v, %v", a, err)
			case row.coded:
				if !bytes.Equal(a.Coding.Body, make([]byte, 10)) || a.Coding.Signature != row.signature || a.Artefact.Payload != nil {
					t.Errorf("%+v", a)
				}
			case len(a.Artefact.Payload) != 10:
				t.Errorf("%+v", a.Artefact)
			}
		})
	}
}
