package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/zone"
)

func (h *Handler) rolloutRoutes() []*route {
	return []*route{
		read(route{
			pattern: "/v1/rollouts", access: forOperators, query: []string{"limit", "cursor"},
			summary: "List rollouts, newest first, without their members",
		}, func(c *call) (Page[Rollout], error) {
			p, err := c.page()
			if err != nil {
				return Page[Rollout]{}, err
			}
			l, err := h.svc.Rollouts(c.r.Context(), c.principal, p)
			return pageOf(l, func(r control.Rollout) Rollout { return rolloutOf(r) }), err
		}),
		read(route{
			pattern: "/v1/rollouts/{id}", access: forOperators, query: []string{"wait", "seen"},
			summary: "Return a rollout with its members, the newest one for current; with wait and seen, as soon as it says something else",
		}, h.rollout),
		write(route{
			method: http.MethodPost, pattern: "/v1/rollouts/{id}/abort", access: forOperators,
			summary: "Abort a rollout that is voted on: nothing changes anywhere",
		}, func(c *call, in EndRollout) (Rollout, error) {
			return h.endRollout(c, in, h.svc.AbortRollout)
		}),
		write(route{
			method: http.MethodPost, pattern: "/v1/rollouts/{id}/revert", access: forOperators,
			summary: "Revert a rollout that is on trial: every node goes back to what is live",
		}, func(c *call, in EndRollout) (Rollout, error) {
			return h.endRollout(c, in, h.svc.RevertRollout)
		}),
		read(route{
			pattern: "/v1/cluster/settings", access: forOperators, conditional: true,
			summary: "Tell how the platform publishes when a request does not say",
		}, h.clusterSettings),
		write(route{
			method: http.MethodPut, pattern: "/v1/cluster/settings", access: forOperators, conditional: true,
			summary: "Replace how the platform publishes when a request does not say",
		}, h.putClusterSettings),
	}
}

// rollout returns one rollout. A request that waits gets the time for it, and ends when the client goes or the server drains.
func (h *Handler) rollout(c *call) (Rollout, error) {
	wait, err := c.seconds("wait", nodeproto.MaxWait)
	if err != nil {
		return Rollout{}, err
	}
	ctx, id := c.r.Context(), c.param("id")
	var r control.Rollout
	if wait > 0 {
		// Deadlines are the connection's own clock, whatever the handler's is.
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(wait + writeTimeout))
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(h.draining, cancel)()
		r, err = h.svc.AwaitRollout(waiting, c.principal, id, c.args["seen"], wait)
	}
	// Draining can end it in the middle of a reading.
	if wait == 0 || err != nil && h.draining.Err() != nil && ctx.Err() == nil {
		r, err = h.svc.Rollout(ctx, c.principal, id)
	}
	if err != nil {
		return Rollout{}, noRollout(id, err)
	}
	return h.tellRollout(ctx, c.principal, r)
}

// noRollout says that there is no newest one.
func noRollout(id string, err error) error {
	if id == control.CurrentRollout && errors.Is(err, control.ErrNotFound) && !errors.Is(err, control.ErrNoRoute) {
		return &Error{Type: "about:blank", Status: http.StatusNotFound, Code: "no_rollout", Detail: "There was no rollout yet."}
	}
	return err
}

// tellRollout is r with what its nodes acknowledged.
func (h *Handler) tellRollout(ctx context.Context, p control.Principal, r control.Rollout) (Rollout, error) {
	out := rolloutOf(r)
	if len(out.Members) == 0 || r.CommittedAt.IsZero() {
		return out, nil
	}
	nodes, err := h.svc.ListNodes(ctx, p)
	if err != nil {
		return out, err
	}
	serves := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		// What was taken back is not served by who acknowledged what came after it.
		serves[n.ID] = n.Acked != nil &&
			(n.Acked.Generation == r.Generation || n.Acked.Generation > r.Generation && r.State != barrier.Reverted)
	}
	for i := range out.Members {
		out.Members[i].Serves = serves[out.Members[i].ID]
	}
	return out, nil
}

func (h *Handler) endRollout(c *call, in EndRollout, end func(context.Context, control.Principal, string, string) (control.Rollout, error)) (Rollout, error) {
	// As with apply: it is ended or not, whatever becomes of the connection.
	ctx, id := context.WithoutCancel(c.r.Context()), c.param("id")
	r, err := end(ctx, c.principal, id, in.Reason)
	if err != nil {
		return Rollout{}, noRollout(id, err)
	}
	return h.tellRollout(ctx, c.principal, r)
}

func (h *Handler) clusterSettings(c *call) (ClusterSettings, error) {
	s, err := h.svc.ClusterSettings(c.r.Context(), c.principal)
	if err != nil {
		return ClusterSettings{}, err
	}
	c.setRevision(s.Revision)
	return clusterSettingsOf(s), nil
}

// settingsAttempts bounds how often a write without a condition is tried that lost against another.
const settingsAttempts = 3

