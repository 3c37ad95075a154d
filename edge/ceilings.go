package edge

import (
	"errors"
	"fmt"

	"github.com/guardyn-edge/guardyn/zone"
)

// withinCeilings judges again what the build judged: a snapshot that has more than its own ceilings allow is one that no
// sound control plane built, and a node must not take it for being signed. The error joins all that z is over.
func withinCeilings(z *zone.Zone) error {
	var problems []error
	for _, e := range z.Exceeded() {
		if e.Function != "" {
			problems = append(problems, fmt.Errorf("ceiling %s: the %s of function %s is %s, at most %s", e.Ceiling, e.What, e.Function, e.Have, e.Limit))
			continue
		}
		problems = append(problems, fmt.Errorf("ceiling %s: it has %s %s, at most %s", e.Ceiling, e.Have, e.What, e.Limit))
	}
	return errors.Join(problems...)
}
