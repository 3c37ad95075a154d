package document

import (
	"maps"
	"slices"

	"github.com/guardyn-edge/guardyn/bridge/topic"
)

// stream is where messages of a route pass a broker: as they come, or as they go.
type stream struct {
	endpoint string
	old      bool // the session speaks MQTT 3.1.1: what the message has passed is not told on
}

// flow is a route as the search for cycles sees it.
type flow struct {
	from   stream
	filter topic.Filter
	to     []stream // by its target, and where its dead letters go
	reach  []topic.Reach
}

func streamOf(s Session) stream { return stream{s.Endpoint(), s.Protocol == MQTT311} }

// flowOf is false of a route of which too little can be read.
func flowOf(r Route, d *Document) (flow, bool) {
	from, ok := d.Session(r.From.Session)
	if !ok || from.Endpoint() == "" || r.From.Topic.String() == "" {
		return flow{}, false
	}
	f := flow{from: streamOf(from), filter: r.From.Topic}
	for id, t := range map[string]topic.Template{r.To.Session: r.To.Topic, r.DeadLetter.Session: r.DeadLetter.Topic} {
		if s, ok := d.Session(id); ok && s.Endpoint() != "" && !t.IsZero() {
			f.to, f.reach = append(f.to, streamOf(s)), append(f.reach, t.Reach(r.From.Topic, s.Kind.Style()))
		}
	}
	return f, true
}

// cycles notes routes that feed one another where nothing would end it. Between brokers the properties of messages do: a message is not
// brought to a broker where it has been. Within one broker no route can tell what comes back from what is meant to go round, and MQTT
// 3.1.1 has no properties. A route that feeds itself alone has been noted as such. One problem is noted for each set of routes.
func (v *validator) cycles(p place, d *Document) {
	flows := map[int]flow{}
	old := false
	for i, r := range d.Routes {
		if f, ok := flowOf(r, d); ok {
			flows[i] = f
			old = old || f.from.old || slices.ContainsFunc(f.to, func(s stream) bool { return s.old })
		}
	}
	note := func(n int, by []int, format string) {
		names := make([]string, len(by))
		for i, m := range by {
			names[i] = d.Routes[m].ID
		}
		p.item(n, &d.Routes[n].ID).member("to").problem(format, list(names))
	}
	noted := map[int]bool{}
	within := graph(flows, false)
	for _, set := range within.sets() {
		for _, n := range set {
			noted[n] = true
		}
		way := within.way(set[0], set[0])
		note(set[0], way[1:len(way)-1], "what it sends comes back to it by %s, all at one broker: the routes would feed one another; choose topics that do not meet")
	}
	if !old {
		return
	}
	all := graph(flows, true)
	for _, set := range all.sets() {
		n, next, ok := forgetful(all, set, flows)
		if ok && !slices.ContainsFunc(set, func(n int) bool { return noted[n] }) {
			way := all.way(next, n)
			note(n, way[:len(way)-1], "what it sends comes back to it by %s, on a way over MQTT 3.1.1, which has no properties to tell it by: let all sessions of these routes speak 5.0, or choose topics that do not meet")
		}
	}
}

// forgetful finds a step of a cycle on which messages lose their properties: between two routes of one set.
func forgetful(g edges, set []int, flows map[int]flow) (n, next int, ok bool) {
	for _, n := range set {
		for _, next := range g[n] {
			at := flows[next].from
			loses := at.old || slices.Contains(flows[n].to, stream{at.endpoint, true})
			if _, within := slices.BinarySearch(set, next); within && loses {
				return n, next, true
			}
		}
	}
	return 0, 0, false
}

// edges lead from each route to those that what it sends comes by, sorted.
type edges map[int][]int

// graph has the edges between different routes, those alone that stay at one broker or all of them.
func graph(flows map[int]flow, all bool) edges {
	at := map[string][]int{}
	for n, f := range flows {
		at[f.from.endpoint] = append(at[f.from.endpoint], n)
	}
	g := edges{}
	for n, f := range flows {
		for i, to := range f.to {
			if !all && to.endpoint != f.from.endpoint {
				continue
			}
			for _, m := range at[to.endpoint] {
				if m != n && f.reach[i].Meets(flows[m].filter) {
					g[n] = append(g[n], m)
				}
			}
		}
		slices.Sort(g[n])
		g[n] = slices.Compact(g[n])
	}
	return g
}

// sets are the routes that lead to one another, each set sorted, two at least (Tarjan's strongly connected components).
func (g edges) sets() [][]int {
	var out [][]int
	var stack []int
	index, low, on := map[int]int{}, map[int]int{}, map[int]bool{}
	var visit func(n int)
	visit = func(n int) {
		index[n], low[n] = len(index)+1, len(index)+1
		stack, on[n] = append(stack, n), true
		for _, m := range g[n] {
			if index[m] == 0 {
				visit(m)
				low[n] = min(low[n], low[m])
			} else if on[m] {
				low[n] = min(low[n], index[m])
			}
		}
		if low[n] != index[n] {
			return
		}
		at := slices.Index(stack, n)
		set := slices.Sorted(slices.Values(stack[at:]))
		stack = stack[:at]
		for _, m := range set {
			on[m] = false
		}
		if len(set) > 1 {
			out = append(out, set)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(g)) {
		if index[n] == 0 {
			visit(n)
		}
	}
	return out
}

// way is a shortest one from one route to another, both included, by one step at least.
func (g edges) way(from, to int) []int {
	before := map[int]int{}
	for reached := []int{from}; len(reached) > 0; reached = reached[1:] {
		n := reached[0]
		for _, m := range g[n] {
			if _, seen := before[m]; seen {
				continue
			}
			before[m] = n
			if m != to {
				reached = append(reached, m)
				continue
			}
			way := []int{to}
			for at := n; at != from; at = before[at] {
				way = append(way, at)
			}
			way = append(way, from)
			slices.Reverse(way)
			return way
		}
	}
	return nil
}
