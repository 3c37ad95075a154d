package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

func (a *app) rulesCommand() *cobra.Command {
	size := func(r api.Ruleset) string { return count(len(r.Rules), "rule") }
	cmd := objectCommand(a, objects[api.Ruleset, api.Ruleset]{
		verb: "rules", short: "Rulesets, one for each phase", noun: "ruleset", arg: "PHASE",
		put: putRules, get: (*api.Client).Ruleset,
		remove: (*api.Client).DeleteRuleset, list: (*api.Client).Rulesets,
		size: size, summary: size,
	})
	cmd.AddCommand(a.rulesTestCommand())
	return cmd
}

func (a *app) listCommand() *cobra.Command {
	return objectCommand(a, objects[zone.List, api.ListSummary]{
		verb: "list", short: "Lists that rules ask with in_list", noun: "list", arg: "NAME",
		put: (*api.Client).PutList, get: (*api.Client).List,
		remove: (*api.Client).DeleteList, list: (*api.Client).Lists,
		size:    func(l zone.List) string { return count(len(l.Items), "item") },
		summary: func(l api.ListSummary) string { return count(l.Items, string(l.Kind)+" item") },
	})
}

func (a *app) poolCommand() *cobra.Command {
	size := func(p zone.Pool) string { return count(len(p.Origins), "origin") }
	cmd := objectCommand(a, objects[zone.Pool, zone.Pool]{
		verb: "pool", short: "Pools of origins", noun: "pool", arg: "NAME",
		put: (*api.Client).PutPool, get: (*api.Client).Pool,
		remove: (*api.Client).DeletePool, list: (*api.Client).Pools,
		size: size, summary: size,
	})
	cmd.AddCommand(a.poolStatusCommand())
	return cmd
}

func (a *app) balancerCommand() *cobra.Command {
	size := func(b zone.LoadBalancer) string { return "pools " + join(b.Pools) }
	return objectCommand(a, objects[zone.LoadBalancer, zone.LoadBalancer]{
		verb: "balancer", short: "Load balancers, one for each host name", noun: "load balancer", arg: argHost,
		put: (*api.Client).PutLoadBalancer, get: (*api.Client).LoadBalancer,
		remove: (*api.Client).DeleteLoadBalancer, list: (*api.Client).LoadBalancers,
		size: size, summary: size,
	})
}

func (a *app) tlsCommand() *cobra.Command {
	cmd := objectCommand(a, objects[zone.TLSHost, zone.TLSHost]{
		verb: "tls", short: "Certificates, with their private keys sealed to the fleet", noun: "TLS host", arg: argHost,
		put: (*api.Client).PutTLSHost, get: (*api.Client).TLSHost,
		remove: (*api.Client).DeleteTLSHost, list: (*api.Client).TLSHosts,
		size: certificateEnd, summary: certificateEnd,
	})
	cmd.AddCommand(a.tlsAddCommand())
	return cmd
}

func (a *app) cacheCommand() *cobra.Command {
	set := a.jsonFlag(&cobra.Command{
		Use:   "set ZONE FILE",
		Short: "Replace a zone's cache policy from a YAML file (- is standard input)",
		Args:  args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var p zone.CachePolicy
			if err := a.readYAML(args[1], &p); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			now, _, err := c.PutCachePolicy(cmd.Context(), args[0], p, api.WriteOptions{})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(now)
			}
			a.printf("%s: cache policy replaced; %s\n", args[0], nextApply)
			return nil
		},
	})
	show := a.jsonFlag(&cobra.Command{
		Use:   "show ZONE",
		Short: "Print a zone's cache policy as YAML that set reads back",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			p, _, err := c.CachePolicy(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.printObject(p)
		},
	})
	return group("cache", "Cache policy of a zone", set, show)
}

// putRules refuses a file that does not say what the rules are: it would remove them all.
func putRules(c *api.Client, ctx context.Context, zone, phase string, v api.Ruleset, o api.WriteOptions) (*api.Ruleset, int64, error) {
	if v.Rules == nil {
		return nil, 0, hint(errors.New("the file has no member rules"), "write rules: [] to have none, or use gdn rules rm")
	}
	return c.PutRuleset(ctx, zone, phase, v, o)
}
