package host

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/seal"
)

// Defaults of a ControlConfig.
const (
	DefaultDatabaseURL = "sqlite:./guardyn.db"
	DefaultListen      = "127.0.0.1:8080"
	DefaultMaxConns    = 20_000
	DefaultLease       = 10 * time.Second
)

// ControlConfig is everything that a control plane is told. SigningKey is required.
type ControlConfig struct {
	// DatabaseURL (GUARDYN_DATABASE_URL) is sqlite:PATH or postgres://…; DefaultDatabaseURL when empty.
	DatabaseURL string
	// Migrate brings a Postgres schema to this build's version at the start, which otherwise is the business
	// of gdn migrate. A SQLite file is always migrated, and created when there is none.
	Migrate bool
	// SigningKey (GUARDYN_CONFIG_SIGNING_KEY) seals snapshots: an Ed25519 seed, 64 hex digits.
	SigningKey seal.SigningKey
	// TrustedKeys (GUARDYN_CONFIG_PUBLIC_KEYS) are the public keys that nodes were given, separated by
	// commas, when this process shall know them: what is sealed must open with one. By default the signing
	// key's own public half alone.
	TrustedKeys seal.TrustedKeys
	// SecretRecipient (GUARDYN_SECRET_RECIPIENT) is the age recipient (age1…) that private keys are sealed to before they come here;
	// empty: members are told that there is none.
	SecretRecipient string
	// Listen (GUARDYN_LISTEN) is where the API listens, host:port; DefaultListen when empty. Port 0 takes a
	// free one.
	Listen string
	// AllowedOrigins (GUARDYN_ALLOWED_ORIGINS) are prefixes, separated by commas, that origins may have
	// although they are private or loopback.
	AllowedOrigins []netip.Prefix
	// TLSCert and TLSKey (GUARDYN_TLS_CERT, GUARDYN_TLS_KEY) are files in PEM, both or none; they are read
	// at the start. Without them the API is plain HTTP, which belongs behind a proxy or on loopback.
	TLSCert, TLSKey string
	// MaxConns bounds connections; one beyond it waits to be accepted. DefaultMaxConns when 0.
	MaxConns int
	// Lease is how long a coordinator of rollouts that died is waited for, and how long its successor waits again before it decides,
	// barrier.MinLease to barrier.MaxLease; DefaultLease when 0.
	Lease time.Duration
	// TraceEndpoint (GUARDYN_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT) is the base URL of an OpenTelemetry collector that takes a
	// trace of each rollout; empty: none does.
	TraceEndpoint string
	// Logger discards when nil. Now is time.Now when nil.
	Logger *slog.Logger
	Now    func() time.Time
}

// withDefaults checks what can be checked without the outside and fills in defaults.
func (c ControlConfig) withDefaults() (ControlConfig, error) {
	if c.DatabaseURL == "" {
		c.DatabaseURL = DefaultDatabaseURL
	}
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.MaxConns == 0 {
		c.MaxConns = DefaultMaxConns
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Lease < barrier.MinLease || c.Lease > barrier.MaxLease {
		return c, fmt.Errorf("a lease of %s: want %s to %s", c.Lease, barrier.MinLease, barrier.MaxLease)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return c, errors.New("the certificate of the API and its key go together: GUARDYN_TLS_CERT and GUARDYN_TLS_KEY, both or none")
	}
	if c.SecretRecipient != "" {
		if err := CheckRecipient(c.SecretRecipient); err != nil {
			return c, fmt.Errorf("GUARDYN_SECRET_RECIPIENT: %w", err)
		}
	}
	if c.MaxConns < 1 {
		return c, fmt.Errorf("at most %d connections: want 1 or more", c.MaxConns)
	}
	return c, nil
}
