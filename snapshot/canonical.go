package snapshot

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"

	"github.com/guardyn-edge/guardyn/zone"
)

// canonical appends the canonical bytes (RFC 8785) of values in normal form: members in the order of their
// UTF-16 code units, none that holds its default, nothing between tokens. It is written out by hand since
// both sides do it for every zone; a test compares it with the JSON library over every member of every type.
type canonical struct {
	b   []byte
	err error // of the first value that has no canonical bytes
}

// appendZone appends the canonical bytes of z.
func appendZone(b []byte, z *zone.Zone) ([]byte, error) {
	c := canonical{b: b}
	c.zone(z)
	return c.b, c.err
}

func (c *canonical) zone(z *zone.Zone) {
	o := c.open()
	c.optional(&o, "cache_policy", func() { c.cachePolicy(&z.CachePolicy) })
	c.optional(&o, "ceilings", func() { c.ceilings(&z.Ceilings) })
	if len(z.Functions) > 0 {
		o.member(c, "functions")
		members(c, z.Functions, func(f zone.Function) { c.function(&f) })
	}
	o.member(c, "id")
	c.string(string(z.ID))
	if len(z.Lists) > 0 {
		o.member(c, "lists")
		members(c, z.Lists, func(l zone.List) { c.list(&l) })
	}
	if len(z.LoadBalancers) > 0 {
		o.member(c, "load_balancers")
		hostMembers(c, z.LoadBalancers, func(l zone.LoadBalancer) { c.loadBalancer(&l) })
	}
	o.member(c, "name")
	c.string(z.Name.String())
	if len(z.Pools) > 0 {
		o.member(c, "pools")
		members(c, z.Pools, func(p zone.Pool) { c.pool(&p) })
	}
	if len(z.Records) > 0 {
		o.member(c, "records")
		c.b = append(c.b, '[')
		for i := range z.Records {
			c.comma(i)
			c.record(&z.Records[i])
		}
		c.b = append(c.b, ']')
	}
	c.optional(&o, "rulesets", func() { c.rulesets(z.Rulesets) })
	c.optional(&o, "settings", func() { c.settings(&z.Settings) })
	if len(z.TLSHosts) > 0 {
		o.member(c, "tls_hosts")
		hostMembers(c, z.TLSHosts, func(h zone.TLSHost) {
			o := c.open()
			o.member(c, "certificate")
			c.string(h.Certificate)
			o.member(c, "sealed_key")
			c.string(h.SealedKey)
			c.b = append(c.b, '}')
		})
	}
	c.b = append(c.b, '}')
}

func (c *canonical) record(r *zone.Record) {
	c.b = append(c.b, `{"content":`...)
	c.string(r.Content)
	c.b = append(c.b, `,"name":`...)
	c.string(r.Name.String())
	if r.Proxied {
		c.b = append(c.b, `,"proxied":true`...)
	}
	if r.TTL != 0 && r.TTL != zone.DefaultTTL {
		c.b = append(c.b, `,"ttl":`...)
		c.b = strconv.AppendUint(c.b, uint64(r.TTL), 10)
	}
	c.b = append(c.b, `,"type":`...)
	c.string(r.Type.String())
	c.b = append(c.b, '}')
}

func (c *canonical) rulesets(rs map[zone.Phase][]zone.Rule) {
	o := c.open()
	for _, phase := range slices.SortedFunc(maps.Keys(rs), compareUTF16) {
		if len(rs[phase]) == 0 {
			continue
		}
		o.name(c, string(phase))
		c.b = append(c.b, '[')
		for i := range rs[phase] {
			c.comma(i)
			c.rule(&rs[phase][i])
		}
		c.b = append(c.b, ']')
	}
	c.b = append(c.b, '}')
}

func (c *canonical) rule(r *zone.Rule) {
	o := c.open()
	o.member(c, "action")
	c.string(string(r.Action))
	o.text(c, "description", r.Description)
	o.pointer(c, "enabled", r.Enabled)
	o.member(c, "expression")
	c.string(r.Expression)
	c.optional(&o, "parameters", func() { c.parameters(&r.Parameters) })
	c.b = append(c.b, '}')
}

