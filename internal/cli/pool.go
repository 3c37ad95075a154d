package cli

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

// poolStatusEvery is how often --watch asks.
const poolStatusEvery = 2 * time.Second

func (a *app) poolStatusCommand() *cobra.Command {
	var watch bool
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "status ZONE [NAME]",
		Short: "Show on how many nodes each origin takes requests, by what the nodes say",
		Long: `Show on how many nodes each origin takes requests, by what the nodes say. A node says so with its next
acknowledgement, within seconds. SERVING is "2/3" when an origin takes requests on two of the three nodes that say how their pools
do; STATE tells why it does not on the others: unhealthy, by its health checks, or ejected, since requests to it failed.

With --watch it is shown again whenever it changes, until interrupted.`,
		Args: args(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			var last []api.PoolStatus
			for {
				now, err := poolStatus(cmd.Context(), c, args)
				if err != nil {
					if watch && cmd.Context().Err() != nil {
						return nil
					}
					return err
				}
				if last == nil || !reflect.DeepEqual(now, last) {
					if last != nil && !a.json {
						a.printf("\n%s\n", moment(time.Now()))
					}
					if err := a.printPoolStatus(now); err != nil {
						return err
					}
					last = now
				}
				if !watch {
					return nil
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(poolStatusEvery):
				}
			}
		},
	})
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again whenever it changes")
	return cmd
}

// poolStatus asks for the pools that args name: one of a zone, or all.
func poolStatus(ctx context.Context, c *api.Client, args []string) ([]api.PoolStatus, error) {
	if len(args) == 1 {
		return collect(ctx, 0, func(ctx context.Context, o api.PageOptions) (*api.Page[api.PoolStatus], error) {
			return c.PoolStatuses(ctx, args[0], o)
		})
	}
	one, err := c.PoolStatus(ctx, args[0], args[1])
	if err != nil {
		return nil, err
	}
	return []api.PoolStatus{*one}, nil
}

func (a *app) printPoolStatus(all []api.PoolStatus) error {
	t := &table{head: []string{"POOL", "ORIGIN", "ADDRESS", "SERVING", "STATE", "SINCE", "ERROR"}}
	unknown, nodes := 0, 0
	for _, p := range all {
		for _, o := range p.Origins {
			t.row(p.Pool, o.Name, o.Address, fmt.Sprintf("%d/%d", o.Serving, p.Nodes), originState(p, o), moment(o.Since), o.Error)
		}
		unknown, nodes = p.Unknown, p.Nodes
	}
	if err := a.printTable(t, all); err != nil {
		return err
	}
	if !a.json && len(all) > 0 && unknown > 0 {
		a.notef("%s of %d cannot be told from: not heard for five minutes, or of a version that does not say\n", count(unknown, "node"), unknown+nodes)
	}
	return nil
}

func originState(p api.PoolStatus, o api.OriginStatus) string {
	down := ""
	switch {
	case !o.Enabled:
		return "disabled"
	case p.Nodes == 0:
		return "unknown"
	case o.Unhealthy > 0 && o.Ejected > 0:
		down = fmt.Sprintf("unhealthy on %d, ejected on %d", o.Unhealthy, o.Ejected)
	case o.Unhealthy > 0:
		down = fmt.Sprintf("unhealthy on %d", o.Unhealthy)
	case o.Ejected > 0:
		down = fmt.Sprintf("ejected on %d", o.Ejected)
	default:
		return "serving"
	}
	if len(o.DownOn) > 0 {
		down += " (" + join(o.DownOn) + ")"
	}
	return down
}
