package snapshot

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// rules compares the rulesets of each phase by rendered text: one line a phase.
func (d *zoneDiff) rules(old, new map[zone.Phase][]zone.Rule) {
	for _, phase := range zone.Phases() {
		o, n := old[phase], new[phase]
		was, is := render(o), render(n)
		if slices.Equal(was, is) {
			continue
		}
		gone, came := surplus(o, was, is), surplus(n, is, was)
		mark := false
		for _, r := range gone {
			mark = mark || disruptive(kindRules, string(r.Action), removed)
		}
		for _, r := range came {
			mark = mark || disruptive(kindRules, string(r.Action), added)
		}
		if !mark && moved(was, is) {
			for _, r := range n {
				mark = mark || disruptive(kindRules, string(r.Action), changed)
			}
		}
		rules := "rules"
		if len(n) == 1 {
			rules = "rule"
		}
		var text string
		if len(o) == len(n) {
			text = fmt.Sprintf("%d %s in the %s phase", len(n), rules, phase)
		} else {
			text = fmt.Sprintf("%d → %d %s in the %s phase", len(o), len(n), rules, phase)
		}
		switch edited := min(len(gone), len(came)); {
		case edited > 0:
			text += fmt.Sprintf(", %d changed", edited)
		case moved(was, is):
			text += ", reordered"
		}
		d.line(kindRules, mark, "%s", text)
	}
}

func render(rules []zone.Rule) []string {
	lines := make([]string, len(rules))
	for i := range rules {
		lines[i] = rules[i].Render()
	}
	return lines
}

// surplus returns the rules whose text is in lines more often than in others.
func surplus(rules []zone.Rule, lines, others []string) []zone.Rule {
	have := map[string]int{}
	for _, l := range others {
		have[l]++
	}
	var out []zone.Rule
	for i, l := range lines {
		if have[l] > 0 {
			have[l]--
			continue
		}
		out = append(out, rules[i])
	}
	return out
}

// moved reports whether the lines that a and b have in common stand in another order.
func moved(a, b []string) bool {
	common := func(lines, others []string) []string {
		have := map[string]int{}
		for _, l := range others {
			have[l]++
		}
		var out []string
		for _, l := range lines {
			if have[l] > 0 {
				have[l]--
				out = append(out, l)
			}
		}
		return out
	}
	return !slices.Equal(common(a, b), common(b, a))
}

func (d *zoneDiff) lists(old, new map[string]zone.List) {
	diffMaps(old, new, strings.Compare, func(name string, o, n *zone.List) {
		switch {
		case o == nil:
			d.line(kindLists, disruptive(kindLists, "", added), "+ %s  %s", name, count(len(n.Items), "item"))
		case n == nil:
			d.line(kindLists, disruptive(kindLists, "", removed), "- %s  %s", name, count(len(o.Items), "item"))
		default:
			var what changeList
			what.value("kind", string(o.Kind), string(n.Kind))
			if gone, came := setDifference(o.Items, n.Items), setDifference(n.Items, o.Items); gone+came > 0 {
				what.add(edits(came, gone, "item"))
			}
			d.objectChanged(kindLists, name, what)
		}
	})
}

func (d *zoneDiff) pools(old, new map[string]zone.Pool) {
	diffMaps(old, new, strings.Compare, func(name string, o, n *zone.Pool) {
		switch {
		case o == nil:
			d.line(kindPools, disruptive(kindPools, "", added), "+ %s  %s", name, count(len(n.Origins), "origin"))
		case n == nil:
			d.line(kindPools, disruptive(kindPools, "", removed), "- %s  %s", name, count(len(o.Origins), "origin"))
		default:
			var what changeList
			diffMaps(origins(o), origins(n), strings.Compare, func(_ string, a, b *zone.Origin) {
				switch {
				case a == nil:
					what.add("+ origin " + b.Name + " at " + b.Address)
				case b == nil:
					what.add("- origin " + a.Name + " at " + a.Address)
				default:
					at := "origin " + a.Name + " "
					what.value(at+"address", a.Address, b.Address)
					what.value(at+"scheme", orDefault(a.Scheme, zone.SchemeHTTP), orDefault(b.Scheme, zone.SchemeHTTP))
					what.value(at+"weight", fmt.Sprint(max(1, a.Weight)), fmt.Sprint(max(1, b.Weight)))
					what.value(at+"host header", a.HostHeader, b.HostHeader)
					what.value(at+"sni", a.SNI, b.SNI)
				}
			})
			what.value("policy", orDefault(o.Policy, zone.PolicyRoundRobin), orDefault(n.Policy, zone.PolicyRoundRobin))
			if !sameHealth(o.Health, n.Health) {
				what.add("health check " + pointerChange(o.Health, n.Health))
			}
			what.value("slow start", durationOrNone(o.SlowStart), durationOrNone(n.SlowStart))
			what.value("outlier detection", outlierText(o.OutlierDetection), outlierText(n.OutlierDetection))
			d.objectChanged(kindPools, name, what)
		}
	})
}

