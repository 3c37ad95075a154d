package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/guardyn-edge/guardyn/zone"
)

// In every method a zone is named by its name or its id.

// Zones lists the workspace's zones by name.
func (c *Client) Zones(ctx context.Context, o PageOptions) (*Page[Zone], error) {
	return get[Page[Zone]](ctx, c, "/v1/zones", o.values(nil))
}

// CreateZone creates an empty zone.
func (c *Client) CreateZone(ctx context.Context, z NewZone) (*Zone, error) {
	return exchange[Zone](ctx, c, http.MethodPost, "/v1/zones", z)
}

// Zone returns one zone.
func (c *Client) Zone(ctx context.Context, zone string) (*Zone, error) {
	return get[Zone](ctx, c, path("v1", "zones", zone), nil)
}

// DeleteZone deletes a zone and everything in it.
func (c *Client) DeleteZone(ctx context.Context, zone string) error {
	return c.delete(ctx, path("v1", "zones", zone), WriteOptions{})
}

// Records lists a zone's records by name, type and content.
func (c *Client) Records(ctx context.Context, zone string, f RecordFilter, o PageOptions) (*Page[Record], error) {
	q := url.Values{}
	if f.Name != "" {
		q.Set("name", f.Name)
	}
	if f.Type != "" {
		q.Set("type", f.Type)
	}
	return get[Page[Record]](ctx, c, path("v1", "zones", zone, "records"), o.values(q))
}

// AddRecord adds a record and returns its normal form.
func (c *Client) AddRecord(ctx context.Context, zone string, r RecordEdit) (*Record, error) {
	return exchange[Record](ctx, c, http.MethodPost, path("v1", "zones", zone, "records"), r)
}

// UpdateRecord replaces the record with this id.
func (c *Client) UpdateRecord(ctx context.Context, zone, id string, r RecordEdit) (*Record, error) {
	return exchange[Record](ctx, c, http.MethodPut, path("v1", "zones", zone, "records", id), r)
}

// DeleteRecord deletes the record with this id.
func (c *Client) DeleteRecord(ctx context.Context, zone, id string) error {
	return c.delete(ctx, path("v1", "zones", zone, "records", id), WriteOptions{})
}

// ImportZone reads a zone file (RFC 1035 §5) of at most 64 MiB into a zone. A file with bad lines changes
// nothing; the *Error lists all of them.
func (c *Client) ImportZone(ctx context.Context, zone string, file io.Reader, o ImportOptions) (*ImportResult, error) {
	q := url.Values{}
	if o.Replace {
		q.Set("replace", strconv.FormatBool(true))
	}
	if o.DryRun {
		q.Set("dry_run", strconv.FormatBool(true))
	}
	out := new(ImportResult)
	_, err := c.do(ctx, request{
		method: http.MethodPost, path: path("v1", "zones", zone, "import"), query: q, body: file, contentType: "text/dns",
		header: WriteOptions{IfRevision: o.IfRevision}.header(),
	}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ExportZone writes a zone file that ImportZone reads back to the same records.
func (c *Client) ExportZone(ctx context.Context, w io.Writer, zone string) error {
	resp, err := c.send(ctx, request{method: http.MethodGet, path: path("v1", "zones", zone, "export")})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

// Settings returns a zone's settings and their revision, 0 when they never were written.
func (c *Client) Settings(ctx context.Context, name string) (*zone.Settings, int64, error) {
	return getObject[zone.Settings](ctx, c, path("v1", "zones", name, "settings"))
}

// PutSettings replaces a zone's settings and returns their normal form.
func (c *Client) PutSettings(ctx context.Context, name string, s zone.Settings, o WriteOptions) (*zone.Settings, int64, error) {
	return putObject(ctx, c, path("v1", "zones", name, "settings"), s, o)
}

// PatchSettings changes some of a zone's settings and returns all of them.
func (c *Client) PatchSettings(ctx context.Context, name string, p SettingsPatch, o WriteOptions) (*zone.Settings, int64, error) {
	out := new(zone.Settings)
	rev, err := c.do(ctx, request{
		method: http.MethodPatch, path: path("v1", "zones", name, "settings"), body: p, header: o.header(),
	}, out)
	if err != nil {
		return nil, 0, err
	}
	return out, rev, nil
}

// CachePolicy returns a zone's cache policy and its revision, 0 when it never was written.
func (c *Client) CachePolicy(ctx context.Context, name string) (*zone.CachePolicy, int64, error) {
	return getObject[zone.CachePolicy](ctx, c, path("v1", "zones", name, "cache-policy"))
}

// PutCachePolicy replaces a zone's cache policy and returns its normal form.
func (c *Client) PutCachePolicy(ctx context.Context, name string, p zone.CachePolicy, o WriteOptions) (*zone.CachePolicy, int64, error) {
	return putObject(ctx, c, path("v1", "zones", name, "cache-policy"), p, o)
}

func (c *Client) delete(ctx context.Context, path string, o WriteOptions) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: path, header: o.header()}, nil)
	return err
}

func getObject[T any](ctx context.Context, c *Client, path string) (*T, int64, error) {
	out := new(T)
	rev, err := c.do(ctx, request{method: http.MethodGet, path: path}, out)
	if err != nil {
		return nil, 0, err
	}
	return out, rev, nil
}

func putObject[T any](ctx context.Context, c *Client, path string, v T, o WriteOptions) (*T, int64, error) {
	out := new(T)
	rev, err := c.do(ctx, request{method: http.MethodPut, path: path, body: v, header: o.header()}, out)
	if err != nil {
		return nil, 0, err
	}
	return out, rev, nil
}
