package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

func (a *app) nodeCommand() *cobra.Command {
	add := a.jsonFlag(&cobra.Command{
		Use:   "add NAME",
		Short: "Register an edge node and print its token once",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			n, err := c.CreateNode(cmd.Context(), api.NewNode{Name: args[0]})
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
	list := a.jsonFlag(&cobra.Command{
		Use:   "list",
		Short: "List the fleet and what each node serves",
		Long: `List the fleet and what each node serves.

BEHIND is the newest version less the node's: it is not zero after a rollback. GENERATIONS BEHIND counts activations
and is zero when the node serves what is live. FRESHNESS is STALE when the node could not prove for three hours that
what it serves is live. --json tells the keys that each node trusts too.`,
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
			t := &table{head: []string{"NAME", "VERSION", "BEHIND", "GENERATIONS BEHIND", "FRESHNESS", "LAST SEEN", "ADDRESS", "LAST ERROR"}}
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
				if n.LastError != nil {
					problem = n.LastError.Code + ": " + n.LastError.Message
				}
				t.row(n.Name, version, behind, generations, freshness, moment(n.LastSeen), n.Address, problem)
			}
			return a.printTable(t, nodes)
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
	return group("node", "Edge nodes (operators)", add, list, remove)
}
