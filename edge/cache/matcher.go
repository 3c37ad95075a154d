package cache

import (
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/zone"
)

// matcher tells what purges of one zone name, at a cost that does not follow their number.
type matcher struct {
	all      bool
	tags     map[string]struct{}
	urls     map[string][]named // by host and path
	prefixes map[string]struct{}
	lengths  []int // those that prefixes have
	buf      []byte
}

// named is the rest of a URL.
type named struct{ scheme, query string }

func (m *matcher) add(p *zone.Purge) {
	switch p.Kind {
	case zone.PurgeAll:
		m.all = true
	case zone.PurgeTag:
		if m.tags == nil {
			m.tags = make(map[string]struct{}, len(p.Values))
		}
		for _, v := range p.Values {
			m.tags[v] = struct{}{}
		}
	case zone.PurgePrefix:
		if m.prefixes == nil {
			m.prefixes = make(map[string]struct{}, len(p.Values))
		}
		for _, v := range p.Values {
			m.prefixes[v] = struct{}{}
			if !slices.Contains(m.lengths, len(v)) {
				m.lengths = append(m.lengths, len(v))
			}
		}
	case zone.PurgeURL:
		if m.urls == nil {
			m.urls = make(map[string][]named, len(p.Values))
		}
		for _, v := range p.Values {
			scheme, rest, _ := strings.Cut(v, "://")
			place, query, _ := strings.Cut(rest, "?")
			m.urls[place] = append(m.urls[place], named{scheme, query})
		}
	}
}

// names reports whether an object is named.
func (m *matcher) names(k *Key, o *Object) bool {
	if m.all {
		return true
	}
	if len(m.tags) > 0 && slices.ContainsFunc(o.Tags, func(tag string) bool { _, ok := m.tags[tag]; return ok }) {
		return true
	}
	return m.namesKey(k, &o.policy.Query)
}

// mayName is the same for an answer that is on its way, whose tags nobody knows yet.
func (m *matcher) mayName(f *Flight) bool {
	return m.all || len(m.tags) > 0 || m.namesKey(&f.key, &f.policy.Query)
}

// namesKey reports whether a URL or prefix names what is stored under a key. A URL names what it would be answered with: its query is
// reduced to what the key has of one.
func (m *matcher) namesKey(k *Key, q *QueryRule) bool {
	if len(m.urls) == 0 && len(m.prefixes) == 0 {
		return false
	}
	m.buf = append(append(m.buf[:0], k.Host...), k.Path...)
	for _, n := range m.lengths {
		if n <= len(m.buf) {
			if _, ok := m.prefixes[string(m.buf[:n])]; ok {
				return true
			}
		}
	}
	for _, u := range m.urls[string(m.buf)] {
		if u.scheme == k.Scheme && q.Of(u.query) == k.Query {
			return true
		}
	}
	return false
}
