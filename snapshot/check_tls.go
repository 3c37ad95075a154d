package snapshot

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// soon is how long before its end a certificate is warned of.
const soon = 14 * 24 * time.Hour

// tlsHosts judges certificates: that the chain parses, that the leaf covers the host, and its dates. The
// dates of a certificate that is live already only warn: the passing of time must not stop everybody's
// publishing.
func (j *judge) tlsHosts() {
	for _, host := range slices.SortedFunc(maps.Keys(j.z.TLSHosts), zone.Name.Compare) {
		h := j.z.TLSHosts[host]
		object := "TLS host " + host.In(j.z.Name)
		chain, err := parseChain(h.Certificate)
		if err != nil {
			j.problem(object, "tls_chain", "the certificate chain does not parse: %v; upload the chain in PEM, leaf first", err)
			continue
		}
		leaf := chain[0]
		if err := leaf.VerifyHostname(host.String()); err != nil {
			j.problem(object, "tls_name", "the certificate does not cover %s; upload one that does", host)
		}
		dated := j.problem
		if j.live != nil && j.live.TLSHosts[host].Certificate == h.Certificate {
			dated = j.warn
		}
		day := func(t time.Time) string { return t.UTC().Format(time.DateOnly) }
		switch now := j.in.Now; {
		case now.After(leaf.NotAfter):
			dated(object, "tls_expired", "the certificate expired on %s; upload a new one", day(leaf.NotAfter))
		case now.Before(leaf.NotBefore):
			dated(object, "tls_not_yet_valid", "the certificate is valid from %s on; upload one that is valid now", day(leaf.NotBefore))
		case leaf.NotAfter.Sub(now) <= soon:
			j.warn(object, "tls_expires_soon", "the certificate expires on %s; upload a new one before", day(leaf.NotAfter))
		}
	}
}

func parseChain(text string) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	rest := []byte(text)
	for {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a %s block", quote(block.Type))
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(chain)+1, err)
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, errors.New("it holds no certificate")
	}
	return chain, nil
}
