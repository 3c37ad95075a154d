package zone

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Normalize puts every object of z into normal form in place and returns all of what is malformed by
// itself: one [*ObjectError] for each problem, joined, objects named as people do ("record www A", "pool
// main", "rule 3 of custom", "settings"). At most a hundred problems of one collection are told. When it
// returns an error, z is partly in normal form and must not be used.
func (z *Zone) Normalize() error {
	var bad problems
	id, err := ParseID(string(z.ID))
	bad.object("zone", err)
	z.ID = id
	switch {
	case z.Name.IsZero():
		bad.object("zone", fmt.Errorf("the name is missing"))
	case z.Name.IsWildcard():
		bad.object("zone", fmt.Errorf("name %s: a wildcard is no zone", quote(z.Name.s)))
	}
	z.normalizeRecords(&bad)
	z.normalizeRulesets(&bad)
	normalizeMap(&bad, &z.Lists, "list", objectName, List.Normalize)
	normalizeMap(&bad, &z.Pools, "pool", objectName, Pool.Normalize)
	normalizeMap(&bad, &z.LoadBalancers, "load balancer", z.hostName, LoadBalancer.Normalize)
	normalizeMap(&bad, &z.TLSHosts, "tls host", z.hostName, TLSHost.Normalize)
	normalizeMap(&bad, &z.Functions, "function", objectName, Function.Normalize)
	z.CachePolicy, err = z.CachePolicy.Normalize()
	bad.object("cache policy", err)
	z.Settings, err = z.Settings.Normalize()
	bad.object("settings", err)
	z.Ceilings, err = z.Ceilings.Normalize()
	bad.object("ceilings", err)
	return bad.err()
}

func (z *Zone) normalizeRecords(all *problems) {
	var bad problems
	for i, r := range z.Records {
		n, err := r.Normalize(z.Name)
		if err != nil {
			bad.object("record "+r.Label(z.Name), err)
			continue
		}
		z.Records[i] = n
	}
	if len(bad.errs) == 0 {
		if !slices.IsSortedFunc(z.Records, Record.Compare) {
			slices.SortFunc(z.Records, Record.Compare)
		}
		z.Records = slices.Compact(z.Records)
		for i := 1; i < len(z.Records); i++ {
			if a, b := z.Records[i-1], z.Records[i]; a.Name == b.Name && a.Type == b.Type && a.Content == b.Content {
				bad.object("record "+b.Label(z.Name), fmt.Errorf("content %s is there twice, with different ttl or proxied: keep one", quote(b.Content)))
			}
		}
	}
	if len(z.Records) == 0 {
		z.Records = nil
	}
	all.add(bad.err())
}

// Label names r inside zone as people do: "www A", "@ MX".
func (r Record) Label(zone Name) string {
	if r.Name.IsZero() {
		return `"" ` + r.Type.String()
	}
	return r.Name.In(zone) + " " + r.Type.String()
}

func (z *Zone) normalizeRulesets(all *problems) {
	var bad problems
	for _, phase := range sortedKeys(z.Rulesets) {
		if _, err := ParsePhase(string(phase)); err != nil {
			bad.object("ruleset", err)
			continue
		}
		rules := z.Rulesets[phase]
		for i, r := range rules {
			n, err := r.Normalize(phase)
			bad.object(fmt.Sprintf("rule %d of %s", i+1, phase), err)
			rules[i] = n
		}
		if len(rules) == 0 {
			delete(z.Rulesets, phase)
		}
	}
	if len(z.Rulesets) == 0 {
		z.Rulesets = nil
	}
	all.add(bad.err())
}

// normalizeMap normalizes the objects of a kind and makes an empty map nil.
func normalizeMap[K ~string | Name, V any](all *problems, m *map[K]V, kind string, checkKey func(any) error, normalize func(V) (V, error)) {
	var bad problems
	for _, k := range sortedKeys(*m) {
		label := kind + " " + keyLabel(any(k))
		bad.object(label, checkKey(any(k)))
		v, err := normalize((*m)[k])
		bad.object(label, err)
		(*m)[k] = v
	}
	if len(*m) == 0 {
		*m = nil
	}
	all.add(bad.err())
}

func keyLabel(k any) string {
	s := fmt.Sprint(k)
	if _, err := ParseObjectName(s); err == nil {
		return s
	}
	if _, ok := k.(Name); ok {
		return s
	}
	return quote(s)
}

func objectName(k any) error {
	_, err := ParseObjectName(fmt.Sprint(k))
	return err
}

// hostName judges the key of what serves a host of the zone.
func (z *Zone) hostName(k any) error {
	n := k.(Name)
	switch {
	case n.IsZero():
		return fmt.Errorf("the name is missing")
	case !n.Under(z.Name):
		return fmt.Errorf("name %s is outside the zone %s", quote(n.s), z.Name)
	case strings.ContainsRune(n.s, '/'):
		return fmt.Errorf("name %s is not a host name", quote(n.s))
	}
	return nil
}

func sortedKeys[K ~string | Name, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// Served returns a copy of z without what serving does not need: descriptions, disabled rules, disabled
// origins. z is not changed; unchanged parts are shared.
func (z *Zone) Served() *Zone {
	out := *z
	out.Rulesets = nil
	for phase, rules := range z.Rulesets {
		served := make([]Rule, 0, len(rules))
		for _, r := range rules {
			if r.Enabled != nil && !*r.Enabled {
				continue
			}
			r.Description, r.Enabled = "", nil
			served = append(served, r)
		}
		if len(served) > 0 {
			if out.Rulesets == nil {
				out.Rulesets = make(map[Phase][]Rule, len(z.Rulesets))
			}
			out.Rulesets[phase] = served
		}
	}
	if z.Pools != nil {
		out.Pools = make(map[string]Pool, len(z.Pools))
	}
	for name, p := range z.Pools {
		p.Origins = slices.DeleteFunc(slices.Clone(p.Origins), func(o Origin) bool { return o.Enabled != nil && !*o.Enabled })
		for i := range p.Origins {
			p.Origins[i].Enabled = nil
		}
		if len(p.Origins) == 0 {
			p.Origins = nil
		}
		out.Pools[name] = p
	}
	return &out
}
