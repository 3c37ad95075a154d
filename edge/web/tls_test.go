package web

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

func TestHandshakes(t *testing.T) {
	a := newAuthority(t)
	o := startOrigin(t)
	n := startNode(t, withTLS)
	modern := &zone.Zone{
		Name: zone.MustName("modern.example"), Records: []zone.Record{record("modern.example", "192.0.2.1")},
		Settings: zone.Settings{TLSMinVersion: "1.3"}, TLSHosts: map[zone.Name]zone.TLSHost{zone.MustName("modern.example"): a.issue(false, "modern.example")},
	}
	old := &zone.Zone{
		Name: zone.MustName("old.example"), Records: []zone.Record{record("old.example", "192.0.2.1")},
		Settings: zone.Settings{TLSCiphers: []string{"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"}},
		TLSHosts: map[zone.Name]zone.TLSHost{zone.MustName("old.example"): a.issue(true, "old.example")},
	}
	n.publish(
		site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com")), tlsHost("*.wild.example.com", a.issue(true, "*.wild.example.com"))),
		modern, old,
	)
	only12 := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	offers := func(protos ...string) func(*tls.Config) { return func(c *tls.Config) { c.NextProtos = protos } }
	suites := func(ids ...uint16) func(*tls.Config) {
		return func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, ids }
	}
	const unrecognized, protocolVersion, failure = "unrecognized name", "protocol version not supported", "handshake failure"
	for _, tc := range []struct {
		name, sni string
		change    []func(*tls.Config)
		alert     string // empty: it succeeds
		version   uint16
		proto     string
		leaf      string
	}{
		{"an exact name", "www.example.com", nil, "", tls.VersionTLS13, "", "www.example.com"},
		{"odd case", "WwW.eXample.com", nil, "", tls.VersionTLS13, "", "www.example.com"},
		{"a wildcard", "a.wild.example.com", nil, "", tls.VersionTLS13, "", "*.wild.example.com"},
		{"two labels under a wildcard", "a.b.wild.example.com", nil, unrecognized, 0, "", ""},
		{"the wildcard's own parent", "wild.example.com", nil, unrecognized, 0, "", ""},
		{"a name without a certificate", "example.com", nil, unrecognized, 0, "", ""},
		{"a name of no zone", "www.example.net", nil, unrecognized, 0, "", ""},
		{"a name of no zone by TLS 1.2", "www.example.net", []func(*tls.Config){only12}, unrecognized, 0, "", ""},
		{"no name", "", []func(*tls.Config){func(c *tls.Config) { c.InsecureSkipVerify = true }}, unrecognized, 0, "", ""},
		{"an address", "127.0.0.1", nil, unrecognized, 0, "", ""},
		{"TLS 1.2", "www.example.com", []func(*tls.Config){only12}, "", tls.VersionTLS12, "", "www.example.com"},
		{"TLS 1.1", "www.example.com", []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }}, protocolVersion, 0, "", ""},
		{"TLS 1.2 where 1.3 is the least", "modern.example", []func(*tls.Config){only12}, protocolVersion, 0, "", ""},
		{"TLS 1.3 where it is the least", "modern.example", nil, "", tls.VersionTLS13, "", "modern.example"},
		{"h2 before http/1.1", "www.example.com", []func(*tls.Config){offers("http/1.1", "h2")}, "", tls.VersionTLS13, "h2", "www.example.com"},
		{"http/1.1 alone", "www.example.com", []func(*tls.Config){offers("http/1.1")}, "", tls.VersionTLS13, "http/1.1", "www.example.com"},
		{"a protocol that is not served", "www.example.com", []func(*tls.Config){offers("spdy/3")}, "no application protocol", 0, "", ""},
		{"a suite of CBC where none is allowed", "www.example.com", []func(*tls.Config){suites(tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA)}, failure, 0, "", ""},
		{"a suite that the zone allows", "old.example", []func(*tls.Config){suites(tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA)}, "", tls.VersionTLS12, "", "old.example"},
		{"no h2 over a suite that it forbids", "old.example", []func(*tls.Config){suites(tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA), offers("h2", "http/1.1")}, "", tls.VersionTLS12, "http/1.1", "old.example"},
		{"h2 by TLS 1.3 with such a suite in the settings", "old.example", []func(*tls.Config){offers("h2", "http/1.1")}, "", tls.VersionTLS13, "h2", "old.example"},
		{"a suite that the zone does not list", "old.example", []func(*tls.Config){suites(tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)}, failure, 0, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn, err := n.shake(a, tc.sni, tc.change...)
			if tc.alert != "" {
				if err == nil || !strings.Contains(err.Error(), tc.alert) {
					t.Fatalf("error %v, want the alert %s", err, tc.alert)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			state := conn.ConnectionState()
			if state.Version != tc.version || state.NegotiatedProtocol != tc.proto || state.PeerCertificates[0].Subject.CommonName != tc.leaf {
				t.Errorf("version %x, protocol %q, certificate %s", state.Version, state.NegotiatedProtocol, state.PeerCertificates[0].Subject.CommonName)
			}
		})
	}
	waitFor(t, "handshakes are counted", func() bool {
		m := n.Metrics()
		return m.HandshakesTLS13 > 0 && m.HandshakesTLS12 == 3 && m.UnknownNames == 7 && m.HandshakeFailures == 5
	})
}

