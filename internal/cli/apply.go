package cli

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

// applyFlags are the flags of gdn apply.
type applyFlags struct {
	api.ApplyRequest
	how    publishFlags
	dryRun bool
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "apply",
		Short: "Publish every zone as one signed snapshot",
		Long: `Publish every zone as one signed snapshot.

The plan is printed first, and exactly that plan is published: when somebody edits meanwhile, nothing is.

A problem in any zone stops everything. With --hold-broken the healthy zones are published, and each zone that has
problems stays as it is published, or is left out when it never was; the plan shows every held zone and why.

With --dry-run it stops after the plan, with an error when it would be refused: for what is wrong with the zones or with these flags, or
while a rollout is open. That a plan can interrupt traffic is told and no error.

With --wait it ends when the nodes serve the new version, or with an error when one refuses it or the time is up. Waited for are the
members of a rollout; of a direct one all nodes that were ever heard, but those outside of the cohort that are silent.
On a terminal a line shows how far the fleet is.` + rolloutHelp,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.Rollout, err = f.how.options(cmd); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			return a.apply(cmd.Context(), c, f)
		},
	})
	flags := cmd.Flags()
	flags.StringVarP(&f.Message, "message", "m", "", "say why, in `TEXT` for the history")
	flags.BoolVar(&f.AcceptDisruption, "accept-disruption", false, "publish changes that can interrupt traffic")
	flags.BoolVar(&f.HoldBroken, "hold-broken", false, "publish the healthy zones, keep those that have problems as they are published")
	flags.BoolVar(&f.Reseal, "reseal", false, "publish although nothing changed, under the current signing key")
	flags.BoolVar(&f.dryRun, "dry-run", false, "stop after the plan, and tell whether it would be refused")
	f.how.add(cmd)
	return cmd
}

// apply prints the plan and publishes it. With --json it prints the answer alone, or the plan when that is
// where it stops.
func (a *app) apply(ctx context.Context, c *api.Client, f applyFlags) error {
	plan, err := c.Plan(ctx, api.PlanOptions{HoldBroken: f.HoldBroken})
	var refusal error // of the dry run
	if f.dryRun || f.Rollout != nil && hasProblems(err) {
		// What is wrong with the zones and with how they are to be published is told together.
		trial := f.ApplyRequest
		trial.DryRun = true
		if _, refusal = c.Apply(ctx, trial); hasProblems(refusal) {
			return refusal
		}
	}
	if err != nil {
		return err
	}
	refused := plan.Disruptive && !f.AcceptDisruption
	if !a.json {
		if err := a.printPlan(plan, refused); err != nil {
			return err
		}
	}
	switch {
	case f.dryRun && a.json:
		return errors.Join(a.printJSON(plan), refusal)
	case f.dryRun:
		return refusal
	case refused:
		if a.json {
			if err := a.printJSON(plan); err != nil {
				return err
			}
		}
		return hint(errors.New("this plan can interrupt traffic; nothing was published"),
			"review the lines marked !, then run gdn apply --accept-disruption")
	}
	f.ExpectedContentHash = plan.ContentHash
	result, err := c.Apply(ctx, f.ApplyRequest)
	if err != nil {
		return a.applyError(err)
	}
	if result.Rollout != nil && f.how.wait {
		return a.waitForRollout(ctx, c, result.Rollout, f.how, func(r *api.Rollout) error {
			result.Rollout = r
			if wentLive(r) {
				result.Applied, result.Reason = true, ""
			}
			return a.printJSON(result)
		})
	}
	if a.json {
		if err := a.printJSON(result); err != nil {
			return err
		}
	} else if result.Rollout != nil {
		a.printProposed(result.Rollout, false)
	} else if result.Applied {
		a.printf("\n✓ applied v%d — %d zone(s)\n  edge nodes pick it up on their next poll\n", result.Version, result.Zones)
	} else if plan.Changes > 0 {
		a.printf("Nothing was published: version %d holds exactly this already.\n", result.Version)
	}
	if f.how.wait && result.Applied {
		return a.waitForNodes(ctx, c, published{result.Version, result.Generation}, nil, f.how.timeout)
	}
	return nil
}

// hasProblems reports whether a request was refused for what is wrong with it.
func hasProblems(err error) bool {
	var problem *api.Error
	return errors.As(err, &problem) && problem.Status == http.StatusUnprocessableEntity
}

// applyError prints the plan that a refusal came with.
func (a *app) applyError(err error) error {
	var problem *api.Error
	if !errors.As(err, &problem) || problem.Status != http.StatusConflict || problem.Plan == nil || a.json {
		return err
	}
	a.printf("\nWhat would be published now:\n")
	return errors.Join(err, a.printPlan(problem.Plan, problem.Plan.Disruptive))
}
