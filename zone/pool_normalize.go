package zone

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	second = Duration(time.Second)
	hour   = Duration(time.Hour)
	day    = 24 * hour
)

// Normalize returns p in normal form (origins sorted by name, defaults zero), or all that is wrong with
// it, joined. p's origins are not changed.
func (p Pool) Normalize() (Pool, error) {
	var bad problems
	out := Pool{Policy: p.Policy}
	seen := make(map[string]bool, len(p.Origins))
	for i, o := range p.Origins {
		label := fmt.Sprintf("origin %d", i+1)
		if _, err := ParseObjectName(o.Name); err == nil {
			label = "origin " + o.Name
		}
		n, err := o.Normalize()
		bad.in(label, err)
		if seen[o.Name] {
			bad.addf("%s: there are two of this name", label)
		}
		seen[o.Name] = true
		out.Origins = append(out.Origins, n)
	}
	slices.SortFunc(out.Origins, func(a, b Origin) int { return strings.Compare(a.Name, b.Name) })
	if p.Health != nil {
		h, err := p.Health.Normalize()
		bad.in("health", err)
		out.Health = &h
	}
	inRange(&bad, "slow_start", p.SlowStart, second, hour, Duration.String)
	out.SlowStart = p.SlowStart
	if p.OutlierDetection != nil {
		d, err := p.OutlierDetection.Normalize()
		bad.in("outlier_detection", err)
		if !d.isZero() {
			out.OutlierDetection = &d
		}
	}
	switch p.Policy {
	case "", PolicyLeastConn, PolicyRandomTwo, PolicyClientIP:
	case PolicyRoundRobin:
		out.Policy = ""
	default:
		bad.addf("policy %s: use round_robin, least_connections, random_two_choices or client_ip_hash", quote(string(p.Policy)))
	}
	if err := bad.err(); err != nil {
		return Pool{}, err
	}
	return out, nil
}

// Normalize returns o in normal form, or all that is wrong with it, joined.
func (o Origin) Normalize() (Origin, error) {
	var bad problems
	_, err := ParseObjectName(o.Name)
	bad.add(err)
	switch o.Scheme {
	case "", SchemeHTTPS, SchemeH2C:
	case SchemeHTTP:
		o.Scheme = ""
	default:
		bad.addf("scheme %s: use http, https or h2c", quote(string(o.Scheme)))
	}
	port := "80"
	if o.Scheme == SchemeHTTPS {
		port = "443"
	}
	o.Address, err = parseHostPort(o.Address, port)
	bad.in("address", err)
	inRange(&bad, "weight", o.Weight, 1, 1000, decimal)
	zeroDefault(&o.Weight, 1)
	o.Enabled = zeroTrue(o.Enabled)
	if o.HostHeader != "" {
		o.HostHeader, err = parseHostPort(o.HostHeader, "")
		bad.in("host_header", err)
	}
	if o.SNI != "" {
		n, err := ParseName(o.SNI)
		if err == nil && (n.IsWildcard() || strings.ContainsRune(n.s, '/')) {
			err = fmt.Errorf("%s is not a host name", quote(o.SNI))
		}
		bad.in("sni", err)
		o.SNI = n.s
	}
	if err := bad.err(); err != nil {
		return Origin{}, err
	}
	return o, nil
}

// parseHostPort folds a host, which may be followed by a port, and puts port where there is none; an empty
// port leaves it out.
func parseHostPort(s, port string) (string, error) {
	host := s
	if i := strings.LastIndexByte(s, ':'); i >= 0 && (s[0] == '[' && i > 0 && s[i-1] == ']' || strings.Count(s, ":") == 1) {
		host = s[:i]
		n, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || n == 0 {
			return "", fmt.Errorf("port %s is not a number from 1 to 65535", quote(s[i+1:]))
		}
		port = strconv.FormatUint(n, 10)
	}
	if host == "" {
		return "", errors.New("the host is missing; write host:port")
	}
	bare, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		var closed bool
		if bare, closed = strings.CutSuffix(bare, "]"); !closed {
			return "", fmt.Errorf("%s: the bracket is not closed", quote(s))
		}
	}
	if a, err := netip.ParseAddr(bare); err == nil && a.Zone() == "" {
		host = a.Unmap().String()
		if a.Unmap().Is6() {
			host = "[" + host + "]"
		}
	} else {
		n, err := ParseName(host)
		if err == nil && (n.IsWildcard() || strings.ContainsRune(n.s, '/')) {
			err = fmt.Errorf("%s is not a host name", quote(host))
		}
		if err != nil {
			return "", err
		}
		host = n.s
	}
	if port == "" {
		return host, nil
	}
	return host + ":" + port, nil
}

