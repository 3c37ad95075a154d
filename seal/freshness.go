package seal

import (
	"errors"
	"fmt"
	"time"
)

const freshnessPrefix = "guardyn-fresh-v1\n"

// FreshnessStatement answers a node's nonce with what is live now (spec §7): the proof that what the node
// holds is not an old artefact played again.
type FreshnessStatement struct {
	Nonce       string    `json:"nonce"` // 16 to 64 lower-case hex digits, chosen by the node
	Epoch       uint64    `json:"epoch"`
	Generation  uint64    `json:"generation"`
	ContentHash string    `json:"content_hash"`
	IssuedAt    time.Time `json:"issued_at"` // UTC
}

func (f *FreshnessStatement) validate() error {
	return joined(
		shape("nonce", f.Nonce, ValidNonce(f.Nonce), "16 to 64 lower-case hex digits"),
		counter("epoch", f.Epoch, 1), counter("generation", f.Generation, 1),
		shape("content_hash", f.ContentHash, lowerHex(f.ContentHash, 64), "64 lower-case hex digits"),
		issued(f.IssuedAt),
	)
}

// ValidNonce reports whether s is 16 to 64 lower-case hex digits.
func ValidNonce(s string) bool { return len(s) >= 16 && len(s) <= 64 && lowerHex(s, len(s)) }

// SignFreshness returns the value of the header x-guardyn-config-freshness, in the form of a
// SignedActivation; the signature covers "guardyn-fresh-v1\n" and the JCS bytes.
func SignFreshness(k SigningKey, f FreshnessStatement) (string, error) {
	f.IssuedAt = f.IssuedAt.UTC().Round(0)
	if err := f.validate(); err != nil {
		return "", fmt.Errorf("freshness: %w", err)
	}
	s, err := signStatement(k, freshnessPrefix, &f)
	if err != nil {
		return "", fmt.Errorf("freshness: %w", err)
	}
	return s, nil
}

// VerifyFreshness checks that a trusted key answered this very nonce, and says which. The caller compares the
// statement with what it holds. The error is a *Refusal with code freshness_invalid.
func VerifyFreshness(header string, t TrustedKeys, nonce string) (FreshnessStatement, KeyID, error) {
	var f FreshnessStatement
	by, err := openStatement(header, freshnessPrefix, t.keys, &f)
	if err == nil {
		err = f.validate()
	}
	if err == nil && f.Nonce != nonce {
		err = errors.New("it answers another nonce")
	}
	if err != nil {
		return FreshnessStatement{}, "", refuse(CodeFreshnessInvalid, "the freshness statement is refused: %v", err)
	}
	return f, by.ID(), nil
}
