package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/zone"
)

// Codes of a DocumentError.
const (
	CodeMalformed    = "payload_malformed"
	CodeFormat       = "format_unsupported"
	CodeHashMismatch = "content_hash_mismatch"
	CodeZoneID       = "zone_id_mismatch"
	CodeHost         = "host_duplicate"
)

// DocumentError is why Parse refused a document.
type DocumentError struct {
	Code string // one of the Code constants
	Err  error
}

func (e *DocumentError) Error() string { return e.Err.Error() }
func (e *DocumentError) Unwrap() error { return e.Err }

func malformed(format string, args ...any) error {
	return refused(CodeMalformed, "the document is malformed: "+format, args...)
}

func refused(code, format string, args ...any) error {
	return &DocumentError{Code: code, Err: fmt.Errorf(format, args...)}
}

// Parse reads a document strictly and verifies it (§6 step 6). A zone whose bytes equal the one of prev
// (may be nil) shares prev's value, and the difference to prev is remembered for Delta. The snapshot keeps
// nothing of doc and does not keep prev. Errors are *DocumentError.
func Parse(doc []byte, prev *Snapshot) (*Snapshot, error) {
	expect := 0
	if prev != nil {
		expect = prev.Len() + chunk
	}
	head, parts, err := readHead(doc, expect)
	if err != nil {
		return nil, err
	}
	if err := decodeZones(parts, prev); err != nil {
		return nil, err
	}
	c := &content{zones: make([]*entry, len(parts)), hash: hashParts(parts)}
	if c.hash != head.hash {
		return nil, refused(CodeHashMismatch, "content_hash says %s, the zones hash to %s: the document was altered after it was built", quote(head.hash), c.hash)
	}
	for i := range parts {
		c.zones[i] = parts[i].entry
		if id := parts[i].entry.zone.ID; parts[i].key != string(id) {
			return nil, refused(CodeZoneID, "the zone under %s says that its id is %s", quote(parts[i].key), quote(string(id)))
		}
	}
	if cl := clashes(len(parts), func(i int) *zone.Zone { return c.zones[i].zone }); len(cl) > 0 {
		return nil, refused(CodeHost, "host %s is in two zones, %s and %s", cl[0].host, c.zones[cl[0].first].zone.ID, c.zones[cl[0].later].zone.ID)
	}
	s := &Snapshot{meta: head.meta, content: c}
	if prev != nil {
		c.delta, c.deltaTo = s.walk(prev), prev.ContentHash()
	}
	return s, nil
}

type head struct {
	meta Meta
	hash string
}