func TestBothProtocolsOverTLS(t *testing.T) {
	a := newAuthority(t)
	o := startOrigin(t)
	n := startNode(t, withTLS)
	n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com")),
		settings(func(s *zone.Settings) { s.HSTS, s.HSTSIncludeSubdomains = zone.Duration(365*24*time.Hour), true }),
		rule(zone.PhaseTransformResponse, `http.scheme == "https" && tls.sni == "www.example.com" && tls.version == "1.3"`, zone.ActionSetHeader, zone.Parameters{Name: "X-Seen", Value: "tls"})))
	for _, h2 := range []bool{false, true} {
		res, body := n.fetch(n.client(a, h2), "https://www.example.com/p?q=1", "")
		if res.StatusCode != 200 || body != "origin" || (res.ProtoMajor == 2) != h2 {
			t.Errorf("h2 %v: %s %s %q", h2, res.Proto, res.Status, body)
		}
		if got := res.Header.Get("Strict-Transport-Security"); got != "max-age=31536000; includeSubDomains" {
			t.Errorf("h2 %v: HSTS %q", h2, got)
		}
		if res.Header.Get("X-Seen") != "tls" {
			t.Errorf("h2 %v: rules do not see the connection", h2)
		}
		got := o.take()
		if len(got) != 1 || got[0].uri != "/p?q=1" || got[0].host != "www.example.com" || got[0].header.Get("X-Forwarded-Proto") != "https" {
			t.Errorf("h2 %v: the origin got %+v", h2, got)
		}
	}
	if res, _ := n.fetch(n.client(a, false), "http://www.example.com/", ""); res.Header.Get("Strict-Transport-Security") != "" {
		t.Error("HSTS without TLS")
	}
}

func TestTheWireCheckIsInsideTLS(t *testing.T) {
	a := newAuthority(t)
	o := startOrigin(t)
	n := startNode(t, withTLS)
	n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	for _, tc := range framingCases {
		t.Run(tc.name, func(t *testing.T) {
			conn, err := n.shake(a, "www.example.com")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, tc.bytes); err != nil {
				t.Fatal(err)
			}
			got := readReplies(t, conn)
			if len(got) != 1 || got[0].status != tc.status || !got[0].closes {
				t.Errorf("got %+v, want one %d that closes", got, tc.status)
			}
		})
	}
}

