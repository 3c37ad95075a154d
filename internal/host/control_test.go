package host_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/store"
)

func TestMain(m *testing.M) { testpg.Main(m) }

func signingKey(t *testing.T) seal.SigningKey {
	t.Helper()
	key, err := seal.GenerateSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func controlConfig(t *testing.T) host.ControlConfig {
	t.Helper()
	return host.ControlConfig{
		DatabaseURL: "sqlite:" + filepath.Join(t.TempDir(), "guardyn.db"), SigningKey: signingKey(t), Listen: "127.0.0.1:0",
	}
}

func startControl(t *testing.T, cfg host.ControlConfig) *host.Control {
	t.Helper()
	c, err := host.StartControl(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// operator makes the first operator of a control plane.
func operator(t *testing.T, c *host.Control) *api.Client {
	t.Helper()
	first, err := control.Bootstrap(t.Context(), c.Store(), time.Now(), "operator@example.com", "Acme")
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient("http://"+c.Addr(), first.Token.Secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func publish(t *testing.T, op *api.Client) *api.ApplyResult {
	t.Helper()
	if _, err := op.CreateZone(t.Context(), api.NewZone{Name: "example.com"}); err != nil {
		t.Fatal(err)
	}
	if _, err := op.AddRecord(t.Context(), "example.com", api.RecordEdit{Name: "www", Type: "A", Content: "192.0.2.1"}); err != nil {
		t.Fatal(err)
	}
	res, err := op.Apply(t.Context(), api.ApplyRequest{Message: "first"})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A control plane that is closed answers waiting polls at once, loses nothing, and starts again on the same
// database with the same artefact.
func TestControlLife(t *testing.T) {
	cfg := controlConfig(t)
	c := startControl(t, cfg)
	op := operator(t, c)
	res := publish(t, op)
	n, err := op.CreateNode(t.Context(), api.NewNode{Name: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, "http://"+c.Addr()+"/readyz"); status != 200 {
		t.Fatalf("readyz %d %s", status, body)
	}
	if _, body := get(t, "http://"+c.Addr()+"/metrics"); !strings.Contains(body, `guardyn_database_seconds_count{operation="publish"} 1`) || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics lack the database or the process:\n%s", body)
	}
	node, err := api.NewNodeClient("http://"+c.Addr(), n.Secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	polled := make(chan error, 1)
	go func() {
		a, err := node.Poll(t.Context(), nodeproto.Poll{Have: res.Version, Generation: res.Generation, Epoch: 1, Wait: 55 * time.Second})
		if err == nil && a.Artefact != nil {
			err = errors.New("an artefact for a node that is current")
		}
		polled <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.Service().Stats().LongPolls == 0 {
		select {
		case <-tick.C:
		case err := <-polled:
			t.Fatalf("the poll did not wait: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	start := time.Now()
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("closing took %s", took)
	}
	if err := <-polled; err != nil {
		t.Errorf("the waiting poll: %v", err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("wait after close: %v", err)
	}
	if err := c.Close(ctx); err != nil {
		t.Errorf("closing twice: %v", err)
	}

	again := startControl(t, cfg)
	node, err = api.NewNodeClient("http://"+again.Addr(), n.Secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := node.Poll(t.Context(), nodeproto.Poll{})
	if err != nil || a.Artefact == nil || a.Artefact.ContentHash != res.ContentHash {
		t.Errorf("after the restart: %+v, %v", a, err)
	}
}

func TestControlOnPostgres(t *testing.T) {
	cfg := controlConfig(t)
	cfg.DatabaseURL = testpg.URL(t)
	var schema *store.SchemaError
	if _, err := host.StartControl(t.Context(), cfg); !errors.As(err, &schema) || !strings.Contains(err.Error(), "gdn migrate") {
		t.Fatalf("started on an empty database: %v", err)
	}
	cfg.Migrate = true
	first := startControl(t, cfg)
	res := publish(t, operator(t, first))
	// A second process on the same database serves what the first one published.
	cfg.Migrate = false
	second := startControl(t, cfg)
	if status, body := get(t, "http://"+second.Addr()+"/readyz"); status != 200 {
		t.Errorf("readyz of the second process: %d %s", status, body)
	}
	if _, body := get(t, "http://"+second.Addr()+"/metrics"); !strings.Contains(body, "guardyn_nodes 0") {
		t.Errorf("metrics of the second process:\n%s", body)
	}
	if res.Version != 1 {
		t.Errorf("version %d", res.Version)
	}
}

// A process whose key does not open what is live says so, and serves on.
func TestControlWithAnotherKey(t *testing.T) {
	cfg := controlConfig(t)
	c := startControl(t, cfg)
	publish(t, operator(t, c))
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	old := cfg.SigningKey.Public()
	cfg.SigningKey = signingKey(t)
	c = startControl(t, cfg)
	if status, body := get(t, "http://"+c.Addr()+"/readyz"); status != 503 || !strings.Contains(body, "signing_key_mismatch") || !strings.Contains(body, "GUARDYN_CONFIG_SIGNING_KEY") {
		t.Errorf("readyz %d %s", status, body)
	}
	if status, _ := get(t, "http://"+c.Addr()+"/healthz"); status != 200 {
		t.Errorf("healthz %d", status)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	// During a rotation it is told of both.
	trusted, err := seal.Trust(old, cfg.SigningKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	cfg.TrustedKeys = trusted
	c = startControl(t, cfg)
	if status, body := get(t, "http://"+c.Addr()+"/readyz"); status != 200 {
		t.Errorf("readyz in a rotation: %d %s", status, body)
	}
}

// Connections beyond the bound wait until one of the others ends.
func TestControlBoundsConnections(t *testing.T) {
	cfg := controlConfig(t)
	cfg.MaxConns = 2
	c := startControl(t, cfg)
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", c.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	answered := func(conn net.Conn) error {
		_, err := http.ReadResponse(bufio.NewReader(conn), nil)
		return err
	}
	first, second := dial(), dial()
	for _, conn := range []net.Conn{first, second} {
		if err := answered(conn); err != nil {
			t.Fatal(err)
		}
	}
	third := dial()
	if err := third.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if err := answered(third); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("a third connection was served: %v", err)
	}
	first.Close()
	if err := third.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := answered(third); err != nil {
		t.Errorf("after one ended: %v", err)
	}
}

func TestControlTLS(t *testing.T) {
	cfg := controlConfig(t)
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "control"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cfg.TLSCert, cfg.TLSKey = write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER)
	c := startControl(t, cfg)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("https://" + c.Addr() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Errorf("%s %s", resp.Proto, resp.Status)
	}
}

func TestControlRefusesToStart(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, row := range map[string]struct {
		change func(*host.ControlConfig)
		says   string
	}{
		"address in use":        {func(c *host.ControlConfig) { c.Listen = taken.Addr().String() }, "in use"},
		"no such address":       {func(c *host.ControlConfig) { c.Listen = "nowhere" }, "nowhere"},
		"half a certificate":    {func(c *host.ControlConfig) { c.TLSCert = "cert.pem" }, "GUARDYN_TLS_KEY"},
		"certificate not there": {func(c *host.ControlConfig) { c.TLSCert, c.TLSKey = "no.pem", "no.key" }, "no.pem"},
		"unknown database":      {func(c *host.ControlConfig) { c.DatabaseURL = "mysql://x" }, "mysql"},
		"no directory":          {func(c *host.ControlConfig) { c.DatabaseURL = "sqlite:/no/such/dir/x.db" }, "/no/such/dir"},
		"bound":                 {func(c *host.ControlConfig) { c.MaxConns = -1 }, "-1"},
		"no key":                {func(c *host.ControlConfig) { c.SigningKey = seal.SigningKey{} }, "key"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := controlConfig(t)
			row.change(&cfg)
			c, err := host.StartControl(t.Context(), cfg)
			if err == nil {
				c.Close(context.Background())
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v: want a word of %q", err, row.says)
			}
		})
	}
}
