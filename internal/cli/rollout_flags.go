package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// publishFlags say how an apply or a rollback is to be published, and how long to wait for it. What is not given is as gdn cluster show has
// it.
type publishFlags struct {
	wait    bool
	timeout time.Duration
	rollout time.Duration // how long a rollout is waited for; 0: as long as it may take

	coordinated, direct    bool
	window, deadline, soak time.Duration
	margin                 string
}

func (f *publishFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.wait, "wait", false, "wait until the nodes serve it")
	flags.DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long --wait waits; for a rollout, unless this is given, as long as it may take")
	flags.BoolVar(&f.coordinated, "coordinated", false, "put it to the cohort: its nodes take it over together or not at all")
	flags.BoolVar(&f.direct, "direct", false, "each node takes it over on its own")
	flags.DurationVar(&f.window, "confirm-window", 0, "how long the cohort has to prove that it works, else it is taken back; 0 is no trial (coordinated)")
	flags.DurationVar(&f.deadline, "deadline", 0, "how long the cohort has to agree (coordinated)")
	flags.DurationVar(&f.soak, "soak", 0, "for how long it must work without a break (coordinated)")
	flags.StringVar(&f.margin, "margin", "", "by how many percentage points the share of 5xx answers may rise on trial, as `2%` (coordinated)")
}

// options are what was given of f for the request, nil when nothing was.
func (f *publishFlags) options(cmd *cobra.Command) (*api.RolloutOptions, error) {
	if cmd.Flags().Changed("timeout") {
		f.rollout = f.timeout
	}
	var o api.RolloutOptions
	given := false
	switch {
	case f.coordinated && f.direct:
		return nil, usagef(cmd, "--coordinated and --direct: want one of them")
	case f.coordinated:
		o.Mode, given = "coordinated", true
	case f.direct:
		o.Mode, given = "direct", true
	case cmd.Flags().Changed("coordinated"): // --coordinated=false
		o.Mode, given = "direct", true
	case cmd.Flags().Changed("direct"):
		o.Mode, given = "coordinated", true
	}
	for _, d := range []struct {
		name string
		from *time.Duration
		to   **api.Duration
	}{
		{"confirm-window", &f.window, &o.ConfirmWindow},
		{"deadline", &f.deadline, &o.Deadline},
		{"soak", &f.soak, &o.Soak},
	} {
		if cmd.Flags().Changed(d.name) {
			*d.to, given = (*api.Duration)(d.from), true
		}
	}
	if cmd.Flags().Changed("margin") {
		margin, err := parseMargin(f.margin)
		if err != nil {
			return nil, usagef(cmd, "--margin %q: want percentage points, %s", f.margin, marginRange)
		}
		o.Margin, given = &margin, true
	}
	if !given {
		return nil, nil
	}
	return &o, nil
}

// parseMargin reads 2% and 2 alike.
func parseMargin(s string) (zone.Percent, error) {
	return zone.ParsePercent(strings.TrimSuffix(s, "%") + "%")
}

// rolloutHelp ends the help of what may be put to the cohort.
const rolloutHelp = `

With --coordinated the nodes of the cohort build it first and take it over together, or none of them does; with
--confirm-window too, it is taken back everywhere unless all of them prove in time that it works. gdn cluster show tells
what is done without these flags. With --wait the exit code is 0 when it was committed (and confirmed), 3 when it was
aborted, 4 when it was reverted and 5 when it is still open at --timeout. docs/guide/publishing.md says which way is for what.`
