package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

// purgeEvery is how often the control plane is asked how far the nodes are.
const purgeEvery = 250 * time.Millisecond

// purgeFlags are the flags of gdn purge.
type purgeFlags struct {
	urls, prefixes, tags []string
	all, wait            bool
	timeout              time.Duration
}

func (a *app) purgeCommand() *cobra.Command {
	var f purgeFlags
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "purge ZONE",
		Short: "Have every node drop what it cached of a zone",
		Long: `Have every node drop what it cached of a zone, by one of

  --url URL        the answers to one URL, with its query: https://www.example.com/a?b=c
  --prefix PREFIX  all whose host and path begin so, with every query, by http and https: www.example.com/img/
  --tag TAG        those to which the origin gave the tag, in its header Cache-Tag
  --all            all of the zone

each of which, but the last, may be given up to 100 times. Nothing of the configuration changes, and nothing need be applied: the
nodes have done it within seconds, and one that was away does it when it is back. What origins sent before is not stored
either if it comes in later.

With --wait it ends when all nodes have done it, or with an error when the time is up. Waited for are the nodes that cache, but those
outside of the cohort that were not heard for a minute. On a terminal a line shows how far the fleet is.`,
		Example: `  gdn purge example.com --url https://www.example.com/logo.svg --wait
  gdn purge example.com --prefix www.example.com/img/ --prefix example.com/img/
  gdn purge example.com --tag product-42
  gdn purge list example.com`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.purge(cmd)
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			made, err := c.Purge(cmd.Context(), args[0], p)
			if err != nil {
				return err
			}
			if !a.json {
				a.printf("✓ purged %s of %s\n", purgeSubject(made), args[0])
				if !f.wait {
					a.printf("  nodes drop it within seconds; gdn purge list %s tells how far they are\n", args[0])
				}
			}
			if f.wait {
				if made, err = a.waitForPurge(cmd.Context(), c, args[0], made, f.timeout); err != nil {
					return err
				}
			}
			if a.json {
				return a.printJSON(made)
			}
			return nil
		},
	})
	flags := cmd.Flags()
	// Not slices: a comma is a character of a URL.
	flags.StringArrayVar(&f.urls, "url", nil, "drop the answers to `URL`; may be given more than once")
	flags.StringArrayVar(&f.prefixes, "prefix", nil, "drop all whose host and path begin with `PREFIX`; may be given more than once")
	flags.StringArrayVar(&f.tags, "tag", nil, "drop what the origin gave `TAG`; may be given more than once")
	flags.BoolVar(&f.all, "all", false, "drop everything")
	flags.BoolVar(&f.wait, "wait", false, "wait until the nodes have done it")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "how long --wait waits")
	cmd.AddCommand(a.purgeListCommand())
	return cmd
}

// purge is what the flags ask for, which must be of one kind.
func (f *purgeFlags) purge(cmd *cobra.Command) (api.NewPurge, error) {
	var asked []api.NewPurge
	for _, one := range []api.NewPurge{{Kind: "url", Values: f.urls}, {Kind: "prefix", Values: f.prefixes}, {Kind: "tag", Values: f.tags}} {
		if len(one.Values) > 0 {
			asked = append(asked, one)
		}
	}
	if f.all {
		asked = append(asked, api.NewPurge{Kind: "all"})
	}
	if len(asked) != 1 {
		return api.NewPurge{}, usagef(cmd, "say what to purge, by one of --url, --prefix, --tag and --all")
	}
	return asked[0], nil
}

// purgeSubject is what a purge names, in a few words.
func purgeSubject(p *api.Purge) string {
	noun := map[string]string{"url": "URL", "prefix": "prefix", "tag": "tag"}[p.Kind]
	switch {
	case p.Kind == "all":
		return "everything"
	case p.Kind == "prefix" && len(p.Values) > 1:
		return fmt.Sprintf("%d prefixes", len(p.Values))
	case len(p.Values) == 1:
		return noun + " " + p.Values[0]
	}
	return count(len(p.Values), noun)
}

// waitForPurge waits until every node that is waited for has done p.
func (a *app) waitForPurge(ctx context.Context, c *api.Client, zone string, p *api.Purge, timeout time.Duration) (*api.Purge, error) {
	began := time.Now()
	deadline, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(purgeEvery)
	defer tick.Stop()
	for {
		if p.Done == p.Nodes {
			a.waitProgress("")
			a.notef("%s\n", purgeDone(p))
			return p, nil
		}
		a.waitProgress(purgeLine(p, time.Since(began)))
		select {
		case <-tick.C:
		case <-deadline.Done():
			a.waitProgress("")
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			who := ""
			if len(p.Waiting) > 0 {
				who = ": " + join(p.Waiting)
				if more := p.Nodes - p.Done - len(p.Waiting); more > 0 {
					who += fmt.Sprintf(" and %d more", more)
				}
			}
			return nil, hint(fmt.Errorf("after %s %d of %s have not done it%s", timeout, p.Nodes-p.Done, count(p.Nodes, "node"), who),
				"the purge stands: a node that was away does it when it is back")
		}
		// An answer that does not come is asked for again until the time is up.
		if now, err := c.PurgeByID(deadline, zone, p.ID); err == nil {
			p = now
		}
	}
}

func purgeDone(p *api.Purge) string {
	line := fmt.Sprintf("✓ done by %s", count(p.Done, "node"))
	switch {
	case p.Nodes == 0 && p.Silent == 0:
		line = "✓ no node caches anything"
	case p.Silent > 0:
		line += fmt.Sprintf("; not heard for a minute: %d", p.Silent)
	}
	return line
}

// purgeLine is the line of progress.
func purgeLine(p *api.Purge, took time.Duration) string {
	line := fmt.Sprintf("%d of %s  %ds", p.Done, count(p.Nodes, "node"), int(took.Seconds()))
	if n := len(p.Waiting); n > 0 {
		line += "  waiting for " + inert(strings.Join(p.Waiting[:min(waitNames, n)], ", "))
		if more := p.Nodes - p.Done - waitNames; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
	}
	return line
}

func (a *app) purgeListCommand() *cobra.Command {
	var limit int
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "list ZONE",
		Short: "List a zone's purges of the last week, newest first, and how far the nodes are",
		Long: `List a zone's purges of the last week, newest first, and how far the nodes are. DONE is "2/3" when two of the three nodes
that are waited for have done it; SILENT are nodes that were not heard for a minute, which do it when they are back.`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			all, err := collect(cmd.Context(), limit, func(ctx context.Context, o api.PageOptions) (*api.Page[api.Purge], error) {
				return c.Purges(ctx, args[0], o)
			})
			if err != nil {
				return err
			}
			t := &table{head: []string{"AT", "WHAT", "BY", "DONE", "SILENT"}}
			for i := range all {
				p := &all[i]
				silent := ""
				if p.Silent > 0 {
					silent = fmt.Sprint(p.Silent)
				}
				t.row(moment(p.At), purgeSubject(p), p.By, fmt.Sprintf("%d/%d", p.Done, p.Nodes), silent)
			}
			return a.printTable(t, all)
		},
	})
	cmd.Flags().IntVar(&limit, "limit", 20, "how many; 0 is all")
	return cmd
}
