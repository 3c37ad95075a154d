package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// A node that says what it holds gets the difference; one that is older, or says nothing, gets what it always got.
func TestPollDictionary(t *testing.T) {
	p := newPlane(t)
	op := p.client("operator")
	// So many that, whatever their ids are, the payload is cut in many places (see seal): the next one shares most of it.
	for n := range 24 {
		name := fmt.Sprintf("large%d.example", n)
		_, err := op.CreateZone(t.Context(), api.NewZone{Name: name})
		p.must(err)
		var file strings.Builder
		for i := range 100 {
			fmt.Fprintf(&file, "t%d 300 TXT \"%x\"\n", i, sha256.Sum256([]byte{byte(n), byte(i)}))
		}
		_, err = op.ImportZone(t.Context(), name, strings.NewReader(file.String()), api.ImportOptions{})
		p.must(err)
	}
	p.publish("one")
	node := p.nodeClient("node")
	first, err := node.Poll(t.Context(), nodeproto.Poll{})
	p.must(err)
	if first.Coding != nil || first.Artefact == nil {
		t.Fatalf("first %+v", first)
	}
	held := first.Artefact.Payload
	res := p.publish("two")

	id := seal.DictionaryOf(held)
	second, err := node.Poll(t.Context(), nodeproto.Poll{Have: 1, Generation: 1, Epoch: 1, Dictionary: id})
	p.must(err)
	if second.Coding == nil || second.Artefact.Version != res.Version || second.Artefact.Payload != nil {
		t.Fatalf("second %+v", second)
	}
	trusted, err := seal.Trust(p.key.Public())
	p.must(err)
	payload, err := seal.Decode(*second.Coding, *second.Artefact, held, trusted)
	p.must(err)
	second.Artefact.Payload = payload
	v, err := seal.Open(*second.Artefact, trusted, nil)
	p.must(err)
	if v.Snapshot().ContentHash() != res.ContentHash {
		t.Errorf("it opens to %s", v.Snapshot().ContentHash())
	}

	available := "Available-Dictionary: :" + base64.StdEncoding.EncodeToString(id[:]) + ":"
	for _, row := range []struct {
		name  string
		lines []string
		coded bool
	}{
		{"as nodes from before say it", []string{"Accept-Encoding: identity"}, false},
		{"nothing", nil, false},
		{"both headers", []string{"Accept-Encoding: dcz", available}, true},
		{"a dictionary, and no coding", []string{available}, false},
		{"a coding, and no dictionary", []string{"Accept-Encoding: dcz"}, false},
		{"a dictionary that makes no sense", []string{"Accept-Encoding: dcz", "Available-Dictionary: nonsense"}, false},
		{"one that is not known here", []string{"Accept-Encoding: dcz", "Available-Dictionary: :" + strings.Repeat("A", 43) + "=:"}, false},
	} {
		a := p.request("node", "GET", "/v1/node/config?have=1&generation=1&epoch=1", "", row.lines...)
		want := payload
		if row.coded {
			want = second.Coding.Body
		}
		if a.status != 200 || !bytes.Equal([]byte(a.body), want) || a.header.Get("Content-Length") != strconv.Itoa(len(want)) {
			t.Errorf("%s: %d with %d bytes, want %d", row.name, a.status, len(a.body), len(want))
		}
		if got := a.header.Get("Content-Encoding"); (got == "dcz") != row.coded || got != "" && !row.coded {
			t.Errorf("%s: Content-Encoding %q", row.name, got)
		}
		if got := a.header.Get(seal.HeaderCoding); (got != "") != row.coded || a.header.Get("Vary") != "Accept-Encoding, Available-Dictionary" {
			t.Errorf("%s: headers %v", row.name, a.header)
		}
		if a.header.Get(seal.HeaderSignature) != second.Artefact.Signature {
			t.Errorf("%s: the envelope is another", row.name)
		}
	}
	metrics := p.request("anonymous", "GET", "/metrics", "").body
	if !strings.Contains(metrics, "\nguardyn_polls_coded_total 2\n") || strings.Contains(metrics, "\nguardyn_polls_coded_saved_bytes_total 0\n") {
		t.Errorf("metrics:\n%s", metrics)
	}
}
