package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

func (a *app) nodeCommand() *cobra.Command {
	var cohort bool
	add := a.jsonFlag(&cobra.Command{
		Use:   "add NAME",
		Short: "Register an edge node and print its token once",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			n, err := c.CreateNode(cmd.Context(), api.NewNode{Name: args[0], Cohort: cohort})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(struct {
					api.Node
					Token string `json:"token"`
				}{n.Node, n.Secret})
			}
			a.printf("node %s (%s)\n\n  %s=%s\n\nThe token is shown once and is not stored.\n", n.Name, n.ID, envNodeToken, n.Secret)
			return nil
		},
	})
	add.Flags().BoolVar(&cohort, "cohort", false, "have it take part in rollouts: they wait for it from now on")
	list := a.jsonFlag(&cobra.Command{
		Use:   "list",
		Short: "List the fleet and what each node serves",
		Long: `List the fleet and what each node serves.

BEHIND is the newest version less the node's: it is not zero after a rollback. GENERATIONS BEHIND counts activations
and is zero when the node serves what is live; it is AHEAD for a node that serves what this database never published:
it was restored from a backup, or the node is another control plane's. FRESHNESS is STALE when the node could not prove for three hours that
what it serves is live. COHORT is whether it must agree to what is put to the cohort. --json tells the keys that each node trusts too.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			nodes, err := collect(cmd.Context(), 0, c.Nodes)
			if err != nil {
				return err
			}
			t := &table{head: []string{"NAME", "VERSION", "BEHIND", "GENERATIONS BEHIND", "FRESHNESS", "COHORT", "LAST SEEN", "ADDRESS", "LAST ERROR"}}
			for _, n := range nodes {
				version, behind, generations, problem := "", "", "", ""
				if n.VersionsBehind != nil {
					version, behind = "v"+strconv.FormatUint(n.Version, 10), strconv.FormatUint(*n.VersionsBehind, 10)
				}
				if n.GenerationsBehind != nil {
					generations = strconv.FormatUint(*n.GenerationsBehind, 10)
				}
				freshness := n.Freshness
				if n.FreshnessStale {
					freshness = "STALE"
				}
				if n.Ahead != nil {
					generations = "AHEAD"
				}
				if n.LastError != nil {
					problem = n.LastError.Code + ": " + n.LastError.Message
				}
				t.row(n.Name, version, behind, generations, freshness, yes(n.Cohort), moment(n.LastSeen), n.Address, problem)
			}
			if err := a.printTable(t, nodes); err != nil {
				return err
			}
			a.warnAhead(nodes)
			return nil
		},
	})
	remove := &cobra.Command{
		Use:   "rm NAME",
		Short: "Forget a node and revoke its token",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if err := c.DeleteNode(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.printf("removed node %s; its token no longer works\n", args[0])
			return nil
		},
	}
	drain := a.cohortCommand("drain", "Take a node out of the cohort: rollouts do not wait for it any more",
		`Take a node out of the cohort: rollouts do not wait for it any more. It goes on serving, and follows what is live on its own, as
nodes outside of the cohort do. A rollout that is voted on is aborted by it; while one is on trial it is refused.`, (*api.Client).DrainNode)
	undrain := a.cohortCommand("undrain", "Put a node into the cohort: it must agree to the next rollout",
		`Put a node into the cohort: it must agree to the next rollout. A rollout that is voted on is aborted by it; while one is on trial
it is refused.`, (*api.Client).UndrainNode)
	return group("node", "Edge nodes (operators)", add, list, drain, undrain, remove)
}

// cohortCommand changes whether a node belongs to the cohort.
func (a *app) cohortCommand(verb, short, long string, change func(*api.Client, context.Context, string) (*api.Node, error)) *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Long:  long,
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			n, err := change(c, cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(n)
			}
			if n.Cohort {
				a.printf("node %s is in the cohort: rollouts wait for it\n", n.Name)
			} else {
				a.printf("node %s is out of the cohort: rollouts do not wait for it\n", n.Name)
			}
			return nil
		},
	})
}

// warnAhead tells of nodes that serve what the database does not know, and what to do about it.
func (a *app) warnAhead(nodes []api.Node) {
	var names []string
	proven := false
	for _, n := range nodes {
		if n.Ahead != nil {
			names = append(names, n.Name)
			proven = proven || n.Ahead.Proven
		}
	}
	switch {
	case proven:
		a.notef("warning: newer than this database knows: %s; nothing is signed until gdn recover --bump-epoch\n", strings.Join(names, ", "))
	case names != nil:
		a.notef("warning: newer than this database knows: %s; nothing proves that this control plane's key signed it: look for another control plane that they asked\n",
			strings.Join(names, ", "))
	}
}
