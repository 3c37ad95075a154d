package cli

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

func (a *app) clusterCommand() *cobra.Command {
	show := a.jsonFlag(&cobra.Command{
		Use:   "show",
		Short: "Show how the platform publishes when a command does not say",
		Args:  args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			s, _, err := c.ClusterSettings(cmd.Context())
			if err != nil {
				return err
			}
			return a.printCluster(s)
		},
	})
	set := a.jsonFlag(&cobra.Command{
		Use:   "set KEY=VALUE...",
		Short: "Change how the platform publishes when a command does not say; an empty value restores the default",
		Long: `Change how the platform publishes when a command does not say; an empty value restores the default. The keys:

  rollout         direct (the default: each node on its own) or coordinated (the cohort together or not at all)
  confirm_window  how long the cohort has to prove that a change works, else it is taken back; 0s, the default, is no trial;
                  at least twice the soak, and only with rollout=coordinated
  deadline        how long the cohort has to agree; default 5m0s
  soak            for how long a trial must work without a break; default 10s
  margin          by how many percentage points the share of 5xx answers may rise on trial; default 1.00%`,
		Example: `  gdn cluster set rollout=coordinated confirm_window=90s
  gdn cluster set confirm_window= margin=2%`,
		Args: args(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			edit, err := clusterEdit(cmd, args)
			if err != nil {
				return err
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			s, err := changeCluster(cmd.Context(), c, edit)
			if err != nil {
				return err
			}
			return a.printCluster(s)
		},
	})
	return group("cluster", "How the platform publishes (operators)", show, set)
}

func (a *app) printCluster(s *api.ClusterSettings) error {
	if a.json {
		return a.printJSON(s)
	}
	for _, line := range [][2]string{
		{"rollout", s.Rollout},
		{"confirm_window", s.ConfirmWindow.String()},
		{"deadline", s.Deadline.String()},
		{"soak", s.Soak.String()},
		{"margin", s.Margin.String()},
	} {
		a.printf("%s: %s\n", line[0], line[1])
	}
	return nil
}

// clusterKeys set one member of the settings each, from a text that is not empty.
var clusterKeys = map[string]func(*api.ClusterSettings, string) error{
	"rollout":        func(s *api.ClusterSettings, v string) error { s.Rollout = v; return nil },
	"confirm_window": func(s *api.ClusterSettings, v string) error { return setSpan(&s.ConfirmWindow, v) },
	"deadline":       func(s *api.ClusterSettings, v string) error { return notZero(v, &s.Deadline, setSpan) },
	"soak":           func(s *api.ClusterSettings, v string) error { return notZero(v, &s.Soak, setSpan) },
	"margin": func(s *api.ClusterSettings, v string) (err error) {
		if v == "" {
			s.Margin = 0
			return nil
		}
		return notZero(v, &s.Margin, func(to *zone.Percent, v string) (err error) {
			*to, err = parseMargin(v)
			return err
		})
	},
}

func setSpan(to *api.Duration, v string) error {
	if v == "" {
		*to = 0
		return nil
	}
	d, err := time.ParseDuration(v)
	*to = api.Duration(d)
	return err
}

var errZero = errors.New("it cannot be zero")

// notZero reads v by set: that a zero stands for the default is for those who leave a value empty.
func notZero[T comparable](v string, to *T, set func(*T, string) error) error {
	var zero T
	if err := set(to, v); err != nil || v == "" || *to != zero {
		return err
	}
	return errZero
}

// clusterRanges are what is allowed, as docs/guide/publishing.md has it.
var clusterRanges = map[string]string{
	"rollout": "direct or coordinated", "confirm_window": "0s, or at least twice the soak, up to 24h", "deadline": "100ms to 24h",
	"soak": "1ms to 24h", "margin": marginRange,
}

// marginRange are the margins that are allowed.
const marginRange = "0.01% to 100%"

// clusterEdit reads KEY=VALUE arguments.
func clusterEdit(cmd *cobra.Command, args []string) (func(*api.ClusterSettings), error) {
	values := map[string]string{}
	for _, kv := range args {
		key, value, ok := strings.Cut(kv, "=")
		if _, twice := values[key]; !ok || twice {
			return nil, usagef(cmd, "%q: want KEY=VALUE, each key once", kv)
		}
		set := clusterKeys[key]
		if set == nil {
			return nil, usagef(cmd, "there is no key %q; the keys are %s", key, strings.Join(slices.Sorted(maps.Keys(clusterKeys)), ", "))
		}
		if err := set(&api.ClusterSettings{}, value); err != nil {
			return nil, usagef(cmd, "%s=%s: want %s, or nothing for the default", key, value, clusterRanges[key])
		}
		values[key] = value
	}
	return func(s *api.ClusterSettings) {
		for key, value := range values {
			_ = clusterKeys[key](s, value)
		}
	}, nil
}

// clusterAttempts bounds how often settings are read again that changed meanwhile.
const clusterAttempts = 5

func changeCluster(ctx context.Context, c *api.Client, edit func(*api.ClusterSettings)) (*api.ClusterSettings, error) {
	for attempt := 1; ; attempt++ {
		s, revision, err := c.ClusterSettings(ctx)
		if err != nil {
			return nil, err
		}
		edit(s)
		s, _, err = c.PutClusterSettings(ctx, *s, api.WriteOptions{IfRevision: revision})
		var problem *api.Error
		if err == nil || attempt == clusterAttempts || !errors.As(err, &problem) || problem.Status != http.StatusPreconditionFailed {
			return s, err
		}
	}
}
