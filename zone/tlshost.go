package zone

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Bounds of a TLS host.
const (
	maxChain     = 10
	maxPEM       = 256 << 10
	armouredAge  = "AGE ENCRYPTED FILE"
	ageFirstLine = "age-encryption.org/v1\n"
)

// TLSHost is a certificate for a host name or a wildcard (*.example.com). The private key is sealed to
// the fleet before it reaches the control plane.
type TLSHost struct {
	// Certificate is the chain, leaf first, in PEM (RFC 7468), printed one way.
	Certificate string `json:"certificate"`
	// SealedKey is the private key, an armoured age file (age-encryption.org/v1).
	SealedKey string `json:"sealed_key"`
}

// Normalize returns t in normal form (PEM without text and headers between blocks), or all that is wrong
// with it, joined. No error holds a part of the key. Whether certificates parse is the build's to judge.
func (t TLSHost) Normalize() (TLSHost, error) {
	var bad problems
	chain, err := normalChain(t.Certificate)
	bad.in("certificate", err)
	key, err := normalSealedKey(t.SealedKey)
	bad.in("sealed_key", err)
	if err := bad.err(); err != nil {
		return TLSHost{}, err
	}
	return TLSHost{Certificate: chain, SealedKey: key}, nil
}

func normalChain(s string) (string, error) {
	if len(s) > maxPEM {
		return "", fmt.Errorf("it has %d bytes, the most is %d", len(s), maxPEM)
	}
	var out bytes.Buffer
	var bad problems
	n := 0
	for rest := []byte(s); ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			if bytes.Contains(rest, []byte("-----BEGIN ")) {
				bad.addf("after certificate %d: a PEM block does not decode", n)
			}
			break
		}
		switch {
		case strings.Contains(b.Type, "PRIVATE KEY"):
			return "", errors.New("it holds a private key in the clear: treat that key as exposed, and send certificates only")
		case b.Type != "CERTIFICATE":
			bad.addf("a PEM block %s is not a CERTIFICATE", quote(b.Type))
			continue
		}
		n++
		if err := pem.Encode(&out, &pem.Block{Type: b.Type, Bytes: b.Bytes}); err != nil {
			return "", err
		}
	}
	if n == 0 {
		bad.addf("there is no certificate in PEM (RFC 7468)")
	}
	if n > maxChain {
		bad.addf("the chain has %d certificates, the most is %d", n, maxChain)
	}
	return out.String(), bad.err()
}

func normalSealedKey(s string) (string, error) {
	if len(s) > maxPEM {
		return "", fmt.Errorf("it has %d bytes, the most is %d", len(s), maxPEM)
	}
	b, rest := pem.Decode([]byte(s))
	switch {
	case b != nil && strings.Contains(b.Type, "PRIVATE KEY"):
		return "", errors.New("it is a private key in the clear: treat it as exposed, make a new one, and seal it to the fleet's recipient with age")
	case b == nil || b.Type != armouredAge || len(b.Headers) > 0 || !bytes.HasPrefix(b.Bytes, []byte(ageFirstLine)):
		return "", errors.New("it is not an armoured age file (age -a)")
	case len(bytes.TrimSpace(rest)) > 0:
		return "", errors.New("something follows the age file")
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: b.Type, Bytes: b.Bytes})), nil
}
