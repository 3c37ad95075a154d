package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// maxIssued bounds the activations that are remembered for acknowledgements of what is live no more. Of a fleet
// that is on its way from one version to the next most nodes acknowledge one and the same.
const maxIssued = 1024

// issue names an activation.
type issue struct{ epoch, generation uint64 }

// issued is what an activation made live; version 0: there was no such activation.
type issued struct {
	version uint64
	hash    string
}

// issues remembers activations that others took the place of: none of them changes, and none comes to be. The
// zero value is ready.
type issues struct {
	mu sync.Mutex
	of map[issue]issued
}

// issuedAs returns what an activation that is not newer than what is live made live.
func (s *Service) issuedAs(ctx context.Context, epoch, generation uint64) (issued, error) {
	at := issue{epoch, generation}
	s.issues.mu.Lock()
	was, known := s.issues.of[at]
	s.issues.mu.Unlock()
	if known {
		return was, nil
	}
	version, hash, err := s.store.Activated(ctx, epoch, generation)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return issued{}, fmt.Errorf("reading generation %d: %w", generation, err)
	}
	was = issued{version, hash}
	s.issues.mu.Lock()
	defer s.issues.mu.Unlock()
	if s.issues.of == nil || len(s.issues.of) >= maxIssued {
		s.issues.of = make(map[issue]issued)
	}
	s.issues.of[at] = was
	return was, nil
}
