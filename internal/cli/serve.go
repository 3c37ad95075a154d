package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// stopTimeout bounds how long a process that was told to stop waits for what is under way.
const stopTimeout = 15 * time.Second

func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the control plane",
		Long: `Run the control plane. The environment configures it:

  GUARDYN_DATABASE_URL         sqlite:PATH or postgres://… (default ` + host.DefaultDatabaseURL + `); a SQLite file is
                               made and migrated here, Postgres by gdn migrate
  GUARDYN_LISTEN               address of the API (default ` + host.DefaultListen + `)
  GUARDYN_TLS_CERT, _KEY       PEM files of the API's certificate and key (default: plain HTTP)
  GUARDYN_CONFIG_SIGNING_KEY   secret half of the key that snapshots are signed with; gdn keys generate makes one
  GUARDYN_CONFIG_PUBLIC_KEYS   what nodes trust, comma-separated; an apply refuses to seal what none of these
                               opens (default: the signing key's own public half)
  GUARDYN_ALLOWED_ORIGINS      comma-separated ranges that origins may have although they are private
                               (default: none)
  GUARDYN_SECRET_RECIPIENT     age recipient that gdn tls add seals private keys to; gdn keys identity makes one with the
                               identity that nodes need (default: none)
  GUARDYN_OTLP_ENDPOINT        base URL of an OpenTelemetry collector that takes a trace of each rollout by OTLP over
                               HTTP, as http://127.0.0.1:4318 (default: OTEL_EXPORTER_OTLP_ENDPOINT, then none)`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := a.controlConfig()
			if err != nil {
				return err
			}
			control, err := host.StartControl(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return waitAndClose(cmd.Context(), control)
		},
	}
}

func (a *app) controlConfig() (host.ControlConfig, error) {
	cfg := host.ControlConfig{
		DatabaseURL: a.Getenv(envDatabaseURL),
		Listen:      a.Getenv(envListen),
		TLSCert:     a.Getenv(envTLSCert),
		TLSKey:      a.Getenv(envTLSKey),
		Logger:      a.logger(),

		SecretRecipient: a.Getenv(envRecipient),

		TraceEndpoint: a.setting(a.Getenv(envOTLPEndpoint), envOTelEndpoint, ""),
	}
	secret := a.Getenv(envSigningKey)
	if secret == "" {
		return cfg, hint(fmt.Errorf("%s is not set", envSigningKey), "gdn keys generate makes a key and prints the line to set")
	}
	var err error
	if cfg.SigningKey, err = seal.ParseSigningKey(secret); err != nil {
		return cfg, fmt.Errorf("%s: %w", envSigningKey, err)
	}
	if list := a.Getenv(envPublicKeys); list != "" {
		if cfg.TrustedKeys, err = seal.ParseTrustedKeys(list); err != nil {
			return cfg, fmt.Errorf("%s: %w", envPublicKeys, err)
		}
	}
	cfg.AllowedOrigins, err = a.prefixes(envAllowedOrigins)
	return cfg, err
}

// logger logs to standard error, one line each, with control characters quoted.
func (a *app) logger() *slog.Logger { return slog.New(slog.NewTextHandler(a.Stderr, nil)) }

// prefixes reads a comma-separated list of addresses and prefixes from a variable.
func (a *app) prefixes(variable string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for i, text := range splitList(a.Getenv(variable)) {
		p, err := zone.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", variable, i+1, err)
		}
		out = append(out, p)
	}
	return out, nil
}

func splitList(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	items := strings.Split(s, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// running is a part of a process: Wait returns when it ends by itself, Close ends it.
type running interface {
	Wait() error
	Close(ctx context.Context) error
}

// waitAndClose waits until ctx is done or a part ends, then closes all of them, last first.
func waitAndClose(ctx context.Context, parts ...running) error {
	ended := make(chan error, len(parts))
	for _, p := range parts {
		go func() { ended <- p.Wait() }()
	}
	var err error
	waiting := len(parts)
	select {
	case <-ctx.Done():
	case err = <-ended:
		waiting--
		if err == nil {
			err = errors.New("a part of the process ended by itself")
		}
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for i := len(parts) - 1; i >= 0; i-- {
		err = errors.Join(err, parts[i].Close(grace))
	}
	for range waiting {
		err = errors.Join(err, <-ended)
	}
	return err
}
