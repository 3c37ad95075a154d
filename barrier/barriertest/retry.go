package barriertest

import (
	"context"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// attempts bounds how often a call whose outcome is unknown is made.
const attempts = 64

// again makes a call until its outcome is known: it succeeds, or the error is one of the ports'.
func again[T any](ctx context.Context, call func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		v, err := call()
		if err == nil || barrier.Code(err) != "" || n == attempts || ctx.Err() != nil {
			return v, err
		}
	}
}

func repeat(ctx context.Context, call func() error) error {
	_, err := again(ctx, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// retrying returns handles that repeat a call until its outcome is known, as the driver does. Two answers tell of an earlier
// attempt that was applied: BaselineVerified, and ErrLost of a Release.
func retrying(h Handles) Handles {
	return Handles{Store: &retryingStore{h.Store}, Leases: &retryingLeases{h.Leases}, Artefacts: &retryingArtefacts{h.Artefacts}}
}

type retryingStore struct{ barrier.Store } // Watch is never repeated

func (r *retryingStore) Current(ctx context.Context) (barrier.Row, error) {
	return again(ctx, func() (barrier.Row, error) { return r.Store.Current(ctx) })
}

func (r *retryingStore) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	return again(ctx, func() (barrier.View, error) { return r.Store.Look(ctx, m) })
}

func (r *retryingStore) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	return again(ctx, func() (barrier.Registration, error) { return r.Store.Join(ctx, m, boot, incarnation) })
}

func (r *retryingStore) Ack(ctx context.Context, ref barrier.Ref, m barrier.MemberID, boot barrier.BootID, buildDigest string) error {
	return repeat(ctx, func() error { return r.Store.Ack(ctx, ref, m, boot, buildDigest) })
}

func (r *retryingStore) Nack(ctx context.Context, ref barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return repeat(ctx, func() error { return r.Store.Nack(ctx, ref, m, boot, reason) })
}

func (r *retryingStore) Converge(ctx context.Context, ref barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	return repeat(ctx, func() error { return r.Store.Converge(ctx, ref, m, boot, detail) })
}

func (r *retryingStore) Withdraw(ctx context.Context, ref barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return repeat(ctx, func() error { return r.Store.Withdraw(ctx, ref, m, boot, reason) })
}

func (r *retryingStore) Claim(ctx context.Context, t barrier.Token) error {
	return repeat(ctx, func() error { return r.Store.Claim(ctx, t) })
}

func (r *retryingStore) Commit(ctx context.Context, ref barrier.Ref, t barrier.Token) error {
	return repeat(ctx, func() error { return r.Store.Commit(ctx, ref, t) })
}

func (r *retryingStore) Abort(ctx context.Context, ref barrier.Ref, by barrier.Authority, reason string) error {
	return repeat(ctx, func() error { return r.Store.Abort(ctx, ref, by, reason) })
}

func (r *retryingStore) Confirm(ctx context.Context, ref barrier.Ref, t barrier.Token) error {
	return repeat(ctx, func() error { return r.Store.Confirm(ctx, ref, t) })
}

func (r *retryingStore) Revert(ctx context.Context, ref barrier.Ref, by barrier.Authority, reason string) error {
	return repeat(ctx, func() error { return r.Store.Revert(ctx, ref, by, reason) })
}

func (r *retryingStore) Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	return again(ctx, func() (barrier.Rollout, error) { return r.Store.Propose(ctx, p) })
}

func (r *retryingStore) SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	return again(ctx, func() (barrier.Roster, error) { return r.Store.SetRoster(ctx, revision, members) })
}

func (r *retryingStore) AdoptBaseline(ctx context.Context, p barrier.Pointer) (barrier.BaselineOutcome, error) {
	return again(ctx, func() (barrier.BaselineOutcome, error) { return r.Store.AdoptBaseline(ctx, p) })
}

type retryingLeases struct{ barrier.Leases }

func (r *retryingLeases) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	return again(ctx, func() (barrier.Lease, error) { return r.Leases.Acquire(ctx, holder, ttl) })
}

func (r *retryingLeases) Renew(ctx context.Context, l barrier.Lease) error {
	return repeat(ctx, func() error { return r.Leases.Renew(ctx, l) })
}

func (r *retryingLeases) Release(ctx context.Context, l barrier.Lease) error {
	return repeat(ctx, func() error { return r.Leases.Release(ctx, l) })
}

type retryingArtefacts struct{ barrier.Artefacts }

func (r *retryingArtefacts) Put(ctx context.Context, d barrier.Digest, artefact []byte) error {
	return repeat(ctx, func() error { return r.Artefacts.Put(ctx, d, artefact) })
}

func (r *retryingArtefacts) Get(ctx context.Context, d barrier.Digest) ([]byte, error) {
	return again(ctx, func() ([]byte, error) { return r.Artefacts.Get(ctx, d) })
}
