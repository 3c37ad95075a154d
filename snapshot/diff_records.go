package snapshot

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/guardyn-edge/guardyn/zone"
)

// A zone that loses more than massLossPercent of its records, and more than massLossRecords, is warned of.
const (
	massLossPercent = 30
	massLossRecords = 10
)

// records compares by name, type, content, proxied flag and effective TTL. A record whose TTL or flag alone
// differs is one line that changes; other content is a line that goes and a line that comes.
func (d *zoneDiff) records(old, new *zone.Zone) {
	lost := 0
	a, b := old.Records, new.Records
	for len(a) > 0 || len(b) > 0 {
		var c int
		switch {
		case len(a) == 0:
			c = 1
		case len(b) == 0:
			c = -1
		default:
			c = compareContent(&a[0], &b[0])
		}
		switch {
		case c < 0:
			lost++
			r := &a[0]
			d.record('-', r, timing(r), disruptive(kindDNS, r.Type.String(), removed))
			a = a[1:]
		case c > 0:
			r := &b[0]
			what := r.Type.String()
			if r.Type == zone.TypeNS && covers(old, r.Name) {
				what = "NS over records"
			}
			d.record('+', r, timing(r), disruptive(kindDNS, what, added))
			b = b[1:]
		default:
			d.sameContent(&a[0], &b[0])
			a, b = a[1:], b[1:]
		}
	}
	if lost > massLossRecords && lost*100 > massLossPercent*len(old.Records) {
		d.Warning = fmt.Sprintf("loses %d of %s; check that this is not a failed import", lost, count(len(old.Records), "record"))
	}
}

func (d *zoneDiff) sameContent(o, n *zone.Record) {
	var what []string
	mark := false
	if o.EffectiveTTL() != n.EffectiveTTL() {
		what = append(what, fmt.Sprintf("ttl %d → %d", o.EffectiveTTL(), n.EffectiveTTL()))
		mark = mark || disruptive(kindDNS, "ttl", changed)
	}
	if o.Proxied != n.Proxied {
		what = append(what, fmt.Sprintf("%s → %s", proxied(o.Proxied), proxied(n.Proxied)))
		mark = mark || disruptive(kindDNS, "proxied", changed)
	}
	if len(what) > 0 {
		d.record('~', n, strings.Join(what, "  "), mark)
	}
}

func (d *zoneDiff) record(sign rune, r *zone.Record, rest string, disruptive bool) {
	d.line(kindDNS, disruptive, "%c %-6s %s → %s  %s", sign, r.Type, r.Name, r.Content, rest)
}

func timing(r *zone.Record) string {
	t := fmt.Sprintf("ttl %d", r.EffectiveTTL())
	if r.Proxied {
		t += "  proxied"
	}
	return t
}

func proxied(p bool) string {
	if p {
		return "proxied"
	}
	return "not proxied"
}

func compareContent(a, b *zone.Record) int {
	return cmp.Or(a.Name.Compare(b.Name), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Content, b.Content))
}

// covers reports whether z has records that a new delegation of name would hide: any at or below it. The apex
// is no delegation, and a name that has NS records already is one.
func covers(z *zone.Zone, name zone.Name) bool {
	hidden := false
	for i := range z.Records {
		r := &z.Records[i]
		switch {
		case r.Name == name && r.Type == zone.TypeNS:
			return false
		case r.Name.Under(name) && r.Type != zone.TypeDS:
			hidden = true
		}
	}
	return hidden && name != z.Name
}
