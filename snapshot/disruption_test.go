package snapshot

import "testing"

// What has a mark is a promise to operators; this is the table once more, in the words of the specification.
func TestDisruptions(t *testing.T) {
	marked := map[string][]string{
		"zone":      {"removed"},
		"dns":       {"A removed", "AAAA removed", "CNAME removed", "DNAME removed", "MX removed", "NS removed", "NS over records added", "proxied changed"},
		"rules":     {"block added", "block removed", "block changed", "redirect added", "redirect removed", "redirect changed", "rate_limit added", "rate_limit removed", "rate_limit changed", "route added", "route removed", "route changed", "function added", "function removed", "function changed", "allow removed", "allow changed", "skip removed", "skip changed"},
		"lists":     nil,
		"pools":     {"removed", "changed"},
		"balancers": {"served name added", "removed", "changed"},
		"cache":     nil,
		"tls":       {"removed", "changed"},
		"functions": {"removed", "changed"},
		"settings":  nil,
		"ceilings":  {"lower changed"},
	}
	whats := []string{"", "A", "AAAA", "CNAME", "DNAME", "MX", "NS", "NS over records", "TXT", "CAA", "SRV", "PTR", "HTTPS", "proxied", "ttl", "block", "redirect", "rate_limit", "route", "function", "allow", "skip", "log", "rewrite", "set_header", "remove_header", "cache", "served name", "lower"}
	for kind, rows := range marked {
		want := map[string]bool{}
		for _, r := range rows {
			want[r] = true
		}
		for _, what := range whats {
			for _, d := range []deed{added, removed, changed} {
				key := string(d)
				if what != "" {
					key = what + " " + key
				}
				// Where the kind as a whole has a mark, what has no row of its own has it too.
				if got, expect := disruptive(kind, what, d), want[key] || want[string(d)]; got != expect {
					t.Errorf("%s: %s: marked %v", kind, key, got)
				}
			}
		}
	}
	seen := map[disruption]bool{}
	for _, row := range disruptions {
		key := disruption{kind: row.kind, what: row.what, deed: row.deed}
		if _, known := marked[row.kind]; !known || seen[key] {
			t.Errorf("row %+v is of no known kind, or there twice", row)
		}
		seen[key] = true
	}
}
