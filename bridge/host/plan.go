package host

import (
	"fmt"

	"github.com/guardyn-edge/guardyn/bridge/document"
)

// Plan is what would become of a document, on the rung of what runs.
type Plan struct {
	Rung   Rung            `json:"rung"`
	Takes  bool            `json:"takes"` // whether it would be taken over while the bridge runs
	How    string          `json:"how"`   // for people: how it would, or why not and what to do
	Change document.Change `json:"change"`
}

// PlanChange tells what a bridge that runs old, or nothing when old is nil, would do about next.
func PlanChange(old, next *document.Document) Plan {
	rung := RungOf(old)
	p := Plan{Rung: rung, Takes: true, Change: document.Compare(old, next)}
	modes := old != nil && old.Bridge.Mode != next.Bridge.Mode
	switch {
	case rung == NoRung:
		p.How = "nothing runs: it would be the first"
	case p.Change.Class == document.NoChange:
		p.How = "it is what runs already"
	case rung == Standalone && !modes:
		p.How = "taken over while it runs"
		if p.Change.Class == document.Replacement {
			p.How += "; what the broker keeps for a durable session as it was is left behind"
		}
	case rung == Standalone:
		p.Takes, p.How = false, standaloneMode
	case rung == Refuse:
		p.Takes, p.How = false, fmt.Sprintf("a clustered bridge with rollout: refuse takes no change over while it runs: %s", replaceRefuse)
	case p.Change.Class == document.Replacement:
		p.Takes, p.How = false, "it is not put to the cohort: "+replaceCoordinated
	case rung == Window:
		p.How = "put to the cohort, and on trial for " + old.Bridge.Cluster.ConfirmWindow.String() + " at most: every member keeps it, or none"
	default:
		p.How = "put to the cohort: every member takes it over, or none"
	}
	return p
}

// Plan tells what this member would do about a document. The error is a *document.Error.
func (h *Host) Plan(body []byte) (Plan, error) {
	next, err := document.Parse(body)
	if err != nil {
		return Plan{}, err
	}
	return PlanChange(h.Running(), next), nil
}
