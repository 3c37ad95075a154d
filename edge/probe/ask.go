package probe

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/miekg/dns"
)

// reachable is address as this process reaches it: an unspecified host is its own loopback.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if a, err := netip.ParseAddr(host); err == nil && a.IsUnspecified() {
		host = "127.0.0.1"
		if a.Is6() {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

// askZone asks the node's DNS for the SOA of a zone: it must be the answer of the view that is served. Over UDP first, and over TCP when
// nothing comes, since a datagram may be lost and rate limiting may hold one back.
func (p *Prober) askZone(ctx context.Context, apex string) error {
	view := p.c.Live()
	if view == nil {
		return errNoView
	}
	var errs [2]error
	for i, network := range []string{"udp", "tcp"} {
		one, cancel := context.WithTimeout(ctx, timeout/2)
		errs[i] = p.askSOA(one, network, apex, view.Serial())
		cancel()
		if errs[i] == nil {
			return nil
		}
	}
	if now := p.c.Live(); now != nil && now != view {
		return nil // swapped meanwhile: the next judgement tells
	}
	return fmt.Errorf("zone %s: %w, %w", apex, errs[0], errs[1])
}

var errNoView = errors.New("the node serves nothing")

func (p *Prober) askSOA(ctx context.Context, network, apex string, serial uint32) error {
	q := new(dns.Msg).SetQuestion(dns.Fqdn(apex), dns.TypeSOA)
	q.RecursionDesired = false
	answer, _, err := (&dns.Client{Net: network}).ExchangeContext(ctx, q, reachable(p.c.DNS))
	switch {
	case err != nil:
		return fmt.Errorf("SOA over %s: %w", network, err)
	case answer.Rcode != dns.RcodeSuccess || !answer.Authoritative || len(answer.Answer) != 1:
		return fmt.Errorf("SOA over %s: %s with %d records, authoritative %t", network, dns.RcodeToString[answer.Rcode], len(answer.Answer), answer.Authoritative)
	}
	soa, ok := answer.Answer[0].(*dns.SOA)
	if !ok || soa.Serial != serial {
		return fmt.Errorf("SOA over %s: %s, want serial %d", network, answer.Answer[0], serial)
	}
	return nil
}

// userAgent names these questions in origins' logs.
const userAgent = "guardyn-probe"

// askHost asks the node for the front page of a host, by HTTP and, when the view has a certificate for it, over TLS. Whatever the
// host answers is its own business, but for a failure.
func (p *Prober) askHost(ctx context.Context, host string) error {
	if err := p.get(ctx, "http", p.c.HTTP, host, nil); err != nil {
		return err
	}
	view := p.c.Live()
	if p.c.HTTPS == "" || view == nil {
		return nil
	}
	want, _ := view.Certificate(host)
	if want == nil {
		return nil
	}
	err := p.get(ctx, "https", p.c.HTTPS, host, &tls.Config{
		// Nobody's trust is asked here: the certificate must be the one that was published. Its dates and name are the build's
		// to judge.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if !bytes.Equal(state.PeerCertificates[0].Raw, want.Certificate.Certificate[0]) {
				return errors.New("the node shows another certificate than is published")
			}
			return nil
		},
	})
	if now := p.c.Live(); err != nil && now != nil && now != view {
		return nil // swapped meanwhile: the next judgement tells
	}
	return err
}

// get asks address for the front page of a host.
func (p *Prober) get(ctx context.Context, scheme, address, host string, config *tls.Config) error {
	var dialer net.Dialer
	transport := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: config,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", reachable(address))
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host+"/", nil)
	if err != nil {
		return fmt.Errorf("host %s: %w", host, err)
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("host %s by %s: %w", host, scheme, err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	p.own.all.Add(1)
	if resp.StatusCode >= http.StatusInternalServerError {
		p.own.failed.Add(1)
		return fmt.Errorf("host %s: answers %s by %s", host, resp.Status, scheme)
	}
	return nil
}

// counter counts this package's own requests that were answered, which are no clients'. One that was not waited for is not counted by
// the node either.
type counter struct{ all, failed atomic.Uint64 }

// requests is what the node has answered to clients; a few of its own less while it is still counting those.
func (p *Prober) requests() Requests {
	own := Requests{All: p.own.all.Load(), Failed: p.own.failed.Load()}
	return p.c.Requests().less(own)
}

// less is r without those of old, never below nothing.
func (r Requests) less(old Requests) Requests {
	return Requests{All: r.All - min(old.All, r.All), Failed: r.Failed - min(old.Failed, r.Failed)}
}

func (r Requests) share() float64 {
	if r.All == 0 {
		return 0
	}
	return float64(r.Failed) / float64(r.All)
}
