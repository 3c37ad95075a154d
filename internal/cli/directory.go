package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

func (a *app) workspaceCommand() *cobra.Command {
	show := func(ws ...api.Workspace) *table {
		t := &table{head: []string{"NAME", "PLAN", "ID", "CREATED"}}
		for _, w := range ws {
			t.row(w.Name, w.Plan, w.ID, moment(w.CreatedAt))
		}
		return t
	}
	var plan string
	create := a.jsonFlag(&cobra.Command{
		Use:   "create NAME",
		Short: "Create a workspace",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			w, err := c.CreateWorkspace(cmd.Context(), api.NewWorkspace{Name: args[0], Plan: plan})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(w)
			}
			a.printf("created workspace %s (%s)\n", w.Name, w.ID)
			return nil
		},
	})
	create.Flags().StringVar(&plan, "plan", "standard", "the `PLAN` whose ceilings apply")
	list := a.jsonFlag(&cobra.Command{
		Use:   "list",
		Short: "List workspaces",
		Args:  args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			all, err := collect(cmd.Context(), 0, c.Workspaces)
			if err != nil {
				return err
			}
			return a.printTable(show(all...), all)
		},
	})
	one := a.jsonFlag(&cobra.Command{
		Use:   "show NAME",
		Short: "Show a workspace by its name or id",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			for w, err := range api.All(cmd.Context(), c.Workspaces) {
				if err != nil {
					return err
				}
				if w.Name == args[0] || w.ID == args[0] {
					return a.printTable(show(w), w)
				}
			}
			return hint(fmt.Errorf("there is no workspace %s", args[0]), "gdn workspace list shows what there is")
		},
	})
	return group("workspace", "Workspaces (operators)", list, create, one)
}

func (a *app) userCommand() *cobra.Command {
	list := a.jsonFlag(&cobra.Command{
		Use:   "list",
		Short: "List users",
		Args:  args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			all, err := collect(cmd.Context(), 0, c.Users)
			if err != nil {
				return err
			}
			t := &table{head: []string{"EMAIL", "OPERATOR", "ID", "CREATED"}}
			for _, u := range all {
				operator := ""
				if u.Operator {
					operator = "yes"
				}
				t.row(u.Email, operator, u.ID, moment(u.CreatedAt))
			}
			return a.printTable(t, all)
		},
	})
	var operator bool
	create := a.jsonFlag(&cobra.Command{
		Use:   "create EMAIL",
		Short: "Create a user",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			u, err := c.CreateUser(cmd.Context(), api.NewUser{Email: args[0], Operator: operator})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(u)
			}
			a.printf("created user %s (%s)\n", u.Email, u.ID)
			return nil
		},
	})
	create.Flags().BoolVar(&operator, "operator", false, "may publish and run the platform")
	grant := &cobra.Command{
		Use:   "grant EMAIL WORKSPACE {viewer|editor|admin|none}",
		Short: "Give a user a role in a workspace, or take it away",
		Args:  args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			role := args[2]
			switch role {
			case "viewer", "editor", "admin":
			case "none":
				role = ""
			default:
				return usagef(cmd, "role %q: want viewer, editor, admin or none", role)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			if err := c.SetMembership(cmd.Context(), args[0], api.Membership{Workspace: args[1], Role: role}); err != nil {
				return err
			}
			a.printf("%s is now %s in %s\n", args[0], args[2], args[1])
			return nil
		},
	}
	return group("user", "Users and their roles (operators)", list, create, grant)
}

func (a *app) tokenCommand() *cobra.Command {
	var everyone bool
	list := a.jsonFlag(&cobra.Command{
		Use:   "list",
		Short: "List the workspace's tokens",
		Args:  args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			all, err := collect(cmd.Context(), 0, func(ctx context.Context, o api.PageOptions) (*api.Page[api.Token], error) {
				return c.Tokens(ctx, api.TokenOptions{PageOptions: o, All: everyone})
			})
			if err != nil {
				return err
			}
			t := &table{head: []string{"ID", "NAME", "CREATED", "EXPIRES", "REVOKED"}}
			for _, k := range all {
				t.row(k.ID, k.Name, moment(k.CreatedAt), moment(k.ExpiresAt), moment(k.RevokedAt))
			}
			return a.printTable(t, all)
		},
	})
	list.Flags().BoolVar(&everyone, "all", false, "every workspace's and the nodes' (operators)")
	var n api.NewToken
	var expires time.Duration
	create := a.jsonFlag(&cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print it once",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if expires < 0 {
				return usagef(cmd, "--expires %s: want a time from now, as 720h", expires)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			n.Name = args[0]
			if expires > 0 {
				n.ExpiresAt = time.Now().Add(expires).UTC()
			}
			k, err := c.CreateToken(cmd.Context(), n)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(struct {
					api.Token
					Secret string `json:"token"`
				}{k.Token, k.Secret})
			}
			a.printf("token %s (%s)\n\n  %s=%s\n\nThe token is shown once and is not stored.\n", k.Name, k.ID, envToken, k.Secret)
			return nil
		},
	})
	create.Flags().StringVar(&n.User, "user", "", "`EMAIL` of whom it speaks for (operators)")
	create.Flags().StringVar(&n.Workspace, "workspace", "", "`WORKSPACE` that it acts in (operators)")
	create.Flags().DurationVar(&expires, "expires", 0, "how long it lives, as 720h; never ends by default")
	remove := &cobra.Command{
		Use:   "rm ID",
		Short: "Revoke a token",
		Args:  args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if err := c.RevokeToken(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.printf("revoked token %s\n", args[0])
			return nil
		},
	}
	return group("token", "API tokens (admins)", list, create, remove)
}

func (a *app) auditCommand() *cobra.Command {
	var all bool
	var limit int
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "audit",
		Short: "List who did what, newest first (admins)",
		Long: `List who did what, newest first: edits, applies and rollbacks and what was refused of them, what nodes refused and why,
tokens, nodes, users, workspaces, recoveries. A workspace's admin sees the workspace's; an operator everything with
--all.`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef(cmd, "--limit %d: want 0 (all) or more", limit)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			entries, err := collect(cmd.Context(), limit, func(ctx context.Context, o api.PageOptions) (*api.Page[api.AuditEntry], error) {
				return c.Audit(ctx, api.AuditOptions{PageOptions: o, All: all})
			})
			if err != nil {
				return err
			}
			t := &table{head: []string{"AT", "ACTOR", "FROM", "ACTION", "TARGET", "OUTCOME", "DETAIL"}}
			for _, e := range entries {
				t.row(moment(e.At), e.Actor, e.From, e.Action, e.Target, e.Outcome, detailLine(e.Detail))
			}
			return a.printTable(t, entries)
		},
	})
	cmd.Flags().BoolVar(&all, "all", false, "every workspace's and the platform's own (operators)")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many; 0 is all")
	return cmd
}

// detailLine prints the members of an entry's detail on one line.
func detailLine(detail jsontext.Value) string {
	var members map[string]jsontext.Value
	if len(detail) == 0 || json.Unmarshal(detail, &members) != nil {
		return ""
	}
	parts := make([]string, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := string(members[name])
		var text string
		if json.Unmarshal(members[name], &text) == nil {
			value = text
		}
		parts = append(parts, name+"="+value)
	}
	return strings.Join(parts, " ")
}