// outlierText tells what a detection does, its defaults included.
func outlierText(d *zone.OutlierDetection) string {
	if d == nil {
		d = new(zone.OutlierDetection)
	}
	e := d.Effective()
	if !*e.Enabled {
		return "off"
	}
	text := fmt.Sprintf("%d failures, %s, %d%%", e.ConsecutiveFailures, e.BaseEjectionTime, e.MaxEjectionPercent)
	switch {
	case d.FailureStatus == nil:
	case len(d.FailureStatus) == 0:
		text += ", no status"
	default:
		text += ", status " + strings.Trim(fmt.Sprint(d.FailureStatus), "[]")
	}
	return text
}

func origins(p *zone.Pool) map[string]zone.Origin {
	m := make(map[string]zone.Origin, len(p.Origins))
	for _, o := range p.Origins {
		m[o.Name] = o
	}
	return m
}

func (d *zoneDiff) balancers(old, new *zone.Zone) {
	diffMaps(old.LoadBalancers, new.LoadBalancers, zone.Name.Compare, func(name zone.Name, o, n *zone.LoadBalancer) {
		switch {
		case o == nil:
			what := ""
			if slices.ContainsFunc(old.Records, func(r zone.Record) bool { return r.Proxied && r.Name == name }) {
				what = "served name"
			}
			d.line(kindBalancers, disruptive(kindBalancers, what, added), "+ %s  to %s", name, strings.Join(n.Pools, ", "))
		case n == nil:
			d.line(kindBalancers, disruptive(kindBalancers, "", removed), "- %s  to %s", name, strings.Join(o.Pools, ", "))
		default:
			var what changeList
			what.value("pools", strings.Join(o.Pools, ", "), strings.Join(n.Pools, ", "))
			what.value("fallback", o.Fallback, n.Fallback)
			if (o.Sticky == nil) != (n.Sticky == nil) || o.Sticky != nil && *o.Sticky != *n.Sticky {
				what.add("sticky sessions " + pointerChange(o.Sticky, n.Sticky))
			}
			d.objectChanged(kindBalancers, name.String(), what)
		}
	})
}

func (d *zoneDiff) cache(o, n zone.CachePolicy) {
	var what changeList
	what.value("disabled", fmt.Sprint(o.Disabled), fmt.Sprint(n.Disabled))
	what.value("default ttl", durationOrNone(o.DefaultTTL), durationOrNone(n.DefaultTTL))
	what.value("max ttl", durationOrNone(o.MaxTTL), durationOrNone(n.MaxTTL))
	what.value("stale while revalidate", durationOrNone(o.StaleWhileRevalidate), durationOrNone(n.StaleWhileRevalidate))
	what.value("stale if error", durationOrNone(o.StaleIfError), durationOrNone(n.StaleIfError))
	what.value("query mode", orDefault(o.QueryMode, "all"), orDefault(n.QueryMode, "all"))
	what.value("query parameters", strings.Join(o.QueryParameters, ", "), strings.Join(n.QueryParameters, ", "))
	what.value("store set-cookie", fmt.Sprint(o.StoreSetCookie), fmt.Sprint(n.StoreSetCookie))
	for _, w := range what {
		d.line(kindCache, disruptive(kindCache, "", changed), "%s", w)
	}
}

func (d *zoneDiff) tls(old, new map[zone.Name]zone.TLSHost) {
	diffMaps(old, new, zone.Name.Compare, func(name zone.Name, o, n *zone.TLSHost) {
		switch {
		case o == nil:
			d.line(kindTLS, disruptive(kindTLS, "", added), "+ %s  certificate %s", name, until(n))
		case n == nil:
			d.line(kindTLS, disruptive(kindTLS, "", removed), "- %s  certificate %s", name, until(o))
		default:
			var what changeList
			if o.Certificate != n.Certificate {
				if a, b := until(o), until(n); a != b {
					what.value("certificate", a, b)
				} else {
					what.add("another certificate " + b)
				}
			}
			if o.SealedKey != n.SealedKey {
				what.add("another private key")
			}
			d.objectChanged(kindTLS, name.String(), what)
		}
	})
}

