package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/guardyn-edge/guardyn/internal/durable"
)

// The files of the certificate of gdn dev: the authority's, the chain, and the chain's key.
const (
	devCAFile   = "ca.pem"
	devCertFile = "demo.pem"
	devKeyFile  = "demo.key"
)

// How long the certificate is good for, and how much of that must be left at a start for it to be kept. The latter is more than the days
// for which a plan warns, so that a fleet that has just started is not warned of its own.
const (
	devCertificateLife  = 30 * 24 * time.Hour
	devCertificateRenew = 15 * 24 * time.Hour
)

// devZones are the zones whose name, and names of one label more, the certificate covers: those of the guide.
func devZones() []string {
	return []string{"amthalgroup.com", "example.com", "example.net", "example.org"}
}

// keepCertificate makes the certificate with an authority of its own, unless dir has one that is good for a while. The authority's
// key is forgotten at once: whoever trusts it trusts this one certificate. It leaves no mixture that a later start would keep.
func keepCertificate(dir *durable.Dir, now time.Time) error {
	good, err := certificateGood(dir, now)
	if err != nil || good {
		return err
	}
	authority := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"gdn dev"}, CommonName: "Throw-away authority of gdn dev"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(devCertificateLife),
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"gdn dev"}},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, zone := range devZones() {
		leaf.DNSNames = append(leaf.DNSNames, zone, "*."+zone)
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return fmt.Errorf("make an authority: %w", err)
	}
	if authority, err = x509.ParseCertificate(authorityDER); err != nil {
		return err
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, leafKey.Public(), authorityKey)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name, kind string
		der        []byte
	}{
		{devKeyFile, "PRIVATE KEY", keyDER}, {devCertFile, "CERTIFICATE", leafDER}, {devCAFile, "CERTIFICATE", authorityDER},
	} {
		if err := dir.Write(f.name, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der})); err != nil {
			return err
		}
	}
	return nil
}

// certificateGood reports whether the three files belong together, are for the zones of this build, and will be for a while.
func certificateGood(dir *durable.Dir, now time.Time) (bool, error) {
	var texts [3][]byte
	for i, name := range []string{devCAFile, devCertFile, devKeyFile} {
		text, err := dir.Read(name, maxPEMFile)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		texts[i] = text
	}
	roots := x509.NewCertPool()
	pair, err := tls.X509KeyPair(texts[1], texts[2])
	if err != nil || !roots.AppendCertsFromPEM(texts[0]) {
		return false, nil
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil || leaf.NotAfter.Sub(now) < devCertificateRenew {
		return false, nil
	}
	for _, zone := range devZones() {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "www." + zone, CurrentTime: now}); err != nil {
			return false, nil
		}
	}
	return true, nil
}
