package host

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/perzone"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// Defaults of an EdgeConfig.
const (
	// DefaultPollWait is how long a node asks the control plane to hold a poll.
	DefaultPollWait = 50 * time.Second
	// maxServiceAddresses bounds, for each family, what a proxied name answers with: that must fit into a
	// small DNS answer.
	maxServiceAddresses = 16
	// MinCacheMemory is the least that a cache may take.
	MinCacheMemory zone.Size = cache.MinMemory
)

// EdgeConfig is everything that an edge node is told. APIURL, Token, PublicKeys and StateDir are required.
type EdgeConfig struct {
	// APIURL (GUARDYN_API_URL) is the control plane, Token (GUARDYN_NODE_TOKEN) the node's own credential.
	APIURL, Token string
	// PublicKeys (GUARDYN_CONFIG_PUBLIC_KEYS) are the keys that a configuration may be signed with.
	PublicKeys seal.TrustedKeys
	// StateDir (GUARDYN_STATE_DIR) keeps the installed configuration and what protects against replay. One
	// process at a time uses it.
	StateDir string
	// DNSAddr (GUARDYN_DNS_LISTEN), HTTPAddr (GUARDYN_HTTP_LISTEN) and AdminAddr (GUARDYN_ADMIN_LISTEN) are
	// host:port; port 0 takes a free one. The admin address answers anybody who reaches it: keep it on loopback
	// or a private network.
	DNSAddr, HTTPAddr, AdminAddr string
	// HTTPSAddr (GUARDYN_HTTPS_LISTEN) is the same for HTTPS; empty: it is not served.
	HTTPSAddr string
	// SecretIdentities (GUARDYN_SECRET_IDENTITIES) open the private keys of TLS hosts. A node refuses a configuration with a key
	// that none of them opens.
	SecretIdentities Identities
	// ServiceAddresses (GUARDYN_EDGE_ADDRESSES) are what proxied names answer with, at most 16 of a family.
	ServiceAddresses []netip.Addr
	// AllowedOrigins (GUARDYN_ALLOWED_ORIGINS) are ranges that origins may be in although they are private or
	// loopback.
	AllowedOrigins []netip.Prefix
	// RateLimitExempt (GUARDYN_RATE_LIMIT_EXEMPT) are clients that DNS response-rate limiting passes over.
	RateLimitExempt []netip.Prefix
	// NSID (GUARDYN_DNS_NSID) is what tells this node apart in DNS answers to clients that ask (RFC 5001), at most
	// 128 bytes; empty tells nothing. VersionClients (GUARDYN_DNS_VERSION_CLIENTS) are who may ask CHAOS TXT
	// version.guardyn. for the version that is served.
	NSID           string
	VersionClients []netip.Prefix
	// Interval between polls, default nodeproto.DefaultInterval; Wait of a long poll, default
	// DefaultPollWait, negative for none.
	Interval, Wait time.Duration
	// FunctionMemory (GUARDYN_FUNCTION_MEMORY) is how much memory all calls of functions together may hold, default 1 GiB.
	FunctionMemory zone.Size
	// CacheMemory (GUARDYN_CACHE_MEMORY) is what cached answers may take, MinCacheMemory at least; 0: cache.DefaultMemory, negative:
	// nothing is cached.
	CacheMemory zone.Size
	// AccessLog (GUARDYN_ACCESS_LOG) takes a JSON record of each request that the zone's log_sampling picks: "stdout", or
	// a file that is appended to; empty: there is none.
	AccessLog string
	// TraceEndpoint (GUARDYN_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT) is the base URL of an OpenTelemetry collector that takes the
	// node's part in the trace of each rollout, and traces of the requests that zones' trace_sampling picks; empty: none does.
	TraceEndpoint string
	// MetricsZones (GUARDYN_METRICS_ZONES) are the zones that metrics name, at most perzone.Max; the zero value: none.
	MetricsZones perzone.Selection
	// Logger discards when nil. Now is time.Now when nil.
	Logger *slog.Logger
	Now    func() time.Time
}

func (c EdgeConfig) withDefaults() (EdgeConfig, error) {
	c.Interval = cmp.Or(c.Interval, nodeproto.DefaultInterval)
	c.Wait = max(0, cmp.Or(c.Wait, DefaultPollWait))
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	var errs []error
	for name, value := range map[string]string{"address of the control plane": c.APIURL, "node token": c.Token, "state directory": c.StateDir} {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s is not set", name))
		}
	}
	if len(c.PublicKeys.IDs()) == 0 {
		errs = append(errs, errors.New("no public key is trusted: there is no mode in which an unsigned snapshot is accepted"))
	}
	var v4, v6 int
	for _, a := range c.ServiceAddresses {
		if a.Is4() {
			v4++
		} else {
			v6++
		}
	}
	if v4 > maxServiceAddresses || v6 > maxServiceAddresses {
		errs = append(errs, fmt.Errorf("%d IPv4 and %d IPv6 service addresses: at most %d of each", v4, v6, maxServiceAddresses))
	}
	if c.CacheMemory > 0 && c.CacheMemory < MinCacheMemory {
		errs = append(errs, fmt.Errorf("memory of the cache is %s: at least %s, or none", c.CacheMemory, MinCacheMemory))
	}
	if n := len(c.MetricsZones.Names); n > perzone.Max {
		errs = append(errs, fmt.Errorf("metrics of %d zones: at most %d", n, perzone.Max))
	}
	return c, errors.Join(errs...)
}
