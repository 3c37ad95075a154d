package snapshot

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/zone"
)

// unmarshalZone reads one zone strictly. The library refuses duplicate names (those that fold to one host
// name too), invalid UTF-8, lone surrogates, numbers that are no integers or out of range, and trailing bytes.
func unmarshalZone(raw []byte, z *zone.Zone) error {
	err := json.Unmarshal(raw, z, json.RejectUnknownMembers(true))
	if err != nil && bytes.Contains(raw, []byte("-0")) {
		// -0 is the integer 0 (RFC 8785 prints it so), which the library reads into signed members alone.
		if folded, ok := foldNegativeZero(raw); ok {
			*z = zone.Zone{}
			return json.Unmarshal(folded, z, json.RejectUnknownMembers(true))
		}
	}
	return err
}

// foldNegativeZero rewrites every number -0 as 0; false when there is none or raw is no JSON.
func foldNegativeZero(raw []byte) ([]byte, bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	out := bytes.Clone(raw)
	found := false
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return out, found
		}
		if tok.Kind() == '0' && tok.String() == "-0" {
			out[dec.InputOffset()-2] = ' '
			found = true
		}
	}
}

// quickZone reads a zone that is in canonical form, as all but handmade ones are, several times faster than
// unmarshalZone: records are read in place, their text shared with one copy of raw. It does not judge: it
// returns nil for what it does not expect, and what it returns counts only when its canonical bytes are raw.
func quickZone(raw []byte) *zone.Zone {
	z := new(zone.Zone)
	text := string(raw)
	var rest []byte // the members that the library reads
	s := scanner{b: raw}
	err := s.object(2, func(name string) error {
		v, err := s.value(3)
		if err != nil {
			return err
		}
		q := quick{text: text[s.pos-len(v) : s.pos], ok: true}
		switch name {
		case "id":
			z.ID = zone.ID(q.string())
		case "name":
			z.Name = q.name()
		case "records":
			z.Records = q.records()
		default:
			rest = append(rest, ',', '"')
			rest = append(rest, name...) // escaped or unknown, it is not canonical
			rest = append(rest, '"', ':')
			rest = append(rest, v...)
		}
		if !q.ok {
			return errNotQuick
		}
		return nil
	})
	if err != nil {
		return nil
	}
	if rest != nil {
		rest[0] = '{'
		other := new(zone.Zone)
		if json.Unmarshal(append(rest, '}'), other, json.RejectUnknownMembers(true)) != nil {
			return nil
		}
		other.ID, other.Name, other.Records = z.ID, z.Name, z.Records
		z = other
	}
	return z
}

var errNotQuick = errors.New("not in canonical form")

// quick reads canonical text. ok turns false at the first thing that is not as expected.
type quick struct {
	text string
	ok   bool
}

// skip reads s if it is next.
func (q *quick) skip(s string) bool {
	if !q.ok || !strings.HasPrefix(q.text, s) {
		return false
	}
	q.text = q.text[len(s):]
	return true
}

func (q *quick) want(s string) { q.ok = q.skip(s) }

func (q *quick) string() string {
	q.want(`"`)
	if !q.ok {
		return ""
	}
	for i := 0; i < len(q.text); i++ {
		switch q.text[i] {
		case '"':
			s := q.text[:i]
			q.text = q.text[i+1:]
			return s
		case '\\':
			return q.escaped(i)
		}
	}
	q.ok = false
	return ""
}

// escaped reads a string whose first escape is at i.
func (q *quick) escaped(i int) string {
	for ; i < len(q.text) && q.text[i] != '"'; i++ {
		if q.text[i] == '\\' {
			i++
		}
	}
	if i >= len(q.text) {
		q.ok = false
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, `"`+q.text[:i+1])
	q.ok = err == nil
	q.text = q.text[i+1:]
	return string(s)
}

func (q *quick) name() zone.Name {
	n, err := zone.ParseName(q.string())
	q.ok = q.ok && err == nil
	return n
}

func (q *quick) records() []zone.Record {
	q.want("[")
	rs := make([]zone.Record, 0, 1+strings.Count(q.text, "},{"))
	for q.ok {
		var r zone.Record
		q.want(`{"content":`)
		r.Content = q.string()
		q.want(`,"name":`)
		r.Name = q.name()
		r.Proxied = q.skip(`,"proxied":true`)
		if q.skip(`,"ttl":`) {
			end := strings.IndexByte(q.text, ',')
			n, err := strconv.ParseUint(q.text[:max(end, 0)], 10, 32)
			q.ok = err == nil
			r.TTL, q.text = uint32(n), q.text[max(end, 0):]
		}
		q.want(`,"type":`)
		t, err := zone.ParseRRType(q.string())
		q.ok = q.ok && err == nil
		r.Type = t
		q.want("}")
		rs = append(rs, r)
		if !q.skip(",") {
			break
		}
	}
	q.want("]")
	q.ok = q.ok && q.text == ""
	return rs
}

// quote prints text from outside for an error: quoted, control characters inert, cut at 80 bytes.
func quote(s string) string {
	const most = 80
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}
