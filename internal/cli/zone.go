package cli

import (
	"bytes"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

func (a *app) zoneCommand() *cobra.Command {
	create := a.jsonFlag(&cobra.Command{
		Use:   "create NAME",
		Short: "Create an empty zone",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			z, err := c.CreateZone(cmd.Context(), api.NewZone{Name: args[0]})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(z)
			}
			a.printf("created zone %s (%s)\n", z.Name, z.ID)
			return nil
		},
	})
	list := a.jsonFlag(&cobra.Command{
		Use:   "list",
		Short: "List the workspace's zones",
		Args:  args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			zones, err := collect(cmd.Context(), 0, c.Zones)
			if err != nil {
				return err
			}
			t := &table{head: []string{"NAME", "RECORDS", "ID", "CREATED"}}
			for _, z := range zones {
				t.row(z.Name, strconv.Itoa(z.Records), z.ID, moment(z.CreatedAt))
			}
			return a.printTable(t, zones)
		},
	})
	show := a.jsonFlag(&cobra.Command{
		Use:   "show NAME",
		Short: "Show a zone and what it holds",
		Args:  args(1, 1),
		RunE:  a.showZone,
	})
	remove := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a zone and everything in it",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if err := c.DeleteZone(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.printf("deleted zone %s; %s\n", args[0], nextApply)
			return nil
		},
	}
	return group("zone", "Zones and zone files", create, list, show, remove, a.importCommand(), a.exportCommand())
}

// zoneSummary is what gdn zone show tells.
type zoneSummary struct {
	*api.Zone
	Rulesets      []string `json:"rulesets"`
	Lists         []string `json:"lists"`
	Pools         []string `json:"pools"`
	LoadBalancers []string `json:"load_balancers"`
	TLSHosts      []string `json:"tls_hosts"`
	Functions     []string `json:"functions"`
}

func (a *app) showZone(cmd *cobra.Command, args []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	ctx, name := cmd.Context(), args[0]
	z, err := c.Zone(ctx, name)
	if err != nil {
		return err
	}
	s := zoneSummary{Zone: z}
	for _, kind := range []struct {
		into *[]string
		read func() ([]string, error)
	}{
		{&s.Rulesets, func() ([]string, error) { return names(ctx, name, c.Rulesets) }},
		{&s.Lists, func() ([]string, error) { return names(ctx, name, c.Lists) }},
		{&s.Pools, func() ([]string, error) { return names(ctx, name, c.Pools) }},
		{&s.LoadBalancers, func() ([]string, error) { return names(ctx, name, c.LoadBalancers) }},
		{&s.TLSHosts, func() ([]string, error) { return names(ctx, name, c.TLSHosts) }},
		{&s.Functions, func() ([]string, error) { return names(ctx, name, c.Functions) }},
	} {
		if *kind.into, err = kind.read(); err != nil {
			return err
		}
	}
	t := &table{head: []string{"zone", z.Name}}
	t.row("id", z.ID)
	t.row("created", moment(z.CreatedAt))
	t.row("records", strconv.Itoa(z.Records))
	t.row("rulesets", join(s.Rulesets))
	t.row("lists", join(s.Lists))
	t.row("pools", join(s.Pools))
	t.row("balancers", join(s.LoadBalancers))
	t.row("tls hosts", join(s.TLSHosts))
	t.row("functions", join(s.Functions))
	return a.printTable(t, s)
}

func (a *app) exportCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "export NAME",
		Short: "Print a zone as a zone file that import reads back",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if output == "" || output == "-" {
				return c.ExportZone(cmd.Context(), a.Stdout, args[0])
			}
			// A whole answer or no file: a cut one would read as a smaller zone.
			var text bytes.Buffer
			if err := c.ExportZone(cmd.Context(), &text, args[0]); err != nil {
				return err
			}
			return os.WriteFile(output, text.Bytes(), 0o644)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to `FILE`")
	return cmd
}
