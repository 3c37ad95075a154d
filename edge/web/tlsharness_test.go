package web

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/guardyn-edge/guardyn/zone"
)

// testIdentity is what the keys of these tests are sealed to.
var testIdentity = sync.OnceValue(func() *age.X25519Identity {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		panic(err)
	}
	return id
})

type testSecrets struct{}

func (testSecrets) Unseal(armoured string) ([]byte, error) {
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(armoured)), testIdentity())
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func sealed(t testing.TB, plain []byte) string {
	t.Helper()
	var out bytes.Buffer
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, testIdentity().Recipient())
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = a.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// authority issues certificates to tests.
type authority struct {
	t      testing.TB
	cert   *x509.Certificate
	key    crypto.Signer
	roots  *x509.CertPool
	serial int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, roots: x509.NewCertPool()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.key = key
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.roots.AddCert(a.cert)
	return a
}

// issue returns a TLS host whose certificate covers names, with an RSA key or one of P-256.
func (a *authority) issue(withRSA bool, names ...string) zone.TLSHost {
	a.t.Helper()
	var key crypto.Signer
	var err error
	if withRSA {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(100 + a.serial), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(900 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return zone.TLSHost{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		SealedKey:   sealed(a.t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
	}
}

func tlsHost(name string, h zone.TLSHost) func(*zone.Zone) {
	return func(z *zone.Zone) {
		if z.TLSHosts == nil {
			z.TLSHosts = make(map[zone.Name]zone.TLSHost)
		}
		z.TLSHosts[zone.MustName(name)] = h
	}
}

func settings(change func(*zone.Settings)) func(*zone.Zone) {
	return func(z *zone.Zone) { change(&z.Settings) }
}

// balanced puts a host behind the pool of site.
func balanced(names ...string) func(*zone.Zone) {
	return func(z *zone.Zone) {
		for _, n := range names {
			z.LoadBalancers[zone.MustName(n)] = zone.LoadBalancer{Pools: []string{"main"}}
			z.Records = append(z.Records, record(n, "192.0.2.1"))
		}
	}
}

func withTLS(c *Config) { c.TLSAddr = "127.0.0.1:0" }

// shake shakes hands for a name, after change.
func (n *node) shake(a *authority, name string, change ...func(*tls.Config)) (*tls.Conn, error) {
	n.t.Helper()
	raw, err := net.Dial("tcp", n.TLSAddr().String())
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { raw.Close() })
	raw.SetDeadline(time.Now().Add(20 * time.Second))
	c := &tls.Config{ServerName: name, RootCAs: a.roots}
	for _, f := range change {
		f(c)
	}
	conn := tls.Client(raw, c)
	return conn, conn.HandshakeContext(context.Background())
}

// client speaks to the node by HTTP/2, or by HTTP/1.1, as if every name resolved to it.
func (n *node) client(a *authority, h2 bool, change ...func(*tls.Config)) *http.Client {
	c := &tls.Config{RootCAs: a.roots}
	for _, f := range change {
		f(c)
	}
	t := &http.Transport{
		TLSClientConfig: c, ForceAttemptHTTP2: h2,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			to := n.Addr().String()
			if strings.HasSuffix(address, ":443") {
				to = n.TLSAddr().String()
			}
			return new(net.Dialer).DialContext(ctx, "tcp", to)
		},
	}
	n.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{
		Transport: t, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// fetch asks for url with a Host of its own unless that is empty.
func (n *node) fetch(c *http.Client, url, host string) (*http.Response, string) {
	n.t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	req.Host = host
	res, err := c.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return res, string(body)
}

// dialTLS connects to the TLS address and says nothing.
func (n *node) dialTLS() net.Conn {
	n.t.Helper()
	c, err := net.Dial("tcp", n.TLSAddr().String())
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { c.Close() })
	return c
}

// waitFor waits until done, which the server comes to by itself a moment after its answer.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	end := time.NewTimer(10 * time.Second)
	defer end.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("%s: not within ten seconds", what)
		}
	}
}