// readHead reads all members of a document; of the zones it returns the parts, in order of their keys. expect
// is about how many there are.
func readHead(doc []byte, expect int) (head, []part, error) {
	var h head
	var zones zoneParts
	s := scanner{b: doc}
	found := map[string][]byte{}
	err := s.object(0, func(name string) error {
		if _, twice := found[name]; twice {
			return fmt.Errorf("the member %s appears twice", quote(name))
		}
		if len(found) == maxMembers {
			return errors.New("it has too many members")
		}
		var v []byte
		var err error
		if name == "zones" {
			v, err = zones.split(&s, expect)
		} else {
			v, err = s.value(1)
		}
		found[name] = v
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return h, nil, malformed("%w", err)
	}
	// The format is judged before all else: what a newer one holds is not for this build to call malformed.
	format, err := integerMember(found, "format")
	if err != nil {
		return h, nil, err
	}
	switch {
	case format > Format:
		return h, nil, refused(CodeFormat, "the snapshot has format %d and this build reads %d: upgrade the node before the control plane", format, Format)
	case format < Format:
		return h, nil, refused(CodeFormat, "the snapshot has format %d and this build reads %d: the integrity of an older format cannot be checked", format, Format)
	}
	if h.meta.Version, err = integerMember(found, "version"); err != nil {
		return h, nil, err
	}
	if h.meta.ParentVersion, err = integerMember(found, "parent_version"); err != nil {
		return h, nil, err
	}
	if h.meta.CreatedBy, err = textMember(found, "created_by"); err != nil {
		return h, nil, err
	}
	if h.meta.Message, err = textMember(found, "message"); err != nil {
		return h, nil, err
	}
	created, err := textMember(found, "created_at")
	if err != nil {
		return h, nil, err
	}
	h.meta.CreatedAt, err = time.Parse(time.RFC3339Nano, created)
	if err != nil || h.meta.CreatedAt.UTC().Format(time.RFC3339Nano) != created {
		return h, nil, malformed("created_at %s is not a time in UTC as RFC 3339 prints it", quote(created))
	}
	h.meta.CreatedAt = h.meta.CreatedAt.UTC()
	if _, ok := found["zones"]; !ok {
		return h, nil, malformed("the member \"zones\" is missing")
	}
	if _, ok := found["content_hash"]; !ok {
		return h, nil, refused(CodeHashMismatch, "content_hash is missing")
	}
	if h.hash, err = textMember(found, "content_hash"); err != nil {
		return h, nil, err
	}
	for _, known := range []string{"content_hash", "created_at", "created_by", "format", "message", "parent_version", "version", "zones"} {
		delete(found, known)
	}
	for name := range found {
		return h, nil, malformed("the member %s is not known", quote(name))
	}
	if zones.err != nil {
		return h, nil, malformed("zones: %w", zones.err)
	}
	return h, zones.parts, nil
}

// maxMembers bounds how many members a document may have: many more than it has, so that a newer format is
// recognised as such.
const maxMembers = 64

func integerMember(found map[string][]byte, name string) (uint64, error) {
	v, ok := found[name]
	if !ok {
		return 0, malformed("the member %q is missing", name)
	}
	if string(v) == "-0" {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil || n > maxInteger || strconv.FormatUint(n, 10) != string(v) {
		return 0, malformed("%s is not an integer from 0 to 2^53-1", name)
	}
	return n, nil
}

func textMember(found map[string][]byte, name string) (string, error) {
	v, ok := found[name]
	if !ok {
		return "", malformed("the member %q is missing", name)
	}
	var s string
	if len(v) == 0 || v[0] != '"' {
		return "", malformed("%s is not a string", name)
	}
	if err := json.Unmarshal(v, &s); err != nil {
		return "", malformed("%s: %w", name, err)
	}
	return s, nil
}

// part is one member of the zones object on its way.
type part struct {
	key   string
	raw   []byte
	entry *entry
	// fold is the canonical bytes when they are not raw.
	fold []byte
	err  error
}

// zoneParts is the zones object cut into its members. err is what is wrong with it, which is told only when
// the format is known to be this build's.
type zoneParts struct {
	parts []part
	err   error
}

// split reads the zones object. A value of another shape it passes over.
func (z *zoneParts) split(s *scanner, expect int) ([]byte, error) {
	start := s.pos
	z.parts = make([]part, 0, expect)
	sorted := true
	z.err = s.object(1, func(name string) error {
		v, err := s.value(2)
		if err != nil {
			return err
		}
		if n := len(z.parts); n > 0 && z.parts[n-1].key >= name {
			sorted = false
		}
		z.parts = append(z.parts, part{key: name, raw: v})
		return nil
	})
	if z.err != nil {
		s.pos = start
		return s.value(1)
	}
	if !sorted {
		slices.SortStableFunc(z.parts, func(a, b part) int { return strings.Compare(a.key, b.key) })
	}
	for i := range z.parts {
		if i > 0 && z.parts[i].key == z.parts[i-1].key {
			z.err = fmt.Errorf("the member %s appears twice", quote(z.parts[i].key))
		}
	}
	return s.b[start:s.pos], nil
}

// decodeZones fills in the entries, in parallel. The error is the one of the first part that is bad.
func decodeZones(parts []part, prev *Snapshot) error {
	rules := newRuleMemo()
	each(len(parts), func(i int, scratch *[]byte) {
		p := &parts[i]
		e := entry{digest: blake3.Sum256(p.raw), size: len(p.raw)}
		if prev != nil {
			if j, ok := prev.content.find(zone.ID(p.key)); ok && prev.content.zones[j].same(&e) {
				p.entry = prev.content.zones[j]
				return
			}
		}
		p.err = p.decode(e, rules, scratch)
	})
	for i := range parts {
		if err := parts[i].err; err != nil {
			return malformed("zone %s: %w", quote(parts[i].key), err)
		}
	}
	return nil
}

func (p *part) decode(raw entry, rules *ruleMemo, scratch *[]byte) error {
	if id, err := zone.ParseID(p.key); err != nil || string(id) != p.key {
		return fmt.Errorf("the id is not a UUID in lower case")
	}
	if z := quickZone(p.raw); z != nil && rules.normalize(z, scratch) == nil {
		b, err := appendZone((*scratch)[:0], z)
		*scratch = b
		if err == nil && bytes.Equal(b, p.raw) {
			raw.zone = z
			p.entry = &raw
			return nil
		}
	}
	z := new(zone.Zone)
	if err := unmarshalZone(p.raw, z); err != nil {
		return err
	}
	if err := rules.normalize(z, scratch); err != nil {
		return err
	}
	b, err := appendZone((*scratch)[:0], z)
	*scratch = b
	if err != nil {
		return err
	}
	p.fold = bytes.Clone(b)
	p.entry = newEntry(z, p.fold)
	return nil
}

func hashParts(parts []part) string {
	h := blake3.New()
	_, _ = h.Write([]byte{'{'})
	var b []byte
	for i := range parts {
		b = appendKey(b[:0], i, parts[i].key)
		_, _ = h.Write(b)
		if parts[i].fold != nil {
			_, _ = h.Write(parts[i].fold)
		} else {
			_, _ = h.Write(parts[i].raw)
		}
	}
	_, _ = h.Write([]byte{'}'})
	return hexSum(h)
}