func TestAlwaysHTTPS(t *testing.T) {
	a := newAuthority(t)
	o := startOrigin(t)
	n := startNode(t, withTLS)
	n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com")),
		settings(func(s *zone.Settings) { s.AlwaysHTTPS = true }),
		rule(zone.PhaseRedirect, `true`, zone.ActionRedirect, zone.Parameters{Location: "https://elsewhere.example/"})))
	for _, tc := range []struct{ url, location string }{
		{"http://www.example.com/", "https://www.example.com/"},
		{"http://WWW.example.com:80/a//b?x=1&y", "https://www.example.com/a/b?x=1&y"},
		{"http://www.example.com/.well-known/acme-challenge/t", "https://elsewhere.example/"},
		{"http://www.example.com/.well-known/acme-challenge", "https://www.example.com/.well-known/acme-challenge"},
		{"https://www.example.com/", "https://elsewhere.example/"},
	} {
		res, _ := n.fetch(n.client(a, false), tc.url, "")
		if kept := res.Header.Get("Cache-Control"); kept != "private, max-age=3600" && res.StatusCode == 308 {
			t.Errorf("%s: Cache-Control: %s", tc.url, kept)
		}
		if got := res.Header.Get("Location"); got != tc.location || (strings.HasPrefix(tc.location, "https://www.") && res.StatusCode != 308) {
			t.Errorf("%s: %s to %s, want %s", tc.url, res.Status, got, tc.location)
		}
	}
}

func TestMisdirectedRequests(t *testing.T) {
	a := newAuthority(t)
	o := startOrigin(t)
	n := startNode(t, withTLS)
	both := a.issue(false, "www.example.com", "shop.example.com", "www.example.net")
	other := site(o.address())
	other.Name, other.Records, other.LoadBalancers = zone.MustName("example.net"), []zone.Record{record("www.example.net", "192.0.2.1")},
		map[zone.Name]zone.LoadBalancer{zone.MustName("www.example.net"): {Pools: []string{"main"}}}
	tlsHost("www.example.net", both)(other)
	base := func(change ...func(*zone.Zone)) *zone.Zone {
		return site(o.address(), append([]func(*zone.Zone){
			balanced("shop.example.com", "api.example.com", "plain.example.com"),
			tlsHost("shop.example.com", both), tlsHost("api.example.com", a.issue(false, "api.example.com")),
		}, change...)...)
	}
	www := tlsHost("www.example.com", both)
	n.publish(base(www), other)
	for _, h2 := range []bool{false, true} {
		for _, tc := range []struct {
			name, host string
			status     int
		}{
			{"the name of the handshake", "www.example.com", 200},
			{"in odd case, with a port and a dot", "WWW.Example.com.:443", 200},
			{"another name under the same certificate and zone", "shop.example.com", 200},
			{"another name under another certificate", "api.example.com", 421},
			{"another name without a certificate", "plain.example.com", 421},
			{"the same certificate, another zone", "www.example.net", 421},
			{"a host of no zone", "www.example.org", 421},
		} {
			t.Run(fmt.Sprintf("h2 %v, %s", h2, tc.name), func(t *testing.T) {
				if res, body := n.fetch(n.client(a, h2), "https://www.example.com/", tc.host); res.StatusCode != tc.status {
					t.Errorf("%s %q, want %d", res.Status, body, tc.status)
				}
			})
		}
	}
	// Requests on open connections are judged by what is served then.
	for _, h2 := range []bool{false, true} {
		n.publish(base(www), other)
		c := n.client(a, h2)
		ask := func(what string, want int) {
			t.Helper()
			if res, _ := n.fetch(c, "https://www.example.com/", ""); res.StatusCode != want {
				t.Errorf("h2 %v, %s: %s, want %d", h2, what, res.Status, want)
			}
		}
		before := n.Metrics()
		ask("before", 200)
		n.publish(base(tlsHost("www.example.com", a.issue(false, "www.example.com"))), other)
		ask("after its certificate was renewed", 200)
		n.publish(base(www, settings(func(s *zone.Settings) { s.TLSMinVersion = "1.3" })), other)
		ask("after the least version rose to its own", 200)
		n.publish(base(), other)
		ask("after its certificate was removed", 421)
		waitFor(t, "one handshake", func() bool {
			m := n.Metrics()
			return m.HandshakesTLS13 == before.HandshakesTLS13+1
		})
	}
	n.publish(base(www), other)
	c := n.client(a, false, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })
	if res, _ := n.fetch(c, "https://www.example.com/", ""); res.StatusCode != 200 {
		t.Error(res.Status)
	}
	n.publish(base(www, settings(func(s *zone.Settings) { s.TLSMinVersion = "1.3" })), other)
	if res, _ := n.fetch(c, "https://www.example.com/", ""); res.StatusCode != 421 || !res.Close {
		t.Errorf("after the least version rose: %s", res.Status)
	}
}

