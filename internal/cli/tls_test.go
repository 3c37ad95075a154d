package cli_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/guardyn-edge/guardyn/internal/cli"
)

// recorder is a control plane's address that keeps what is sent to it.
type recorder struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (r *recorder) start(t *testing.T, control string) string {
	t.Helper()
	u, err := url.Parse(control)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.sent.WriteString(q.URL.String())
		r.sent.Write(body)
		r.mu.Unlock()
		q.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, q)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent.String()
}

// writePair makes a certificate for names that ends at end, and returns the files of both and what the key's says.
func writePair(t *testing.T, dir, name string, end time.Time, names ...string) (cert, key string, keyPEM []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		NotBefore: end.Add(-48 * time.Hour), NotAfter: end,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	for path, content := range map[string][]byte{cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: keyPEM} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, keyPEM
}

// TestTLSAdd seals a key on this machine: what is sent holds no part of it, and the fleet's identity opens it. What is wrong is told before
// anything is sent.
func TestTLSAdd(t *testing.T) {
	dir := t.TempDir()
	env := startDev(t, filepath.Join(dir, "dev"))
	var rec recorder
	var control string
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "GUARDYN_API_URL="); ok {
			control = value
		}
	}
	env = append(env, "GUARDYN_API_URL="+rec.start(t, control))
	run := func(args ...string) (int, string, string) {
		var out, errs strings.Builder
		code := cli.Run(t.Context(), args, cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: env})
		return code, out.String(), errs.String()
	}
	must := func(args ...string) string {
		t.Helper()
		code, out, errs := run(args...)
		if code != 0 {
			t.Fatalf("gdn %s: %d %s", strings.Join(args, " "), code, errs)
		}
		return out
	}
	var made struct{ Recipient, Identity string }
	if err := json.Unmarshal([]byte(must("keys", "identity", "--json")), &made); err != nil {
		t.Fatal(err)
	}
	must("zone", "create", "example.com")
	soon := time.Now().Add(24 * time.Hour)
	cert, key, keyPEM := writePair(t, dir, "good", soon, "www.example.com", "*.example.com")
	other, otherKey, _ := writePair(t, dir, "other", soon, "www.example.com")
	old, oldKey, _ := writePair(t, dir, "old", time.Now().Add(-time.Hour), "www.example.com")
	before := rec.text()
	for _, tc := range []struct {
		name, says string
		args       []string
	}{
		{"no certificate", "--cert is not given", []string{"--key", key}},
		{"no key", "--key is not given", []string{"--cert", cert}},
		{"another's key", "private key does not match public key", []string{"--cert", other, "--key", key}},
		{"expired", "expired on", []string{"--cert", old, "--key", oldKey}},
		{"a key for a certificate", "it holds a private key", []string{"--cert", otherKey, "--key", otherKey}},
		{"a certificate for a key", "it holds no private key", []string{"--cert", cert, "--key", cert}},
	} {
		if code, _, errs := run(append([]string{"tls", "add", "example.com", "www.example.com", "--recipient", made.Recipient}, tc.args...)...); code == 0 || !strings.Contains(errs, tc.says) {
			t.Errorf("%s: %d %q, want %q", tc.name, code, errs, tc.says)
		}
	}
	if code, _, errs := run("tls", "add", "example.com", "a.b.example.com", "--recipient", made.Recipient, "--cert", cert, "--key", key); code == 0 || !strings.Contains(errs, "does not cover a.b.example.com") {
		t.Errorf("a name that the certificate does not cover: %d %q", code, errs)
	}
	// A name that ends elsewhere is of this zone all the same, as a record's is: what is judged is the name that would be made.
	if code, _, errs := run("tls", "add", "example.com", "www.example.org", "--recipient", made.Recipient, "--cert", cert, "--key", key); code == 0 || !strings.Contains(errs, "does not cover www.example.org.example.com") {
		t.Errorf("a name that is relative: %d %q", code, errs)
	}
	if code, _, errs := run("tls", "add", "example.com", "www.example.com", "--recipient", "age1nobody", "--cert", cert, "--key", key); code == 0 || !strings.Contains(errs, "is not an age recipient") {
		t.Errorf("no recipient: %d %q", code, errs)
	}
	if rec.text() != before {
		t.Errorf("something was sent: %q", rec.text()[len(before):])
	}
	bare := startPlayed(t, filepath.Join(dir, "bare.db"))
	var errs strings.Builder
	code := cli.Run(t.Context(), []string{"tls", "add", "example.com", "www.example.com", "--cert", cert, "--key", key}, cli.Env{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errs, Environ: []string{"GUARDYN_API_URL=" + bare.url, "GUARDYN_TOKEN=" + bare.token},
	})
	if code == 0 || !strings.Contains(errs.String(), "the control plane has no recipient") {
		t.Errorf("a control plane without a recipient: %d %q", code, errs.String())
	}
	if err := json.Unmarshal([]byte(must("tls", "add", "example.com", "www.example.com", "--cert", cert, "--key", key, "--json")), &struct{}{}); err != nil {
		t.Errorf("to the control plane's own recipient: %v", err)
	}
	if out := must("tls", "add", "example.com", "www.example.com", "--recipient", made.Recipient, "--cert", cert, "--key", key); !strings.Contains(out, soon.UTC().Format(time.DateOnly)) {
		t.Errorf("it says %q", out)
	}

	sent := rec.text()
	block, _ := pem.Decode(keyPEM)
	secret := base64.StdEncoding.EncodeToString(block.Bytes)
	for i := 0; i+16 <= len(secret); i += 16 {
		if strings.Contains(sent, secret[i:i+16]) {
			t.Fatalf("a part of the key was sent in the clear")
		}
	}
	var shown struct {
		SealedKey string `json:"sealed_key"`
	}
	if err := json.Unmarshal([]byte(must("tls", "show", "example.com", "www.example.com", "--json")), &shown); err != nil {
		t.Fatal(err)
	}
	identity, err := age.ParseX25519Identity(made.Identity)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := age.Decrypt(armor.NewReader(strings.NewReader(shown.SealedKey)), identity)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(opened); err != nil || !bytes.Equal(got, keyPEM) {
		t.Errorf("the identity opens %q %v", got, err)
	}
	if out := must("tls", "show", "example.com"); !strings.Contains(out, "www.example.com") || !strings.Contains(out, soon.UTC().Format(time.DateOnly)) {
		t.Errorf("the list: %s", out)
	}
}
