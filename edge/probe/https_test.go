package probe

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/web"
	"github.com/guardyn-edge/guardyn/zone"
)

// fleet is what private keys are sealed to.
type fleet struct{ *age.X25519Identity }

func (f fleet) Unseal(armoured string) ([]byte, error) {
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(armoured)), f.X25519Identity)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// host makes a certificate of its own for a name, which no authority vouches for: nobody's trust is asked of the node itself.
func (f fleet) host(t *testing.T, name string) zone.TLSHost {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Unix(-1800, 0), NotAfter: time.Unix(1800, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	a := armor.NewWriter(&sealed)
	w, err := age.Encrypt(a, f.Recipient())
	if err == nil {
		err = pem.Encode(w, &pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	}
	if err != nil || w.Close() != nil || a.Close() != nil {
		t.Fatal("seal: ", err)
	}
	return zone.TLSHost{Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), SealedKey: sealed.String()}
}

// startSecureNode is startNode with HTTPS, which serves the view that secure holds.
func startSecureNode(t *testing.T, f fleet, secure *edge.Live) *node {
	t.Helper()
	server := web.NewServer(web.Config{View: secure.Load, Addr: "127.0.0.1:0", TLSAddr: "127.0.0.1:0", AllowedOrigins: loopback, Grace: time.Second})
	if err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	n := startNode(t, func(c *Config) { c.HTTPS = server.TLSAddr().String() })
	v, err := edge.Compile(nil, n.snapshot(), 1, edge.Options{Secrets: f}) // later views take its secrets
	if err != nil {
		t.Fatal(err)
	}
	n.live.Store(v)
	return n
}

// TestHostsOverTLS: a host with a certificate is asked over TLS too, and must show the one that was published.
func TestHostsOverTLS(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	f := fleet{id}
	const host = "www.zone-001.example"
	var fails atomic.Bool
	o := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() && r.Header.Get("X-Forwarded-Proto") == "https" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(o.Close)
	secured := func(note string, h zone.TLSHost) *zone.Zone {
		z := site(1, note, zone.Origin{Name: "a", Address: o.Listener.Addr().String()})
		z.TLSHosts = map[zone.Name]zone.TLSHost{zone.MustName(host): h}
		return z
	}
	first, second := f.host(t, host), f.host(t, host)
	for _, tc := range []struct {
		name      string
		stale     bool // the server of HTTPS stays on the view before
		fails     bool // the origin fails over HTTPS alone
		converged bool
		says      string
	}{
		{"a new certificate", false, false, true, "zones 1/1, hosts 1/1"},
		{"the certificate before", true, false, false, "host " + host + " by https: the node shows another certificate than is published"},
		{"an origin that fails over HTTPS", false, true, false, "host " + host + ": answers 503 Service Unavailable by https"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var secure edge.Live
			n := startSecureNode(t, f, &secure)
			one, two := n.snapshot(secured("a", first)), n.snapshot(secured("a", second))
			fails.Store(false)
			n.serve(one)
			secure.Store(n.live.Load())
			n.Prepare(t.Context(), one, two)
			fails.Store(tc.fails)
			n.Begin(one, two, 100)
			n.serve(two)
			if !tc.stale {
				secure.Store(n.live.Load())
			}
			n.wants(tc.converged, tc.says)
		})
	}
	t.Run("no certificate yet", func(t *testing.T) {
		fails.Store(false)
		var secure edge.Live
		n := startSecureNode(t, f, &secure)
		one, two := n.snapshot(site(2, "a")), n.snapshot(secured("a", first))
		n.serve(one)
		secure.Store(n.live.Load())
		n.try(one, two)
		n.wants(false, "host "+host+" by https: ", "unrecognized name")
		secure.Store(n.live.Load())
		n.wants(true, "hosts 1/1")
	})
}

// TestOriginsAreTrustedAsByTheNode: a trial of a pool asks its origins as the node does: over TLS by the same authorities, by HTTP/2
// where the scheme says so.
func TestOriginsAreTrustedAsByTheNode(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(secure.Close)
	own := x509.NewCertPool()
	own.AddCert(secure.Certificate())
	clear := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		}
	}))
	clear.Config.Protocols = new(http.Protocols)
	clear.Config.Protocols.SetUnencryptedHTTP2(true)
	clear.Start()
	t.Cleanup(clear.Close)
	https := zone.Origin{Name: "s", Address: secure.Listener.Addr().String(), Scheme: zone.SchemeHTTPS, HostHeader: "example.com"}
	other := https
	other.HostHeader = "other.test"
	for _, tc := range []struct {
		name   string
		roots  *x509.CertPool
		origin zone.Origin
		health *zone.HealthCheck
		fails  string // empty: it converges
	}{
		{"https, an authority of the node's", own, https, &zone.HealthCheck{}, ""},
		{"https, one that nobody trusts", nil, https, &zone.HealthCheck{}, "certificate"},
		{"https, a name that it is not for", own, other, &zone.HealthCheck{}, "other.test"},
		{"https without a check is connected to", nil, https, nil, ""},
		{"h2c", nil, zone.Origin{Name: "c", Address: clear.Listener.Addr().String(), Scheme: zone.SchemeH2C}, &zone.HealthCheck{}, ""},
		{"h2c spoken to by HTTP/1.1", nil, zone.Origin{Name: "c", Address: clear.Listener.Addr().String()}, &zone.HealthCheck{}, "pool p of zone-001.example has no healthy origin"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t, func(c *Config) { c.OriginRoots = tc.roots })
			z := site(1, "a")
			z.Pools = map[string]zone.Pool{"p": {Origins: []zone.Origin{tc.origin}, Health: tc.health}}
			one, two := n.snapshot(site(1, "a")), n.snapshot(z)
			n.serve(one)
			n.try(one, two)
			n.wants(tc.fails == "", tc.fails)
		})
	}
}
