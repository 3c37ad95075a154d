package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/zone"
)

// Problem is one thing that stops a build, or, as a warning, deserves a word.
type Problem struct {
	Zone    zone.Name `json:"zone,omitzero"`
	Object  string    `json:"object,omitempty"` // "rule 3 of custom", "pool main", "record www.example.com A"
	Code    string    `json:"code"`             // snake_case, stable: list_unknown, pool_without_origin
	Message string    `json:"message"`          // a sentence that says what to do
	// ID is the zone's, for who holds a broken zone at its last content: two zones may claim one name.
	ID zone.ID `json:"-"`
}

// String prints the problem in one line, control characters inert.
func (p Problem) String() string {
	var b strings.Builder
	for _, s := range []string{p.Zone.String(), p.Object} {
		if s != "" {
			b.WriteString(s)
			b.WriteString(": ")
		}
	}
	b.WriteString(p.Message)
	return inert(b.String())
}

// Problems is the error of Build: all of them, ordered by zone, then object.
type Problems []Problem

// maxListed is how many problems the text of the error spells out.
const maxListed = 20

// Error lists the first problems, one a line, and says how many more there are.
func (p Problems) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the configuration has %s", count(len(p), "problem"))
	for i := range p {
		if i == maxListed {
			fmt.Fprintf(&b, "\n  and %d more", len(p)-i)
			break
		}
		b.WriteString("\n  ")
		b.WriteString(p[i].String())
	}
	return b.String()
}

func sortProblems(p []Problem) {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(a.Zone.Compare(b.Zone), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
}

// count prints "1 problem", "2 problems".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
