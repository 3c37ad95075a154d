package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
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

// clusterKeys set one member of the settings each; an empty text leaves it to its default.
var clusterKeys = map[string]func(*api.ClusterSettingsEdit, string) error{
	"rollout": func(e *api.ClusterSettingsEdit, v string) error {
		return setKey(&e.Rollout, v, func(v string) (string, error) {
			if v != "direct" && v != "coordinated" {
				return "", errRange
			}
			return v, nil
		})
	},
	"confirm_window": func(e *api.ClusterSettingsEdit, v string) error { return setKey(&e.ConfirmWindow, v, parseSpan) },
	"deadline":       func(e *api.ClusterSettingsEdit, v string) error { return setKey(&e.Deadline, v, notZero(parseSpan)) },
	"soak":           func(e *api.ClusterSettingsEdit, v string) error { return setKey(&e.Soak, v, notZero(parseSpan)) },
	"margin":         func(e *api.ClusterSettingsEdit, v string) error { return setKey(&e.Margin, v, notZero(parseMargin)) },
}

func setKey[T any](to **T, v string, parse func(string) (T, error)) error {
	if v == "" {
		*to = nil
		return nil
	}
	got, err := parse(v)
	*to = &got
	return err
}

func parseSpan(v string) (api.Duration, error) {
	d, err := time.ParseDuration(v)
	return api.Duration(d), err
}

var errRange = errors.New("out of range")

// notZero is parse for what cannot be zero, which is a word of its own for those who are used to it as a default.
func notZero[T comparable](parse func(string) (T, error)) func(string) (T, error) {
	return func(v string) (T, error) {
		var zero T
		got, err := parse(v)
		if err == nil && got == zero {
			err = errRange
		}
		return got, err
	}
}

// clusterRanges are what is allowed, as docs/guide/publishing.md has it.
var clusterRanges = map[string]string{
	"rollout": "direct or coordinated", "confirm_window": "0s, or at least twice the soak, up to 24h", "deadline": "100ms to 24h",
	"soak": "1ms to 24h", "margin": marginRange,
}

// marginRange are the margins that are allowed.
const marginRange = "0.01% to 100%"

// clusterEdit reads KEY=VALUE arguments; the error tells all that is wrong with them.
func clusterEdit(cmd *cobra.Command, args []string) (func(*api.ClusterSettingsEdit), error) {
	var problems []string
	bad := func(format string, a ...any) { problems = append(problems, fmt.Sprintf(format, a...)) }
	values := map[string]string{}
	for _, kv := range args {
		key, value, ok := strings.Cut(kv, "=")
		_, twice := values[key]
		set := clusterKeys[key]
		switch {
		case !ok || twice:
			bad("%q: want KEY=VALUE, each key once", kv)
			continue
		case set == nil:
			bad("there is no key %q; the keys are %s", key, strings.Join(slices.Sorted(maps.Keys(clusterKeys)), ", "))
		case set(new(api.ClusterSettingsEdit), value) != nil:
			bad("%s=%s: want %s, or nothing for the default", key, value, clusterRanges[key])
		}
		values[key] = value
	}
	if len(problems) > 0 {
		return nil, usagef(cmd, "%s", strings.Join(problems, "\n"))
	}
	return func(e *api.ClusterSettingsEdit) {
		for key, value := range values {
			_ = clusterKeys[key](e, value)
		}
	}, nil
}

// clusterAttempts bounds how often settings are read again that changed meanwhile.
const clusterAttempts = 5

func changeCluster(ctx context.Context, c *api.Client, edit func(*api.ClusterSettingsEdit)) (*api.ClusterSettings, error) {
	for attempt := 1; ; attempt++ {
		s, revision, err := c.ClusterSettings(ctx)
		if err != nil {
			return nil, err
		}
		e := s.Edit()
		edit(&e)
		s, _, err = c.PutClusterSettings(ctx, e, api.WriteOptions{IfRevision: revision})
		var problem *api.Error
		if err == nil || attempt == clusterAttempts || !errors.As(err, &problem) || problem.Status != http.StatusPreconditionFailed {
			return s, err
		}
	}
}
