package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

func (h *Handler) configRoutes() []*route {
	return []*route{
		read(route{pattern: "/v1/whoami", access: forUsers, summary: "Tell whom the token speaks for"}, h.whoami),
		read(route{
			pattern: "/v1/config", access: forUsers, role: "viewer", slow: true,
			summary: "Tell what is live and whether the workspace has changes that are not",
		}, h.configStatus),
		read(route{
			pattern: "/v1/secrets/recipient", access: forUsers, role: "viewer",
			summary: "Tell whom private keys are sealed to before they are sent",
		}, h.secretRecipient),
		read(route{
			pattern: "/v1/config/plan", access: forOperators, query: []string{"hold_broken"}, slow: true,
			summary: "Tell what an apply would publish",
		}, h.plan),
		write(route{
			method: http.MethodPost, pattern: "/v1/config/apply", access: forOperators, slow: true,
			summary: "Publish every workspace's saved configuration, or put it to the cohort (202)", headers: []string{headerIdempotencyKey}, accepted: true,
		}, h.apply),
		write(route{
			method: http.MethodPost, pattern: "/v1/config/rollback", access: forOperators, slow: true,
			summary: "Make an older snapshot live again, or put it to the cohort (202)", headers: []string{headerIdempotencyKey}, accepted: true,
		}, h.rollback),
		write(route{
			method: http.MethodPost, pattern: "/v1/config/recover", access: forOperators,
			summary: "Raise the epoch after the database was restored from an old backup",
		}, h.recover),
		read(route{
			pattern: "/v1/config/keys", access: forOperators, summary: "Tell which nodes trust the configured signing key",
		}, h.keys),
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

// secretRecipient is the same for everybody who may see a workspace: whoever can seal learns nothing.
func (h *Handler) secretRecipient(c *call) (SecretRecipient, error) {
	if err := c.principal.MayView(); err != nil {
		return SecretRecipient{}, err
	}
	return SecretRecipient{Recipient: h.recipient}, nil
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
	plan := h.svc.Plan
	if hold {
		plan = h.svc.PlanHolding
	}
	report, err := plan(c.r.Context(), c.principal)
	if err != nil {
		return nil, err
	}
	out := planOf(report.Plan, report.Live)
	out.Ahead = aheadOf(report.Ahead)
	return out, nil
}

func (h *Handler) apply(c *call, in ApplyRequest) (*ApplyResult, error) {
	key, err := c.idempotencyKey()
	if err != nil {
		return nil, err
	}
	// What an operator asked to publish is not left half decided because their connection broke: it ends in
	// the publication or in none, and the request's repetition learns which.
	ctx := context.WithoutCancel(c.r.Context())
	res, err := h.svc.Apply(ctx, c.principal, control.ApplyRequest{
		Message: in.Message, AcceptDisruption: in.AcceptDisruption, Reseal: in.Reseal,
		ExpectedContentHash: in.ExpectedContentHash, HoldBroken: in.HoldBroken, DryRun: in.DryRun, IdempotencyKey: key,
		Rollout: rolloutRequest(in.Rollout),
	})
	if err != nil {
		if !in.DryRun {
			h.metrics.apply(c.failure(err).Code)
		}
		return nil, err
	}
	switch {
	case in.DryRun:
	case res.Replayed:
		c.replayed()
	case res.Applied:
		h.metrics.apply("applied")
	default:
		h.metrics.apply(res.Reason)
	}
	return &ApplyResult{
		Applied: res.Applied, Reason: res.Reason, Version: res.Version, Generation: res.Generation,
		ContentHash: res.ContentHash, Zones: res.Zones, Plan: planOf(res.Plan, nil), Rollout: c.proposed(res.Rollout),
	}, nil
}

// proposed tells of a rollout, if there is one, that the request goes on as: 202.
func (c *call) proposed(r *control.Rollout) *Rollout {
	c.accepted = r != nil
	return rolloutPointer(r)
}

func (h *Handler) rollback(c *call, in RollbackRequest) (*RollbackResult, error) {
	key, err := c.idempotencyKey()
	if err != nil {
		return nil, err
	}
	// As with apply.
	res, err := h.svc.Rollback(context.WithoutCancel(c.r.Context()), c.principal, control.RollbackRequest{
		Version: in.Version, Message: in.Message, AcceptDisruption: in.AcceptDisruption,
		ExpectedContentHash: in.ExpectedContentHash, ExpectedGeneration: in.ExpectedGeneration, DryRun: in.DryRun, IdempotencyKey: key,
		Rollout: rolloutRequest(in.Rollout),
	})
	if err != nil {
		if !in.DryRun {
			h.metrics.rollback(c.failure(err).Code)
		}
		return nil, err
	}
	switch {
	case res.Replayed:
		c.replayed()
	case res.RolledBack:
		h.metrics.rollback("rolled_back")
	case res.Rollout != nil:
		h.metrics.rollback(control.ReasonRollout)
	}
	return &RollbackResult{
		RolledBack: res.RolledBack, Version: res.Version, Generation: res.Generation, ContentHash: res.ContentHash,
		Zones: res.Zones, Resealed: res.Resealed, Plan: planOf(res.Plan, nil), Rollout: c.proposed(res.Rollout),
	}, nil
}

func (h *Handler) recover(c *call, in RecoverRequest) (RecoverResult, error) {
	res, err := h.svc.Recover(c.r.Context(), c.principal, control.RecoverRequest(in))
	if err != nil {
		return RecoverResult{}, err
	}
	out := RecoverResult{EpochBefore: res.EpochBefore, Epoch: res.Epoch}
	out.Ahead = aheadOf(res.Ahead)
	return out, nil
}

func aheadOf(a *control.AheadNode) *AheadNode {
	if a == nil {
		return nil
	}
	return &AheadNode{Node: a.Node, Epoch: a.Epoch, Generation: a.Generation, Version: a.Version, SeenAt: a.SeenAt.UTC()}
}

func (h *Handler) keys(c *call) (KeysReport, error) {
	r, err := h.svc.KeysCheck(c.r.Context(), c.principal)
	if err != nil {
		return KeysReport{}, err
	}
	out := KeysReport{Public: r.Key.String(), KeyID: r.KeyID, LiveKeyID: r.LiveKey, Nodes: make([]NodeKeys, len(r.Nodes)), Missing: r.Missing}
	for i, n := range r.Nodes {
		out.Nodes[i] = NodeKeys{ID: n.ID, Name: n.Name, TrustedKeys: n.TrustedKeys, Trusts: n.Trusts}
		if n.TrustedKeys == nil {
			out.Nodes[i].TrustedKeys = []seal.KeyID{}
		}
		if !n.ReportedAt.IsZero() {
			out.Nodes[i].ReportedAt = n.ReportedAt.UTC()
		}
	}
	return out, nil
}

const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotent-Replayed"
)

// idempotencyKey is the request's, empty when it has none.
func (c *call) idempotencyKey() (string, error) {
	keys := c.r.Header[headerIdempotencyKey]
	if len(keys) == 0 {
		return "", nil
	}
	bad := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if len(keys) > 1 || keys[0] == "" || len(keys[0]) > control.MaxIdempotencyKey || strings.ContainsFunc(keys[0], bad) {
		return "", &Error{
			Type: "about:blank", Status: http.StatusBadRequest, Code: "bad_idempotency_key",
			Detail: fmt.Sprintf("Send one Idempotency-Key of 1 to %d printable ASCII characters.", control.MaxIdempotencyKey),
		}
	}
	return keys[0], nil
}

// replayed marks an answer as the first one of a request that was sent again.
func (c *call) replayed() { c.w.Header().Set(headerReplayed, "true") }

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
