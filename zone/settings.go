package zone

// Settings are a zone's switches. The zero value is the default of every one; a default that is written
// out reads as the zero value.
type Settings struct {
	// TraceSampling is the share of requests that are traced; default 1.00%. TraceSampling holds the
	// difference that JSON shows: nil is the default.
	TraceSampling *Percent `json:"trace_sampling,omitempty"`
	// LogSampling is the share of requests in the access log; default 100.00%.
	LogSampling *Percent `json:"log_sampling,omitempty"`
	// VersionHeader adds x-guardyn-version to HTTP answers.
	VersionHeader bool `json:"version_header,omitzero"`
	// AlwaysHTTPS redirects plain HTTP.
	AlwaysHTTPS bool `json:"always_https,omitzero"`
	// HSTS is max-age of Strict-Transport-Security (RFC 6797); zero sends none.
	HSTS                  Duration `json:"hsts,omitzero"`
	HSTSIncludeSubdomains bool     `json:"hsts_include_subdomains,omitzero"`
	// TLSMinVersion is 1.2 (default) or 1.3.
	TLSMinVersion string `json:"tls_min_version,omitempty"`
	// TLSCiphers lists IANA names of TLS 1.2 suites; empty means the node's safe default.
	TLSCiphers []string `json:"tls_ciphers,omitempty"`
	// TrustedProxies are prefixes whose forwarding headers are believed, sorted.
	TrustedProxies []string `json:"trusted_proxies,omitempty"`
	// ErrorPages are HTML bodies by status (400 to 599) that replace the node's own, at most 64 KiB each.
	ErrorPages map[string]string `json:"error_pages,omitempty"`
	// SOA fields other than the serial, which follows the generation.
	SOA SOA `json:"soa,omitzero"`
}

// SOA holds what a zone says of itself in its SOA record (RFC 1035 §3.3.13), less the serial. Zero fields
// take the default.
type SOA struct {
	// MName defaults to the first NS target at the apex, else "ns." + the zone's name; RName to
	// "hostmaster." + the zone's name.
	MName Name    `json:"mname,omitzero"`
	RName Mailbox `json:"rname,omitzero"`
	// Seconds: Refresh 7200, Retry 3600, Expire 1209600, Minimum 300 (negative caching, RFC 2308), TTL 3600.
	Refresh uint32 `json:"refresh,omitzero"`
	Retry   uint32 `json:"retry,omitzero"`
	Expire  uint32 `json:"expire,omitzero"`
	Minimum uint32 `json:"minimum,omitzero"`
	TTL     uint32 `json:"ttl,omitzero"`
}