func (h *Handler) putClusterSettings(c *call, in ClusterSettingsEdit) (ClusterSettings, error) {
	ctx := c.r.Context()
	s := control.ClusterSettingsEdit{
		Rollout: (*control.RolloutMode)(in.Rollout), ConfirmWindow: (*time.Duration)(in.ConfirmWindow), Deadline: (*time.Duration)(in.Deadline),
		Soak: (*time.Duration)(in.Soak), Margin: hundredths(in.Margin), Revision: c.condition.revision,
	}
	for attempt := 1; ; attempt++ {
		if !c.condition.given() {
			have, err := h.svc.ClusterSettings(ctx, c.principal)
			if err != nil {
				return ClusterSettings{}, err
			}
			s.Revision = have.Revision
		}
		out, err := h.svc.PutClusterSettings(ctx, c.principal, s)
		switch {
		case err == nil:
			c.setRevision(out.Revision)
			return clusterSettingsOf(out), nil
		case c.condition.given(), !errors.Is(err, control.ErrConflict), attempt == settingsAttempts:
			return ClusterSettings{}, err
		}
	}
}

// rolloutRequest is o as control takes it.
func rolloutRequest(o *RolloutOptions) *control.RolloutRequest {
	if o == nil {
		return nil
	}
	r := &control.RolloutRequest{
		Mode: control.RolloutMode(o.Mode), ConfirmWindow: (*time.Duration)(o.ConfirmWindow), Deadline: (*time.Duration)(o.Deadline),
		Soak: (*time.Duration)(o.Soak), Margin: hundredths(o.Margin),
	}
	return r
}

// hundredths is p in hundredths of a percentage point, nil for none.
func hundredths(p *zone.Percent) *int {
	if p == nil {
		return nil
	}
	return new(int(*p))
}

func clusterSettingsOf(s control.ClusterSettings) ClusterSettings {
	return ClusterSettings{
		Rollout: string(s.Rollout), ConfirmWindow: Duration(s.ConfirmWindow), Deadline: Duration(s.Deadline), Soak: Duration(s.Soak),
		Margin: zone.Percent(s.Margin),
	}
}

// rolloutPointer is a rollout as it travels, nil for none.
func rolloutPointer(r *control.Rollout) *Rollout {
	if r == nil {
		return nil
	}
	out := rolloutOf(*r)
	return &out
}

func rolloutOf(r control.Rollout) Rollout {
	out := Rollout{
		ID: string(r.ID), Generation: r.Generation, Version: r.Version, State: string(r.State), Open: r.Open(), OnTrial: r.OnTrial(),
		Kind: string(r.Kind), ContentHash: r.ContentHash, Message: r.Message, ProposedBy: r.By, EpochSize: r.EpochSize,
		ConfirmWindow: Duration(r.Window), Soak: Duration(r.Soak), Margin: zone.Percent(r.Margin),
		ProposedAt: r.ProposedAt.UTC(), Deadline: r.Deadline.UTC(), CommittedAt: utc(r.CommittedAt), ConfirmDeadline: utc(r.ConfirmDeadline),
		DecidedAt: utc(r.DecidedAt), DecidedBy: r.DecidedBy, Reason: r.Reason,
		WaitingFor: r.WaitingFor, Now: utc(r.Now), Seen: r.Seen,
	}
	if out.ProposedBy == "" {
		out.ProposedBy = r.Proposer // an error has what the cohort knows
	}
	for _, m := range r.Members {
		out.Members = append(out.Members, rolloutMember(r, m))
	}
	return out
}

func rolloutMember(r control.Rollout, m control.RolloutMember) RolloutMember {
	b := m.Ballot
	at := r.Now // evidence is judged by the store's time: now, or when it was decided
	if !r.Open() {
		at = r.DecidedAt
	}
	fresh := at.Sub(b.RenewedAt).Abs() <= r.EvidenceTTL
	return RolloutMember{
		ID: string(m.Member), Name: m.Name, Vote: string(b.Vote), Reason: b.Reason, VotedAt: utc(b.VotedAt), BuildDigest: b.BuildDigest,
		Restarted: m.Restarted, Converged: b.Vote == barrier.Acked && !b.ConvergedSince.IsZero() && b.Withdrawn == "" && !m.Restarted && fresh,
		ConvergedSince: utc(b.ConvergedSince), RenewedAt: utc(b.RenewedAt), Detail: b.Detail, Withdrawn: b.Withdrawn, WithdrawnAt: utc(b.WithdrawnAt),
	}
}

// utc is t in UTC; no time stays none.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

// seconds reads a parameter of whole seconds up to most; absent is 0.
func (c *call) seconds(name string, most time.Duration) (time.Duration, error) {
	v, ok := c.args[name]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 16)
	if err != nil || time.Duration(n)*time.Second > most || strconv.FormatUint(n, 10) != v {
		return 0, badQuery([]Problem{{
			Object: "parameter " + name, Code: "bad_parameter", Message: fmt.Sprintf("%q is not a number of seconds from 0 to %d", clip(v), most/time.Second),
		}})
	}
	return time.Duration(n) * time.Second, nil
}
