package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/zone"
)

// The signs of an edit.
const (
	signAdd    = "+"
	signRemove = "-"
	signChange = "~"
)

// edit is one difference between a zone's rows and its file.
type edit struct {
	Sign   string `json:"sign"`   // + added, - removed, ~ changed
	Object string `json:"object"` // "dns", "pool web"
	Text   string `json:"text"`   // what about it, for people
}

// zoneEdits are all differences of one zone. The zone itself is made or deleted when Sign is + or -.
type zoneEdits struct {
	Zone  string `json:"zone"`
	Sign  string `json:"sign"`
	Edits []edit `json:"edits,omitempty"`
	// Records of the rows, and how many of them the sync removes; the zone's own removal takes all.
	Records int `json:"records"`
	Removed int `json:"records_removed"`

	have, want *zoneState // nil: there are no rows, or no file
	changes    recordChanges
	deletes    bool // something is removed
}

// recordChanges counts what the records' edits come to, as the control plane counts an import.
type recordChanges struct{ added, updated, removed int }

// any reports whether records change.
func (c recordChanges) any() bool { return c != recordChanges{} }

// massRemoval is the share of a zone's records, in percent, above which a removal needs its own consent: a
// file that was cut short must not look like an ordinary edit.
const massRemoval = 30

func (z *zoneEdits) mass() bool { return z.Removed*100 > z.Records*massRemoval }

// compareZones finds what makes have like want, nil when nothing does.
func compareZones(have, want *zoneState) *zoneEdits {
	z := &zoneEdits{Sign: signChange, have: have, want: want}
	switch {
	case want == nil:
		z.Zone, z.Sign, z.deletes = have.name.String(), signRemove, true
		z.Records, z.Removed = len(have.records), len(have.records)
		return z
	case have == nil:
		z.Sign = signAdd
		have = &zoneState{name: want.name}
	}
	z.Zone, z.Records = want.name.String(), len(have.records)
	z.compareRecords(have.records, want.records)
	for _, k := range objectKinds() {
		z.compareObjects(k, have, want)
	}
	if z.Sign == signChange && len(z.Edits) == 0 {
		return nil
	}
	return z
}

func (z *zoneEdits) add(sign, object, format string, args ...any) {
	z.Edits = append(z.Edits, edit{sign, object, fmt.Sprintf(format, args...)})
}

// compareRecords pairs, within one name and type, what goes with what comes: that is a change. What goes
// without anything in its place is a removal.
func (z *zoneEdits) compareRecords(have, want []zone.Record) {
	type set struct{ gone, came, updated []zone.Record }
	sets := map[recordKey]*set{}
	var order []recordKey
	at := func(r zone.Record) *set {
		k := recordKey{name: r.Name, rrtype: r.Type}
		if sets[k] == nil {
			sets[k] = &set{}
			order = append(order, k)
		}
		return sets[k]
	}
	rows := make(map[recordKey]zone.Record, len(have))
	for _, r := range have {
		rows[keyOf(r)] = r
	}
	kept := make(map[recordKey]bool, len(want))
	for _, r := range want {
		row, stands := rows[keyOf(r)]
		kept[keyOf(r)] = true
		switch {
		case !stands:
			s := at(r)
			s.came = append(s.came, r)
			z.changes.added++
		case row != r:
			s := at(r)
			s.updated = append(s.updated, r)
			z.changes.updated++
		}
	}
	for _, r := range have {
		if !kept[keyOf(r)] {
			s := at(r)
			s.gone = append(s.gone, r)
			z.changes.removed++
		}
	}
	sorted := make([]zone.Record, len(order))
	for i, k := range order {
		sorted[i] = zone.Record{Name: k.name, Type: k.rrtype}
	}
	sortRecords(sorted, z.apex())
	for _, k := range sorted {
		s := sets[recordKey{name: k.Name, rrtype: k.Type}]
		for _, r := range s.updated {
			z.add(signChange, "dns", "%-6s %s → %s  %s → %s", r.Type, r.Name, r.Content, timing(rows[keyOf(r)]), timing(r))
		}
		paired := min(len(s.gone), len(s.came))
		for i := range paired {
			z.add(signChange, "dns", "%-6s %s: %s → %s  %s", k.Type, k.Name, s.gone[i].Content, s.came[i].Content, timing(s.came[i]))
		}
		for _, r := range s.gone[paired:] {
			z.add(signRemove, "dns", "%-6s %s → %s  %s", r.Type, r.Name, r.Content, timing(r))
			z.Removed++
			z.deletes = true
		}
		for _, r := range s.came[paired:] {
			z.add(signAdd, "dns", "%-6s %s → %s  %s", r.Type, r.Name, r.Content, timing(r))
		}
	}
}

func (z *zoneEdits) apex() zone.Name {
	if z.want != nil {
		return z.want.name
	}
	return z.have.name
}

func timing(r zone.Record) string {
	t := fmt.Sprintf("ttl %d", r.EffectiveTTL())
	if r.Proxied {
		t += " proxied"
	}
	return t
}

func (z *zoneEdits) compareObjects(k objectKind, have, want *zoneState) {
	names := append(have.objectNames(k.member), want.objectNames(k.member)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		key := objectKey{k.member, name}
		o, stands := have.objects[key]
		n, wanted := want.objects[key]
		title := strings.TrimSpace(k.noun + " " + name)
		switch {
		case !stands && !wanted, stands && wanted && bytes.Equal(o.body, n.body):
		case k.single:
			z.compareSingle(k, o.body, n.body)
		case !stands:
			z.add(signAdd, title, "%s", k.size(n.body))
		case !wanted:
			z.add(signRemove, title, "%s", k.size(o.body))
			z.deletes = true
		case k.size(o.body) != k.size(n.body):
			z.add(signChange, title, "%s → %s", k.size(o.body), k.size(n.body))
		default:
			z.add(signChange, title, "changed")
		}
	}
}

// compareSingle: a file without the member means the defaults.
func (z *zoneEdits) compareSingle(k objectKind, before, after []byte) {
	if len(before) == 0 {
		before = []byte(emptyBody)
	}
	switch {
	case bytes.Equal(before, after):
	case string(after) == emptyBody:
		z.add(signRemove, k.noun, "back to the defaults")
		z.deletes = true
	case string(before) == emptyBody:
		z.add(signAdd, k.noun, "changed from the defaults")
	default:
		z.add(signChange, k.noun, "%s", strings.Join(changedMembers(before, after), ", "))
	}
}

// text prints the edits as a plan prints its changes.
func (z *zoneEdits) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s %s", z.Sign, z.Zone)
	if z.Sign == signRemove {
		fmt.Fprintf(&b, "  (%s)", count(z.Records, "record"))
	}
	b.WriteByte('\n')
	width := 10
	for _, e := range z.Edits {
		width = max(width, len(e.Object))
	}
	for _, e := range z.Edits {
		fmt.Fprintf(&b, "     %s %-*s %s\n", e.Sign, width, e.Object, e.Text)
	}
	return b.String()
}

// changedMembers names the members that differ between two JSON objects, sorted.
func changedMembers(before, after []byte) []string {
	var o, n map[string]jsontext.Value
	if json.Unmarshal(before, &o) != nil || json.Unmarshal(after, &n) != nil {
		return nil
	}
	var out []string
	for name, v := range n {
		if !bytes.Equal(o[name], v) {
			out = append(out, name)
		}
	}
	for name := range o {
		if _, stays := n[name]; !stays {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