// Defaults of a health check.
const (
	defaultInterval           = 10 * second
	defaultTimeout            = 5 * second
	defaultHealthyThreshold   = 2
	defaultUnhealthyThreshold = 3
)

// Normalize returns h in normal form, or all that is wrong with it, joined.
func (h HealthCheck) Normalize() (HealthCheck, error) {
	var bad problems
	switch h.Type {
	case "", "tcp":
	case "http":
		h.Type = ""
	default:
		bad.addf("type %s: use http or tcp", quote(h.Type))
	}
	if h.Type == "tcp" && (h.Path != "" || len(h.ExpectedStatus) > 0) {
		bad.addf("path and expected_status are for type http, not tcp")
	}
	if h.Path != "" {
		bad.in("path", checkTarget(h.Path, true))
	}
	zeroDefault(&h.Path, "/")
	inRange(&bad, "interval", h.Interval, second, hour, Duration.String)
	e := h.Effective()
	inRange(&bad, "timeout", h.Timeout, second/10, e.Interval, Duration.String)
	zeroDefault(&h.Timeout, min(defaultTimeout, e.Interval))
	zeroDefault(&h.Interval, defaultInterval)
	inRange(&bad, "healthy_threshold", h.HealthyThreshold, 1, 10, decimal)
	inRange(&bad, "unhealthy_threshold", h.UnhealthyThreshold, 1, 10, decimal)
	zeroDefault(&h.HealthyThreshold, defaultHealthyThreshold)
	zeroDefault(&h.UnhealthyThreshold, defaultUnhealthyThreshold)
	for _, s := range h.ExpectedStatus {
		if s < 100 || s > 599 {
			bad.addf("expected_status %d is not in the range from 100 to 599", s)
		}
	}
	h.ExpectedStatus = slices.Clone(h.ExpectedStatus)
	slices.Sort(h.ExpectedStatus)
	h.ExpectedStatus = slices.Compact(h.ExpectedStatus)
	if len(h.ExpectedStatus) == 0 || defaultStatuses(h.ExpectedStatus) {
		h.ExpectedStatus = nil
	}
	if err := bad.err(); err != nil {
		return HealthCheck{}, err
	}
	return h, nil
}

// defaultStatuses reports whether s, sorted, is every status from 200 to 399.
func defaultStatuses(s []int) bool { return len(s) == 200 && s[0] == 200 && s[199] == 399 }

// Effective returns h with each zero member but ExpectedStatus replaced by its default.
func (h HealthCheck) Effective() HealthCheck {
	or(&h.Type, "http")
	if h.Type == "http" {
		or(&h.Path, "/")
	}
	or(&h.Interval, defaultInterval)
	or(&h.Timeout, min(defaultTimeout, h.Interval))
	or(&h.HealthyThreshold, defaultHealthyThreshold)
	or(&h.UnhealthyThreshold, defaultUnhealthyThreshold)
	return h
}

// Defaults of outlier detection.
const (
	defaultConsecutiveFailures = 5
	defaultBaseEjectionTime    = 30 * second
	defaultMaxEjectionPercent  = 50
)

