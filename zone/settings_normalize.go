package zone

import (
	"crypto/tls"
	"fmt"
	"slices"
)

// Defaults of settings.
const (
	DefaultTraceSampling = Percent(100)
	DefaultLogSampling   = Percent(10_000)

	defaultRefresh uint32 = 7200
	defaultRetry   uint32 = 3600
	defaultExpire  uint32 = 1209600
	defaultMinimum uint32 = 300
	defaultSOATTL  uint32 = 3600
)

// Normalize returns s in normal form (defaults zero or nil, sets sorted), or all that is wrong with it,
// joined.
func (s Settings) Normalize() (Settings, error) {
	var bad problems
	s.TraceSampling = normalPercent(&bad, "trace_sampling", s.TraceSampling, DefaultTraceSampling)
	s.LogSampling = normalPercent(&bad, "log_sampling", s.LogSampling, DefaultLogSampling)
	checkMaxAge(&bad, s.HSTS)
	switch s.TLSMinVersion {
	case "", "1.3":
	case "1.2":
		s.TLSMinVersion = ""
	default:
		bad.addf("tls_min_version %s: use 1.2 or 1.3", quote(s.TLSMinVersion))
	}
	s.TLSCiphers = sortedUnique(s.TLSCiphers)
	for _, name := range s.TLSCiphers {
		if !safeCipher(name) {
			bad.addf("tls_ciphers: %s is not a safe suite of TLS 1.2 by its IANA name", quote(name))
		}
	}
	var err error
	s.TrustedProxies, err = normalPrefixes(s.TrustedProxies, "trusted_proxies")
	bad.add(err)
	pages := make(map[string]string, len(s.ErrorPages))
	for _, status := range sortedKeys(s.ErrorPages) {
		bad.add(checkPageStatus(status))
		bad.in("error_pages", checkText(s.ErrorPages[status], "page "+quote(status), maxBody))
		pages[status] = s.ErrorPages[status]
	}
	if s.ErrorPages = pages; len(pages) == 0 {
		s.ErrorPages = nil
	}
	s.SOA, err = s.SOA.Normalize()
	bad.in("soa", err)
	if err := bad.err(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// checkPageStatus takes three digits: 0503 beside 503 would be two pages of one status.
func checkPageStatus(status string) error {
	if _, err := parseNumber(status, "status", 400, 599); err != nil || len(status) != 3 {
		return fmt.Errorf("error_pages: status %s is not three digits from 400 to 599", quote(status))
	}
	return nil
}

func normalPercent(bad *problems, what string, p *Percent, def Percent) *Percent {
	switch {
	case p == nil || *p == def:
		return nil
	case *p > 10_000:
		bad.addf("%s %s is over 100%%", what, *p)
	}
	return p
}

func checkMaxAge(bad *problems, d Duration) {
	inRange(bad, "hsts", d, second, 10*366*day, Duration.String)
	if d%second != 0 {
		bad.addf("hsts %s is not whole seconds", d)
	}
}

func safeCipher(name string) bool {
	return slices.ContainsFunc(tls.CipherSuites(), func(c *tls.CipherSuite) bool {
		return c.Name == name && slices.Contains(c.SupportedVersions, tls.VersionTLS12)
	})
}

// Normalize returns s with defaults zero, or all that is wrong with it, joined.
func (s SOA) Normalize() (SOA, error) {
	var bad problems
	for _, f := range s.seconds() {
		inRange(&bad, f.name, *f.v, 1, MaxTTL, decimal)
		zeroDefault(f.v, f.def)
	}
	if s.MName.IsWildcard() {
		bad.addf("mname %s is a wildcard", quote(s.MName.s))
	}
	if err := bad.err(); err != nil {
		return SOA{}, err
	}
	return s, nil
}

type soaSeconds struct {
	name string
	v    *uint32
	def  uint32
}

func (s *SOA) seconds() []soaSeconds {
	return []soaSeconds{
		{"refresh", &s.Refresh, defaultRefresh},
		{"retry", &s.Retry, defaultRetry},
		{"expire", &s.Expire, defaultExpire},
		{"minimum", &s.Minimum, defaultMinimum},
		{"ttl", &s.TTL, defaultSOATTL},
	}
}

// EffectiveSOA returns z's SOA with every default put in. z's records are in normal form and order.
func (z *Zone) EffectiveSOA() SOA {
	s := z.Settings.SOA
	for _, f := range s.seconds() {
		or(f.v, f.def)
	}
	if s.MName.IsZero() {
		for _, r := range z.Records {
			if r.Type == TypeNS && r.Name == z.Name && !r.Target().IsZero() {
				s.MName = r.Target()
				break
			}
		}
	}
	or(&s.MName, below(z.Name, "ns"))
	or(&s.RName, Mailbox(below(z.Name, "hostmaster")))
	return s
}

// below puts label under n, or gives n where the name would be too long.
func below(n Name, label string) Name {
	if len(label)+1+len(n.s) > maxName {
		return n
	}
	return Name{label + "." + n.s}
}

// EffectiveTraceSampling returns the share of requests that are traced.
func (s Settings) EffectiveTraceSampling() Percent {
	return percentOr(s.TraceSampling, DefaultTraceSampling)
}

// EffectiveLogSampling returns the share of requests in the access log.
func (s Settings) EffectiveLogSampling() Percent { return percentOr(s.LogSampling, DefaultLogSampling) }

func percentOr(p *Percent, def Percent) Percent {
	if p == nil {
		return def
	}
	return *p
}
