package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/guardyn-edge/guardyn/seal"
)

// Purges returns the statement of the purges that follow a place in the log (nil: the node knows none), unverified. It never
// reads more than [seal.MaxPurgeStatement] and one byte.
func (n *NodeClient) Purges(ctx context.Context, after *seal.PurgeMark) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerSlack)
	defer cancel()
	q := url.Values{}
	if after != nil {
		q.Set("after", after.String())
	}
	resp, err := n.c.send(ctx, request{method: http.MethodGet, path: purgesPath, query: q})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("control plane at %s answered for purges with %s", n.c.base, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, seal.MaxPurgeStatement+1))
	if err != nil {
		return "", fmt.Errorf("purges from the control plane at %s: %w", n.c.base, err)
	}
	return string(body), nil // one that is too long is refused as it is verified
}
