package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/internal/sqlconn"
)

// identity is what the private key of the TLS row is sealed to.
type identity struct {
	Recipient string `json:"recipient"`
	Identity  string `json:"identity"`
}

// makeIdentity returns nil when the program under test knows nothing of sealed keys: it serves no TLS then.
func (b *bench) makeIdentity() (*identity, error) {
	help, err := b.command(nil, "keys", "--help")
	if err != nil || !strings.Contains(help, "\n  identity ") {
		return nil, err
	}
	out, err := b.command(nil, "keys", "identity", "--json")
	if err != nil {
		return nil, err
	}
	id := new(identity)
	if err := json.Unmarshal([]byte(out), id); err != nil || id.Identity == "" || id.Recipient == "" {
		return nil, fmt.Errorf("keys identity printed no identity: %v", err)
	}
	return id, nil
}

// writeCertificate makes a certificate for the host of the plain zone, P-256 as is usual, and signed by itself: nobody verifies it.
func (b *bench) writeCertificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: plainHost}, DNSNames: []string{plainHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	return cmp.Or(
		os.WriteFile(b.certFile(), certPEM, 0o600),
		os.WriteFile(b.keyFile(), keyPEM, 0o600),
		os.WriteFile(b.pemFile(), bytes.Join([][]byte{certPEM, keyPEM}, nil), 0o600),
	)
}

// liftCeiling lets a zone have more requests/s than any load here: the plan's 10,000 would be answered 429. Ceilings of plans
// are rows that no command writes, so it is done before the control plane opens the database.
func liftCeiling(path string) error {
	ctx := context.Background()
	writer, reader, err := sqlconn.SQLite(ctx, path, nil)
	if err != nil {
		return err
	}
	_, err = writer.ExecContext(ctx, `UPDATE plan SET ceilings = '{"request_rate":100000000}'`)
	return cmp.Or(err, reader.Close(), writer.Close())
}
