package zone

// TLSHost is a certificate for a host name or a wildcard (*.example.com). The private key is sealed to
// the fleet before it reaches the control plane.
type TLSHost struct {
	// Certificate is the chain, leaf first, in PEM (RFC 7468), printed one way.
	Certificate string `json:"certificate"`
	// SealedKey is the private key, an armoured age file (age-encryption.org/v1).
	SealedKey string `json:"sealed_key"`
}
