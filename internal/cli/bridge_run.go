package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	bridgehost "github.com/guardyn-edge/guardyn/bridge/host"
	datapath "github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/internal/host"
)

// bridgeCloseTimeout is beyond what the document's own shutdown_timeout allows.
const bridgeCloseTimeout = document.MaxTimeout + stopTimeout

func (a *app) bridgeRunCommand() *cobra.Command {
	var cfg host.BridgeConfig
	var initial, baseline string
	cmd := &cobra.Command{
		Use:   "bridge --source URL",
		Short: "Run a member of a message bridge: routes between MQTT, NATS and HTTP",
		Long: `Run a member of a message bridge: routes between MQTT, NATS and HTTP, as the document in its source says. The flags are
the process's own settings; they are in no document.

  source          file:PATH, postgres://USER@HOST/DATABASE or dynamodb:TABLE
  rollout store   sqlite:PATH, postgres://…, dynamodb:TABLE or memory:; every member of a coordinated cohort has the same
  lease store     likewise; every member of a cluster with exclusive sessions has the same

dynamodb:TABLE takes ?region=NAME and ?endpoint=URL; what else it needs is what every AWS program reads. URLs that hold
passwords are better put into the environment: ` + envBridgeSource + `, ` + envBridgeRollouts + ` and ` + envBridgeLeases + `.

The token that its control surface asks for is in ` + envBridgeToken + ` or --token-file; without one nobody can change
anything by it. docs/guide/bridge.md tells which rung of the ladder to choose.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Source = a.setting(cfg.Source, envBridgeSource, "")
			cfg.RolloutStore = a.setting(cfg.RolloutStore, envBridgeRollouts, "")
			cfg.LeaseStore = a.setting(cfg.LeaseStore, envBridgeLeases, "")
			if cfg.Source == "" {
				return usagef(cmd, "gdn bridge needs --source")
			}
			cfg.Cohort, cfg.Baseline = cmp.Or(cfg.Cohort, cfg.Name), document.Digest(baseline)
			cfg.Token = a.Getenv(envBridgeToken)
			if a.tokenFile != "" {
				var err error
				if cfg.Token, err = a.fileToken(); err != nil {
					return err
				}
			}
			if initial != "" {
				data, _, err := a.readDocument(initial, document.Parse)
				if err != nil {
					return err
				}
				cfg.Initial = data
			}
			cfg.LogLevel = new(slog.LevelVar)
			cfg.Logger = slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
			cfg.Runner = newBridgeRunner
			return runBridge(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Source, "source", "", "`URL` of the document's home (default $"+envBridgeSource+")")
	f.StringVar(&cfg.Member, "member-id", "", "this member's `ID` in the roster; the same after every restart")
	f.StringVar(&cfg.RolloutStore, "rollout-store", "", "`URL` of the rollout store (default $"+envBridgeRollouts+")")
	f.StringVar(&cfg.LeaseStore, "lease-store", "", "`URL` of the store of leases (default $"+envBridgeLeases+")")
	f.StringVar(&cfg.Name, "name", "bridge", "the bridge's `NAME`: of its document in a source for several, and of its leases")
	f.StringVar(&cfg.Cohort, "cohort", "", "the cohort's `NAME` in the rollout store; another one is a new cohort (default: --name)")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:9190", "`ADDRESS` of the control surface: configuration, health and metrics")
	f.StringVar(&cfg.StateDir, "state-dir", "./guardyn-bridge", "`DIRECTORY` in which a member of a cohort remembers what it has confirmed")
	f.StringVar(&cfg.SecretsDir, "secrets-dir", ".", "`DIRECTORY` that the document's files are relative to")
	f.StringVar(&initial, "initial", "", "create the document from `FILE`, at version 1, when the source has none")
	f.StringVar(&baseline, "baseline-digest", "", "the `DIGEST` of the document that the cohort begins with; gdn bridge validate prints it")
	return cmd
}

// newBridgeRunner makes the data path.
func newBridgeRunner(p host.BridgeParts) bridge.Runner {
	return datapath.New(datapath.Options{Member: p.Member, Origin: p.Name, Secrets: session.Secrets(p.SecretsDir), Leases: p.Leases, Logger: p.Logger})
}

func runBridge(ctx context.Context, cfg host.BridgeConfig) error {
	b, err := host.StartBridge(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Logger.Info("bridge answers", "control", b.Addr())
	ended := make(chan struct{})
	go func() {
		_ = b.Wait() // Close returns the same
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), bridgeCloseTimeout)
	defer cancel()
	err = b.Close(closing)
	<-ended
	if errors.Is(err, bridgehost.ErrReplace) {
		return hint(err, "start it again; it waits until the source has a document")
	}
	return err
}
