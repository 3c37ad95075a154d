package edge

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// Secrets opens what was sealed to the fleet. It is used by several goroutines at once.
type Secrets interface {
	// Unseal returns what an armoured age file holds. Its error tells nothing of the content.
	Unseal(armoured string) ([]byte, error)
}

// TLSHost is a host name or a wildcard with its certificate and private key. It must not be changed. Views share the hosts
// whose certificate and key did not change between them.
type TLSHost struct {
	// Certificate holds the chain, leaf first, and the private key; its Leaf is parsed.
	Certificate *tls.Certificate

	config zone.TLSHost
}

// Leaf is the certificate itself.
func (h *TLSHost) Leaf() *x509.Certificate { return h.Certificate.Leaf }

// SameCertificate reports whether both have one leaf, byte for byte.
func (h *TLSHost) SameCertificate(o *TLSHost) bool {
	return h == o || h != nil && o != nil && bytes.Equal(h.Certificate.Certificate[0], o.Certificate.Certificate[0])
}

// TLS is what a zone has for connections over TLS. It must not be changed.
type TLS struct {
	// MinVersion is tls.VersionTLS12 or above. Ciphers are the suites of TLS 1.2 by the setting tls_ciphers, nil for the
	// node's default.
	MinVersion uint16
	Ciphers    []uint16
	// HSTS is the value of Strict-Transport-Security (RFC 6797 §6.1), empty for none.
	HSTS string

	hosts map[string]*TLSHost // by name in lower case; wildcards as *.example.com
}

// Certificate returns the host that serves serverName and the zone that it is of: by exact name, then by the wildcard one level
// up (RFC 9525 §6.3); nil when there is none. serverName is as for [View.ZoneFor]. It is of the zone with the longest apex
// alone. It does not allocate for exact names.
func (v *View) Certificate(serverName string) (*TLSHost, *Zone) {
	z := v.ZoneFor(serverName)
	if z == nil {
		return nil, nil
	}
	return z.TLS.Host(serverName), z
}

// Host returns the TLS host that serves a name of the zone, nil when there is none.
func (t *TLS) Host(name string) *TLSHost {
	if len(t.hosts) == 0 {
		return nil
	}
	if h := t.hosts[name]; h != nil {
		return h
	}
	if _, parent, ok := strings.Cut(name, "."); ok {
		return t.hosts["*."+parent]
	}
	return nil
}

// compileTLS makes what z has for TLS. old, nil for none, is the same of the zone before: hosts that did not change keep their
// unsealed keys.
func compileTLS(z *zone.Zone, old *TLS, secrets Secrets) (TLS, error) {
	t := TLS{MinVersion: tls.VersionTLS12, HSTS: hsts(&z.Settings)}
	if z.Settings.TLSMinVersion == "1.3" {
		t.MinVersion = tls.VersionTLS13
	}
	for _, name := range z.Settings.TLSCiphers {
		i := slices.IndexFunc(tls.CipherSuites(), func(c *tls.CipherSuite) bool { return c.Name == name })
		if i < 0 {
			return t, fmt.Errorf("tls_ciphers: this build does not have %s", name)
		}
		t.Ciphers = append(t.Ciphers, tls.CipherSuites()[i].ID)
	}
	if len(z.TLSHosts) == 0 {
		return t, nil
	}
	t.hosts = make(map[string]*TLSHost, len(z.TLSHosts))
	var problems []error
	for _, name := range slices.SortedFunc(maps.Keys(z.TLSHosts), zone.Name.Compare) {
		c, key := z.TLSHosts[name], strings.TrimSuffix(name.String(), ".")
		if old != nil {
			if was := old.hosts[key]; was != nil && was.config == c {
				t.hosts[key] = was
				continue
			}
		}
		h, err := compileTLSHost(c, secrets)
		if err != nil {
			problems = append(problems, fmt.Errorf("TLS host %s: %w", key, err))
			continue
		}
		t.hosts[key] = h
	}
	return t, errors.Join(problems...)
}

func compileTLSHost(c zone.TLSHost, secrets Secrets) (*TLSHost, error) {
	if secrets == nil {
		return nil, errors.New("the node has no identity to unseal its private key with; set GUARDYN_SECRET_IDENTITIES")
	}
	key, err := secrets.Unseal(c.SealedKey)
	if err != nil {
		return nil, fmt.Errorf("its private key cannot be unsealed: %w", err)
	}
	defer clear(key)
	pair, err := tls.X509KeyPair([]byte(c.Certificate), key)
	if err != nil {
		return nil, fmt.Errorf("its certificate and private key do not go together: %w", err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, fmt.Errorf("its certificate does not parse: %w", err)
		}
	}
	return &TLSHost{Certificate: &pair, config: c}, nil
}

func hsts(s *zone.Settings) string {
	if s.HSTS == 0 {
		return ""
	}
	value := fmt.Sprintf("max-age=%d", int64(time.Duration(s.HSTS)/time.Second))
	if s.HSTSIncludeSubdomains {
		value += "; includeSubDomains"
	}
	return value
}

// Hosts yields the TLS hosts of one zone by name, in no order.
func (t *TLS) Hosts() iter.Seq2[string, *TLSHost] { return maps.All(t.hosts) }

// TLSHosts calls f for each TLS host of v, in no order, until f returns false. It passes over all zones.
func (v *View) TLSHosts(f func(name string, h *TLSHost) bool) {
	if v.index.buckets == nil {
		return
	}
	for _, bucket := range v.index.buckets {
		for _, e := range bucket {
			for name, h := range e.zone.TLS.Hosts() {
				if !f(name, h) {
					return
				}
			}
		}
	}
}
