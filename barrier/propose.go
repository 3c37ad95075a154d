package barrier

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrRefused means that a change is of a class that cannot be rolled out; see RefusedError.
var ErrRefused = errors.New("this change cannot be rolled out")

// RefusedError is an ErrRefused that says why and what to do instead.
type RefusedError struct{ Class Class }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v: %s: %s", ErrRefused, e.Class.Name, e.Class.Reason)
}

// Unwrap makes it an ErrRefused.
func (e *RefusedError) Unwrap() error { return ErrRefused }

// Proposer puts changes to the cohort.
type Proposer struct {
	Store     Proposing
	Artefacts Artefacts
	Host      interface {
		Digest(artefact []byte) (Digest, error)
		Classify(ctx context.Context, running Pointer, artefact []byte) (Class, error)
	}
}

// proposeAttempts bounds how often a proposal whose outcome is unknown is sent: with the same id, so it opens one rollout.
const proposeAttempts = 3

// Propose is ProposeOn with the row as it is.
func (r Proposer) Propose(ctx context.Context, artefact []byte, p Proposal) (Rollout, error) {
	row, err := r.Store.Current(ctx)
	if err != nil {
		return Rollout{}, fmt.Errorf("read the row: %w", err)
	}
	return r.ProposeOn(ctx, row, artefact, p)
}

// ProposeOn classifies the artefact against what the row has committed, puts its bytes and proposes it. Whoever decides by the row
// whether to propose at all gives the row that it has decided by: what was rolled out since makes the proposal ErrStale. p.ID,
// p.Digest, p.RosterRevision and p.Seen may be empty: they are made here. Errors: *RefusedError, and Proposing.Propose's.
func (r Proposer) ProposeOn(ctx context.Context, row Row, artefact []byte, p Proposal) (Rollout, error) {
	if len(artefact) > MaxArtefactBytes {
		return Rollout{}, fmt.Errorf("%w: the artefact has %d bytes, more than %d", ErrInvalid, len(artefact), MaxArtefactBytes)
	}
	var err error
	if p.Digest, err = r.Host.Digest(artefact); err != nil {
		return Rollout{}, fmt.Errorf("digest: %w", err)
	}
	p.ID = cmp.Or(p.ID, NewRolloutID())
	p.RosterRevision = cmp.Or(p.RosterRevision, row.Roster.Revision)
	p.Seen = cmp.Or(p.Seen, row.Generation)
	if err := p.Check(); err != nil {
		return Rollout{}, err
	}
	class, err := r.Host.Classify(ctx, row.Committed, artefact)
	if err != nil {
		return Rollout{}, fmt.Errorf("classify: %w", err)
	}
	if class.Refused {
		return Rollout{}, &RefusedError{Class: class}
	}
	if err := r.Artefacts.Put(ctx, p.Digest, artefact); err != nil {
		return Rollout{}, fmt.Errorf("put the artefact: %w", err)
	}
	for attempt := 1; ; attempt++ {
		ro, err := r.Store.Propose(ctx, p)
		if err == nil || Code(err) != "" || attempt == proposeAttempts || ctx.Err() != nil {
			return ro, err
		}
	}
}

// NewRolloutID returns a random UUID (RFC 9562, version 4).
func NewRolloutID() RolloutID {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return RolloutID(s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:])
}
