package zone

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
