package cli

import (
	"fmt"
	"slices"
	"strings"
)

const defaultAPIURL = "http://127.0.0.1:8080"

// The variables that gdn reads.
const (
	envAPIURL         = "GUARDYN_API_URL"
	envToken          = "GUARDYN_TOKEN"
	envNodeToken      = "GUARDYN_NODE_TOKEN"
	envSigningKey     = "GUARDYN_CONFIG_SIGNING_KEY"
	envPublicKeys     = "GUARDYN_CONFIG_PUBLIC_KEYS"
	envDatabaseURL    = "GUARDYN_DATABASE_URL"
	envListen         = "GUARDYN_LISTEN"
	envTLSCert        = "GUARDYN_TLS_CERT"
	envTLSKey         = "GUARDYN_TLS_KEY"
	envStateDir       = "GUARDYN_STATE_DIR"
	envDNSListen      = "GUARDYN_DNS_LISTEN"
	envHTTPListen     = "GUARDYN_HTTP_LISTEN"
	envHTTPSListen    = "GUARDYN_HTTPS_LISTEN"
	envAdminListen    = "GUARDYN_ADMIN_LISTEN"
	envEdgeAddresses  = "GUARDYN_EDGE_ADDRESSES"
	envAllowedOrigins = "GUARDYN_ALLOWED_ORIGINS"
	envRateExempt     = "GUARDYN_RATE_LIMIT_EXEMPT"
	envNSID           = "GUARDYN_DNS_NSID"
	envVersionClients = "GUARDYN_DNS_VERSION_CLIENTS"
	envRecipient      = "GUARDYN_SECRET_RECIPIENT"
	envIdentities     = "GUARDYN_SECRET_IDENTITIES"
	envAccessLog      = "GUARDYN_ACCESS_LOG"
	envOTLPEndpoint   = "GUARDYN_OTLP_ENDPOINT"
	envMetricsZones   = "GUARDYN_METRICS_ZONES"
	envCacheMemory    = "GUARDYN_CACHE_MEMORY"
	envFunctionMemory = "GUARDYN_FUNCTION_MEMORY"

	envBridgeSource   = "GUARDYN_BRIDGE_SOURCE"
	envBridgeRollouts = "GUARDYN_BRIDGE_ROLLOUT_STORE"
	envBridgeLeases   = "GUARDYN_BRIDGE_LEASE_STORE"
	envBridgeToken    = "GUARDYN_BRIDGE_TOKEN"
	envBridgeURL      = "GUARDYN_BRIDGE_URL"
)

// envOTelEndpoint is what programs with OpenTelemetry read; envOTLPEndpoint comes before it.
const envOTelEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

// knownEnviron is every variable with the prefix GUARDYN_ that may be set: what gdn reads, and what gdn
// dev writes for people and scripts.
func knownEnviron() []string {
	known := []string{
		envAPIURL, envToken, envNodeToken, envSigningKey, envPublicKeys, envDatabaseURL, envListen, envTLSCert, envTLSKey,
		envStateDir, envDNSListen, envHTTPListen, envAdminListen, envEdgeAddresses, envAllowedOrigins, envRateExempt,
		envNSID, envVersionClients, envOTLPEndpoint, envHTTPSListen, envRecipient, envIdentities, envAccessLog, envMetricsZones,
		envCacheMemory, envFunctionMemory,
		envBridgeSource, envBridgeRollouts, envBridgeLeases, envBridgeToken, envBridgeURL,
		envDemoOrigin, envDemoOrigin2, envDemoCA,
	}
	for _, node := range []string{"GUARDYN_NODE1_", "GUARDYN_NODE2_"} {
		known = append(known, node+"DNS", node+"HTTP", node+"HTTPS", node+"ADMIN")
	}
	return known
}

// checkEnviron refuses a variable that nothing reads: a misspelt one would silently do nothing.
func (a *app) checkEnviron() error {
	known := knownEnviron()
	var unknown []string
	for _, kv := range a.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "GUARDYN_") && !strings.HasPrefix(name, "GUARDYN_TEST_") && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	slices.Sort(known)
	return hint(fmt.Errorf("unknown environment variable %s", strings.Join(slices.Compact(unknown), ", ")),
		"unset it, or correct its name; gdn knows %s", strings.Join(known, ", "))
}

// setting returns a flag's value when it was given, else the variable's, else fallback.
func (a *app) setting(flag, variable, fallback string) string {
	if flag != "" {
		return flag
	}
	if v := a.Getenv(variable); v != "" {
		return v
	}
	return fallback
}
