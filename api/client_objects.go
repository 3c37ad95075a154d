package api

import (
	"context"

	"github.com/guardyn-edge/guardyn/zone"
)

// Every kind of named object has the same four methods. Get and Put return the object in normal form and
// its revision.

// Rulesets lists a zone's rulesets by name.
func (c *Client) Rulesets(ctx context.Context, zoneName string, o PageOptions) (*Page[Object[Ruleset]], error) {
	return get[Page[Object[Ruleset]]](ctx, c, path("v1", "zones", zoneName, "rulesets"), o.values(nil))
}

// Ruleset returns the rules of a phase.
func (c *Client) Ruleset(ctx context.Context, zoneName, phase string) (*Ruleset, int64, error) {
	return getObject[Ruleset](ctx, c, path("v1", "zones", zoneName, "rulesets", phase))
}

// PutRuleset creates or replaces the rules of a phase.
func (c *Client) PutRuleset(ctx context.Context, zoneName, phase string, v Ruleset, o WriteOptions) (*Ruleset, int64, error) {
	return putObject(ctx, c, path("v1", "zones", zoneName, "rulesets", phase), v, o)
}

// DeleteRuleset deletes the rules of a phase.
func (c *Client) DeleteRuleset(ctx context.Context, zoneName, phase string, o WriteOptions) error {
	return c.delete(ctx, path("v1", "zones", zoneName, "rulesets", phase), o)
}

// Lists lists a zone's lists by name.
func (c *Client) Lists(ctx context.Context, zoneName string, o PageOptions) (*Page[Object[ListSummary]], error) {
	return get[Page[Object[ListSummary]]](ctx, c, path("v1", "zones", zoneName, "lists"), o.values(nil))
}

// List returns a list.
func (c *Client) List(ctx context.Context, zoneName, name string) (*zone.List, int64, error) {
	return getObject[zone.List](ctx, c, path("v1", "zones", zoneName, "lists", name))
}

// PutList creates or replaces a list.
func (c *Client) PutList(ctx context.Context, zoneName, name string, v zone.List, o WriteOptions) (*zone.List, int64, error) {
	return putObject(ctx, c, path("v1", "zones", zoneName, "lists", name), v, o)
}

// DeleteList deletes a list.
func (c *Client) DeleteList(ctx context.Context, zoneName, name string, o WriteOptions) error {
	return c.delete(ctx, path("v1", "zones", zoneName, "lists", name), o)
}

// Pools lists a zone's pools by name.
func (c *Client) Pools(ctx context.Context, zoneName string, o PageOptions) (*Page[Object[zone.Pool]], error) {
	return get[Page[Object[zone.Pool]]](ctx, c, path("v1", "zones", zoneName, "pools"), o.values(nil))
}

// Pool returns a pool.
func (c *Client) Pool(ctx context.Context, zoneName, name string) (*zone.Pool, int64, error) {
	return getObject[zone.Pool](ctx, c, path("v1", "zones", zoneName, "pools", name))
}

// PutPool creates or replaces a pool.
func (c *Client) PutPool(ctx context.Context, zoneName, name string, v zone.Pool, o WriteOptions) (*zone.Pool, int64, error) {
	return putObject(ctx, c, path("v1", "zones", zoneName, "pools", name), v, o)
}

// PoolStatus returns how a pool does on the fleet's nodes.
func (c *Client) PoolStatus(ctx context.Context, zoneName, name string) (*PoolStatus, error) {
	return get[PoolStatus](ctx, c, path("v1", "zones", zoneName, "pools", name, "status"), nil)
}

// PoolStatuses returns how all pools of a zone do, by name.
func (c *Client) PoolStatuses(ctx context.Context, zoneName string, o PageOptions) (*Page[PoolStatus], error) {
	return get[Page[PoolStatus]](ctx, c, path("v1", "zones", zoneName, "pool-status"), o.values(nil))
}

// DeletePool deletes a pool.
func (c *Client) DeletePool(ctx context.Context, zoneName, name string, o WriteOptions) error {
	return c.delete(ctx, path("v1", "zones", zoneName, "pools", name), o)
}

// LoadBalancers lists a zone's load balancers by name.
func (c *Client) LoadBalancers(ctx context.Context, zoneName string, o PageOptions) (*Page[Object[zone.LoadBalancer]], error) {
	return get[Page[Object[zone.LoadBalancer]]](ctx, c, path("v1", "zones", zoneName, "load-balancers"), o.values(nil))
}

// LoadBalancer returns a load balancer.
func (c *Client) LoadBalancer(ctx context.Context, zoneName, host string) (*zone.LoadBalancer, int64, error) {
	return getObject[zone.LoadBalancer](ctx, c, path("v1", "zones", zoneName, "load-balancers", host))
}

// PutLoadBalancer creates or replaces a load balancer.
func (c *Client) PutLoadBalancer(ctx context.Context, zoneName, host string, v zone.LoadBalancer, o WriteOptions) (*zone.LoadBalancer, int64, error) {
	return putObject(ctx, c, path("v1", "zones", zoneName, "load-balancers", host), v, o)
}

// DeleteLoadBalancer deletes a load balancer.
func (c *Client) DeleteLoadBalancer(ctx context.Context, zoneName, host string, o WriteOptions) error {
	return c.delete(ctx, path("v1", "zones", zoneName, "load-balancers", host), o)
}

// TLSHosts lists a zone's TLS hosts by name.
func (c *Client) TLSHosts(ctx context.Context, zoneName string, o PageOptions) (*Page[Object[zone.TLSHost]], error) {
	return get[Page[Object[zone.TLSHost]]](ctx, c, path("v1", "zones", zoneName, "tls-hosts"), o.values(nil))
}

// TLSHost returns a TLS host.
func (c *Client) TLSHost(ctx context.Context, zoneName, host string) (*zone.TLSHost, int64, error) {
	return getObject[zone.TLSHost](ctx, c, path("v1", "zones", zoneName, "tls-hosts", host))
}

// PutTLSHost creates or replaces a TLS host.
func (c *Client) PutTLSHost(ctx context.Context, zoneName, host string, v zone.TLSHost, o WriteOptions) (*zone.TLSHost, int64, error) {
	return putObject(ctx, c, path("v1", "zones", zoneName, "tls-hosts", host), v, o)
}

// DeleteTLSHost deletes a TLS host.
func (c *Client) DeleteTLSHost(ctx context.Context, zoneName, host string, o WriteOptions) error {
	return c.delete(ctx, path("v1", "zones", zoneName, "tls-hosts", host), o)
}

// Functions lists a zone's functions by name.
func (c *Client) Functions(ctx context.Context, zoneName string, o PageOptions) (*Page[Object[FunctionSummary]], error) {
	return get[Page[Object[FunctionSummary]]](ctx, c, path("v1", "zones", zoneName, "functions"), o.values(nil))
}

// Function returns a function.
func (c *Client) Function(ctx context.Context, zoneName, name string) (*zone.Function, int64, error) {
	return getObject[zone.Function](ctx, c, path("v1", "zones", zoneName, "functions", name))
}

// PutFunction creates or replaces a function.
func (c *Client) PutFunction(ctx context.Context, zoneName, name string, v zone.Function, o WriteOptions) (*zone.Function, int64, error) {
	return putObject(ctx, c, path("v1", "zones", zoneName, "functions", name), v, o)
}

// DeleteFunction deletes a function.
func (c *Client) DeleteFunction(ctx context.Context, zoneName, name string, o WriteOptions) error {
	return c.delete(ctx, path("v1", "zones", zoneName, "functions", name), o)
}
