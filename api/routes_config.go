package api

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/snapshot"
)

func (h *Handler) configRoutes() []*route {
	apply := write(route{
		method: http.MethodPost, pattern: "/v1/config/apply", access: forOperators, slow: true,
		summary: "Publish every workspace's saved configuration", headers: []string{"Idempotency-Key"},
	}, h.apply)
	apply.serve = h.replays.guard(apply.serve)
	return []*route{
		read(route{pattern: "/v1/whoami", access: forUsers, summary: "Tell whom the token speaks for"}, h.whoami),
		read(route{
			pattern: "/v1/config", access: forUsers, role: "viewer", slow: true,
			summary: "Tell what is live and whether the workspace has changes that are not",
		}, h.configStatus),
		read(route{
			pattern: "/v1/config/plan", access: forOperators, query: []string{"hold_broken"}, slow: true,
			summary: "Tell what an apply would publish",
		}, h.plan),
		apply,
		read(route{
			pattern: "/v1/config/history", access: forOperators, query: []string{"limit", "cursor"},
			summary: "List published snapshots, newest first",
		}, func(c *call) (Page[HistoryEntry], error) {
			p, err := c.page()
			if err != nil {
				return Page[HistoryEntry]{}, err
			}
			l, err := h.svc.History(c.r.Context(), c.principal, p)
			return pageOf(l, historyEntry), err
		}),
		read(route{
			pattern: "/v1/audit", access: forUsers, role: "admin", query: []string{"limit", "cursor", "all"},
			summary: "List the audit log, newest first",
		}, h.audit),
	}
}

func (h *Handler) whoami(c *call) (Whoami, error) {
	p := c.principal
	return Whoami{
		TokenID: p.TokenID, Email: p.Email, Operator: p.Operator,
		Workspace: p.Workspace, WorkspaceName: p.WorkspaceName, Role: string(p.Role),
	}, nil
}

func (h *Handler) configStatus(c *call) (ConfigStatus, error) {
	st, err := h.svc.ConfigStatus(c.r.Context(), c.principal)
	if err != nil {
		return ConfigStatus{}, err
	}
	return ConfigStatus{
		Live: liveVersion(st.Live), HasUnpublishedChanges: st.HasUnpublishedChanges,
		Message: st.Message, Workspace: st.Workspace,
	}, nil
}

func (h *Handler) plan(c *call) (*Plan, error) {
	hold, err := c.flag("hold_broken")
	if err != nil {
		return nil, err
	}
	if hold {
		return nil, unavailable("hold_broken", "this control plane does not hold broken zones back; mend them, or leave hold_broken out")
	}
	report, err := h.svc.Plan(c.r.Context(), c.principal)
	if err != nil {
		return nil, err
	}
	return planOf(report.Plan, report.Live), nil
}

// unavailable refuses a member that stands in the agreement for a capability that this build lacks.
func unavailable(member, message string) error {
	return &control.ProblemsError{Problems: []control.Problem{{Object: member, Code: member + "_unavailable", Message: message}}}
}

func (h *Handler) apply(c *call, in ApplyRequest) (*ApplyResult, error) {
	if in.HoldBroken {
		return nil, unavailable("hold_broken", "this control plane does not hold broken zones back; mend them, or leave hold_broken out")
	}
	if in.Rollout != "" {
		return nil, unavailable("rollout", "this control plane publishes to every node at once; leave rollout out")
	}
	// What an operator asked to publish is not left half decided because their connection broke: it ends in
	// the publication or in none, and the request's repetition learns which.
	ctx := context.WithoutCancel(c.r.Context())
	res, err := h.svc.Apply(ctx, c.principal, control.ApplyRequest{
		Message: in.Message, AcceptDisruption: in.AcceptDisruption, Reseal: in.Reseal,
		ExpectedContentHash: in.ExpectedContentHash,
	})
	h.metrics.apply(c, res, err)
	if err != nil {
		return nil, err
	}
	return &ApplyResult{
		Applied: res.Applied, Reason: res.Reason, Version: res.Version, Generation: res.Generation,
		ContentHash: res.ContentHash, Zones: res.Zones, Plan: planOf(res.Plan, nil),
	}, nil
}

func (h *Handler) audit(c *call) (Page[AuditEntry], error) {
	p, err := c.page()
	if err != nil {
		return Page[AuditEntry]{}, err
	}
	all, err := c.flag("all")
	if err != nil {
		return Page[AuditEntry]{}, err
	}
	l, err := h.svc.ListAudit(c.r.Context(), c.principal, all, p)
	return pageOf(l, auditEntry), err
}

// planOf is a plan as it travels, nil for none.
func planOf(p *snapshot.Plan, live *control.SnapshotRow) *Plan {
	if p == nil {
		return nil
	}
	return &Plan{Plan: *p, Text: p.Text(false), Live: liveVersion(live)}
}

func liveVersion(r *control.SnapshotRow) *LiveVersion {
	if r == nil {
		return nil
	}
	l := &LiveVersion{
		Version: r.Version, ContentHash: r.ContentHash, CreatedBy: r.CreatedBy, Message: r.Message, Zones: r.Zones,
		Bytes: r.Bytes, KeyID: r.KeyID, ActivatedAt: r.ActivatedAt.UTC(), CreatedAt: r.CreatedAt.UTC(),
	}
	if n := len(r.Generations); n > 0 {
		l.Generation = r.Generations[n-1]
	}
	return l
}

func historyEntry(r control.SnapshotRow) HistoryEntry {
	e := HistoryEntry{
		Version: r.Version, ParentVersion: r.ParentVersion, Generations: r.Generations, ContentHash: r.ContentHash,
		CreatedBy: r.CreatedBy, Message: r.Message, Zones: r.Zones, Bytes: r.Bytes, KeyID: r.KeyID,
		CreatedAt: r.CreatedAt.UTC(),
	}
	if !r.ActivatedAt.IsZero() {
		e.ActivatedAt = r.ActivatedAt.UTC()
	}
	return e
}

func auditEntry(a control.AuditEntry) AuditEntry {
	e := AuditEntry{
		ID: a.ID, At: a.At.UTC(), Workspace: a.Workspace, Actor: a.Actor, From: a.From, Action: a.Action,
		Target: a.Target, Outcome: a.Outcome,
	}
	if d := jsontext.Value(a.Detail); len(d) > 0 && d.IsValid() {
		e.Detail = d
	}
	return e
}
