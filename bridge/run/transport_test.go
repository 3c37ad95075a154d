package run_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// certificate writes a certificate of its own authority for 127.0.0.1, and its key.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestTransports: TLS, WebSocket and WebSocket over TLS, with a password, in both versions of the protocol; what is not trusted or not known is
// not connected, and says why.
func TestTransports(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	passwords := filepath.Join(dir, "passwords")
	if err := os.WriteFile(passwords, []byte("bridge:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mosquitto_passwd", "-U", passwords).CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_passwd: %v\n%s", err, out)
	}
	for name, text := range map[string]string{"good.cred": "username: bridge\npassword: secret\n", "bad.cred": "username: bridge\npassword: guess\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ports := map[string]string{}
	lines := []string{"password_file " + passwords}
	for _, scheme := range []string{"mqtts", "ws", "wss"} {
		_, ports[scheme], _ = net.SplitHostPort(testmosquitto.FreeAddr(t))
		lines = append(lines, "listener "+ports[scheme]+" 127.0.0.1")
		if scheme != "mqtts" {
			lines = append(lines, "protocol websockets")
		}
		if scheme != "ws" {
			lines = append(lines, "certfile "+cert, "keyfile "+key)
		}
	}
	b := testmosquitto.Start(t, lines...)
	out := testmosquitto.Dial(t, b.Addr, "out/#")
	document := func(scheme, version, credentials, ca string) string {
		return fmt.Sprintf(`sessions:
  - {id: s, kind: mqtt, url: "%s://127.0.0.1:%s", protocol: %q, credentials: "file:%s"%s}
routes:
  - {id: r, from: {session: s, topic: in/+}, to: {session: s, topic: "out/{1}"}}
`, scheme, ports[scheme], version, credentials, ca)
	}
	const trusts = `, tls: {ca: "file:cert.pem"}`
	n := 0
	for scheme, ca := range map[string]string{"mqtts": trusts, "ws": "", "wss": trusts} {
		for _, version := range []string{"5.0", "3.1.1"} {
			t.Run(scheme+" "+version, func(t *testing.T) {
				m := start(t, run.Options{Secrets: session.Secrets(dir)}, document(scheme, version, "good.cred", ca)).converge()
				n++
				out.Publish(fmt.Sprintf("in/%d", n), strings.Repeat("x", 100<<10))
				if got := out.AwaitCount(n); len(got[n-1].Payload) != 100<<10 {
					t.Errorf("came %d bytes", len(got[n-1].Payload))
				}
				m.stop()
			})
		}
	}
	for name, row := range map[string]struct{ text, why string }{
		"wrong password":       {document("mqtts", "5.0", "bad.cred", trusts), "uthorized"},
		"wrong password 3.1.1": {document("mqtts", "3.1.1", "bad.cred", trusts), "Connection Refused"},
		"not trusted":          {document("mqtts", "5.0", "good.cred", ""), "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t, run.Options{Secrets: session.Secrets(dir)}, row.text)
			testmosquitto.Until(t, "it says why", func() bool {
				s := m.session("s")
				return !s.Converged && s.LastError != "" && strings.Contains(s.Detail, row.why)
			})
		})
	}
}
