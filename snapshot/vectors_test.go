package snapshot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/snapshot"
)

var update = flag.Bool("update", false, "write testdata/vectors anew from the table")

// vector is a document and what must become of it. The committed files are what counts; the table that they
// were made from stays so that they can be made again when the format changes.
type vector struct {
	File  string `json:"file"`
	About string `json:"about"`
	// Code is of the refusal; empty for a document that is accepted.
	Code string `json:"code,omitempty"`
	// Contains is in the message of the refusal.
	Contains string `json:"contains,omitempty"`
	// ContentHash of a document that is accepted.
	ContentHash string `json:"content_hash,omitempty"`

	doc string
}

const small = `{"content_hash":"HASH","created_at":"2026-03-01T12:30:15Z","created_by":"ops@example.com","format":2,"message":"m","parent_version":0,"version":1,` +
	`"zones":{"01890a5d-ac96-774b-bcce-b302099a8058":{"id":"01890a5d-ac96-774b-bcce-b302099a8058","name":"lab.example.org",` +
	`"records":[{"content":"203.0.113.5","name":"lab.example.org","type":"A"},{"content":"2001:db8::5","name":"lab.example.org","type":"AAAA"}]}}}`

// hashed puts the true content hash in.
func hashed(tb testing.TB, doc string) string {
	tb.Helper()
	return strings.Replace(doc, "HASH", referenceHash(tb, []byte(doc)), 1)
}

// edit replaces text of the small document and hashes it.
func edit(tb testing.TB, old, new string) string {
	tb.Helper()
	return hashed(tb, editRaw(tb, old, new))
}

func editRaw(tb testing.TB, old, new string) string {
	tb.Helper()
	if !strings.Contains(small, old) {
		tb.Fatalf("the small document does not contain %s", old)
	}
	return strings.Replace(small, old, new, 1)
}

