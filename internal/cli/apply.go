package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

// applyFlags are the flags of gdn apply.
type applyFlags struct {
	api.ApplyRequest
	dryRun  bool
	wait    bool
	timeout time.Duration
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "apply",
		Short: "Publish every zone as one signed snapshot",
		Long: `Publish every zone as one signed snapshot.

The plan is printed first, and exactly that plan is published: when somebody edits meanwhile, nothing is.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
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
	flags.BoolVar(&f.Reseal, "reseal", false, "publish although nothing changed, under the current signing key")
	flags.BoolVar(&f.dryRun, "dry-run", false, "stop after the plan")
	flags.BoolVar(&f.wait, "wait", false, "wait until every node serves it")
	flags.DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long --wait waits")
	return cmd
}

// apply prints the plan and publishes it. With --json it prints the answer alone, or the plan when that is
// where it stops.
func (a *app) apply(ctx context.Context, c *api.Client, f applyFlags) error {
	plan, err := c.Plan(ctx, api.PlanOptions{})
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
		return a.printJSON(plan)
	case f.dryRun:
		return nil
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
	if a.json {
		if err := a.printJSON(result); err != nil {
			return err
		}
	} else if result.Applied {
		a.printf("\n✓ applied v%d — %d zone(s)\n  edge nodes pick it up on their next poll\n", result.Version, result.Zones)
	} else if plan.Changes > 0 {
		a.printf("Nothing was published: version %d holds exactly this already.\n", result.Version)
	}
	if f.wait && result.Applied {
		return a.waitForNodes(ctx, c, result, f.timeout)
	}
	return nil
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

// waitEvery is how often the nodes are asked for while waiting.
const waitEvery = 500 * time.Millisecond

// waitForNodes waits until every node acknowledges the generation of an apply. A node that refuses it ends
// the waiting.
func (a *app) waitForNodes(ctx context.Context, c *api.Client, r *api.ApplyResult, timeout time.Duration) error {
	deadline, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	var behind []string
	for {
		nodes, err := collect(deadline, 0, c.Nodes)
		if err == nil {
			behind = behind[:0]
			for _, n := range nodes {
				if n.LastError != nil && n.LastError.Version == r.Version {
					a.waitProgress("")
					return hint(fmt.Errorf("node %s refused version %d: %s", n.Name, r.Version, n.LastError.Message),
						"it serves what it had; gdn node list shows the fleet")
				}
				if n.Generation < r.Generation {
					behind = append(behind, n.Name)
				}
			}
			if len(behind) == 0 {
				a.waitProgress("")
				a.notef("✓ %s on version %d\n", count(len(nodes), "node"), r.Version)
				return nil
			}
			a.waitProgress(fmt.Sprintf("waiting for %d of %d node(s)", len(behind), len(nodes)))
		}
		select {
		case <-tick.C:
		case <-deadline.Done():
			a.waitProgress("")
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil && behind == nil {
				return fmt.Errorf("version %d is published; asking for the nodes failed: %w", r.Version, err)
			}
			return hint(fmt.Errorf("version %d is published, but after %s these nodes do not serve it: %s", r.Version, timeout, strings.Join(behind, ", ")),
				"gdn node list shows when each was last seen")
		}
	}
}

// waitProgress replaces the line of progress on a terminal; empty text clears it.
func (a *app) waitProgress(text string) {
	if a.StderrIsTerminal {
		fmt.Fprintf(a.Stderr, "\r\x1b[K%s", text)
	}
}
