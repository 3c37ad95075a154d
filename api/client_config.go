package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// Whoami tells whom the token speaks for.
func (c *Client) Whoami(ctx context.Context) (*Whoami, error) {
	return get[Whoami](ctx, c, "/v1/whoami", nil)
}

// Config tells what is live and whether the workspace has saved changes that are not.
func (c *Client) Config(ctx context.Context) (*ConfigStatus, error) {
	return get[ConfigStatus](ctx, c, "/v1/config", nil)
}

// SecretRecipient tells whom private keys are sealed to before they are sent.
func (c *Client) SecretRecipient(ctx context.Context) (*SecretRecipient, error) {
	return get[SecretRecipient](ctx, c, "/v1/secrets/recipient", nil)
}

// Plan tells what an apply would publish now. Operators only.
func (c *Client) Plan(ctx context.Context, o PlanOptions) (*Plan, error) {
	q := url.Values{}
	if o.HoldBroken {
		q.Set("hold_broken", "true")
	}
	return get[Plan](ctx, c, "/v1/config/plan", q)
}

// Apply publishes. Operators only. The request carries an Idempotency-Key, and is sent once more when its
// answer was lost on the way. An *Error of status 409 has the plan that was refused, or the new one.
func (c *Client) Apply(ctx context.Context, r ApplyRequest) (*ApplyResult, error) {
	return deed[ApplyResult](ctx, c, "/v1/config/apply", r)
}

// Rollback makes an older snapshot live again. Operators only. As with Apply, a lost answer is asked for once
// more, and an *Error of status 409 has the plan when there is one.
func (c *Client) Rollback(ctx context.Context, r RollbackRequest) (*RollbackResult, error) {
	return deed[RollbackResult](ctx, c, "/v1/config/rollback", r)
}

// deed posts what must be done once: a second sending has the same key.
func deed[T any](ctx context.Context, c *Client, path string, body any) (*T, error) {
	out := new(T)
	req := request{
		method: http.MethodPost, path: path, body: body,
		header: http.Header{headerIdempotencyKey: {newIdempotencyKey()}},
	}
	_, err := c.do(ctx, req, out)
	var problem *Error
	if err != nil && !errors.As(err, &problem) && ctx.Err() == nil {
		out = new(T)
		_, err = c.do(ctx, req, out)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Recover raises the epoch after the database was restored from an old backup. Operators only.
func (c *Client) Recover(ctx context.Context, r RecoverRequest) (*RecoverResult, error) {
	return exchange[RecoverResult](ctx, c, http.MethodPost, "/v1/config/recover", r)
}

// Keys tells which nodes trust the configured signing key. Operators only.
func (c *Client) Keys(ctx context.Context) (*KeysReport, error) {
	return get[KeysReport](ctx, c, "/v1/config/keys", nil)
}

// History lists published snapshots, newest first. Operators only.
func (c *Client) History(ctx context.Context, o PageOptions) (*Page[HistoryEntry], error) {
	return get[Page[HistoryEntry]](ctx, c, "/v1/config/history", o.values(nil))
}

// AuditOptions selects entries of the audit log.
type AuditOptions struct {
	PageOptions
	// All is every workspace's and the platform's own. Operators only.
	All bool
}

// Audit lists the audit log of the workspace, newest first. Admins only.
func (c *Client) Audit(ctx context.Context, o AuditOptions) (*Page[AuditEntry], error) {
	q := url.Values{}
	if o.All {
		q.Set("all", "true")
	}
	return get[Page[AuditEntry]](ctx, c, "/v1/audit", o.values(q))
}
