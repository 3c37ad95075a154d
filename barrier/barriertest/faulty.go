package barriertest

import (
	"context"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Faulty returns handles whose every call, reads too, passes through f before it reaches h. A Watch that is
// lost gives no hints.
func Faulty(h Handles, f *Faults) Handles {
	return Handles{
		Store:     &faultyStore{h.Store, f},
		Leases:    &faultyLeases{h.Leases, f},
		Artefacts: &faultyArtefacts{h.Artefacts, f},
	}
}

type faultyStore struct {
	s barrier.Store
	f *Faults
}

func (w *faultyStore) Current(ctx context.Context) (barrier.Row, error) {
	return through(ctx, w.f, "Current", w.s.Current)
}

func (w *faultyStore) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	return through(ctx, w.f, "Look", func(ctx context.Context) (barrier.View, error) { return w.s.Look(ctx, m) })
}

func (w *faultyStore) Watch(ctx context.Context, t barrier.Topic) <-chan struct{} {
	if fault, _ := w.f.take("Watch"); fault != Lost {
		return w.s.Watch(ctx, t)
	}
	silent := make(chan struct{})
	context.AfterFunc(ctx, func() { close(silent) })
	return silent
}

func (w *faultyStore) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	return through(ctx, w.f, "Join", func(ctx context.Context) (barrier.Registration, error) {
		return w.s.Join(ctx, m, boot, incarnation)
	})
}

func (w *faultyStore) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, buildDigest string) error {
	return does(ctx, w.f, "Ack", func(ctx context.Context) error { return w.s.Ack(ctx, r, m, boot, buildDigest) })
}

func (w *faultyStore) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return does(ctx, w.f, "Nack", func(ctx context.Context) error { return w.s.Nack(ctx, r, m, boot, reason) })
}

func (w *faultyStore) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	return does(ctx, w.f, "Converge", func(ctx context.Context) error { return w.s.Converge(ctx, r, m, boot, detail) })
}

func (w *faultyStore) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return does(ctx, w.f, "Withdraw", func(ctx context.Context) error { return w.s.Withdraw(ctx, r, m, boot, reason) })
}

func (w *faultyStore) Claim(ctx context.Context, t barrier.Token) error {
	return does(ctx, w.f, "Claim", func(ctx context.Context) error { return w.s.Claim(ctx, t) })
}

func (w *faultyStore) Commit(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return does(ctx, w.f, "Commit", func(ctx context.Context) error { return w.s.Commit(ctx, r, t) })
}

func (w *faultyStore) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return does(ctx, w.f, "Abort", func(ctx context.Context) error { return w.s.Abort(ctx, r, by, reason) })
}

func (w *faultyStore) Confirm(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return does(ctx, w.f, "Confirm", func(ctx context.Context) error { return w.s.Confirm(ctx, r, t) })
}

func (w *faultyStore) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return does(ctx, w.f, "Revert", func(ctx context.Context) error { return w.s.Revert(ctx, r, by, reason) })
}

func (w *faultyStore) Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	return through(ctx, w.f, "Propose", func(ctx context.Context) (barrier.Rollout, error) { return w.s.Propose(ctx, p) })
}

func (w *faultyStore) SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	return through(ctx, w.f, "SetRoster", func(ctx context.Context) (barrier.Roster, error) {
		return w.s.SetRoster(ctx, revision, members)
	})
}

func (w *faultyStore) AdoptBaseline(ctx context.Context, p barrier.Pointer) (barrier.BaselineOutcome, error) {
	return through(ctx, w.f, "AdoptBaseline", func(ctx context.Context) (barrier.BaselineOutcome, error) {
		return w.s.AdoptBaseline(ctx, p)
	})
}

type faultyLeases struct {
	l barrier.Leases
	f *Faults
}

func (w *faultyLeases) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	return through(ctx, w.f, "Acquire", func(ctx context.Context) (barrier.Lease, error) {
		return w.l.Acquire(ctx, holder, ttl)
	})
}

func (w *faultyLeases) Renew(ctx context.Context, l barrier.Lease) error {
	return does(ctx, w.f, "Renew", func(ctx context.Context) error { return w.l.Renew(ctx, l) })
}

func (w *faultyLeases) Release(ctx context.Context, l barrier.Lease) error {
	return does(ctx, w.f, "Release", func(ctx context.Context) error { return w.l.Release(ctx, l) })
}

type faultyArtefacts struct {
	a barrier.Artefacts
	f *Faults
}

func (w *faultyArtefacts) Put(ctx context.Context, d barrier.Digest, artefact []byte) error {
	return does(ctx, w.f, "Put", func(ctx context.Context) error { return w.a.Put(ctx, d, artefact) })
}

func (w *faultyArtefacts) Get(ctx context.Context, d barrier.Digest) ([]byte, error) {
	return through(ctx, w.f, "Get", func(ctx context.Context) ([]byte, error) { return w.a.Get(ctx, d) })
}