// Normalize returns d in normal form, or all that is wrong with it, joined. Numbers of a detection that is not enabled say nothing and
// are zero.
func (d OutlierDetection) Normalize() (OutlierDetection, error) {
	var bad problems
	d.Enabled = zeroTrue(d.Enabled)
	inRange(&bad, "consecutive_failures", d.ConsecutiveFailures, 1, 1000, decimal)
	zeroDefault(&d.ConsecutiveFailures, defaultConsecutiveFailures)
	for _, s := range d.FailureStatus {
		if s < 500 || s > 599 {
			bad.addf("failure_status %d is not in the range from 500 to 599", s)
		}
	}
	d.FailureStatus = slices.Clone(d.FailureStatus)
	slices.Sort(d.FailureStatus)
	if d.FailureStatus = slices.Compact(d.FailureStatus); slices.Equal(d.FailureStatus, defaultFailureStatus()) {
		d.FailureStatus = nil
	}
	inRange(&bad, "base_ejection_time", d.BaseEjectionTime, second, hour, Duration.String)
	zeroDefault(&d.BaseEjectionTime, defaultBaseEjectionTime)
	inRange(&bad, "max_ejection_percent", d.MaxEjectionPercent, 1, 100, decimal)
	zeroDefault(&d.MaxEjectionPercent, defaultMaxEjectionPercent)
	if err := bad.err(); err != nil {
		return OutlierDetection{}, err
	}
	if d.Enabled != nil {
		return OutlierDetection{Enabled: d.Enabled}, nil
	}
	return d, nil
}

// defaultFailureStatus is what an origin says of servers behind it. What it says of itself, that it is asked for too much, a client may
// have brought about.
func defaultFailureStatus() []int { return []int{502, 504} }

func (d *OutlierDetection) isZero() bool {
	return d.Enabled == nil && d.ConsecutiveFailures == 0 && d.FailureStatus == nil && d.BaseEjectionTime == 0 && d.MaxEjectionPercent == 0
}

// Effective returns d with each member that is absent replaced by its default.
func (d OutlierDetection) Effective() OutlierDetection {
	if d.Enabled == nil {
		d.Enabled = new(true)
	}
	or(&d.ConsecutiveFailures, defaultConsecutiveFailures)
	if d.FailureStatus == nil {
		d.FailureStatus = defaultFailureStatus()
	}
	or(&d.BaseEjectionTime, defaultBaseEjectionTime)
	or(&d.MaxEjectionPercent, defaultMaxEjectionPercent)
	return d
}

// or sets v to def when it is zero.
func or[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// maxBalancerPools is how many pools one load balancer may try.
const maxBalancerPools = 16

// Normalize returns b in normal form, or all that is wrong with it, joined.
func (b LoadBalancer) Normalize() (LoadBalancer, error) {
	var bad problems
	if len(b.Pools) == 0 {
		bad.addf("it names no pool")
	}
	if len(b.Pools) > maxBalancerPools {
		bad.addf("it names %d pools, the most is %d", len(b.Pools), maxBalancerPools)
	}
	for i, name := range b.Pools {
		_, err := ParseObjectName(name)
		bad.in(fmt.Sprintf("pool %d", i+1), err)
		if slices.Contains(b.Pools[:i], name) {
			bad.addf("pool %d: %s is named twice", i+1, quote(name))
		}
	}
	b.Pools = slices.Clone(b.Pools)
	if b.Fallback != "" {
		_, err := ParseObjectName(b.Fallback)
		bad.in("fallback", err)
	}
	if b.Sticky != nil {
		s := *b.Sticky
		if s.Cookie != "" && !isToken(s.Cookie) {
			bad.addf("sticky: cookie %s is not a token (RFC 6265 §4.1.1)", quote(s.Cookie))
		}
		inRange(&bad, "sticky: ttl", s.TTL, second, 7*day, Duration.String)
		if s.TTL%second != 0 {
			bad.addf("sticky: ttl %s is not whole seconds", s.TTL)
		}
		zeroDefault(&s.Cookie, defaultStickyCookie)
		zeroDefault(&s.TTL, hour)
		b.Sticky = &s
	}
	if err := bad.err(); err != nil {
		return LoadBalancer{}, err
	}
	return b, nil
}

const defaultStickyCookie = "guardyn_origin"

// Effective returns s with each zero member replaced by its default.
func (s Sticky) Effective() Sticky {
	or(&s.Cookie, defaultStickyCookie)
	or(&s.TTL, hour)
	return s
}
