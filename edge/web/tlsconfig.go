package web

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/edge"
)

// defaultCiphers are the suites of TLS 1.2 without a setting: forward secret and authenticated (RFC 9325 §4.2). All are fit for
// HTTP/2 (RFC 9113 §9.2.2).
var defaultCiphers = [...]uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

const (
	protoH2 = "h2"
	protoH1 = "http/1.1"
)

// tlsConfig is what every handshake begins with. Its session tickets' keys are made at random, change every day and open tickets
// for seven (crypto/tls does both), and outlive the views that certificates come from.
func (s *Server) tlsConfig() *tls.Config {
	base := &tls.Config{MinVersion: tls.VersionTLS12, Time: s.config.Now}
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		view := s.config.View()
		if view == nil {
			return nil, errNoView
		}
		host, zone := view.Certificate(strings.ToLower(hello.ServerName))
		if host == nil {
			// Without a certificate crypto/tls answers unrecognized_name (RFC 6066 §3). Versions and suites are as
			// wide as they get, so that no other alert comes before.
			return &tls.Config{MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true}, nil
		}
		return configFor(base, hello, host, &zone.TLS), nil
	}
	return base
}

var errNoView = errors.New("this node has no configuration yet")

// configFor is the configuration of one handshake.
func configFor(base *tls.Config, hello *tls.ClientHelloInfo, host *edge.TLSHost, policy *edge.TLS) *tls.Config {
	c := &tls.Config{
		Certificates: []tls.Certificate{*host.Certificate},
		MinVersion:   policy.MinVersion,
		CipherSuites: policy.Ciphers,
		NextProtos:   []string{protoH2, protoH1},
		Time:         base.Time,
	}
	if c.CipherSuites == nil {
		c.CipherSuites = defaultCiphers[:]
	} else if !offersHTTP2(hello, host.Leaf(), c.CipherSuites) {
		c.NextProtos = []string{protoH1}
	}
	// A session is resumed for the name and certificate that it was made for alone (RFC 6066 §3).
	binding := sessionBinding(host, hello.ServerName)
	c.WrapSession = func(cs tls.ConnectionState, ss *tls.SessionState) ([]byte, error) {
		ss.Extra = append(ss.Extra, binding)
		return base.EncryptTicket(cs, ss)
	}
	c.UnwrapSession = func(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		ss, err := base.DecryptTicket(ticket, cs)
		if err != nil || ss == nil {
			return nil, err
		}
		if !slices.ContainsFunc(ss.Extra, func(e []byte) bool { return string(e) == string(binding) }) {
			return nil, nil
		}
		// What is issued again gets a binding of its own.
		ss.Extra = nil
		return ss, nil
	}
	return c
}

func sessionBinding(host *edge.TLSHost, serverName string) []byte {
	h := sha256.New()
	h.Write([]byte("guardyn/session/v1\x00" + strings.ToLower(serverName) + "\x00"))
	h.Write(host.Certificate.Certificate[0])
	return h.Sum(nil)
}

// offersHTTP2 reports whether a suite that HTTP/2 forbids (RFC 9113 appendix A) cannot be the one chosen: the client speaks
// TLS 1.3, or has a fit suite in common with the host, which crypto/tls prefers.
func offersHTTP2(hello *tls.ClientHelloInfo, leaf *x509.Certificate, suites []uint16) bool {
	if slices.Contains(hello.SupportedVersions, tls.VersionTLS13) {
		return true
	}
	for i, id := range defaultCiphers {
		ecdsa := i%2 == 0
		if ecdsa == (leaf.PublicKeyAlgorithm != x509.RSA) && slices.Contains(suites, id) && slices.Contains(hello.CipherSuites, id) {
			return true
		}
	}
	return false
}

// tlsVersion names a version as rules do.
func tlsVersion(v uint16) string {
	switch v {
	case tls.VersionTLS12:
		return "1.2"
	case tls.VersionTLS13:
		return "1.3"
	default:
		return ""
	}
}
