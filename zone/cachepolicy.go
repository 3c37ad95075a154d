package zone

import "slices"

// maxQueryParameters is how many query parameters a cache policy may name.
const maxQueryParameters = 64

// CachePolicy is a zone's default for what the cache stores; rules of the cache phase refine it. The zero
// value follows RFC 9111 alone.
type CachePolicy struct {
	// Disabled turns the cache off for the zone.
	Disabled bool `json:"disabled,omitzero"`
	// DefaultTTL and MaxTTL bound freshness when the origin says nothing, and at most.
	DefaultTTL           Duration `json:"default_ttl,omitzero"`
	MaxTTL               Duration `json:"max_ttl,omitzero"`
	StaleWhileRevalidate Duration `json:"stale_while_revalidate,omitzero"`
	StaleIfError         Duration `json:"stale_if_error,omitzero"`
	// QueryMode is all (default), none, include or exclude: which query parameters are part of the key.
	// QueryParameters are the names that include or exclude speak of, sorted, at most 64.
	QueryMode       string   `json:"query_mode,omitempty"`
	QueryParameters []string `json:"query_parameters,omitempty"`
	// StoreSetCookie stores answers that carry Set-Cookie, without that header.
	StoreSetCookie bool `json:"store_set_cookie,omitzero"`
}

// Normalize returns c in normal form, or all that is wrong with it, joined. Times are whole seconds, at
// most 366 days.
func (c CachePolicy) Normalize() (CachePolicy, error) {
	var bad problems
	checkAge(&bad, "default_ttl", c.DefaultTTL)
	checkAge(&bad, "max_ttl", c.MaxTTL)
	checkAge(&bad, "stale_while_revalidate", c.StaleWhileRevalidate)
	checkAge(&bad, "stale_if_error", c.StaleIfError)
	if c.MaxTTL != 0 && c.DefaultTTL > c.MaxTTL {
		bad.addf("default_ttl %s is over max_ttl %s", c.DefaultTTL, c.MaxTTL)
	}
	names := len(c.QueryParameters)
	switch c.QueryMode {
	case "", "all", "none":
		if names > 0 {
			bad.addf("query_parameters are for query_mode include or exclude")
		}
	case "include", "exclude":
		if names == 0 {
			bad.addf("query_parameters are missing; query_mode %s needs them", c.QueryMode)
		}
	default:
		bad.addf("query_mode %s: use all, none, include or exclude", quote(c.QueryMode))
	}
	zeroDefault(&c.QueryMode, "all")
	c.QueryParameters = sortedUnique(c.QueryParameters)
	if len(c.QueryParameters) > maxQueryParameters {
		bad.addf("query_parameters: there are %d, the most is %d", len(c.QueryParameters), maxQueryParameters)
	}
	if slices.Contains(c.QueryParameters, "") {
		bad.addf("query_parameters: one is empty")
	}
	for _, s := range c.QueryParameters {
		bad.add(checkText(s, "query parameter "+quote(s), 256))
	}
	if err := bad.err(); err != nil {
		return CachePolicy{}, err
	}
	return c, nil
}
