package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/zone"
)

// actionSettings names a change of the cluster's settings in the audit log.
const actionSettings = "cluster.settings"

// ClusterSettings returns how the platform publishes (operator). No member is zero but ConfirmWindow.
func (s *Service) ClusterSettings(ctx context.Context, p Principal) (ClusterSettings, error) {
	if err := p.operates(); err != nil {
		return ClusterSettings{}, err
	}
	return s.clusterSettings(ctx)
}

func (s *Service) clusterSettings(ctx context.Context) (ClusterSettings, error) {
	c, err := s.store.ClusterSettings(ctx)
	if err != nil {
		return c, fmt.Errorf("reading the cluster's settings: %w", err)
	}
	return c, nil
}

// PutClusterSettings replaces the platform's settings when e.Revision is the one that stands (operator): ErrConflict.
// A *ProblemsError names everything that is wrong.
func (s *Service) PutClusterSettings(ctx context.Context, p Principal, e ClusterSettingsEdit) (ClusterSettings, error) {
	if err := p.operates(); err != nil {
		return ClusterSettings{}, err
	}
	c := e.settings()
	problems := c.problems()
	if c.Rollout == RolloutCoordinated && s.cohort == nil {
		problems = append(problems, rolloutProblem("rollout", "rollout_unavailable", noCohort))
	}
	if err := joinProblems(problems...); err != nil {
		return ClusterSettings{}, err
	}
	a := s.entry(p, "", actionSettings, "cluster")
	a.Detail = detail(map[string]any{
		"rollout": string(c.Rollout), "confirm_window": c.ConfirmWindow.String(), "deadline": c.Deadline.String(),
		"soak": c.Soak.String(), "margin": zone.Percent(c.Margin).String(), "before_revision": c.Revision,
	})
	var err error
	if c.Revision, err = s.store.PutClusterSettings(ctx, c, a); err != nil {
		return ClusterSettings{}, fmt.Errorf("cluster settings: %w", err)
	}
	return c, nil
}

// settings are those that e asks for, defaults included.
func (e ClusterSettingsEdit) settings() ClusterSettings {
	return ClusterSettings{
		Rollout: given(e.Rollout, RolloutDirect), ConfirmWindow: given(e.ConfirmWindow, 0), Deadline: given(e.Deadline, barrier.DefaultDeadline),
		Soak: given(e.Soak, barrier.DefaultSoak), Margin: given(e.Margin, DefaultMargin), Revision: e.Revision,
	}
}