// until prints the last day of a certificate.
func until(h *zone.TLSHost) string {
	block, _ := pem.Decode([]byte(h.Certificate))
	if block == nil {
		return "of an unreadable date"
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "of an unreadable date"
	}
	return "until " + c.NotAfter.UTC().Format(time.DateOnly)
}

func (d *zoneDiff) functions(old, new map[string]zone.Function) {
	diffMaps(old, new, strings.Compare, func(name string, o, n *zone.Function) {
		switch {
		case o == nil:
			d.line(kindFunctions, disruptive(kindFunctions, "", added), "+ %s  %s", name, zone.Size(len(n.Module)))
		case n == nil:
			d.line(kindFunctions, disruptive(kindFunctions, "", removed), "- %s  %s", name, zone.Size(len(o.Module)))
		default:
			var what changeList
			if !bytes.Equal(o.Module, n.Module) {
				if len(o.Module) == len(n.Module) {
					what.add("another module of the same size")
				} else {
					what.value("module", zone.Size(len(o.Module)).String(), zone.Size(len(n.Module)).String())
				}
			}
			what.value("memory", sizeOrCeiling(o.Memory), sizeOrCeiling(n.Memory))
			what.value("output", sizeOrCeiling(o.Output), sizeOrCeiling(n.Output))
			what.value("timeout", durationOrCeiling(o.Timeout), durationOrCeiling(n.Timeout))
			if !maps.Equal(o.Environment, n.Environment) {
				what.add("environment changed") // its values may be secrets
			}
			d.objectChanged(kindFunctions, name, what)
		}
	})
}

func (d *zoneDiff) ceilings(o, n zone.Ceilings) {
	num := func(name string, a, b int64, text func(int64) string) {
		if a == b {
			return
		}
		what := ""
		if b < a {
			what = "lower"
		}
		d.line(kindCeilings, disruptive(kindCeilings, what, changed), "%s %s → %s", name, text(a), text(b))
	}
	plain := func(n int64) string { return fmt.Sprint(n) }
	size := func(n int64) string { return zone.Size(n).String() }
	for _, c := range countCeilings(&o, &n) {
		num(c.name, int64(c.a), int64(c.b), plain)
	}
	num("function size", int64(o.FunctionSize), int64(n.FunctionSize), size)
	num("function memory", int64(o.FunctionMemory), int64(n.FunctionMemory), size)
	num("function time", int64(o.FunctionTime), int64(n.FunctionTime), func(n int64) string { return zone.Duration(n).String() })
	num("function output", int64(o.FunctionOutput), int64(n.FunctionOutput), size)
	num("request body", int64(o.RequestBody), int64(n.RequestBody), size)
	num("request rate", int64(o.RequestRate), int64(n.RequestRate), plain)
}

type countCeiling struct {
	name string
	a, b int
}

// countCeilings pairs the ceilings that count objects.
func countCeilings(a, b *zone.Ceilings) []countCeiling {
	return []countCeiling{
		{"records", a.Records, b.Records},
		{"rules", a.Rules, b.Rules},
		{"lists", a.Lists, b.Lists},
		{"list items", a.ListItems, b.ListItems},
		{"pools", a.Pools, b.Pools},
		{"origins", a.Origins, b.Origins},
		{"load balancers", a.LoadBalancers, b.LoadBalancers},
		{"TLS hosts", a.TLSHosts, b.TLSHosts},
		{"functions", a.Functions, b.Functions},
	}
}

// objectChanged appends the line of an object that differs in what, nothing when that is empty.
func (d *zoneDiff) objectChanged(kind, name string, what changeList) {
	if len(what) > 0 {
		d.line(kind, disruptive(kind, "", changed), "~ %s  %s", name, strings.Join(what, "; "))
	}
}

// changeList is what differs in one object, a phrase each.
type changeList []string

func (c *changeList) add(phrase string) { *c = append(*c, phrase) }

func (c *changeList) value(label, old, new string) {
	if old != new {
		c.add(fmt.Sprintf("%s %s → %s", label, orNone(old), orNone(new)))
	}
}
