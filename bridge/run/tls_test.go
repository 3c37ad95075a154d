package run_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// authority signs certificates into a directory, where NAME.pem and NAME.key are.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: dir}
	a.key = a.issue(name, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes a certificate of the template, valid for an hour unless it says otherwise; the first is the authority's own.
func (a *authority) issue(name string, template *x509.Certificate) *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	template.NotBefore = template.NotAfter.Add(-2 * time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			a.t.Fatal(err)
		}
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(filepath.Join(a.dir, path), pem.EncodeToMemory(block), 0o644); err != nil {
			a.t.Fatal(err)
		}
	}
	return key
}

// natsTLS runs a NATS server with that certificate, which asks for clients' ones if it is mutual, and returns its port.
func natsTLS(t *testing.T, dir, name string, mutual bool) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if mutual {
		ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		config.ClientCAs.AppendCertsFromPEM(ca)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true, TLS: true, TLSConfig: config, TLSTimeout: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testmosquitto.Patience) {
		t.Fatal("the server is not ready")
	}
	_, port, _ := net.SplitHostPort(s.Addr().String())
	return port
}

// TestTLS: over each way of TLS a session connects to a broker that proves itself, and to no other, and says why; and it proves itself where it is
// asked to.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ca := newAuthority(t, dir, "ca")
	other := newAuthority(t, dir, "other")
	here := []net.IP{net.IPv4(127, 0, 0, 1)}
	ca.issue("good", &x509.Certificate{IPAddresses: here})
	ca.issue("expired", &x509.Certificate{IPAddresses: here, NotAfter: time.Now().Add(-time.Minute)})
	ca.issue("named", &x509.Certificate{DNSNames: []string{"broker.example"}})
	ca.issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	other.issue("stranger", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})

	ports := map[string]string{}
	var lines []string
	for _, scheme := range []string{"mqtts", "wss"} {
		for _, name := range []string{"good", "expired", "named", "mutual"} {
			_, port, _ := net.SplitHostPort(testmosquitto.FreeAddr(t))
			ports[scheme+" "+name] = port
			lines = append(lines, "listener "+port+" 127.0.0.1")
			if scheme == "wss" {
				lines = append(lines, "protocol websockets")
			}
			certificate := name
			if name == "mutual" {
				certificate = "good"
				lines = append(lines, "cafile "+filepath.Join(dir, "ca.pem"), "require_certificate true")
			}
			lines = append(lines, "certfile "+filepath.Join(dir, certificate+".pem"), "keyfile "+filepath.Join(dir, certificate+".key"))
		}
	}
	testmosquitto.Start(t, lines...)
	for _, name := range []string{"good", "expired", "named"} {
		ports["tls "+name] = natsTLS(t, dir, name, false)
	}
	ports["tls mutual"] = natsTLS(t, dir, "good", true)

	const proves = `, certificate: "file:NAME.pem", key: "file:NAME.key"`
	for _, row := range []struct{ name, broker, tls, why string }{
		{"good", "good", `ca: "file:ca.pem"`, ""},
		{"named", "named", `ca: "file:ca.pem", server_name: broker.example`, ""},
		{"proves itself", "mutual", `ca: "file:ca.pem"` + strings.ReplaceAll(proves, "NAME", "client"), ""},
		{"another authority", "good", `ca: "file:other.pem"`, "unknown authority"},
		{"expired", "expired", `ca: "file:ca.pem"`, "expired"},
		{"another name", "named", `ca: "file:ca.pem"`, "127.0.0.1"},
		{"another server_name", "good", `ca: "file:ca.pem", server_name: broker.example`, "broker.example"},
		{"does not prove itself", "mutual", `ca: "file:ca.pem"`, "certificate required"},
		{"proves itself by another authority", "mutual", `ca: "file:ca.pem"` + strings.ReplaceAll(proves, "NAME", "stranger"), "unknown certificate authority"},
	} {
		for _, scheme := range []string{"mqtts", "wss", "tls"} {
			t.Run(row.name+" "+scheme, func(t *testing.T) {
				kind := "mqtt"
				if scheme == "tls" {
					kind = "nats"
				}
				m := start(t, run.Options{Secrets: session.Secrets(dir)}, fmt.Sprintf("sessions:\n  - {id: s, kind: %s, url: \"%s://127.0.0.1:%s\", tls: {%s}}\n",
					kind, scheme, ports[scheme+" "+row.broker], row.tls))
				if row.why == "" {
					m.converge()
					return
				}
				var last string
				defer func() {
					if t.Failed() {
						t.Log(last)
					}
				}()
				testmosquitto.Until(t, "it says why", func() bool {
					s := m.session("s")
					if s.Converged {
						t.Fatal("it is connected")
					}
					last = s.Detail
					return strings.Contains(s.Detail, row.why)
				})
			})
		}
	}
}
