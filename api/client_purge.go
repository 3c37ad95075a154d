package api

import (
	"context"
	"net/http"
)

// Purge has every node drop what it cached of a zone, within seconds. Sent twice it is done twice, which does no harm.
func (c *Client) Purge(ctx context.Context, zone string, p NewPurge) (*Purge, error) {
	return exchange[Purge](ctx, c, http.MethodPost, path("v1", "zones", zone, "purges"), p)
}

// Purges lists a zone's purges, newest first.
func (c *Client) Purges(ctx context.Context, zone string, o PageOptions) (*Page[Purge], error) {
	return get[Page[Purge]](ctx, c, path("v1", "zones", zone, "purges"), o.values(nil))
}

// PurgeByID returns a purge with how far the fleet is.
func (c *Client) PurgeByID(ctx context.Context, zone, id string) (*Purge, error) {
	return get[Purge](ctx, c, path("v1", "zones", zone, "purges", id), nil)
}
