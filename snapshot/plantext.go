package snapshot

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guardyn-edge/guardyn/zone"
)

// A line's text that is wider than planWidth characters is printed with its middle cut out, so that both what
// it is about and what it ends with (a TTL) stay.
const (
	planWidth = 160
	planTail  = 40
)

// Text prints the plan, final newline included. hint adds the line about --accept-disruption. Columns: a
// zone's sign stands in the third; the mark ! of a line in the sixth, its kind from the eighth, padded to
// eleven. The line of a zone that is removed carries its mark before the record count.
func (p *Plan) Text(hint bool) string {
	var b strings.Builder
	if len(p.Zones) == 0 {
		if p.LiveVersion == 0 {
			b.WriteString("No changes. Nothing is published yet.\n")
		} else {
			fmt.Fprintf(&b, "No changes. Version %d is live.\n", p.LiveVersion)
		}
	} else {
		for i := range p.Zones {
			p.Zones[i].text(&b)
		}
		fmt.Fprintf(&b, "\n%s", count(p.Changes, "change"))
		if p.Disruptive {
			b.WriteString(". Lines marked ! can interrupt traffic.")
			if hint {
				b.WriteString("\nPass --accept-disruption to apply this.")
			}
		}
		b.WriteByte('\n')
	}
	for i, w := range p.Warnings {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	for i := range p.Held {
		if i == 0 {
			b.WriteByte('\n')
		}
		p.Held[i].text(&b)
	}
	return b.String()
}

func (h *HeldZone) text(b *strings.Builder) {
	stays := "was never published and is left out"
	if h.Published {
		stays = "stays as it is published"
	}
	fmt.Fprintf(b, "held: %s %s\n", inert(h.Name.String()), stays)
	for _, p := range h.Problems {
		p.Zone = zone.Name{}
		fmt.Fprintf(b, "      %s\n", p)
	}
}

func (z *ZoneChange) text(b *strings.Builder) {
	switch z.Action {
	case ActionAdd:
		fmt.Fprintf(b, "  + %s\n", z.Name)
	case ActionRemove:
		mark := ""
		if z.Disruptive {
			mark = "! "
		}
		fmt.Fprintf(b, "  - %s  %s%s\n", z.Name, mark, count(z.Records, "record"))
	default:
		fmt.Fprintf(b, "  ~ %s\n", z.Name)
	}
	for _, l := range z.Lines {
		mark := ' '
		if l.Disruptive {
			mark = '!'
		}
		fmt.Fprintf(b, "     %c %-10s %s\n", mark, inert(l.Kind), shorten(inert(l.Text)))
	}
	if z.Warning != "" {
		fmt.Fprintf(b, "     ! %-10s %s\n", "warning", inert(z.Warning))
	}
}

// shorten cuts the middle out of a line that is too wide.
func shorten(s string) string {
	if utf8.RuneCountInString(s) <= planWidth {
		return s
	}
	r := []rune(s)
	return string(r[:planWidth-planTail-1]) + "…" + string(r[len(r)-planTail:])
}

// inert makes control characters, and what else a terminal may act on, visible and harmless.
func inert(s string) string {
	clean := true
	for _, r := range s {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(s[i : i+n])
		} else {
			q := strconv.Quote(s[i : i+n])
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}
