package snapshot

import "github.com/guardyn-edge/guardyn/zone"

// Kinds of a Line, and of a row below; kindZone is a zone as a whole.
const (
	kindZone      = "zone"
	kindDNS       = "dns"
	kindRules     = "rules"
	kindLists     = "lists"
	kindPools     = "pools"
	kindBalancers = "balancers"
	kindCache     = "cache"
	kindTLS       = "tls"
	kindFunctions = "functions"
	kindSettings  = "settings"
	kindCeilings  = "ceilings"
)

// deed is what an edit does to an object.
type deed string

const (
	added   deed = "added"
	removed deed = "removed"
	changed deed = "changed"
)

// disruption is one row of the table that says which changes can interrupt traffic. what narrows the kind:
// a record type, an action, a property; "" is everything that has no row of its own.
type disruption struct {
	kind       string
	what       string
	deed       deed
	disruptive bool
}

// disruptions is the whole judgement of spec §5: narrow on purpose, for a mark on every line is no mark. A
// change that has no row is not disruptive.
var disruptions = [...]disruption{
	{kindZone, "", added, false},
	{kindZone, "", removed, true},
	{kindZone, "id", changed, false},

	// Changing a record's content is removing one record and adding another.
	{kindDNS, "A", removed, true},
	{kindDNS, "AAAA", removed, true},
	{kindDNS, "CNAME", removed, true},
	{kindDNS, "DNAME", removed, true},
	{kindDNS, "MX", removed, true},
	{kindDNS, "NS", removed, true},
	{kindDNS, "", removed, false},
	{kindDNS, "", added, false},
	// A delegation of a name that has other records, or records below it, takes them out of service.
	{kindDNS, "NS over records", added, true},
	{kindDNS, "proxied", changed, true},
	{kindDNS, "ttl", changed, false},

	// A rule that is edited is removed and added; moving it is changing it.
	{kindRules, string(zone.ActionBlock), added, true},
	{kindRules, string(zone.ActionBlock), removed, true},
	{kindRules, string(zone.ActionBlock), changed, true},
	{kindRules, string(zone.ActionRedirect), added, true},
	{kindRules, string(zone.ActionRedirect), removed, true},
	{kindRules, string(zone.ActionRedirect), changed, true},
	{kindRules, string(zone.ActionRateLimit), added, true}, // it blocks what is over the limit
	{kindRules, string(zone.ActionRateLimit), removed, true},
	{kindRules, string(zone.ActionRateLimit), changed, true},
	{kindRules, string(zone.ActionRoute), added, true}, // another pool serves
	{kindRules, string(zone.ActionRoute), removed, true},
	{kindRules, string(zone.ActionRoute), changed, true},
	{kindRules, string(zone.ActionFunction), added, true}, // a function answers instead
	{kindRules, string(zone.ActionFunction), removed, true},
	{kindRules, string(zone.ActionFunction), changed, true},
	// What these let through, the rules below them may block.
	{kindRules, string(zone.ActionAllow), added, false},
	{kindRules, string(zone.ActionAllow), removed, true},
	{kindRules, string(zone.ActionAllow), changed, true},
	{kindRules, string(zone.ActionSkip), added, false},
	{kindRules, string(zone.ActionSkip), removed, true},
	{kindRules, string(zone.ActionSkip), changed, true},
	{kindRules, "", added, false},
	{kindRules, "", removed, false},
	{kindRules, "", changed, false},

	{kindLists, "", added, false},
	{kindLists, "", removed, false},
	{kindLists, "", changed, false},

	{kindPools, "", added, false},
	{kindPools, "", removed, true},
	{kindPools, "", changed, true},

	{kindBalancers, "", added, false},
	{kindBalancers, "served name", added, true}, // the name had an origin before
	{kindBalancers, "", removed, true},
	{kindBalancers, "", changed, true},

	{kindCache, "", changed, false},

	{kindTLS, "", added, false},
	{kindTLS, "", removed, true},
	{kindTLS, "", changed, true},

	{kindFunctions, "", added, false},
	{kindFunctions, "", removed, true},
	{kindFunctions, "", changed, true},

	{kindSettings, "", changed, false},

	{kindCeilings, "lower", changed, true},
	{kindCeilings, "", changed, false},
}

func disruptive(kind, what string, d deed) bool {
	fallback := false
	for i := range disruptions {
		row := &disruptions[i]
		if row.kind != kind || row.deed != d {
			continue
		}
		if row.what == what {
			return row.disruptive
		}
		if row.what == "" {
			fallback = row.disruptive
		}
	}
	return fallback
}
