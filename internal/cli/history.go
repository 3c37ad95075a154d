package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) historyCommand() *cobra.Command {
	var limit int
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "history",
		Short: "List what was published, newest first; * marks what is live",
		Args:  args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef(cmd, "--limit %d: want 0 (all) or more", limit)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			entries, err := collect(cmd.Context(), limit, c.History)
			if err != nil {
				return err
			}
			t := &table{head: []string{"VERSION", "PARENT", "GENERATIONS", "CREATED", "ZONES", "BYTES", "KEY", "HASH", "BY", "MESSAGE"}}
			for _, e := range entries {
				version := fmt.Sprintf("v%d", e.Version)
				if !e.ActivatedAt.IsZero() {
					version += " *"
				}
				parent := ""
				if e.ParentVersion > 0 {
					parent = fmt.Sprintf("v%d", e.ParentVersion)
				}
				generations := make([]string, len(e.Generations))
				for i, g := range e.Generations {
					generations[i] = strconv.FormatUint(g, 10)
				}
				t.row(version, parent, strings.Join(generations, ","), moment(e.CreatedAt), strconv.Itoa(e.Zones),
					strconv.FormatInt(e.Bytes, 10), string(e.KeyID), fmt.Sprintf("%.12s", e.ContentHash), e.CreatedBy, e.Message)
			}
			return a.printTable(t, entries)
		},
	})
	cmd.Flags().IntVar(&limit, "limit", 20, "how many; 0 is all")
	return cmd
}

func (a *app) statusCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use:   "status",
		Short: "Tell what is live and whether everything saved is served",
		Args:  args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			s, err := c.Config(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(s)
			}
			a.printf("workspace  %s\n", s.Workspace)
			if l := s.Live; l != nil {
				a.printf("live       version %d — %d zone(s), %d bytes, key %s\n", l.Version, l.Zones, l.Bytes, string(l.KeyID))
				a.printf("           activated %s by %s: %s\n", moment(l.ActivatedAt), l.CreatedBy, l.Message)
			} else {
				a.printf("live       nothing was published yet\n")
			}
			a.printf("%s\n", s.Message)
			return nil
		},
	})
}
