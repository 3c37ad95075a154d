package control

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zeebo/blake3"
)

// A token is a prefix that scanners of leaked secrets can look for and 256 random bits.
const (
	secretPrefix = "gdn_"
	secretBytes  = 32
	secretLen    = len(secretPrefix) + 43
)

func newSecret() string {
	var b [secretBytes]byte
	rand.Read(b[:]) // never fails
	return secretPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// hashSecret is what is stored and looked up. Looking up by a hash of 256 random bits tells nothing about
// how close a guess was, whatever the time that it takes.
func hashSecret(secret string) [32]byte {
	var buf [secretLen]byte
	return blake3.Sum256(buf[:copy(buf[:], secret)])
}

// hashBearer is hashSecret on memory that is used again: blake3's own 10 KB on the stack of every connection would
// stay there for as long as it is open.
func (s *Service) hashBearer(bearer string) (sum [32]byte) {
	h, ok := s.hashers.Get().(*blake3.Hasher)
	if !ok {
		h = blake3.New()
	}
	h.Reset()
	_, _ = h.WriteString(bearer) // never fails
	h.Sum(sum[:0])
	s.hashers.Put(h)
	return sum
}

// Bounds of authentication.
const (
	// maxCredentials bounds the tokens that are remembered; one beyond takes the place of another.
	maxCredentials = 200_000
	// maxLookups bounds reads of tokens from the store at one time: a storm of unknown tokens waits here.
	maxLookups = 16
)

// Authenticate tells whom a bearer token speaks for; ErrUnauthenticated when nobody. Known tokens are
// answered from memory; a token that was revoked by another process works for at most Config.Refresh more,
// and for as long as the store does not answer. The caller sets Principal.From.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Principal, error) {
	if len(bearer) != secretLen || bearer[:len(secretPrefix)] != secretPrefix {
		return Principal{}, ErrUnauthenticated
	}
	hash := s.hashBearer(bearer)
	c, era, known := s.credentials.find(hash)
	if !known {
		var err error
		if c, err = s.lookUp(ctx, hash); err != nil {
			return Principal{}, err
		}
		s.credentials.remember(hash, c, era)
	}
	if !c.expires.IsZero() && !s.now().Before(c.expires) {
		return Principal{}, ErrUnauthenticated
	}
	return c.principal, nil
}

func (s *Service) lookUp(ctx context.Context, hash [32]byte) (credential, error) {
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
	case <-ctx.Done():
		return credential{}, fmt.Errorf("authenticating: %w", ctx.Err())
	}
	// The caller is a connection that may wait for minutes after this: what the database needs of a stack is given
	// back with a goroutine of its own.
	var (
		t    Token
		p    Principal
		err  error
		read sync.WaitGroup
	)
	read.Go(func() { t, p, err = s.store.TokenByHash(ctx, hash) })
	read.Wait()
	if errors.Is(err, ErrNotFound) {
		return credential{}, ErrUnauthenticated
	}
	if err != nil {
		return credential{}, fmt.Errorf("authenticating: %w", err)
	}
	return credential{principal: p, expires: t.ExpiresAt}, nil
}

// credential is what is remembered of a token.
type credential struct {
	principal Principal
	expires   time.Time // zero: never
}

// credentials remembers tokens until the directory changes. The zero value is ready.
type credentials struct {
	mu        sync.RWMutex
	byHash    map[[32]byte]credential
	directory uint64 // Revisions.Directory of what is remembered
	era       uint64 // rises when everything is forgotten
}

// find also returns the era, in which alone what is read from the store next may be remembered.
func (c *credentials) find(hash [32]byte) (credential, uint64, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.byHash[hash]
	return v, c.era, ok
}

// remember keeps v unless everything was forgotten since era: it may be out of date then.
func (c *credentials) remember(hash [32]byte, v credential, era uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.era != era {
		return
	}
	if c.byHash == nil {
		c.byHash = make(map[[32]byte]credential)
	}
	if len(c.byHash) >= maxCredentials {
		for other := range c.byHash {
			delete(c.byHash, other)
			break
		}
	}
	c.byHash[hash] = v
}

// keep forgets everything unless directory is what it was read at.
func (c *credentials) keep(directory uint64) {
	c.mu.RLock()
	same := c.directory == directory
	c.mu.RUnlock()
	if same {
		return
	}
	c.drop()
	c.mu.Lock()
	c.directory = directory
	c.mu.Unlock()
}

// drop forgets everything.
func (c *credentials) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era++
	clear(c.byHash)
}
