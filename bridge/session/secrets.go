package session

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/internal/strictyaml"
)

// MaxSecretBytes bounds a file of credentials or certificates.
const MaxSecretBytes = 1 << 20

// Secrets is the directory that a document's relative files are below; "" is the working directory.
type Secrets string

// Path is where a file is.
func (s Secrets) Path(f document.File) string {
	if p := string(f); filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(string(s), string(f))
}

func (s Secrets) read(f document.File) ([]byte, error) {
	file, err := os.Open(s.Path(f))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxSecretBytes+1))
	if err == nil && len(data) > MaxSecretBytes {
		err = fmt.Errorf("%s has more than %d bytes", s.Path(f), MaxSecretBytes)
	}
	return data, err
}

// Credentials are what a session proves itself with, or asks of those who come.
type Credentials struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Token    string `json:"token"` // of http: a bearer token; of nats: its token
	// File is the path of a NATS credentials file, a JWT and its seed; the rest is empty then.
	File string `json:"-"`
}

// IsZero tells whether there are none.
func (c Credentials) IsZero() bool { return c == Credentials{} }

// natsMark begins a NATS credentials file.
var natsMark = []byte("-----BEGIN NATS USER JWT-----")

// Credentials reads a session's credentials, the zero value when it has none. The error names the file, and nothing that is in it.
func (s Secrets) Credentials(session document.Session) (Credentials, error) {
	var c Credentials
	if session.Credentials == "" {
		return c, nil
	}
	path := s.Path(session.Credentials)
	data, err := s.read(session.Credentials)
	if err != nil {
		return c, fmt.Errorf("credentials: %w", err)
	}
	if bytes.Contains(data, natsMark) {
		if session.Kind != document.NATS {
			return c, fmt.Errorf("credentials: %s is of NATS, and session %s is of kind %s", path, session.ID, session.Kind)
		}
		return Credentials{File: path}, nil
	}
	d := strictyaml.Read(data)
	p := append(d.Problems(), d.Decode(&c)...)
	if len(p) > 0 {
		return Credentials{}, fmt.Errorf("credentials: %s, line %d: write username:, password: and token: there, those that are needed", path, p[0].Line)
	}
	switch {
	case c.IsZero():
		return c, fmt.Errorf("credentials: %s names no username, password or token", path)
	case c.Token != "" && (c.Username != "" || c.Password != ""):
		return c, fmt.Errorf("credentials: %s has a token and a username: only one of them can be sent", path)
	case c.Token != "" && session.Kind == document.MQTT:
		return c, fmt.Errorf("credentials: %s has a token, and MQTT sends a username and password: write it as the password", path)
	case c.Password != "" && c.Username == "" && session.Protocol != document.MQTT5:
		return c, fmt.Errorf("credentials: %s has a password without a username", path)
	}
	return c, nil
}

// TLS reads a session's certificates, and returns what it speaks TLS with. For a session that listens it is the server's side: with a
// CA, clients must prove themselves by it.
func (s Secrets) TLS(session document.Session) (*tls.Config, error) {
	t := session.TLS
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	var errs []error
	if t.CA != "" {
		pem, err := s.read(t.CA)
		pool := x509.NewCertPool()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("tls.ca: %w", err))
		case !pool.AppendCertsFromPEM(pem):
			errs = append(errs, fmt.Errorf("tls.ca: %s holds no certificate", s.Path(t.CA)))
		case session.Listen != "":
			c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
		default:
			c.RootCAs = pool
		}
	}
	if t.Certificate != "" {
		certificate, err := s.read(t.Certificate)
		key, keyErr := s.read(t.Key)
		if err = errors.Join(err, keyErr); err == nil {
			var pair tls.Certificate
			if pair, err = tls.X509KeyPair(certificate, key); err == nil {
				c.Certificates = []tls.Certificate{pair}
				// A broker that does not know who signed it is to say that, rather than that it was given none: by itself TLS would send none.
				c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tls.certificate: %w", err))
		}
	}
	return c, errors.Join(errs...)
}
