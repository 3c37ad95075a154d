package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/originguard"
	"github.com/guardyn-edge/guardyn/zone"
)

const (
	// maxHead bounds in bytes the head of an answer, maxBody what is read of its body.
	maxHead = 64 << 10
	maxBody = 64 << 10

	userAgent = "guardyn-health-check"
)

// ClientConfig is how a Client reaches origins. It is that of the data plane: what serves no traffic is not
// asked, and what serves it is asked in the same way.
type ClientConfig struct {
	// AllowedOrigins are ranges that origins may be in although they are private, loopback or the like.
	AllowedOrigins []netip.Prefix
	// Resolver of origin host names; nil: the system's.
	Resolver *net.Resolver
	// Roots are the authorities that origins' certificates are verified against; nil: the system's.
	Roots *x509.CertPool
	// UserAgent of checks by HTTP; empty: guardyn-health-check.
	UserAgent string
}

// Client asks origins whether they work. It is safe for concurrent use and keeps no connection.
type Client struct {
	dialer    net.Dialer
	transport *http.Transport
	h2c       *http.Transport // HTTP/2 without TLS
	userAgent string
}

// NewClient returns a Client.
func NewClient(c ClientConfig) *Client {
	client := &Client{
		userAgent: c.UserAgent,
		dialer:    net.Dialer{Resolver: c.Resolver, Control: originguard.Control(c.AllowedOrigins)},
	}
	if client.userAgent == "" {
		client.userAgent = userAgent
	}
	client.transport = &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHead,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return client.dial(ctx, targetOf(ctx)) },
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			t := targetOf(ctx)
			conn, err := client.dial(ctx, t)
			if err != nil {
				return nil, err
			}
			secured := tls.Client(conn, &tls.Config{RootCAs: c.Roots, ServerName: t.serverName(), MinVersion: tls.VersionTLS12})
			if err := secured.HandshakeContext(ctx); err != nil {
				conn.Close()
				return nil, fmt.Errorf("TLS handshake as %q: %w", t.serverName(), err)
			}
			return secured, nil
		},
	}
	client.h2c = client.transport.Clone()
	client.h2c.Protocols = new(http.Protocols)
	client.h2c.Protocols.SetUnencryptedHTTP2(true)
	return client
}

// Target is an origin as a Client asks it.
type Target struct {
	Scheme zone.Scheme // empty: http
	// Address is host:port.
	Address string
	// Host is the Host header, SNI the TLS server name, by default Host without its port.
	Host, SNI string
}

func (t *Target) serverName() string {
	name := t.SNI
	if name == "" {
		var err error
		if name, _, err = net.SplitHostPort(t.Host); err != nil {
			name = t.Host
		}
	}
	return strings.Trim(name, "[]")
}

type targetKey struct{}

func targetOf(ctx context.Context) *Target { return ctx.Value(targetKey{}).(*Target) }

// dial opens a connection to an address that the guard lets pass.
func (c *Client) dial(ctx context.Context, t *Target) (net.Conn, error) {
	address, err := originguard.Absolute(t.Address)
	if err != nil {
		return nil, err
	}
	return c.dialer.DialContext(ctx, "tcp", address)
}

// Check makes one check of t until ctx ends: it connects and, unless h is nil or of type tcp, asks by HTTP for
// h's path and judges the status. Redirects are answers like others. nil: the origin works.
func (c *Client) Check(ctx context.Context, h *zone.HealthCheck, t Target) error {
	if h == nil || h.Type == "tcp" {
		conn, err := c.dial(ctx, &t)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	e := h.Effective()
	target, err := url.ParseRequestURI(e.Path)
	if err != nil {
		return err
	}
	target.Scheme, target.Host = string(t.Scheme), t.Address
	transport := c.transport
	switch t.Scheme {
	case zone.SchemeHTTPS, zone.SchemeHTTP:
	case zone.SchemeH2C:
		transport, target.Scheme = c.h2c, string(zone.SchemeHTTP)
	default:
		target.Scheme = string(zone.SchemeHTTP)
	}
	req, err := http.NewRequestWithContext(context.WithValue(ctx, targetKey{}, &t), http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	req.Host = t.Host
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.CopyN(io.Discard, resp.Body, maxBody); err != nil && err != io.EOF {
		return fmt.Errorf("%s: its answer: %w", e.Path, err)
	}
	good := resp.StatusCode >= 200 && resp.StatusCode < 400
	if len(e.ExpectedStatus) > 0 {
		good = slices.Contains(e.ExpectedStatus, resp.StatusCode)
	}
	if !good {
		return fmt.Errorf("%s answers %s", e.Path, resp.Status)
	}
	return nil
}
