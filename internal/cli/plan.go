package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

func (a *app) planCommand() *cobra.Command {
	var detailed bool
	var o api.PlanOptions
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "plan",
		Short: "Show what an apply would publish",
		Long: `Show what an apply would publish, as a difference of meaning to what is live.

Lines marked ! can interrupt traffic; an apply of them needs --accept-disruption.
With --hold-broken it is the plan of an apply with that flag: a zone that has problems stays as it is published, or is
left out when it never was, and stands under the plan with what is wrong.
With --detailed-exitcode the exit code is 0 without changes, 2 with changes, 1 for an error.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			p, err := c.Plan(cmd.Context(), o)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(p)
			} else {
				err = a.printPlan(p, true)
			}
			if err == nil && detailed && p.Changes > 0 {
				return exitCode(exitUsage)
			}
			return err
		},
	})
	cmd.Flags().BoolVar(&o.HoldBroken, "hold-broken", false, "keep zones that have problems as they are published")
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit 2 when there are changes")
	return cmd
}

// printPlan prints a plan as people read it. advice adds the line about --accept-disruption.
func (a *app) printPlan(p *api.Plan, advice bool) error {
	if n := p.Ahead; n != nil {
		a.notef("warning: node %s serves version %d of epoch %d, generation %d, newer than this database knows; nothing is signed until gdn recover --bump-epoch\n",
			n.Node, n.Version, n.Epoch, n.Generation)
	}
	_, err := io.WriteString(a.Stdout, a.paintPlan(inertLines(p.Plan.Text(advice))))
	return err
}
