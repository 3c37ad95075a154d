package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
)

func (a *app) rolloutCommand() *cobra.Command {
	return group("rollout", "Changes that are put to the cohort (operators)",
		a.rolloutStatusCommand(), a.rolloutHistoryCommand(), a.rolloutWaitCommand(),
		a.rolloutEndCommand("abort", "Abort a rollout that is voted on: nothing changes anywhere", (*api.Client).AbortRollout),
		a.rolloutEndCommand("revert", "Revert a rollout that is on trial: every node goes back to what is live", (*api.Client).RevertRollout))
}

// rolloutID is the id that was given, or the newest rollout.
func rolloutID(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return api.CurrentRollout
}

// unknownRollout is err of a rollout that was asked for, with what to do when there is none of its id.
func unknownRollout(err error) error {
	var problem *api.Error
	if errors.As(err, &problem) && problem.Status == http.StatusNotFound && problem.Code != "no_rollout" && !problem.NothingHere() {
		return hint(err, "gdn rollout history lists rollouts with their ids")
	}
	return err
}

// oneRollout checks the arguments of a command that takes a rollout's id, or none.
func oneRollout(cmd *cobra.Command, given []string) error {
	if len(given) == 1 && given[0] == "" {
		return usagef(cmd, "the id of a rollout is empty: leave it out for the newest")
	}
	return args(0, 1)(cmd, given)
}

func (a *app) rolloutStatusCommand() *cobra.Command {
	var watch bool
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "status [ID]",
		Short: "Show a rollout, the newest without an ID, and what each node says of it",
		Long: `Show a rollout, the newest without an ID, and what each node says of it.

BUILT is the node's vote: it has built the change, and can serve it at once; or why it cannot. SERVES is whether it
acknowledged that it does. CONVERGED is what its checks saw on trial, or what failed.

With --watch it follows the rollout until it is over: as a table on a terminal, else by a line for each change, and with --json
by a line of JSON for each. The exit code then is that of gdn rollout wait.`,
		Args: oneRollout,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			if watch {
				r, err := a.follow(cmd.Context(), c, rolloutID(args), 0, a.watchView())
				if err != nil {
					return unknownRollout(err)
				}
				return outcome(r)
			}
			r, err := c.Rollout(cmd.Context(), rolloutID(args))
			if err != nil {
				return unknownRollout(err)
			}
			if a.json {
				return a.printJSON(r)
			}
			a.printRollout(r)
			return nil
		},
	})
	cmd.Flags().BoolVar(&watch, "watch", false, "follow it until it is over")
	return cmd
}

func (a *app) rolloutWaitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "wait [ID]",
		Short: "Wait until a rollout is over, the newest without an ID",
		Long: `Wait until a rollout is over, the newest without an ID.

The exit code is 0 when it was committed (and confirmed, if it was tried), 3 when it was aborted, 4 when it was reverted, 5 when
it is still open at --timeout, and 1 when that cannot be told.`,
		Args: oneRollout,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return usagef(cmd, "--timeout %s: want a time span, as 5m", timeout)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			r, err := a.follow(cmd.Context(), c, rolloutID(args), timeout, a.progressView())
			if r != nil && a.json {
				if err := a.printJSON(r); err != nil {
					return err
				}
			}
			if err != nil {
				return unknownRollout(err)
			}
			if err := outcome(r); err != nil {
				return err
			}
			if !a.json {
				a.printf("✓ %s v%d — generation %d\n", r.State, r.Version, r.Generation)
			}
			return nil
		},
	})
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0 is as long as the rollout may take")
	return cmd
}

func (a *app) rolloutEndCommand(verb, short string, end func(*api.Client, context.Context, string, string) (*api.Rollout, error)) *cobra.Command {
	var message string
	cmd := a.jsonFlag(&cobra.Command{
		Use:   verb + " [ID]",
		Short: short,
		Args:  oneRollout,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			before, err := c.Rollout(cmd.Context(), rolloutID(args))
			if err != nil {
				return unknownRollout(err)
			}
			r, err := end(c, cmd.Context(), before.ID, message)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			if !before.Open {
				a.printf("rollout %s of v%d had been %s already at %s, by %s: %s\n",
					r.ID, r.Version, r.State, moment(r.DecidedAt), inert(r.DecidedBy), inert(r.Reason))
				return nil
			}
			a.printf("%s rollout %s of v%d\n", r.State, r.ID, r.Version)
			return nil
		},
	})
	cmd.Flags().StringVarP(&message, "message", "m", "", "say why, in `TEXT` for the ledger")
	return cmd
}

func (a *app) rolloutHistoryCommand() *cobra.Command {
	var limit int
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "history",
		Short: "List rollouts, newest first",
		Args:  args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef(cmd, "--limit %d: want 0 (all) or more", limit)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			all, err := collect(cmd.Context(), limit, c.Rollouts)
			if err != nil {
				return err
			}
			t := &table{head: []string{"GENERATION", "STATE", "VERSION", "ID", "KIND", "PROPOSED", "TOOK", "NODES", "TRIAL", "BY", "MESSAGE", "REASON"}}
			for _, r := range all {
				took, trial := "", ""
				if !r.Open && !r.DecidedAt.IsZero() {
					took = r.DecidedAt.Sub(r.ProposedAt).Round(time.Millisecond).String()
				}
				if r.ConfirmWindow > 0 {
					trial = r.ConfirmWindow.String()
				}
				t.row(strconv.FormatUint(r.Generation, 10), stateWord(&r), fmt.Sprintf("v%d", r.Version), r.ID, r.Kind, moment(r.ProposedAt), took,
					strconv.Itoa(r.EpochSize), trial, r.ProposedBy, r.Message, r.Reason)
			}
			return a.printTable(t, all)
		},
	})
	cmd.Flags().IntVar(&limit, "limit", 20, "how many; 0 is all")
	return cmd
}

// printProposed tells of what was put to the cohort.
func (a *app) printProposed(r *api.Rollout, waits bool) {
	trial := ""
	if r.ConfirmWindow > 0 {
		trial = fmt.Sprintf(", then %s on trial", r.ConfirmWindow)
	}
	a.printf("\n✓ proposed v%d to %s — not live yet\n  rollout %s, generation %d: %s to agree%s\n",
		r.Version, count(r.EpochSize, "node"), r.ID, r.Generation, r.Deadline.Sub(r.ProposedAt).Round(time.Millisecond), trial)
	if !waits {
		a.printf("  gdn rollout status --watch shows how it goes\n")
	}
}

// waitForRollout follows what was proposed, then waits until its members serve it. With --json, answer prints the answer with
// the rollout as it ended.
func (a *app) waitForRollout(ctx context.Context, c *api.Client, proposed *api.Rollout, how publishFlags, answer func(*api.Rollout) error) error {
	if !a.json {
		a.printProposed(proposed, true)
	}
	r, err := a.follow(ctx, c, proposed.ID, how.rollout, a.progressView())
	if r == nil {
		r = proposed
	}
	if a.json {
		err = errors.Join(answer(r), err)
	}
	if err != nil {
		return err
	}
	if err := outcome(r); err != nil {
		return err
	}
	if !a.json {
		a.printf("✓ %s v%d — generation %d\n", r.State, r.Version, r.Generation)
	}
	return a.waitForNodes(ctx, c, published{r.Version, r.Generation}, r, how.timeout)
}
