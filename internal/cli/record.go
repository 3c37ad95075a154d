package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

func (a *app) recordCommand() *cobra.Command {
	return group("record", "DNS records", a.recordAddCommand(), a.recordListCommand(), a.recordRemoveCommand())
}

func (a *app) recordAddCommand() *cobra.Command {
	var ttl string
	var proxied bool
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "add ZONE NAME TYPE CONTENT",
		Short: "Add a record; NAME @ is the apex",
		Example: `  gdn record add amthalgroup.com www A 192.0.2.10 --proxied
  gdn record add amthalgroup.com @ MX "10 mail.amthalgroup.com." --ttl 3600
  gdn record add amthalgroup.com _dmarc TXT "v=DMARC1; p=none"`,
		Args: args(4, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := parseTTL(ttl)
			if err != nil {
				return usagef(cmd, "%s", err)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			r, err := c.AddRecord(cmd.Context(), args[0], api.RecordEdit{
				Name: args[1], Type: args[2], Content: args[3], TTL: seconds, Proxied: proxied,
			})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			a.printf("added %s\n", recordLine(*r))
			return nil
		},
	})
	cmd.Flags().StringVar(&ttl, "ttl", "auto", "time to live in `SECONDS`, or auto")
	cmd.Flags().BoolVar(&proxied, "proxied", false, "send HTTP for this name through the nodes (A, AAAA, CNAME)")
	return cmd
}

func parseTTL(s string) (uint32, error) {
	if s == "auto" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n < 1 || n > uint64(zone.MaxTTL) {
		return 0, fmt.Errorf("--ttl %q: want auto, or seconds from 1 to %d", s, zone.MaxTTL)
	}
	return uint32(n), nil
}

func recordLine(r api.Record) string {
	line := fmt.Sprintf("%s %d %s %s", r.Name, r.TTL, r.Type, r.Content)
	if r.Proxied {
		line += " (proxied)"
	}
	return line
}

func (a *app) recordListCommand() *cobra.Command {
	var f api.RecordFilter
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "list ZONE",
		Short: "List a zone's records",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			records, err := a.records(cmd.Context(), c, args[0], f)
			if err != nil {
				return err
			}
			return a.printTable(recordTable(records), records)
		},
	})
	cmd.Flags().StringVar(&f.Name, "name", "", "only records of this `NAME` (@ is the apex)")
	cmd.Flags().StringVar(&f.Type, "type", "", "only records of this `TYPE`")
	return cmd
}

func (a *app) records(ctx context.Context, c *api.Client, zone string, f api.RecordFilter) ([]api.Record, error) {
	return collect(ctx, 0, func(ctx context.Context, o api.PageOptions) (*api.Page[api.Record], error) {
		return c.Records(ctx, zone, f, o)
	})
}

func recordTable(records []api.Record) *table {
	t := &table{head: []string{"NAME", "TYPE", "TTL", "PROXIED", "CONTENT", "ID"}}
	for _, r := range records {
		proxied := ""
		if r.Proxied {
			proxied = "yes"
		}
		t.row(r.Name, r.Type, strconv.FormatUint(uint64(r.TTL), 10), proxied, r.Content, r.ID)
	}
	return t
}

func (a *app) recordRemoveCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "rm ZONE {NAME TYPE [CONTENT] | --id ID}",
		Short: "Remove one record",
		Args: func(cmd *cobra.Command, names []string) error {
			if id != "" {
				return args(1, 1)(cmd, names)
			}
			return args(3, 4)(cmd, names)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			name := id
			remove := id
			if id == "" {
				r, err := a.findRecord(cmd.Context(), c, args[0], args[1:])
				if err != nil {
					return err
				}
				name, remove = recordLine(*r), r.ID
			}
			if err := c.DeleteRecord(cmd.Context(), args[0], remove); err != nil {
				return err
			}
			a.printf("removed %s\n", name)
			return nil
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "the record's `ID`, as gdn record list prints it")
	return cmd
}

// findRecord finds the one record of a name, a type and, when it is given, a content.
func (a *app) findRecord(ctx context.Context, c *api.Client, zoneName string, what []string) (*api.Record, error) {
	found, err := a.records(ctx, c, zoneName, api.RecordFilter{Name: what[0], Type: what[1]})
	if err != nil {
		return nil, err
	}
	if len(what) == 3 {
		content := normalContent(what[1], what[2])
		kept := found[:0]
		for _, r := range found {
			if r.Content == content || r.Content == what[2] {
				kept = append(kept, r)
			}
		}
		found = kept
	}
	switch len(found) {
	case 1:
		return &found[0], nil
	case 0:
		return nil, hint(fmt.Errorf("%s has no record %s", zoneName, strings.Join(what, " ")),
			"gdn record list %s shows what there is", zoneName)
	}
	lines := make([]string, len(found))
	for i, r := range found {
		lines[i] = "  " + r.ID + "  " + recordLine(r)
	}
	return nil, &lineErrors{
		summary: fmt.Sprintf("%s has %d records %s; nothing was removed", zoneName, len(found), strings.Join(what, " ")),
		lines:   lines,
		hint:    "name one by its content, or by --id",
	}
}

// normalContent is content as the control plane prints it; text that is malformed stays as it is and
// matches nothing.
func normalContent(rrtype, content string) string {
	t, err := zone.ParseRRType(rrtype)
	if err != nil {
		return content
	}
	normal, err := zone.ParseContent(t, content)
	if err != nil {
		return content
	}
	return normal
}
