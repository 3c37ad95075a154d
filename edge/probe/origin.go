package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/guardyn-edge/guardyn/internal/originguard"
	"github.com/guardyn-edge/guardyn/zone"
)

// originClient asks origins as the data plane would, within the same guard.
type originClient struct {
	dialer net.Dialer
	roots  *x509.CertPool
}

func newOriginClient(allowed []netip.Prefix, roots *x509.CertPool) *originClient {
	return &originClient{roots: roots, dialer: net.Dialer{
		Control: func(_, address string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return originguard.Check(a.Addr(), allowed)
		},
	}}
}

// originsAtOnce is how many of a pool's origins are asked at once; a pool with more takes turns within the time of one question.
const originsAtOnce = 8

// check returns nil when the pool has an origin that works: the first that does ends it.
func (c *originClient) check(ctx context.Context, r poolRef) error {
	var failed []string
	turns := (len(r.pool.Origins) + originsAtOnce - 1) / originsAtOnce
	for some := range slices.Chunk(r.pool.Origins, originsAtOnce) {
		turn, cancel := context.WithTimeout(ctx, timeout/time.Duration(turns))
		errs := make(chan error, len(some))
		for i := range some {
			go func() {
				err := c.ask(turn, r.pool.Health, &some[i])
				if err != nil {
					err = fmt.Errorf("%s: %w", some[i].Name, err)
				}
				errs <- err
			}()
		}
		works := false
		for range some {
			if err := <-errs; err == nil {
				works = true
				cancel() // the others
			} else {
				failed = append(failed, err.Error())
			}
		}
		cancel()
		if works {
			return nil
		}
	}
	if len(failed) == 0 {
		return nil // a pool without origins serves nobody, before and after
	}
	return fmt.Errorf("%s has no healthy origin: %s", r, strings.Join(failed, ", "))
}

// ask connects and, with an HTTP health check, makes its request.
func (c *originClient) ask(ctx context.Context, h *zone.HealthCheck, o *zone.Origin) error {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return err
	}
	if _, err := netip.ParseAddr(host); err != nil {
		host += "." // absolute: no search domain of this machine applies
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	}
	if h == nil || h.Type == "tcp" {
		conn, err := dial(ctx, "", "")
		if err != nil {
			return err
		}
		return conn.Close()
	}
	name := o.HostHeader
	if name == "" {
		name = o.Address
	}
	server := o.SNI
	if server == "" {
		if server, _, err = net.SplitHostPort(name); err != nil {
			server = name
		}
	}
	server = strings.Trim(server, "[]")
	transport := &http.Transport{
		DisableKeepAlives: true, DialContext: dial,
		TLSClientConfig: &tls.Config{RootCAs: c.roots, ServerName: server, MinVersion: tls.VersionTLS12},
	}
	scheme := o.Scheme
	if scheme == "" {
		scheme = zone.SchemeHTTP
	}
	path := h.Path
	if path == "" {
		path = "/"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(scheme)+"://"+o.Address+path, nil)
	if err != nil {
		return err
	}
	req.Host = name
	req.Header.Set("User-Agent", userAgent)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	good := resp.StatusCode >= 200 && resp.StatusCode < 400
	if len(h.ExpectedStatus) > 0 {
		good = slices.Contains(h.ExpectedStatus, resp.StatusCode)
	}
	if !good {
		return fmt.Errorf("%s answers %s", path, resp.Status)
	}
	return nil
}