func (c *canonical) parameters(p *zone.Parameters) {
	o := c.open()
	o.text(c, "body", p.Body)
	o.flag(c, "bypass", p.Bypass)
	o.text(c, "content_type", p.ContentType)
	o.text(c, "function", p.Function)
	o.text(c, "key", p.Key)
	o.integer(c, "limit", int64(p.Limit))
	o.text(c, "location", p.Location)
	o.text(c, "name", p.Name)
	o.text(c, "path", p.Path)
	o.duration(c, "period", p.Period)
	if len(p.Phases) > 0 {
		o.member(c, "phases")
		array(c, p.Phases)
	}
	o.text(c, "pool", p.Pool)
	o.flag(c, "preserve_query", p.PreserveQuery)
	if p.Query != nil {
		o.member(c, "query")
		c.string(*p.Query)
	}
	o.duration(c, "stale_if_error", p.StaleIfError)
	o.duration(c, "stale_while_revalidate", p.StaleWhileRevalidate)
	o.integer(c, "status", int64(p.Status))
	o.duration(c, "ttl", p.TTL)
	o.text(c, "value", p.Value)
	c.b = append(c.b, '}')
}

func (c *canonical) list(l *zone.List) {
	o := c.open()
	if len(l.Items) > 0 {
		o.member(c, "items")
		array(c, l.Items)
	}
	o.member(c, "kind")
	c.string(string(l.Kind))
	c.b = append(c.b, '}')
}

func (c *canonical) pool(p *zone.Pool) {
	o := c.open()
	if p.Health != nil {
		o.member(c, "health")
		c.health(p.Health)
	}
	if len(p.Origins) > 0 {
		o.member(c, "origins")
		c.b = append(c.b, '[')
		for i := range p.Origins {
			c.comma(i)
			c.origin(&p.Origins[i])
		}
		c.b = append(c.b, ']')
	}
	if p.OutlierDetection != nil {
		o.member(c, "outlier_detection")
		c.outlier(p.OutlierDetection)
	}
	o.text(c, "policy", string(p.Policy))
	o.duration(c, "slow_start", p.SlowStart)
	c.b = append(c.b, '}')
}

func (c *canonical) outlier(d *zone.OutlierDetection) {
	o := c.open()
	o.duration(c, "base_ejection_time", d.BaseEjectionTime)
	o.integer(c, "consecutive_failures", int64(d.ConsecutiveFailures))
	o.pointer(c, "enabled", d.Enabled)
	if d.FailureStatus != nil {
		o.member(c, "failure_status")
		c.numbers(d.FailureStatus)
	}
	o.integer(c, "max_ejection_percent", int64(d.MaxEjectionPercent))
	c.b = append(c.b, '}')
}

func (c *canonical) origin(r *zone.Origin) {
	o := c.open()
	o.member(c, "address")
	c.string(r.Address)
	o.pointer(c, "enabled", r.Enabled)
	o.text(c, "host_header", r.HostHeader)
	o.member(c, "name")
	c.string(r.Name)
	o.text(c, "scheme", string(r.Scheme))
	o.text(c, "sni", r.SNI)
	o.integer(c, "weight", int64(r.Weight))
	c.b = append(c.b, '}')
}

func (c *canonical) health(h *zone.HealthCheck) {
	o := c.open()
	if len(h.ExpectedStatus) > 0 {
		o.member(c, "expected_status")
		c.numbers(h.ExpectedStatus)
	}
	o.integer(c, "healthy_threshold", int64(h.HealthyThreshold))
	o.duration(c, "interval", h.Interval)
	o.text(c, "path", h.Path)
	o.duration(c, "timeout", h.Timeout)
	o.text(c, "type", h.Type)
	o.integer(c, "unhealthy_threshold", int64(h.UnhealthyThreshold))
	c.b = append(c.b, '}')
}

func (c *canonical) numbers(list []int) {
	c.b = append(c.b, '[')
	for i, n := range list {
		c.comma(i)
		c.number(int64(n))
	}
	c.b = append(c.b, ']')
}

