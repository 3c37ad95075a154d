package zone

import (
	"maps"
	"slices"
	"strconv"
)

// Exceeded is a ceiling that a zone is over.
type Exceeded struct {
	// Ceiling is its name, as the member of [Ceilings] has it in JSON; What people call what it counts: "list items".
	Ceiling, What string
	// Function is the name of the function that is over it by itself; empty: the zone is, with all that it has.
	Function string
	// Have is what there is and Limit the ceiling, printed.
	Have, Limit string
}

// Exceeded returns the ceilings that z is over, all of them: first those of the zone in the order of Ceilings, then those of
// its functions by name. request_body and request_rate bound what comes at run time, and nothing that z has.
func (z *Zone) Exceeded() []Exceeded {
	limit := z.Ceilings.Effective()
	var rules, items, origins int
	for _, r := range z.Rulesets {
		rules += len(r)
	}
	for _, l := range z.Lists {
		items += len(l.Items)
	}
	for _, p := range z.Pools {
		origins += len(p.Origins)
	}
	var over []Exceeded
	for _, c := range [...]struct {
		ceiling, what string
		have, limit   int
	}{
		{"records", "records", len(z.Records), limit.Records},
		{"rules", "rules", rules, limit.Rules},
		{"lists", "lists", len(z.Lists), limit.Lists},
		{"list_items", "list items", items, limit.ListItems},
		{"pools", "pools", len(z.Pools), limit.Pools},
		{"origins", "origins", origins, limit.Origins},
		{"load_balancers", "load balancers", len(z.LoadBalancers), limit.LoadBalancers},
		{"tls_hosts", "TLS hosts", len(z.TLSHosts), limit.TLSHosts},
		{"functions", "functions", len(z.Functions), limit.Functions},
	} {
		if c.have > c.limit {
			over = append(over, Exceeded{Ceiling: c.ceiling, What: c.what, Have: strconv.Itoa(c.have), Limit: strconv.Itoa(c.limit)})
		}
	}
	if len(z.Functions) == 0 {
		return over
	}
	for _, name := range slices.Sorted(maps.Keys(z.Functions)) {
		f := z.Functions[name]
		for _, c := range [...]struct {
			ceiling, what string
			over          bool
			have, limit   interface{ String() string }
		}{
			{"function_size", "module", Size(len(f.Module)) > limit.FunctionSize, Size(len(f.Module)), limit.FunctionSize},
			{"function_memory", "memory", f.Memory > limit.FunctionMemory, f.Memory, limit.FunctionMemory},
			{"function_time", "timeout", f.Timeout > limit.FunctionTime, f.Timeout, limit.FunctionTime},
			{"function_output", "output", f.Output > limit.FunctionOutput, f.Output, limit.FunctionOutput},
		} {
			if c.over {
				over = append(over, Exceeded{Ceiling: c.ceiling, What: c.what, Function: name, Have: c.have.String(), Limit: c.limit.String()})
			}
		}
	}
	return over
}
