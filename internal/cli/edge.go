package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/edge/perzone"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

func (a *app) edgeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "edge",
		Short: "Run an edge node: DNS and HTTP from the published snapshot",
		Long: `Run an edge node: DNS and HTTP from the published snapshot. The environment configures it:

  GUARDYN_API_URL              the control plane (default ` + defaultAPIURL + `)
  GUARDYN_NODE_TOKEN           the node's own token (or --token-file); gdn node add makes one
  GUARDYN_CONFIG_PUBLIC_KEYS   public keys that snapshots must be signed with, comma-separated
  GUARDYN_STATE_DIR            directory that the node keeps its snapshot in (default ./guardyn-node)
  GUARDYN_DNS_LISTEN           address of DNS over UDP and TCP (default :53)
  GUARDYN_HTTP_LISTEN          address of HTTP (default :80)
  GUARDYN_HTTPS_LISTEN         address of HTTPS, as :443 (default: HTTPS is not served)
  GUARDYN_SECRET_IDENTITIES    age identities that open the private keys of TLS hosts: a file with one on each line, or
                               themselves, comma-separated; gdn keys identity makes one (default: none)
  GUARDYN_ADMIN_LISTEN         address of /healthz, /readyz and /metrics (default 127.0.0.1:9090)
  GUARDYN_EDGE_ADDRESSES       addresses that proxied names answer with, comma-separated (default: none, so that they have no
                               address in DNS)
  GUARDYN_ALLOWED_ORIGINS      ranges that origins may have although they are private (default: none)
  GUARDYN_RATE_LIMIT_EXEMPT    ranges of resolvers that DNS response-rate limiting passes over (default: none)
  GUARDYN_DNS_NSID             what tells this node apart to DNS clients that ask (RFC 5001; default: nothing)
  GUARDYN_DNS_VERSION_CLIENTS  ranges of clients that may ask CHAOS TXT version.guardyn. (default: none)
  GUARDYN_CACHE_MEMORY         memory that cached answers may take, as 2GiB, 4MiB or more; 0 caches nothing (default 256MiB)
  GUARDYN_FUNCTION_MEMORY      memory that all calls of functions together may hold, as 512MiB (default 1GiB)
  GUARDYN_ACCESS_LOG           stdout, or a file that a JSON record of each request is appended to (default: none)
  GUARDYN_METRICS_ZONES        zones that metrics count one by one, comma-separated, or all: the first 1,000 that are asked
                               for (default: none)
  GUARDYN_OTLP_ENDPOINT        base URL of an OpenTelemetry collector that takes this node's part in the trace of each
                               rollout, as for gdn serve, and traces of the requests that trace_sampling of a zone picks`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.edgeConfig()
			if err != nil {
				return err
			}
			edge, err := host.StartEdge(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			cfg.Logger.Info("edge node serves", "dns", edge.DNSAddr(), "http", edge.HTTPAddr(), "https", edge.HTTPSAddr(), "admin", edge.AdminAddr())
			if len(cfg.ServiceAddresses) == 0 {
				cfg.Logger.Warn("DNS answers proxied names without an address", "set", envEdgeAddresses)
			}
			return waitAndClose(cmd.Context(), edge)
		},
	}
}

func (a *app) edgeConfig() (host.EdgeConfig, error) {
	cfg := host.EdgeConfig{
		APIURL:    a.setting(a.apiURL, envAPIURL, defaultAPIURL),
		StateDir:  a.setting("", envStateDir, "./guardyn-node"),
		DNSAddr:   a.setting("", envDNSListen, ":53"),
		HTTPAddr:  a.setting("", envHTTPListen, ":80"),
		HTTPSAddr: a.Getenv(envHTTPSListen),
		AdminAddr: a.setting("", envAdminListen, "127.0.0.1:9090"),
		NSID:      a.Getenv(envNSID),
		Logger:    a.logger(),
		AccessLog: a.Getenv(envAccessLog),

		TraceEndpoint: a.setting(a.Getenv(envOTLPEndpoint), envOTelEndpoint, ""),
	}
	// Everything that is wrong, together.
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var err error
	cfg.Token, err = a.nodeToken()
	note(err)
	if keys := a.Getenv(envPublicKeys); keys == "" {
		note(hint(fmt.Errorf("%s is not set", envPublicKeys),
			"gdn keys show prints the control plane's; there is no mode in which an unsigned snapshot is accepted"))
	} else if cfg.PublicKeys, err = seal.ParseTrustedKeys(keys); err != nil {
		note(fmt.Errorf("%s: %w", envPublicKeys, err))
	}
	for i, text := range splitList(a.Getenv(envEdgeAddresses)) {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			note(fmt.Errorf("%s: entry %d: %q is not an address", envEdgeAddresses, i+1, text))
			continue
		}
		cfg.ServiceAddresses = append(cfg.ServiceAddresses, addr)
	}
	for name, to := range map[string]*[]netip.Prefix{
		envAllowedOrigins: &cfg.AllowedOrigins, envRateExempt: &cfg.RateLimitExempt, envVersionClients: &cfg.VersionClients,
	} {
		*to, err = a.prefixes(name)
		note(err)
	}
	cfg.MetricsZones, err = metricsZones(a.Getenv(envMetricsZones))
	note(err)
	if text := a.Getenv(envCacheMemory); text != "" {
		switch cfg.CacheMemory, err = zone.ParseSize(text); {
		case err != nil:
			note(fmt.Errorf("%s: %w", envCacheMemory, err))
		case cfg.CacheMemory == 0:
			cfg.CacheMemory = -1 // none
		case cfg.CacheMemory < host.MinCacheMemory:
			note(fmt.Errorf("%s: at least %s is needed, or 0 to cache nothing", envCacheMemory, host.MinCacheMemory))
		}
	}
	if text := a.Getenv(envFunctionMemory); text != "" {
		if cfg.FunctionMemory, err = zone.ParseSize(text); err == nil && cfg.FunctionMemory < 1<<20 {
			err = errors.New("at least 1MiB is needed")
		}
		if err != nil {
			note(fmt.Errorf("%s: %w", envFunctionMemory, err))
		}
	}
	if text := a.Getenv(envIdentities); text != "" {
		if cfg.SecretIdentities, err = host.ParseIdentities(text); err != nil {
			note(fmt.Errorf("%s: %w", envIdentities, err))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return cfg, errors.Join(errs...)
}

// metricsZones reads all, or a list of zones.
func metricsZones(text string) (perzone.Selection, error) {
	if strings.TrimSpace(text) == "all" {
		return perzone.Selection{All: true}, nil
	}
	var names []string
	var errs []error
	for i, entry := range splitList(text) {
		name, err := zone.ParseName(entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: entry %d: want all, or zones: %w", envMetricsZones, i+1, err))
			continue
		}
		names = append(names, name.String())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > perzone.Max {
		errs = append(errs, fmt.Errorf("%s: %d zones, at most %d are counted one by one", envMetricsZones, len(names), perzone.Max))
	}
	return perzone.Selection{Names: names}, errors.Join(errs...)
}

func (a *app) nodeToken() (string, error) {
	if a.tokenFile != "" {
		return a.fileToken()
	}
	// GUARDYN_TOKEN is not asked: it is a person's, whom a node does not speak for.
	token := a.Getenv(envNodeToken)
	if token == "" {
		return "", hint(fmt.Errorf("%s is not set", envNodeToken), "gdn node add NAME registers this node and prints its token once")
	}
	return token, nil
}
