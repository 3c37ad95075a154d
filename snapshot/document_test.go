package snapshot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

func TestDocument(t *testing.T) {
	s := mustBuild(t, meta42, lab(t), amthal(t)) // not in order of id
	doc := s.JSON()

	canonical := jsontext.Value(bytes.Clone(doc))
	if err := canonical.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(doc, canonical) {
		t.Errorf("the document is not canonical:\n got %s\nwant %s", doc, canonical)
	}
	if got, want := s.ContentHash(), referenceHash(t, doc); got != want {
		t.Errorf("content hash %s, by other tools %s", got, want)
	}
	if s.Size() != int64(len(doc)) {
		t.Errorf("Size %d, the document has %d bytes", s.Size(), len(doc))
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(doc, &top); err != nil {
		t.Fatal(err)
	}
	want := []string{"content_hash", "created_at", "created_by", "format", "message", "parent_version", "version", "zones"}
	if got := slices.Sorted(maps.Keys(top)); !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
	if got := string(top["created_at"]); got != `"2026-03-01T12:30:15Z"` {
		t.Errorf("created_at %s", got)
	}

	again, err := snapshot.Parse(doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Meta() != meta42 || again.ContentHash() != s.ContentHash() || !bytes.Equal(again.JSON(), doc) {
		t.Errorf("parsed: meta %+v, hash %s", again.Meta(), again.ContentHash())
	}
	if again.Len() != 2 || again.Zone(id1) == nil || again.Zone(id2).Name.String() != "lab.example.org" || again.Zone(id3) != nil {
		t.Error("the zones are not found by id")
	}
	if p := again.Zone(id1).Pools["main"]; p.Health == nil {
		t.Error("a health check that is all defaults was lost")
	}
	if p := again.Zone(id1).Rulesets[zone.PhaseTransformRequest][0].Parameters; p.Query == nil {
		t.Error("an empty query, which takes the request's away, was lost")
	}
	var ids []zone.ID
	for z := range again.Zones() {
		ids = append(ids, z.ID)
	}
	if !slices.Equal(ids, []zone.ID{id1, id2}) {
		t.Errorf("zones in order %v", ids)
	}
}

func TestServedOnly(t *testing.T) {
	z := mustBuild(t, meta42, amthal(t)).Zone(id1)
	if rs := z.Rulesets[zone.PhaseCustom]; len(rs) != 1 || rs[0].Description != "" {
		t.Errorf("a disabled rule or a description reached the snapshot: %+v", rs)
	}
}

func TestBuildChangesNothing(t *testing.T) {
	z := amthal(t)
	slices.Reverse(z.Records)
	before, err := json.Marshal(z)
	if err != nil {
		t.Fatal(err)
	}
	mustBuild(t, meta42, z)
	if after, _ := json.Marshal(z); !bytes.Equal(before, after) {
		t.Errorf("the zone was changed:\n before %s\n after  %s", before, after)
	}
}

func TestEmpty(t *testing.T) {
	s := mustBuild(t, snapshot.Meta{Version: 1, CreatedAt: meta42.CreatedAt})
	const want = `{"content_hash":"6e46dd10defc9b56c29a6ec56b508c21f54c08192194e4df25bf36f0c9c3c279","created_at":"2026-03-01T12:30:15Z","created_by":"","format":2,"message":"","parent_version":0,"version":1,"zones":{}}`
	doc := string(s.JSON())
	if doc != want {
		t.Errorf("got  %s\nwant %s", doc, want)
	}
	if s.ContentHash() != referenceHash(t, []byte(doc)) {
		t.Errorf("hash %s", s.ContentHash())
	}
	if _, err := snapshot.Parse(s.JSON(), nil); err != nil {
		t.Error(err)
	}
}

func TestMetaIsOutsideTheHash(t *testing.T) {
	s := mustBuild(t, meta42, lab(t))
	m := snapshot.Meta{Version: 43, ParentVersion: 42, CreatedAt: at, CreatedBy: "bad \xff byte", Message: "ctrl \x1b[31m"}
	o := s.WithMeta(m)
	if o.ContentHash() != s.ContentHash() || o.Zone(id2) != s.Zone(id2) {
		t.Error("WithMeta changed the content")
	}
	p, err := snapshot.Parse(o.JSON(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Meta().CreatedBy != "bad \uFFFD byte" || p.Meta().Message != m.Message || p.Meta().Version != 43 {
		t.Errorf("meta %+v", p.Meta())
	}
	if s.Meta() != meta42 {
		t.Error("WithMeta changed its receiver")
	}
}

type failingWriter struct{ left int }

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteToStopsAtTheFirstError(t *testing.T) {
	in := platform(t, 3000)
	s := build(t, in, 1)
	for _, left := range []int{0, 300, 100_000, int(s.Size()) - 1} {
		if _, err := s.WriteTo(&failingWriter{left}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("room for %d bytes: error %v", left, err)
		}
	}
	if n, err := s.WriteTo(&failingWriter{int(s.Size())}); err != nil || n != s.Size() {
		t.Errorf("wrote %d of %d: %v", n, s.Size(), err)
	}
}
