package rules

import (
	"math/bits"
	"slices"
	"sort"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/expr"
)

// index tells, from a request's host, method and path, which rules of a phase cannot match. Each table maps a value
// to the rules, one bit each, that the value alone does not rule out. A rule names at most expr.MaxNeed values of a
// variable, so a phase of n rules takes at most 3·64·n sets of n bits; what a rule cannot be told by is in every set.
type index struct {
	n                  int
	host, method, path table
}

// bitset has a bit for each rule of a phase.
type bitset []uint64

type table struct {
	// any are the rules that do not ask for this variable: what a value that no rule names gets.
	any bitset
	// exact has the rules of a value by itself and those of its prefixes and any.
	exact    map[string]bitset
	prefixes []prefix // sorted
}

type prefix struct {
	text string
	// parent is the longest other prefix that text begins with, -1 for none.
	parent int
	// rules have those of parent and any too.
	rules bitset
}

// newIndex returns nil when no rule can be told by what its request is.
func newIndex(needs []expr.Need) *index {
	if !slices.ContainsFunc(needs, func(n expr.Need) bool { return n.Host.Some || n.Method.Some || n.Path.Some }) {
		return nil
	}
	x := &index{n: len(needs)}
	x.host = newTable(needs, func(n *expr.Need) *expr.Values { return &n.Host })
	x.method = newTable(needs, func(n *expr.Need) *expr.Values { return &n.Method })
	x.path = newTable(needs, func(n *expr.Need) *expr.Values { return &n.Path })
	return x
}

func newTable(needs []expr.Need, of func(*expr.Need) *expr.Values) table {
	words := (len(needs) + 63) / 64
	t := table{any: make(bitset, words), exact: make(map[string]bitset)}
	starts := make(map[string]bitset)
	for i := range needs {
		v := of(&needs[i])
		if !v.Some {
			t.any.set(i)
			continue
		}
		for _, s := range v.Prefixes {
			add(starts, s, words, i)
		}
		for _, s := range v.Exact {
			add(t.exact, s, words, i)
		}
	}
	for text, rules := range starts {
		t.prefixes = append(t.prefixes, prefix{text, -1, rules})
	}
	slices.SortFunc(t.prefixes, func(a, b prefix) int { return strings.Compare(a.text, b.text) })
	for i := range t.prefixes {
		p := &t.prefixes[i]
		p.rules.or(t.any)
		for at := i - 1; at >= 0; at = t.prefixes[at].parent {
			if strings.HasPrefix(p.text, t.prefixes[at].text) {
				p.parent = at
				p.rules.or(t.prefixes[at].rules)
				break
			}
		}
	}
	for text, rules := range t.exact {
		rules.or(t.beginning(text))
	}
	return t
}

func add(to map[string]bitset, value string, words, rule int) {
	b := to[value]
	if b == nil {
		b = make(bitset, words)
		to[value] = b
	}
	b.set(rule)
}

// of returns the rules that value does not rule out.
func (t *table) of(value string) bitset {
	if len(t.exact) > 0 {
		if b, ok := t.exact[value]; ok {
			return b
		}
	}
	return t.beginning(value)
}

// beginning returns the rules of the longest prefix of value, which has those of all others.
func (t *table) beginning(value string) bitset {
	if len(t.prefixes) == 0 {
		return t.any
	}
	// The last prefix that is not after value begins like the longest one that value begins with.
	at := sort.Search(len(t.prefixes), func(i int) bool { return t.prefixes[i].text > value }) - 1
	for ; at >= 0; at = t.prefixes[at].parent {
		if strings.HasPrefix(value, t.prefixes[at].text) {
			return t.prefixes[at].rules
		}
	}
	return t.any
}

func (b bitset) set(i int) { b[i/64] |= 1 << (i % 64) }

func (b bitset) or(other bitset) {
	for i := range b {
		b[i] |= other[i]
	}
}

// candidates are the rules of an index that one request, as it is now, does not rule out.
type candidates struct {
	x                  *index
	host, method, path bitset
	rewrites           int
}

func (x *index) candidates(r *Request) candidates {
	return candidates{x, x.host.of(r.seen.Host), x.method.of(r.seen.Method), x.path.of(r.seen.Path), r.rewrites}
}

// next returns the first candidate at or after i, or a number that is no rule's.
func (c *candidates) next(r *Request, i int) int {
	if c.rewrites != r.rewrites {
		c.path, c.rewrites = c.x.path.of(r.seen.Path), r.rewrites
	}
	for w := i / 64; w < len(c.host); w++ {
		word := c.host[w] & c.method[w] & c.path[w]
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return c.x.n
}
