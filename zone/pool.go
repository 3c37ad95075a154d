package zone

// DefaultPool names the pool that serves the proxied names of its zone that no rule and no load balancer
// sends elsewhere.
const DefaultPool = "default"

// Scheme is how a node speaks to an origin.
type Scheme string

// The schemes. SchemeHTTP is the default. By SchemeHTTPS a node asks for HTTP/2 when the request is gRPC.
const (
	SchemeHTTP  Scheme = "http"
	SchemeHTTPS Scheme = "https"
	// SchemeH2C is HTTP/2 without TLS, by prior knowledge (RFC 9113 §3.3).
	SchemeH2C Scheme = "h2c"
)

// Pool is a named set of origins that serve the same thing. Normal form: origins sorted by name.
type Pool struct {
	Origins []Origin `json:"origins,omitempty"`
	// Health is nil for no check; an empty HealthCheck is one with all defaults.
	Health *HealthCheck `json:"health,omitzero"`
	// Policy by which a request picks an origin; default round_robin.
	Policy Policy `json:"policy,omitempty"`
	// SlowStart is over how long the weight of an origin that is back from being unhealthy or ejected rises
	// to its own, 1s to 1h; zero: at once.
	SlowStart Duration `json:"slow_start,omitzero"`
	// OutlierDetection is nil for one with all defaults.
	OutlierDetection *OutlierDetection `json:"outlier_detection,omitzero"`
}

// OutlierDetection is how a node takes an origin out of its pool for a while because requests to it fail: no
// connection, no answer in time or none to its end, or a status of FailureStatus. The last usable origin of a pool always stays.
type OutlierDetection struct {
	// Enabled is true when absent.
	Enabled *bool `json:"enabled,omitempty"`
	// ConsecutiveFailures that eject an origin, 1 to 1000, default 5.
	ConsecutiveFailures int `json:"consecutive_failures,omitzero"`
	// FailureStatus lists the statuses, 500 to 599, that are failures when the origin answers them; nil means 502 and 504, empty none.
	FailureStatus []int `json:"failure_status,omitzero"`
	// BaseEjectionTime times the number of ejections is how long one lasts, 1s to 1h, default 30s.
	BaseEjectionTime Duration `json:"base_ejection_time,omitzero"`
	// MaxEjectionPercent of a pool's origins may be ejected at one time, but always one; 1 to 100, default 50.
	MaxEjectionPercent int `json:"max_ejection_percent,omitzero"`
}

// Origin is one server behind the node.
type Origin struct {
	Name string `json:"name"`
	// Address is host:port; the host is an address (RFC 5952, IPv6 in brackets) or a host name in normal
	// form. A missing port reads as the scheme's.
	Address string `json:"address"`
	Scheme  Scheme `json:"scheme,omitempty"`
	// Weight 1 to 1000, default 1.
	Weight int `json:"weight,omitzero"`
	// Enabled is true when absent. A disabled origin stays in rows and never reaches a snapshot.
	Enabled *bool `json:"enabled,omitempty"`
	// HostHeader replaces the Host that the origin sees; default: the client's.
	HostHeader string `json:"host_header,omitempty"`
	// SNI replaces the TLS server name; default: HostHeader, then the request's host.
	SNI string `json:"sni,omitempty"`
}

// HealthCheck is how a node finds out whether an origin of a pool works.
type HealthCheck struct {
	// Type is http (default) or tcp.
	Type string `json:"type,omitempty"`
	// Path asked for by http; default "/".
	Path string `json:"path,omitempty"`
	// Interval 1s to 1h, default 10s. Timeout 100ms to Interval, default 5s or Interval when that is less.
	Interval Duration `json:"interval,omitzero"`
	Timeout  Duration `json:"timeout,omitzero"`
	// HealthyThreshold and UnhealthyThreshold: consecutive results that change the verdict, 1 to 10,
	// defaults 2 and 3.
	HealthyThreshold   int `json:"healthy_threshold,omitzero"`
	UnhealthyThreshold int `json:"unhealthy_threshold,omitzero"`
	// ExpectedStatus lists the statuses that count as healthy; empty means 200 to 399.
	ExpectedStatus []int `json:"expected_status,omitempty"`
}

// Policy is how a request picks among origins or pools.
type Policy string

// The policies; round_robin is weighted and the default.
const (
	PolicyRoundRobin Policy = "round_robin"
	PolicyLeastConn  Policy = "least_connections"
	PolicyRandomTwo  Policy = "random_two_choices"
	PolicyClientIP   Policy = "client_ip_hash"
)

// LoadBalancer gives a host name ordered pools: the first that has a healthy origin serves.
type LoadBalancer struct {
	Pools []string `json:"pools"`
	// Fallback pool, used when no pool above has a healthy origin, whatever its own health.
	Fallback string `json:"fallback,omitempty"`
	// Sticky sessions, when not nil.
	Sticky *Sticky `json:"sticky,omitzero"`
}

// Sticky keeps a client on one origin by a cookie.
type Sticky struct {
	// Cookie name (RFC 6265 §4.1.1 token), default guardyn_origin.
	Cookie string `json:"cookie,omitempty"`
	// TTL of the cookie, default 1h, at most 168h.
	TTL Duration `json:"ttl,omitzero"`
}
