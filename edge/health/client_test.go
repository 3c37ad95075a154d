package health

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func TestClient(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != "app.example.com" || r.Header.Get("User-Agent") != userAgent:
			w.WriteHeader(http.StatusTeapot)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/dead", http.StatusFound)
		case r.URL.Path == "/dead":
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/endless":
			for r.Context().Err() == nil {
				w.Write(make([]byte, 4096))
			}
		case r.URL.Path == "/silent":
			<-r.Context().Done()
		case r.URL.Path == "/verbose":
			w.Header().Set("X-Long", strings.Repeat("x", maxHead))
		case r.URL.RawQuery == "down":
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	h2c := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		}
	}))
	h2c.Config.Protocols = new(http.Protocols)
	h2c.Config.Protocols.SetUnencryptedHTTP2(true)
	h2c.Start()
	t.Cleanup(h2c.Close)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	http1 := Target{Address: plain.Listener.Addr().String(), Host: "app.example.com"}
	https := Target{Scheme: zone.SchemeHTTPS, Address: secure.Listener.Addr().String(), Host: "app.example.com", SNI: "example.com"}
	other := https
	other.SNI = "other.test"
	named := https
	named.Host, named.SNI = "host.test", "" // the host's name, which the certificate is not for
	own := x509.NewCertPool()
	own.AddCert(secure.Certificate())
	for _, row := range []struct {
		name   string
		roots  *x509.CertPool
		target Target
		check  *zone.HealthCheck
		fails  string // empty: it works
	}{
		{"connects", nil, http1, nil, ""},
		{"tcp", nil, http1, &zone.HealthCheck{Type: "tcp"}, ""},
		{"tcp, nobody listens", nil, Target{Address: gone.Addr().String()}, &zone.HealthCheck{Type: "tcp"}, "refused"},
		{"http", nil, http1, &zone.HealthCheck{}, ""},
		{"http, nobody listens", nil, Target{Address: gone.Addr().String()}, &zone.HealthCheck{}, "refused"},
		{"the host header", nil, Target{Address: http1.Address, Host: "example.com"}, &zone.HealthCheck{}, "/ answers 418"},
		{"503", nil, http1, &zone.HealthCheck{Path: "/dead"}, "/dead answers 503"},
		{"503 expected", nil, http1, &zone.HealthCheck{Path: "/dead", ExpectedStatus: []int{503}}, ""},
		{"200 not expected", nil, http1, &zone.HealthCheck{ExpectedStatus: []int{204}}, "/ answers 200"},
		{"a query", nil, http1, &zone.HealthCheck{Path: "/alive?down"}, "/alive?down answers 500"},
		{"redirects are not followed", nil, http1, &zone.HealthCheck{Path: "/moved"}, ""},
		{"a body without end", nil, http1, &zone.HealthCheck{Path: "/endless"}, ""},
		{"a head without end", nil, http1, &zone.HealthCheck{Path: "/verbose"}, "headers exceeded"},
		{"silence", nil, http1, &zone.HealthCheck{Path: "/silent"}, "deadline"},
		{"h2c", nil, Target{Scheme: zone.SchemeH2C, Address: h2c.Listener.Addr().String(), Host: "app.example.com"}, &zone.HealthCheck{}, ""},
		{"h2c, from a server of HTTP/1.1", nil, Target{Scheme: zone.SchemeH2C, Address: http1.Address, Host: "app.example.com"}, &zone.HealthCheck{}, "http2"},
		{"https", own, https, &zone.HealthCheck{}, ""},
		{"https, the system's roots", nil, https, &zone.HealthCheck{}, "certificate"},
		{"https, another server name", own, other, &zone.HealthCheck{}, "other.test"},
		{"https, the host for a server name", own, named, &zone.HealthCheck{}, "host.test"},
	} {
		t.Run(row.name, func(t *testing.T) {
			wait := 5 * time.Second
			if row.name == "silence" {
				wait = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			err := NewClient(ClientConfig{AllowedOrigins: loopback, Roots: row.roots}).Check(ctx, row.check, row.target)
			if row.fails == "" && err != nil || row.fails != "" && (err == nil || !strings.Contains(err.Error(), row.fails)) {
				t.Errorf("%v, want %q", err, row.fails)
			}
		})
	}
	t.Run("refused by the guard", func(t *testing.T) {
		for _, check := range []*zone.HealthCheck{nil, {}, {Type: "tcp"}} {
			if err := NewClient(ClientConfig{}).Check(t.Context(), check, http1); err == nil || !strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "refused by") {
				t.Errorf("%v", err)
			}
		}
	})
}