func TestSessionsAreResumed(t *testing.T) {
	a := newAuthority(t)
	o := startOrigin(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			n := startNode(t, withTLS)
			wild := a.issue(false, "*.wild.example.com")
			www := a.issue(false, "www.example.com")
			n.publish(site(o.address(), tlsHost("www.example.com", www), tlsHost("*.wild.example.com", wild)))
			cache := tls.NewLRUClientSessionCache(8)
			// One key for all names: the client offers whatever session it has.
			ask := func(name string) bool {
				t.Helper()
				conn, err := n.shake(a, name, func(c *tls.Config) {
					c.MaxVersion, c.ClientSessionCache = version, oneSession{cache}
					c.InsecureSkipVerify = true
				})
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name)
				if got := readReplies(t, conn); len(got) != 1 || got[0].status != 200 {
					t.Fatalf("%s: %+v", name, got)
				}
				return conn.ConnectionState().DidResume
			}
			for _, step := range []struct {
				what, name string
				before     func()
				resumed    bool
			}{
				{"the first", "www.example.com", nil, false},
				{"the second", "www.example.com", nil, true},
				{"over a swap", "www.example.com", func() {
					n.publish(site(o.address(), tlsHost("www.example.com", www), tlsHost("*.wild.example.com", wild), balanced("new.example.com")))
				}, true},
				{"of another name", "a.wild.example.com", nil, false},
				{"of another name under the same certificate", "b.wild.example.com", nil, false},
				{"again", "b.wild.example.com", nil, true},
				{"over a new certificate", "b.wild.example.com", func() {
					n.publish(site(o.address(), tlsHost("*.wild.example.com", a.issue(false, "*.wild.example.com"))))
				}, false},
			} {
				if step.before != nil {
					step.before()
				}
				if got := ask(step.name); got != step.resumed {
					t.Errorf("%s: resumed %v, want %v", step.what, got, step.resumed)
				}
			}
			waitFor(t, "resumed sessions are counted", func() bool { return n.Metrics().HandshakesResumed == 3 })
		})
	}
}

// oneSession is a client's cache that does not tell names apart.
type oneSession struct{ tls.ClientSessionCache }

func (c oneSession) Get(string) (*tls.ClientSessionState, bool) {
	return c.ClientSessionCache.Get("any")
}
func (c oneSession) Put(_ string, s *tls.ClientSessionState) { c.ClientSessionCache.Put("any", s) }