// given is what v points to, else its default.
func given[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

// maxMargin is all of the traffic.
const maxMargin = 10_000

// noCohort is why a control plane without a cohort publishes directly only.
const noCohort = "this control plane has no cohort, so that it can publish directly only"

func rolloutProblem(object, code, format string, a ...any) *Problem {
	return &Problem{Object: object, Code: code, Message: fmt.Sprintf(format, a...)}
}

// problems is everything that is wrong with settings.
func (c ClusterSettings) problems() []*Problem {
	var found []*Problem
	refuse := func(object, code, format string, a ...any) {
		found = append(found, rolloutProblem(object, code, format, a...))
	}
	if c.Rollout != RolloutDirect && c.Rollout != RolloutCoordinated {
		refuse("rollout", "rollout_invalid", "rollout is direct or coordinated, not %q", string(c.Rollout))
	}
	// A duration that is out of its range is not compared with another.
	between := func(object string, d, low, high time.Duration) bool {
		switch {
		case d < low || d > high:
			refuse(object, object+"_invalid", "%s is %s, not from %s to %s", object, d, low, high)
		case d%time.Millisecond != 0:
			refuse(object, object+"_invalid", "%s is %s, not whole milliseconds", object, d)
		default:
			return true
		}
		return false
	}
	between("deadline", c.Deadline, barrier.MinDeadline, barrier.MaxDeadline)
	soak := between("soak", c.Soak, time.Millisecond, barrier.MaxWindow)
	window := between("confirm_window", c.ConfirmWindow, 0, barrier.MaxWindow)
	if window && c.ConfirmWindow > 0 {
		if c.Rollout == RolloutDirect {
			refuse("confirm_window", "window_without_coordinated", "a confirm window is of a coordinated rollout: ask for one, or leave the window out")
		}
		if soak && c.ConfirmWindow < 2*c.Soak {
			refuse("confirm_window", "window_too_short",
				"the confirm window of %s is less than twice the soak of %s: nodes could not prove in time that the change works", c.ConfirmWindow, c.Soak)
		}
	}
	if c.Margin < 1 || c.Margin > maxMargin {
		refuse("margin", "margin_invalid", "margin is %s, not from %s to %s", zone.Percent(c.Margin), zone.Percent(1), zone.Percent(maxMargin))
	}
	return found
}

// publishing is how one request is to be published. head is zero without a cohort, and so is roster of a direct one.
type publishing struct {
	ClusterSettings
	head   barrier.Head
	roster barrier.Roster
}

func (h *publishing) coordinated() bool { return h.Rollout == RolloutCoordinated }

// after is the greatest generation that was taken, by a publication or by a rollout.
func (h *publishing) after(platform Platform) uint64 {
	return max(platform.Generation, h.head.Generation)
}

// how settles how a request is to be published. Everything that is wrong with it is a *ProblemsError, a rollout that is
// open a *RolloutOpenError.
func (s *Service) how(ctx context.Context, r *RolloutRequest) (*publishing, error) {
	settings, err := s.clusterSettings(ctx)
	if err != nil {
		return nil, err
	}
	h := &publishing{ClusterSettings: settings}
	problems := h.take(r)
	if s.cohort == nil {
		if h.coordinated() {
			problems = append(problems, rolloutProblem("rollout", "rollout_unavailable", noCohort))
		}
		return h, joinProblems(problems...)
	}
	if h.coordinated() {
		found, err := s.ready(ctx, h)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	} else {
		view, err := s.cohort.Look(ctx, "")
		if err != nil {
			return nil, fmt.Errorf("reading the cohort: %w", err)
		}
		h.head = view.Head
	}
	if err := joinProblems(problems...); err != nil {
		return nil, err
	}
	if ro := h.head.Rollout; ro != nil && ro.Open() {
		return nil, &RolloutOpenError{Rollout: *ro}
	}
	return h, nil
}

// judge settles how an apply is to be published and builds what it would publish. What is wrong with either is one *ProblemsError. The
// caller holds a build slot.
func (s *Service) judge(ctx context.Context, r *ApplyRequest) (*publishing, preview, error) {
	var how *ProblemsError
	h, err := s.how(ctx, r.Rollout)
	if err != nil && !errors.As(err, &how) {
		return nil, preview{}, err
	}
	pre, err := s.preview(ctx, r.HoldBroken)
	if how == nil {
		return h, pre, err
	}
	var built *ProblemsError
	switch {
	case errors.As(err, &built):
		how = &ProblemsError{Problems: slices.Concat(how.Problems, built.Problems)}
	case err != nil:
		return nil, preview{}, err
	}
	return nil, preview{}, how
}

// ready reads the cohort for a proposal, and returns why it can take none. A cohort without a committed pointer is given what
// is live first.
func (s *Service) ready(ctx context.Context, h *publishing) (problems []*Problem, err error) {
	row, err := s.cohort.Current(ctx)
	if err == nil && row.Committed.IsZero() && (row.Rollout == nil || !row.Rollout.Open()) {
		if err = s.store.AdoptLive(ctx); err == nil {
			row, err = s.cohort.Current(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cohort: %w", err)
	}
	h.head, h.roster = row.Head, row.Roster
	if len(h.roster.Members) == 0 {
		problems = append(problems, rolloutProblem("rollout", "cohort_empty",
			"no node belongs to the cohort, so that nobody could agree: put nodes into it (gdn node undrain NAME), or publish directly"))
	}
	if row.Committed.IsZero() {
		problems = append(problems, withoutLive())
	}
	return problems, nil
}

// take puts what r says in the place of the platform's settings.
func (h *publishing) take(r *RolloutRequest) []*Problem {
	if r == nil {
		return nil
	}
	var found []*Problem
	h.Rollout = cmp.Or(r.Mode, h.Rollout)
	if !h.coordinated() && r.ConfirmWindow == nil {
		h.ConfirmWindow = 0 // it is the platform's, for those that are
	}
	set := func(object string, to, from *time.Duration) {
		if from == nil {
			return
		}
		*to = *from
		if h.Rollout == RolloutDirect && object != "confirm_window" {
			found = append(found, rolloutProblem(object, object+"_without_coordinated",
				"%s is of a coordinated rollout: ask for one, or leave it out", object))
		}
	}
	set("confirm_window", &h.ConfirmWindow, r.ConfirmWindow)
	set("deadline", &h.Deadline, r.Deadline)
	set("soak", &h.Soak, r.Soak)
	if r.Margin != nil {
		h.Margin = *r.Margin
		if h.Rollout == RolloutDirect {
			found = append(found, rolloutProblem("margin", "margin_without_coordinated",
				"margin is of a coordinated rollout: ask for one, or leave it out"))
		}
	}
	return append(found, h.problems()...)
}

// rolloutIdentity is what repetitions of a request must have in common of a RolloutRequest, in nanoseconds.
type rolloutIdentity struct {
	Mode                          RolloutMode
	ConfirmWindow, Deadline, Soak *int64
	Margin                        *int
}

func (r *RolloutRequest) identity() *rolloutIdentity {
	if r == nil {
		return nil
	}
	return &rolloutIdentity{
		Mode: r.Mode, ConfirmWindow: (*int64)(r.ConfirmWindow), Deadline: (*int64)(r.Deadline), Soak: (*int64)(r.Soak), Margin: r.Margin,
	}
}