func table(tb testing.TB) []vector {
	good := hashed(tb, small)
	goodHash := referenceHash(tb, []byte(good))
	same := func(file, about, old, new string) vector {
		return vector{File: file, About: about, ContentHash: goodHash, doc: strings.Replace(editRaw(tb, old, new), "HASH", goodHash, 1)}
	}
	bad := func(file, about, code, contains, doc string) vector {
		return vector{File: file, About: about, Code: code, Contains: contains, doc: doc}
	}
	const mal = snapshot.CodeMalformed
	zoneB := func(name, more string) string {
		return `}]},"01890a5d-ac96-774b-bcce-b302099a8059":{"id":"01890a5d-ac96-774b-bcce-b302099a8059","name":"` + name + `"` + more + `}}}`
	}
	full := mustBuild(tb, meta42, amthal(tb), lab(tb))
	empty := mustBuild(tb, snapshot.Meta{Version: 1, CreatedAt: meta42.CreatedAt})
	v := []vector{
		{File: "small.json", About: "one zone", ContentHash: goodHash, doc: good},
		{File: "full.json", About: "something of every kind", ContentHash: full.ContentHash(), doc: string(full.JSON())},
		{File: "empty.json", About: "no zones", ContentHash: empty.ContentHash(), doc: string(empty.JSON())},
		same("reordered.json", "members of a zone in another order", `"id":"01890a5d-ac96-774b-bcce-b302099a8058","name":"lab.example.org"`, `"name":"lab.example.org","id":"01890a5d-ac96-774b-bcce-b302099a8058"`),
		same("white_space.json", "white space between tokens", `,"records":[`, " ,\r\n\t\"records\" : [ "),
		same("empty_collections.json", "empty collections written out", `"name":"lab.example.org",`, `"name":"lab.example.org","lists":{},"rulesets":{"custom":[]},"pools":{},`),
		same("null_collection.json", "a collection that is null", `"name":"lab.example.org",`, `"name":"lab.example.org","lists":null,`),
		same("defaults.json", "defaults written out", `"type":"A"}`, `"type":"A","ttl":300,"proxied":false}`),
		same("minus_zero.json", "-0 is the integer 0", `"type":"A"}`, `"type":"A","ttl":-0}`),
		same("minus_zero_signed.json", "-0 in a ceiling", `"name":"lab.example.org",`, `"name":"lab.example.org","ceilings":{"records":-0},`),
		same("minus_zero_parent.json", "-0 as parent_version", `"parent_version":0`, `"parent_version":-0`),
		same("name_folded.json", "a name in upper case with a dot at its end", `"name":"lab.example.org",`, `"name":"LAB.Example.ORG.",`),
		same("address_folded.json", "an address that is not as RFC 5952 prints it", `2001:db8::5`, `2001:0DB8:0::0005`),
		same("records_unsorted.json", "records in another order", `{"content":"203.0.113.5","name":"lab.example.org","type":"A"},{"content":"2001:db8::5","name":"lab.example.org","type":"AAAA"}`, `{"content":"2001:db8::5","name":"lab.example.org","type":"AAAA"},{"content":"203.0.113.5","name":"lab.example.org","type":"A"}`),
		same("escaped.json", "escapes where none are needed", `"name":"lab.example.org",`, `"n\u0061me":"l\u0061b.example.org",`),
		same("escaped_top.json", "an escaped member name at the top", `"format":2`, `"form\u0061t":2`),

		bad("not_json.json", "no JSON", mal, "", "hello"),
		bad("nothing.json", "no bytes", mal, "too early", ""),
		bad("truncated.json", "cut off", mal, "too early", good[:len(good)-40]),
		bad("array.json", "an array", mal, "", "["+good+"]"),
		bad("second_value.json", "a second value", mal, "follow the document", good+"{}"),
		bad("trailing_byte.json", "a byte after the document", mal, "follow the document", good+"x"),
		bad("bom.json", "a byte order mark", mal, "", "\xef\xbb\xbf"+good),
		bad("duplicate_top.json", "a member twice", mal, "twice", edit(tb, `"format":2`, `"format":2,"format":2`)),
		bad("duplicate_top_escaped.json", "a member twice, once escaped", mal, "twice", edit(tb, `"format":2`, `"format":2,"form\u0061t":2`)),
		bad("case_variant_top.json", "a member name in other case", mal, "Version", edit(tb, `"version":1`, `"Version":1,"version":1`)),
		bad("unknown_top.json", "a member that is not known", mal, "surprise", edit(tb, `"version":1`, `"version":1,"surprise":1`)),
		bad("duplicate_zone.json", "a zone twice", mal, "twice", strings.Replace(editRaw(tb, `}]}}}`, `}]},"01890a5d-ac96-774b-bcce-b302099a8058":{"id":"01890a5d-ac96-774b-bcce-b302099a8058","name":"b.example"}}}`), "HASH", goodHash, 1)),
		bad("duplicate_inner.json", "a member of a zone twice", mal, "duplicate", strings.Replace(editRaw(tb, `"name":"lab.example.org",`, `"name":"lab.example.org","name":"lab.example.org",`), "HASH", goodHash, 1)),
		bad("case_variant_inner.json", "a member of a zone in other case", mal, "Name", edit(tb, `"name":"lab.example.org",`, `"Name":"lab.example.org","name":"lab.example.org",`)),
		bad("unknown_inner.json", "a member of a record that is not known", mal, "unknown", edit(tb, `"type":"A"}`, `"type":"A","comment":"x"}`)),
		bad("duplicate_host_key.json", "two keys of one host after folding", mal, "duplicate", edit(tb, `"name":"lab.example.org",`, `"name":"lab.example.org","load_balancers":{"x.lab.example.org":{"pools":[]},"X.LAB.example.org":{"pools":[]}},`)),
		bad("invalid_utf8.json", "invalid UTF-8", mal, "UTF-8", strings.Replace(editRaw(tb, `203.0.113.5`, "\xff"), "HASH", goodHash, 1)),
		bad("invalid_utf8_top.json", "invalid UTF-8 in the message", mal, "UTF-8", strings.Replace(editRaw(tb, `"message":"m"`, "\"message\":\"\xff\""), "HASH", goodHash, 1)),
		bad("invalid_utf8_name.json", "invalid UTF-8 in a member name", mal, "", strings.Replace(editRaw(tb, `"format":2`, "\"\xff\":1,\"format\":2"), "HASH", goodHash, 1)),
		bad("lone_surrogate.json", "a lone surrogate", mal, "", strings.Replace(editRaw(tb, `203.0.113.5`, `\ud800`), "HASH", goodHash, 1)),
		bad("lone_surrogate_top.json", "a lone surrogate in the message", mal, "", strings.Replace(editRaw(tb, `"message":"m"`, `"message":"\udc00"`), "HASH", goodHash, 1)),
		bad("version_exponent.json", "version 1e2", mal, "version", edit(tb, `"version":1`, `"version":1e2`)),
		bad("version_fraction.json", "version 1.0", mal, "version", edit(tb, `"version":1`, `"version":1.0`)),
		bad("version_2_64.json", "version 2^64", mal, "version", edit(tb, `"version":1`, `"version":18446744073709551616`)),
		bad("version_2_53.json", "version 2^53, which JSON numbers do not hold exactly with its neighbours", mal, "version", edit(tb, `"version":1`, `"version":9007199254740992`)),
		bad("version_negative.json", "version -1", mal, "version", edit(tb, `"version":1`, `"version":-1`)),
		bad("version_leading_zero.json", "version 01", mal, "version", strings.Replace(editRaw(tb, `"version":1`, `"version":01`), "HASH", goodHash, 1)),
		bad("version_text.json", "version in quotes", mal, "version", edit(tb, `"version":1`, `"version":"1"`)),
		bad("version_missing.json", "no version", mal, "version", edit(tb, `"version":1,`, ``)),
		bad("version_null.json", "version null", mal, "version", edit(tb, `"version":1`, `"version":null`)),
		bad("ttl_exponent.json", "a TTL of 1e2", mal, "", edit(tb, `"type":"A"}`, `"type":"A","ttl":1e2}`)),
		bad("ttl_fraction.json", "a TTL of 60.5", mal, "", edit(tb, `"type":"A"}`, `"type":"A","ttl":60.5}`)),
		bad("ttl_2_64.json", "a TTL of 2^64", mal, "", edit(tb, `"type":"A"}`, `"type":"A","ttl":18446744073709551616}`)),
		bad("ttl_2_31.json", "a TTL of 2^31", mal, "ttl", edit(tb, `"type":"A"}`, `"type":"A","ttl":2147483648}`)),
		bad("ttl_infinite.json", "a TTL of 1e999", mal, "", strings.Replace(editRaw(tb, `"type":"A"}`, `"type":"A","ttl":1e999}`), "HASH", goodHash, 1)),
		bad("not_a_number.json", "a TTL of NaN", mal, "", strings.Replace(editRaw(tb, `"type":"A"}`, `"type":"A","ttl":NaN}`), "HASH", goodHash, 1)),
		bad("created_at_offset.json", "created_at with an offset", mal, "created_at", edit(tb, `2026-03-01T12:30:15Z`, `2026-03-01T13:30:15+01:00`)),
		bad("created_at_zeros.json", "created_at with zeros at the end of its fraction", mal, "created_at", edit(tb, `2026-03-01T12:30:15Z`, `2026-03-01T12:30:15.100Z`)),
		bad("created_by_number.json", "created_by is a number", mal, "created_by", edit(tb, `"ops@example.com"`, `7`)),
		bad("message_missing.json", "no message", mal, "message", edit(tb, `"message":"m",`, ``)),
		bad("zones_missing.json", "no zones", mal, "zones", strings.Replace(small[:strings.Index(small, `,"zones"`)]+"}", "HASH", goodHash, 1)),
		bad("zones_array.json", "zones is an array", mal, "zones", strings.Replace(small[:strings.Index(small, `"zones":`)]+`"zones":[]}`, "HASH", goodHash, 1)),
		bad("zone_null.json", "a zone is null", mal, "", strings.Replace(small[:strings.Index(small, `"zones":`)]+`"zones":{"01890a5d-ac96-774b-bcce-b302099a8058":null}}`, "HASH", goodHash, 1)),
		bad("nesting_65.json", "65 levels", mal, "nests deeper", strings.Replace(editRaw(tb, `"type":"A"}`, `"type":"A","x":`+strings.Repeat("[", 60)+strings.Repeat("]", 60)+`}`), "HASH", goodHash, 1)),
		bad("nesting_10001.json", "10,001 levels", mal, "nests deeper", strings.Replace(editRaw(tb, `"message":"m"`, `"message":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)), "HASH", goodHash, 1)),
		bad("brackets_crossed.json", "brackets that do not match", mal, "", strings.Replace(editRaw(tb, `"type":"AAAA"}]`, `"type":"AAAA"]}`), "HASH", goodHash, 1)),
		bad("record_malformed.json", "an address that is none", mal, "203.0.113.500", edit(tb, `203.0.113.5"`, `203.0.113.500"`)),
		bad("record_outside.json", "a record outside its zone", mal, "outside", edit(tb, `"content":"203.0.113.5","name":"lab.example.org"`, `"content":"203.0.113.5","name":"www.example.org"`)),
		bad("id_not_uuid.json", "an id that is no UUID", mal, "UUID", edit(tb, `"01890a5d-ac96-774b-bcce-b302099a8058":{"id":"01890a5d-ac96-774b-bcce-b302099a8058"`, `"a":{"id":"a"`)),
		bad("id_upper_case.json", "an id in upper case", mal, "UUID", edit(tb, `"01890a5d-ac96-774b-bcce-b302099a8058":{"id":"01890a5d-ac96-774b-bcce-b302099a8058"`, `"01890A5D-AC96-774B-BCCE-B302099A8058":{"id":"01890A5D-AC96-774B-BCCE-B302099A8058"`)),

		bad("format_1.json", "an older format", snapshot.CodeFormat, "cannot be checked", edit(tb, `"format":2`, `"format":1`)),
		bad("format_3.json", "a newer format", snapshot.CodeFormat, "upgrade the node before the control plane", edit(tb, `"format":2`, `"format":3`)),
		bad("format_3_members.json", "a newer format with members of its own", snapshot.CodeFormat, "upgrade the node before the control plane", `{"format":3,"novelty":{"a":1}}`),
		bad("format_missing.json", "no format", mal, "format", edit(tb, `"format":2,`, ``)),
		bad("format_text.json", "format in quotes", mal, "format", edit(tb, `"format":2`, `"format":"2"`)),

		bad("hash_missing.json", "no content_hash", snapshot.CodeHashMismatch, "missing", edit(tb, `"content_hash":"HASH",`, ``)),
		bad("hash_empty.json", "an empty content_hash", snapshot.CodeHashMismatch, "", editRaw(tb, `HASH`, ``)),
		bad("hash_upper_case.json", "a content_hash in upper case", snapshot.CodeHashMismatch, "", strings.Replace(small, "HASH", strings.ToUpper(goodHash), 1)),
		bad("hash_other.json", "the content_hash of other zones", snapshot.CodeHashMismatch, goodHash, strings.Replace(small, "HASH", empty.ContentHash(), 1)),
		bad("content_altered.json", "zones that were altered", snapshot.CodeHashMismatch, "altered", strings.Replace(editRaw(tb, `203.0.113.5`, `203.0.113.6`), "HASH", goodHash, 1)),

		bad("zone_id_other.json", "a zone under another's id", snapshot.CodeZoneID, "01890a5d-ac96-774b-bcce-b302099a8059", edit(tb, `"01890a5d-ac96-774b-bcce-b302099a8058":{"id":"01890a5d-ac96-774b-bcce-b302099a8058"`, `"01890a5d-ac96-774b-bcce-b302099a8059":{"id":"01890a5d-ac96-774b-bcce-b302099a8058"`)),
		bad("host_twice.json", "two zones of one name", snapshot.CodeHost, "lab.example.org", edit(tb, `}]}}}`, zoneB("lab.example.org", ""))),
		bad("host_twice_case.json", "two zones of one name in other case", snapshot.CodeHost, "", strings.Replace(editRaw(tb, `}]}}}`, zoneB("LAB.example.org", "")), "HASH", referenceHash(tb, []byte(editRaw(tb, `}]}}}`, zoneB("lab.example.org", "")))), 1)),
		bad("host_twice_dot.json", "two zones of one name, one with a dot at its end", snapshot.CodeHost, "", strings.Replace(editRaw(tb, `}]}}}`, zoneB("lab.example.org.", "")), "HASH", referenceHash(tb, []byte(editRaw(tb, `}]}}}`, zoneB("lab.example.org", "")))), 1)),
		bad("host_twice_nested.json", "a proxied name of one zone is the name of another", snapshot.CodeHost, "lab.example.org", hashed(tb, strings.Replace(small, `}]}}}`, zoneB("example.org", `,"records":[{"content":"203.0.113.9","name":"lab.example.org","proxied":true,"type":"A"}]`), 1))),
	}
	idna := hashed(tb, strings.ReplaceAll(small, "lab.example.org", "xn--bcher-kva.example"))
	idnaTwice := strings.Replace(strings.ReplaceAll(small, "lab.example.org", "xn--bcher-kva.example"), `}]}}}`, zoneB("xn--bcher-kva.example", ""), 1)
	v = append(v,
		vector{File: "idna.json", About: "a name in U-labels", ContentHash: referenceHash(tb, []byte(idna)), doc: strings.Replace(idna, `"name":"xn--bcher-kva.example",`, `"name":"Bücher.example",`, 1)},
		bad("host_twice_idna.json", "two zones of one name, one in U-labels", snapshot.CodeHost, "", strings.Replace(strings.Replace(idnaTwice, "HASH", referenceHash(tb, []byte(idnaTwice)), 1), `"name":"xn--bcher-kva.example"}}}`, `"name":"bücher.example"}}}`, 1)),
	)
	return v
}

const vectorDir = "testdata/vectors"

func TestVectorsUpdate(t *testing.T) {
	if !*update {
		return
	}
	old, _ := filepath.Glob(vectorDir + "/*")
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	vectors := table(t)
	for _, v := range vectors {
		if err := os.WriteFile(filepath.Join(vectorDir, v.File), []byte(v.doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	index, err := json.MarshalIndent(vectors, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(vectorDir, "index.json"), append(index, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func loadVectors(tb testing.TB) []vector {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(vectorDir, "index.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var vs []vector
	if err := json.Unmarshal(b, &vs); err != nil {
		tb.Fatal(err)
	}
	if len(vs) < 70 {
		tb.Fatalf("only %d vectors", len(vs))
	}
	for i := range vs {
		doc, err := os.ReadFile(filepath.Join(vectorDir, vs[i].File))
		if err != nil {
			tb.Fatal(err)
		}
		vs[i].doc = string(doc)
	}
	return vs
}

func TestVectors(t *testing.T) {
	prev := mustBuild(t, meta42, amthal(t), lab(t))
	for _, v := range loadVectors(t) {
		t.Run(strings.TrimSuffix(v.File, ".json"), func(t *testing.T) {
			// What was served before must not change the answer.
			for _, prev := range []*snapshot.Snapshot{nil, prev} {
				s, err := snapshot.Parse([]byte(v.doc), prev)
				if v.Code == "" {
					if err != nil {
						t.Fatalf("%s: refused: %v", v.About, err)
					}
					if s.ContentHash() != v.ContentHash {
						t.Errorf("%s: content hash %s, want %s", v.About, s.ContentHash(), v.ContentHash)
					}
					if again, err := snapshot.Parse(s.JSON(), prev); err != nil || !bytes.Equal(again.JSON(), s.JSON()) {
						t.Errorf("%s: printed and parsed again: %v", v.About, err)
					}
					continue
				}
				var d *snapshot.DocumentError
				if !errors.As(err, &d) {
					t.Fatalf("%s: accepted, or not a DocumentError: %v", v.About, err)
				}
				if d.Code != v.Code {
					t.Errorf("%s: code %s, want %s: %v", v.About, d.Code, v.Code, err)
				}
				if !strings.Contains(d.Error(), v.Contains) {
					t.Errorf("%s: %q does not say %q", v.About, d, v.Contains)
				}
				if len(d.Error()) > 2000 {
					t.Errorf("%s: the error has %d bytes", v.About, len(d.Error()))
				}
			}
		})
	}
}
