package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// CurrentRollout names the newest rollout where an id is asked for.
const CurrentRollout = "current"

// Rollouts lists rollouts, newest first, without their members. Operators only.
func (c *Client) Rollouts(ctx context.Context, o PageOptions) (*Page[Rollout], error) {
	return get[Page[Rollout]](ctx, c, "/v1/rollouts", o.values(nil))
}

// Rollout returns the rollout of this id, or the newest for [CurrentRollout]: an *Error of code no_rollout when there was
// none yet. Operators only.
func (c *Client) Rollout(ctx context.Context, id string) (*Rollout, error) {
	return get[Rollout](ctx, c, path("v1", "rollouts", id), nil)
}

// AwaitRollout is Rollout as soon as its Seen is not seen, at once when it is over, and after wait (up to 55 s, in whole
// seconds) at the latest. Operators only.
func (c *Client) AwaitRollout(ctx context.Context, id, seen string, wait time.Duration) (*Rollout, error) {
	q := url.Values{"wait": {strconv.Itoa(int(wait / time.Second))}}
	if seen != "" {
		q.Set("seen", seen)
	}
	return get[Rollout](ctx, c, path("v1", "rollouts", id), q)
}

// AbortRollout ends a rollout that is voted on. Operators only. As with Apply, a lost answer is asked for once more: to abort
// what is aborted is a success. An *Error of code rollout_state has the rollout as it is.
func (c *Client) AbortRollout(ctx context.Context, id, reason string) (*Rollout, error) {
	return c.endRollout(ctx, id, "abort", reason)
}

// RevertRollout ends a rollout that is on trial. Operators only. Else as AbortRollout.
func (c *Client) RevertRollout(ctx context.Context, id, reason string) (*Rollout, error) {
	return c.endRollout(ctx, id, "revert", reason)
}

func (c *Client) endRollout(ctx context.Context, id, verb, reason string) (*Rollout, error) {
	if id == CurrentRollout {
		// A second sending must not mean another rollout.
		r, err := c.Rollout(ctx, id)
		if err != nil {
			return nil, err
		}
		id = r.ID
	}
	target := path("v1", "rollouts", id, verb)
	r, err := exchange[Rollout](ctx, c, http.MethodPost, target, EndRollout{Reason: reason})
	var problem *Error
	if err != nil && !errors.As(err, &problem) && ctx.Err() == nil {
		return exchange[Rollout](ctx, c, http.MethodPost, target, EndRollout{Reason: reason})
	}
	return r, err
}

// ClusterSettings returns how the platform publishes when a request does not say, with the revision. Operators only.
func (c *Client) ClusterSettings(ctx context.Context) (*ClusterSettings, int64, error) {
	return getObject[ClusterSettings](ctx, c, "/v1/cluster/settings")
}

// PutClusterSettings replaces them. Operators only.
func (c *Client) PutClusterSettings(ctx context.Context, e ClusterSettingsEdit, o WriteOptions) (*ClusterSettings, int64, error) {
	out := new(ClusterSettings)
	revision, err := c.do(ctx, request{method: http.MethodPut, path: "/v1/cluster/settings", body: e, header: o.header()}, out)
	if err != nil {
		return nil, 0, err
	}
	return out, revision, nil
}

// DrainNode takes the node of this name (or id) out of the cohort: rollouts do not wait for it any more. Operators only.
func (c *Client) DrainNode(ctx context.Context, name string) (*Node, error) {
	return exchange[Node](ctx, c, http.MethodPost, path("v1", "nodes", name, "drain"), nil)
}

// UndrainNode puts the node of this name (or id) into the cohort. Operators only.
func (c *Client) UndrainNode(ctx context.Context, name string) (*Node, error) {
	return exchange[Node](ctx, c, http.MethodPost, path("v1", "nodes", name, "undrain"), nil)
}
