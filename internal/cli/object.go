package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// objects are the verbs of one kind of named object of a zone, whose value is T and whose listing shows S.
type objects[T, S any] struct {
	verb, short string
	noun        string // "list"
	arg         string // what its name is called: NAME, PHASE, HOST
	put         func(c *api.Client, ctx context.Context, zone, name string, v T, o api.WriteOptions) (*T, int64, error)
	get         func(c *api.Client, ctx context.Context, zone, name string) (*T, int64, error)
	remove      func(c *api.Client, ctx context.Context, zone, name string, o api.WriteOptions) error
	list        func(c *api.Client, ctx context.Context, zone string, o api.PageOptions) (*api.Page[api.Object[S]], error)
	// size tells how much a value holds ("3 items"), summary the same of a listed one.
	size    func(T) string
	summary func(S) string
}

// argHost is the arg of objects that are named by a host: relative to the zone, as names of records are.
const argHost = "HOST"

// absolute is host as the control plane reads it beside zoneRef, the zone's name. As it stands where that is an id, and where it is
// malformed, which the control plane tells.
func absolute(zoneRef, host string) string {
	if _, err := zone.ParseID(zoneRef); err == nil {
		return host
	}
	apex, err := zone.ParseName(zoneRef)
	if err != nil {
		return host
	}
	name, err := zone.ParseNameIn(apex, host)
	if err != nil {
		return host
	}
	return name.String()
}

func objectCommand[T, S any](a *app, k objects[T, S]) *cobra.Command {
	set := a.jsonFlag(&cobra.Command{
		Use:   "set ZONE " + k.arg + " FILE",
		Short: fmt.Sprintf("Create or replace a %s from a YAML file (- is standard input)", k.noun),
		Args:  args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			var v T
			if err := a.readYAML(args[2], &v); err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			now, _, err := k.put(c, cmd.Context(), args[0], args[1], v, api.WriteOptions{})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(now)
			}
			name := args[1]
			if k.arg == argHost {
				name = absolute(args[0], name)
			}
			a.printf("%s: %s %s has %s; %s\n", args[0], k.noun, name, k.size(*now), nextApply)
			return nil
		},
	})
	show := a.jsonFlag(&cobra.Command{
		Use:   "show ZONE [" + k.arg + "]",
		Short: fmt.Sprintf("Print a %s as YAML that set reads back, or list them", k.noun),
		Args:  args(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if len(args) == 2 {
				v, _, err := k.get(c, cmd.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				return a.printObject(v)
			}
			all, err := collect(cmd.Context(), 0, func(ctx context.Context, o api.PageOptions) (*api.Page[api.Object[S]], error) {
				return k.list(c, ctx, args[0], o)
			})
			if err != nil {
				return err
			}
			t := &table{head: []string{k.arg, "HOLDS"}}
			for _, o := range all {
				t.row(o.Name, k.summary(o.Value))
			}
			return a.printTable(t, all)
		},
	})
	remove := &cobra.Command{
		Use:   "rm ZONE " + k.arg,
		Short: "Remove a " + k.noun,
		Args:  args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if err := k.remove(c, cmd.Context(), args[0], args[1], api.WriteOptions{}); err != nil {
				return err
			}
			a.printf("%s: removed %s %s; %s\n", args[0], k.noun, args[1], nextApply)
			return nil
		},
	}
	return group(k.verb, k.short, set, show, remove)
}

// printObject prints a value as YAML, or as JSON with --json.
func (a *app) printObject(v any) error {
	if a.json {
		return a.printJSON(v)
	}
	return a.printYAML(v)
}

// names lists the names of a zone's objects of one kind.
func names[S any](ctx context.Context, zone string, list func(context.Context, string, api.PageOptions) (*api.Page[api.Object[S]], error)) ([]string, error) {
	all, err := collect(ctx, 0, func(ctx context.Context, o api.PageOptions) (*api.Page[api.Object[S]], error) {
		return list(ctx, zone, o)
	})
	if err != nil {
		return nil, err
	}
	out := make([]string, len(all))
	for i, o := range all {
		out[i] = o.Name
	}
	return out, nil
}

func join(names []string) string { return strings.Join(names, ", ") }
