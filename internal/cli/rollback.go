package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

// rollbackFlags are the flags of gdn rollback.
type rollbackFlags struct {
	api.RollbackRequest
	how publishFlags
}

func (a *app) rollbackCommand() *cobra.Command {
	var f rollbackFlags
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "rollback [VERSION]",
		Short: "Make an older snapshot live again",
		Long: `Make an older snapshot live again: VERSION (42 or v42), or without one the version that the live one was made
from.

The plan is printed first, from what is live to that version, and exactly that is activated. Rows are not edited: gdn
plan then shows what the next apply would publish again.

With --dry-run it stops after the plan, with an error when it would be refused, as gdn apply --dry-run.` + rolloutHelp,
		Example: `  gdn rollback --dry-run
  gdn rollback -m "the new rules block the shop" --accept-disruption
  gdn rollback v42`,
		Args: args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if f.Rollout, err = f.how.options(cmd); err != nil {
				return err
			}
			if len(args) == 1 {
				n, err := strconv.ParseUint(strings.TrimPrefix(args[0], "v"), 10, 64)
				if err != nil || n == 0 {
					return usagef(cmd, "%q is not a version; gdn history lists them", args[0])
				}
				f.Version = n
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.rollback(cmd.Context(), c, f)
		},
	})
	flags := cmd.Flags()
	flags.StringVarP(&f.Message, "message", "m", "", "say why, in `TEXT` for the audit log")
	flags.BoolVar(&f.AcceptDisruption, "accept-disruption", false, "go back although that can interrupt traffic")
	flags.BoolVar(&f.DryRun, "dry-run", false, "stop after the plan, and tell whether it would be refused")
	f.how.add(cmd)
	return cmd
}

// rollback prints the plan and goes back. With --json it prints the answer alone, or that of the dry run when that is
// where it stops.
func (a *app) rollback(ctx context.Context, c *api.Client, f rollbackFlags) error {
	trial := f.RollbackRequest
	trial.DryRun = true
	target, err := c.Rollback(ctx, trial)
	if err != nil {
		return err
	}
	refused := target.Plan.Disruptive && !f.AcceptDisruption
	if !a.json {
		if err := a.printPlan(target.Plan, refused); err != nil {
			return err
		}
	} else if f.DryRun || refused {
		if err := a.printJSON(target); err != nil {
			return err
		}
	}
	switch {
	case f.DryRun:
		return nil
	case refused:
		return hint(errors.New("this rollback can interrupt traffic; nothing was activated"),
			"review the lines marked !, then run gdn rollback --accept-disruption")
	}
	f.ExpectedContentHash, f.ExpectedGeneration = target.ContentHash, target.Generation
	result, err := c.Rollback(ctx, f.RollbackRequest)
	if err != nil {
		return a.applyError(err)
	}
	if result.Rollout != nil && f.how.wait {
		return a.waitForRollout(ctx, c, result.Rollout, f.how, func(r *api.Rollout) error {
			result.Rollout = r
			return a.printJSON(result)
		})
	}
	if a.json {
		err = a.printJSON(result)
	} else if result.Rollout != nil {
		a.printProposed(result.Rollout, false)
	} else {
		a.printf("\n✓ rolled back to v%d (generation %d) — %d zone(s)\n", result.Version, result.Generation, result.Zones)
		if result.Resealed {
			a.printf("  sealed anew: its key was not the present one\n")
		}
	}
	if err == nil && f.how.wait && result.RolledBack {
		err = a.waitForNodes(ctx, c, published{result.Version, result.Generation}, nil, f.how.timeout)
	}
	return err
}

func (a *app) recoverCommand() *cobra.Command {
	var r api.RecoverRequest
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "recover --bump-epoch",
		Short: "Let the control plane publish again after a restore from an old backup",
		Long: `Let the control plane publish again after its database was restored from an old backup.

A node refuses whatever is older than what it serves, and the control plane refuses to sign while a node proves to
serve something newer than the database knows. Raising the epoch makes all that is signed from now on newer. Nothing
is published by it: gdn apply does that next, also when nothing else changed.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !r.BumpEpoch {
				return usagef(cmd, "%s needs --bump-epoch, the one way there is to recover", cmd.CommandPath())
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			res, err := c.Recover(cmd.Context(), r)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(res)
			}
			if n := res.Ahead; n != nil {
				a.printf("node %s serves version %d of epoch %d, generation %d, which this database never knew\n", n.Node, n.Version, n.Epoch, n.Generation)
			}
			a.printf("✓ epoch %d → %d\n  nodes follow with the next apply: run gdn plan, then gdn apply\n", res.EpochBefore, res.Epoch)
			return nil
		},
	})
	cmd.Flags().BoolVar(&r.BumpEpoch, "bump-epoch", false, "raise the epoch")
	cmd.Flags().StringVarP(&r.Message, "message", "m", "", "say why, in `TEXT` for the audit log")
	return cmd
}