func (c *canonical) loadBalancer(l *zone.LoadBalancer) {
	o := c.open()
	o.text(c, "fallback", l.Fallback)
	o.member(c, "pools")
	array(c, l.Pools)
	if l.Sticky != nil {
		o.member(c, "sticky")
		s := c.open()
		s.text(c, "cookie", l.Sticky.Cookie)
		s.duration(c, "ttl", l.Sticky.TTL)
		c.b = append(c.b, '}')
	}
	c.b = append(c.b, '}')
}

func (c *canonical) cachePolicy(p *zone.CachePolicy) {
	o := c.open()
	o.duration(c, "default_ttl", p.DefaultTTL)
	o.flag(c, "disabled", p.Disabled)
	o.duration(c, "max_ttl", p.MaxTTL)
	o.text(c, "query_mode", p.QueryMode)
	if len(p.QueryParameters) > 0 {
		o.member(c, "query_parameters")
		array(c, p.QueryParameters)
	}
	o.duration(c, "stale_if_error", p.StaleIfError)
	o.duration(c, "stale_while_revalidate", p.StaleWhileRevalidate)
	o.flag(c, "store_set_cookie", p.StoreSetCookie)
	c.b = append(c.b, '}')
}

func (c *canonical) function(f *zone.Function) {
	o := c.open()
	if len(f.Environment) > 0 {
		o.member(c, "environment")
		members(c, f.Environment, c.string)
	}
	o.size(c, "memory", f.Memory)
	o.member(c, "module")
	c.b = append(c.b, '"')
	c.b = base64.StdEncoding.AppendEncode(c.b, f.Module)
	c.b = append(c.b, '"')
	o.size(c, "output", f.Output)
	o.duration(c, "timeout", f.Timeout)
	c.b = append(c.b, '}')
}

func (c *canonical) settings(s *zone.Settings) {
	o := c.open()
	o.flag(c, "always_https", s.AlwaysHTTPS)
	if len(s.ErrorPages) > 0 {
		o.member(c, "error_pages")
		members(c, s.ErrorPages, c.string)
	}
	o.duration(c, "hsts", s.HSTS)
	o.flag(c, "hsts_include_subdomains", s.HSTSIncludeSubdomains)
	o.percent(c, "log_sampling", s.LogSampling)
	c.optional(&o, "soa", func() { c.soa(&s.SOA) })
	if len(s.TLSCiphers) > 0 {
		o.member(c, "tls_ciphers")
		array(c, s.TLSCiphers)
	}
	o.text(c, "tls_min_version", s.TLSMinVersion)
	o.percent(c, "trace_sampling", s.TraceSampling)
	if len(s.TrustedProxies) > 0 {
		o.member(c, "trusted_proxies")
		array(c, s.TrustedProxies)
	}
	o.flag(c, "version_header", s.VersionHeader)
	c.b = append(c.b, '}')
}

func (c *canonical) soa(s *zone.SOA) {
	o := c.open()
	o.integer(c, "expire", int64(s.Expire))
	o.integer(c, "minimum", int64(s.Minimum))
	o.text(c, "mname", s.MName.String())
	o.integer(c, "refresh", int64(s.Refresh))
	o.integer(c, "retry", int64(s.Retry))
	o.text(c, "rname", s.RName.String())
	o.integer(c, "ttl", int64(s.TTL))
	c.b = append(c.b, '}')
}

func (c *canonical) ceilings(l *zone.Ceilings) {
	o := c.open()
	o.size(c, "function_memory", l.FunctionMemory)
	o.size(c, "function_output", l.FunctionOutput)
	o.size(c, "function_size", l.FunctionSize)
	o.duration(c, "function_time", l.FunctionTime)
	o.integer(c, "functions", int64(l.Functions))
	o.integer(c, "list_items", int64(l.ListItems))
	o.integer(c, "lists", int64(l.Lists))
	o.integer(c, "load_balancers", int64(l.LoadBalancers))
	o.integer(c, "origins", int64(l.Origins))
	o.integer(c, "pools", int64(l.Pools))
	o.integer(c, "records", int64(l.Records))
	o.size(c, "request_body", l.RequestBody)
	o.integer(c, "request_rate", int64(l.RequestRate))
	o.integer(c, "rules", int64(l.Rules))
	o.integer(c, "tls_hosts", int64(l.TLSHosts))
	c.b = append(c.b, '}')
}
