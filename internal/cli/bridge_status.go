package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/bridge/host"
	processes "github.com/guardyn-edge/guardyn/internal/host"
)

func (a *app) bridgeStatusCommand() *cobra.Command {
	var url string
	return bridgeURLFlag(a.jsonFlag(&cobra.Command{
		Use:   "status",
		Short: "Show what a member of a bridge runs, and how its sessions and routes do",
		Long:  `Show what a member of a bridge runs, what its source holds, its part in rollouts, and how its sessions and routes do.`,
		Args:  args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.bridgeClient(url)
			if err != nil {
				return err
			}
			s, err := c.Status(cmd.Context())
			if err != nil {
				return bridgeError(err)
			}
			if a.json {
				return a.printJSON(s)
			}
			return a.printBridgeStatus(s)
		},
	}), &url)
}

func (a *app) printBridgeStatus(s host.Status) error {
	line := func(name, format string, args ...any) { a.printf("%-10s %s\n", name, fmt.Sprintf(format, args...)) }
	if s.Member != "" {
		line("member", "%s", s.Member)
	}
	ready := "not ready"
	if s.Ready {
		ready = "ready"
	}
	line("state", "%s, %s", s.Phase, ready)
	if s.Digest != "" {
		line("runs", "version %d (%s), %s", s.Version, s.Rung, s.Digest)
	}
	held := string(s.Source.State)
	if s.Source.Digest != "" {
		held = fmt.Sprintf("version %d, %s", s.Source.Version, s.Source.Digest)
	}
	line("source", "%s: %s", s.Source.Home, held)
	if s.Source.Reason != "" {
		line("", "%s: %s", s.Source.Verb, s.Source.Reason)
	}
	if r := s.Rollout; r != nil {
		a.printBridgeRollout(line, *r)
	}
	for _, d := range s.Degraded {
		line("degraded", "%s", d)
	}
	if len(s.Sessions) > 0 {
		a.printf("\n")
		t := &table{head: []string{"SESSION", "KIND", "STATE", "SINCE", "CONVERGED"}}
		for _, x := range s.Sessions {
			t.row(x.ID, string(x.Kind), string(x.State), moment(x.Since), told(x.Converged, x.Detail))
		}
		if err := a.printTable(t, nil); err != nil {
			return err
		}
	}
	if len(s.Routes) == 0 {
		return nil
	}
	a.printf("\n")
	t := &table{head: []string{"ROUTE", "DELIVERED", "REFUSED", "IN FLIGHT", "CONVERGED"}}
	for _, x := range s.Routes {
		t.row(x.ID, fmt.Sprint(x.Delivered), fmt.Sprint(x.Refused), fmt.Sprint(x.InFlight), told(x.Converged, x.Detail))
	}
	return a.printTable(t, nil)
}

func (a *app) printBridgeRollout(line func(name, format string, args ...any), r host.RolloutStatus) {
	if r.Generation > 0 {
		parts := []string{fmt.Sprintf("generation %d, version %d, %s", r.Generation, r.Version, r.State)}
		for _, x := range []struct {
			is   bool
			word string
		}{{r.Acked, "acked"}, {r.Nacked, "nacked"}, {r.ConfirmPending, "on trial"}, {r.Converged, "converged"}, {r.Stale, "the store does not answer"}} {
			if x.is {
				parts = append(parts, x.word)
			}
		}
		line("rollout", "%s", strings.Join(parts, "; "))
	}
	if r.BaselineOutcome != "" {
		line("baseline", "%s: %s", r.BaselineOutcome, r.BaselineReason)
	}
	if r.TerminalReason != "" {
		line("gave up", "generation %d: %s", r.TerminalGeneration, r.TerminalReason)
	}
}

// told is yes, or no with the reason.
func told(yes bool, why string) string {
	switch {
	case yes:
		return "yes"
	case why == "":
		return "no"
	}
	return "no: " + why
}

func (a *app) bridgeMigrateCommand() *cobra.Command {
	var source, rolloutStore, leaseStore string
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Make the tables of a bridge's source and stores, or bring them to this build's version",
		Long: `Make the tables of a bridge's source and stores, or bring them to this build's version. It can be repeated, and by several at
once. What is not given is left out; files and memory need nothing.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, rolloutStore, leaseStore = a.setting(source, envBridgeSource, ""), a.setting(rolloutStore, envBridgeRollouts, ""), a.setting(leaseStore, envBridgeLeases, "")
			if source+rolloutStore+leaseStore == "" {
				return usagef(cmd, "name at least one of --source, --rollout-store and --lease-store")
			}
			if err := processes.MigrateBridge(cmd.Context(), source, rolloutStore, leaseStore); err != nil {
				return err
			}
			a.notef("the bridge's tables are up to date\n")
			return nil
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "`URL` of the source (default $"+envBridgeSource+")")
	cmd.Flags().StringVar(&rolloutStore, "rollout-store", "", "`URL` of the rollout store (default $"+envBridgeRollouts+")")
	cmd.Flags().StringVar(&leaseStore, "lease-store", "", "`URL` of the store of leases (default $"+envBridgeLeases+")")
	return cmd
}
