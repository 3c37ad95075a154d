package admin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/host"
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 16 << 20

// Client speaks to one member's control surface. Its errors are a *Problem when the member refused.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// NewClient returns a client of the member at rawURL ("http://HOST:PORT"); c of nil is http.DefaultClient.
func NewClient(rawURL, token string, c *http.Client) (*Client, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a bridge's member, as http://127.0.0.1:9190", rawURL)
	}
	if c == nil {
		c = http.DefaultClient
	}
	return &Client{strings.TrimRight(rawURL, "/"), token, c}, nil
}

// Status returns what the member knows about itself.
func (c *Client) Status(ctx context.Context) (host.Status, error) {
	var s host.Status
	_, err := c.do(ctx, http.MethodGet, "/deephealth", nil, nil, &s)
	return s, err
}

// Plan returns what saving the document would do.
func (c *Client) Plan(ctx context.Context, doc []byte) (host.Plan, error) {
	var p host.Plan
	_, err := c.do(ctx, http.MethodPost, "/v1/bridge/plan", doc, nil, &p)
	return p, err
}

// Config returns the document as the source holds it, and its version as an ETag.
func (c *Client) Config(ctx context.Context) (doc []byte, etag string, err error) {
	h, err := c.do(ctx, http.MethodGet, "/v1/bridge/config", nil, nil, &doc)
	return doc, h.Get("ETag"), err
}

// Put saves a document over the one with that ETag, over whatever stands ("*"), or where there is none ("").
func (c *Client) Put(ctx context.Context, doc []byte, etag string, forReplacement bool) (host.Outcome, error) {
	header, path := http.Header{"If-Match": {etag}}, "/v1/bridge/config"
	if etag == "" {
		header = http.Header{"If-None-Match": {"*"}}
	}
	if forReplacement {
		path += "?for=replacement"
	}
	var out host.Outcome
	_, err := c.do(ctx, http.MethodPut, path, doc, header, &out)
	return out, err
}

// do makes one request and reads its answer into out: bytes as they are, all else from JSON.
func (c *Client) do(ctx context.Context, method, path string, doc []byte, header http.Header, out any) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(doc))
	if err != nil {
		return http.Header{}, err
	}
	if header != nil {
		req.Header = header
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return http.Header{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return resp.Header, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		p := &Problem{}
		if json.Unmarshal(text, p) != nil || p.Code == "" {
			return resp.Header, fmt.Errorf("%s answered %s, which no bridge does", c.base, resp.Status)
		}
		return resp.Header, p
	}
	if raw, ok := out.(*[]byte); ok {
		if len(text) > document.MaxBytes {
			return resp.Header, fmt.Errorf("%s answered with %d bytes, more than a document has", c.base, len(text))
		}
		*raw = text
		return resp.Header, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return resp.Header, fmt.Errorf("%s: %w", c.base, err)
	}
	return resp.Header, nil
}
