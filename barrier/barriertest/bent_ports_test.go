package barriertest

import (
	"context"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

func (b *bent) Acquire(_ context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	if err := barrier.CheckLease(holder, ttl); err != nil && !b.is("any lease") {
		return barrier.Lease{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	free := b.holder == "" || !now.Before(b.until) || b.is("a held lease is given away")
	switch {
	case free || b.is("a lease is renewed with a new token"):
		b.pause("a lease is written without a condition")
		if b.holder = holder; !b.is("tokens stay the same") && !(b.is("an expired lease keeps its token") && !b.until.IsZero()) {
			b.token++
		}
	case b.holder != holder:
		return barrier.Lease{}, &barrier.HeldError{Holder: b.holder}
	}
	b.until = now.Add(ttl)
	return barrier.Lease{Holder: holder, Token: b.token, TTL: ttl}, nil
}

func (b *bent) Renew(_ context.Context, l barrier.Lease) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (l.Token != b.token || b.holder == "") && !b.is("a lost lease is renewed") {
		return barrier.ErrLost
	}
	if !b.is("renewing does nothing") {
		b.until = b.now().Add(l.TTL)
	}
	return nil
}

func (b *bent) Release(_ context.Context, l barrier.Lease) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (l.Token != b.token || b.holder == "") && !b.is("anybody releases") {
		return barrier.ErrLost
	}
	if b.is("a release has no effect") {
		return nil
	}
	if b.holder = ""; b.is("a released lease is deleted") {
		b.token = 0
	}
	return nil
}

func (b *bent) Put(_ context.Context, d barrier.Digest, artefact []byte) error {
	if b.is("artefacts of any size") && len(artefact) > barrier.MaxArtefactBytes {
		artefact = artefact[:barrier.MaxArtefactBytes]
	}
	if err := barrier.CheckArtefact(d, artefact); err != nil && !b.is("any digest") {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.artefacts[d]; ok && b.is("artefacts are put once") {
		return barrier.ErrInvalid
	}
	if _, ok := b.artefacts[d]; ok && !b.is("artefacts are overwritten") {
		return nil
	}
	if !b.is("artefacts are shared") {
		artefact = slices.Clone(artefact)
	}
	b.artefacts[d] = artefact
	return nil
}

func (b *bent) Get(_ context.Context, d barrier.Digest) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.artefacts[d]
	if !ok && !b.is("a missing artefact is empty") {
		return nil, barrier.ErrNoArtefact
	}
	return slices.Clone(a), nil
}
