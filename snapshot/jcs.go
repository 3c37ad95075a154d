package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guardyn-edge/guardyn/zone"
)

// maxInteger is the largest integer that JSON numbers hold exactly (RFC 7493 §2.2); RFC 8785 prints a
// larger one as another number.
const maxInteger = 1<<53 - 1

// object is an open JSON object that knows whether it has a member yet.
type object struct{ some bool }

func (c *canonical) open() object {
	c.b = append(c.b, '{')
	return object{}
}

// optional appends a member unless its value comes out as an empty object.
func (c *canonical) optional(o *object, name string, value func()) {
	before, had := len(c.b), o.some
	o.member(c, name)
	start := len(c.b)
	value()
	if string(c.b[start:]) == "{}" {
		c.b, o.some = c.b[:before], had
	}
}

// member appends a member's name, which must need no escaping.
func (o *object) member(c *canonical, name string) {
	if o.some {
		c.b = append(c.b, ',')
	}
	o.some = true
	c.b = append(c.b, '"')
	c.b = append(c.b, name...)
	c.b = append(c.b, '"', ':')
}

// name appends a member's name, whatever is in it.
func (o *object) name(c *canonical, name string) {
	if o.some {
		c.b = append(c.b, ',')
	}
	o.some = true
	c.string(name)
	c.b = append(c.b, ':')
}

func (o *object) text(c *canonical, name, s string) {
	if s != "" {
		o.member(c, name)
		c.string(s)
	}
}

func (o *object) flag(c *canonical, name string, v bool) {
	if v {
		o.member(c, name)
		c.b = append(c.b, "true"...)
	}
}

func (o *object) pointer(c *canonical, name string, v *bool) {
	if v != nil {
		o.member(c, name)
		c.b = strconv.AppendBool(c.b, *v)
	}
}

func (o *object) integer(c *canonical, name string, n int64) {
	if n != 0 {
		o.member(c, name)
		c.number(n)
	}
}

func (o *object) duration(c *canonical, name string, d zone.Duration) {
	if d != 0 {
		o.text(c, name, d.String())
	}
}

func (o *object) size(c *canonical, name string, s zone.Size) {
	if s != 0 {
		o.text(c, name, s.String())
	}
}

func (o *object) percent(c *canonical, name string, p *zone.Percent) {
	if p != nil {
		o.text(c, name, p.String())
	}
}

func (c *canonical) comma(i int) {
	if i > 0 {
		c.b = append(c.b, ',')
	}
}

func array[S ~string](c *canonical, items []S) {
	c.b = append(c.b, '[')
	for i, s := range items {
		c.comma(i)
		c.string(string(s))
	}
	c.b = append(c.b, ']')
}

// members appends an object from a map, its names in order.
func members[V any](c *canonical, m map[string]V, value func(V)) {
	o := c.open()
	for _, k := range slices.SortedFunc(maps.Keys(m), compareUTF16) {
		o.name(c, k)
		value(m[k])
	}
	c.b = append(c.b, '}')
}

// hostMembers is members for names, which are ASCII: their order as bytes is the one of RFC 8785.
func hostMembers[V any](c *canonical, m map[zone.Name]V, value func(V)) {
	o := c.open()
	for _, k := range slices.SortedFunc(maps.Keys(m), zone.Name.Compare) {
		o.name(c, k.String())
		value(m[k])
	}
	c.b = append(c.b, '}')
}

func (c *canonical) number(n int64) {
	if n > maxInteger || n < -maxInteger {
		c.fail(fmt.Errorf("the number %d is not within 2^53", n))
	}
	c.b = strconv.AppendInt(c.b, n, 10)
}

func (c *canonical) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

var errNotUTF8 = errors.New("text is not valid UTF-8")

// string appends s as RFC 8785 §3.2.2.2 prints it.
func (c *canonical) string(s string) {
	b := append(c.b, '"')
	start := 0
	for i := 0; i < len(s); {
		ch := s[i]
		if ch >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				c.fail(errNotUTF8)
			}
			i += n
			continue
		}
		if ch >= ' ' && ch != '"' && ch != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch ch {
		case '"', '\\':
			b = append(b, '\\', ch)
		case '\b':
			b = append(b, '\\', 'b')
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\f':
			b = append(b, '\\', 'f')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[ch>>4], hex[ch&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	c.b = append(b, '"')
}

// compareUTF16 orders as RFC 8785 §3.2.3 does: by UTF-16 code units. It differs from the order of bytes
// where a character beyond the BMP meets one of U+E000 to U+FFFF.
func compareUTF16[S ~string](a, b S) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if a[i] >= 0xEE && b[i] >= 0xEE && (a[i] >= 0xF0) != (b[i] >= 0xF0) {
			if a[i] >= 0xF0 {
				return -1 // its first unit is a surrogate, below U+E000
			}
			return 1
		}
		break
	}
	return strings.Compare(string(a), string(b))
}