func TestHandshakesAreBounded(t *testing.T) {
	a := newAuthority(t)
	o := startOrigin(t)
	n := startNode(t, withTLS, func(c *Config) { c.MaxHandshakes, c.HandshakeTimeout = 1, 2*time.Second })
	n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	for range 2 {
		c, err := tls.Dial("tcp", n.TLSAddr().String(), &tls.Config{ServerName: "www.example.com", RootCAs: a.roots})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	// Who says nothing, or begins to say something, or says nothing more in the middle of it, holds up nobody else.
	hello := clientHello(t)
	for _, said := range [][]byte{nil, hello[:3], hello[:len(hello)-1], hello} {
		for range 4 {
			c := n.dialTLS()
			defer c.Close()
			if _, err := c.Write(said); err != nil {
				t.Fatal(err)
			}
		}
	}
	conn, err := n.shake(a, "www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if m := n.Metrics(); m.HandshakeTimeouts != 0 {
		t.Errorf("it waited for %d others", m.HandshakeTimeouts)
	}
	waitFor(t, "they are out of time", func() bool { return n.Metrics().HandshakeTimeouts == 16 })
}

// clientHello is the first record that a client sends.
func clientHello(t *testing.T) []byte {
	t.Helper()
	a, b := net.Pipe()
	go tls.Client(a, &tls.Config{ServerName: "www.example.com"}).Handshake() //nolint:errcheck // it ends with the pipe
	defer a.Close()
	buf := make([]byte, 16<<10)
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// As many handshakes as there are slots are worked on; one that waits for its client is none of them.
func TestHandshakeSlots(t *testing.T) {
	client, server := net.Pipe()
	slots := make(chan struct{}, 1)
	c := &handshakeConn{clientConn: &clientConn{Conn: server}, slots: slots}
	read := make(chan struct{})
	go func() {
		c.Read(make([]byte, 1))
		read <- struct{}{}
		c.Read(make([]byte, 1))
		read <- struct{}{}
	}()
	slots <- struct{}{} // another one works
	client.Write([]byte("a"))
	select {
	case <-read:
		t.Error("two handshakes are worked on at once")
	case slots <- struct{}{}:
		t.Error("a slot is free")
	default:
	}
	<-slots
	<-read
	slots <- struct{}{} // while it waits for its client again
	<-slots
	client.Write([]byte("b"))
	<-read
	c.end()
	slots <- struct{}{}
	server.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("it reads on")
	}
}

func TestWebSocketOverTLS(t *testing.T) {
	a := newAuthority(t)
	o := startOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(conn, rw)
	})
	n := startNode(t, withTLS)
	n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	conn, err := n.shake(a, "www.example.com", func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatal(res, err)
	}
	n.publish(site(o.address())) // its certificate goes
	for i := range 3 {
		fmt.Fprintf(conn, "%d\n", i)
		if line, err := r.ReadString('\n'); err != nil || line != fmt.Sprintf("%d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
	}
	conn.CloseWrite()
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
		t.Errorf("at the end: %q %v", rest, err)
	}
}

func TestSwapsWithOpenStreams(t *testing.T) {
	a := newAuthority(t)
	hold := make(chan struct{})
	o := startOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			io.WriteString(w, "first\n")
			w.(http.Flusher).Flush()
			<-hold
			io.WriteString(w, "last\n")
		}
	})
	n := startNode(t, withTLS)
	www := tlsHost("www.example.com", a.issue(false, "www.example.com"))
	n.publish(site(o.address(), www))
	c := n.client(a, true)
	slow, err := c.Get("https://www.example.com/slow")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(slow.Body)
	if line, err := r.ReadString('\n'); err != nil || line != "first\n" {
		t.Fatal(line, err)
	}
	for i := range 50 {
		n.publish(site(o.address(), www, balanced(fmt.Sprintf("h%d.example.com", i))))
		if res, _ := n.fetch(c, "https://www.example.com/", ""); res.StatusCode != 200 || res.ProtoMajor != 2 {
			t.Fatalf("after swap %d: %s", i, res.Status)
		}
	}
	close(hold)
	if line, err := r.ReadString('\n'); err != nil || line != "last\n" {
		t.Error(line, err)
	}
	slow.Body.Close()
	if m := n.Metrics(); m.HandshakesTLS13 != 1 {
		t.Errorf("%d handshakes", m.HandshakesTLS13)
	}
}

func TestStopWithTLSConnections(t *testing.T) {
	a := newAuthority(t)
	o := startOrigin(t)
	n := startNode(t, withTLS, func(c *Config) { c.Grace = 200 * time.Millisecond })
	n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	for _, h2 := range []bool{false, true} {
		if res, _ := n.fetch(n.client(a, h2), "https://www.example.com/", ""); res.StatusCode != 200 {
			t.Error(res.Status)
		}
	}
	n.dialTLS() // shakes no hand
	n.stop()
	err := <-n.ended
	n.ended <- err
	if err != nil || n.Metrics().Connections != 0 {
		t.Errorf("error %v, %d connections left", err, n.Metrics().Connections)
	}
}

func TestNoViewNoHandshake(t *testing.T) {
	n := startNode(t, withTLS)
	if _, err := n.shake(newAuthority(t), "www.example.com"); err == nil || errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Errorf("error %v", err)
	}
}
