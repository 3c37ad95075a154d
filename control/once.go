package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// maxAnswer bounds a first answer that is kept, in bytes of JSON. Of a plan that makes it longer only the
// counts are kept.
const maxAnswer = 256 << 10

// answered is a result that can be kept for a repetition.
type answered interface{ ApplyResult | RollbackResult }

// keeper keeps the answer of one request. The zero value keeps nothing.
type keeper[T answered] struct {
	s     *Service
	first Replay // without its answer; its Key is empty when nothing is kept
}

// once runs do unless its request is the repetition of one that was answered: then it gives that answer. An
// answer that tells of a deed is kept in the deed's own transaction: whatever is lost, the deed is done once.
// Errors are not kept, since they left nothing done; a repetition is judged anew.
func once[T answered](ctx context.Context, s *Service, p Principal, action, key string, request any, do func(keeper[T]) (T, error)) (T, error) {
	var none T
	if key == "" {
		return do(keeper[T]{})
	}
	// Members that have their zero value are left out: a build that knows more of them hashes alike.
	body, err := json.Marshal(request, json.Deterministic(true), json.OmitZeroStructFields(true))
	if err != nil {
		return none, fmt.Errorf("hashing the request: %w", err)
	}
	keep := keeper[T]{s, Replay{
		UserID: p.UserID, Key: key, Request: blake3.Sum256(append([]byte(action+"\n"), body...)), At: s.now().UTC(),
	}}
	if first, found, err := keep.find(ctx); found || err != nil {
		return first, err
	}
	res, err := do(keep)
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrExists) || errors.Is(err, ErrRolloutOpen) {
		// It may have lost to its own first sending.
		if first, found, err := keep.find(ctx); found || err != nil {
			return first, err
		}
	}
	return res, err
}

// find returns the first answer. ErrKeyReused when it is that of another request.
func (k keeper[T]) find(ctx context.Context) (first T, found bool, err error) {
	r, err := k.s.store.Replay(ctx, k.first.UserID, k.first.Key, k.s.now())
	switch {
	case errors.Is(err, ErrNotFound):
		return first, false, nil
	case err != nil:
		return first, false, fmt.Errorf("looking for the first answer: %w", err)
	case r.Request != k.first.Request:
		return first, false, fmt.Errorf("%w: %q; take a new key for a new request", ErrKeyReused, k.first.Key)
	}
	if err := json.Unmarshal(r.Answer, &first); err != nil {
		return first, false, fmt.Errorf("the first answer under %q as it is stored: %w", k.first.Key, err)
	}
	switch f := any(&first).(type) {
	case *ApplyResult:
		f.Replayed = true
	case *RollbackResult:
		f.Replayed = true
	}
	return first, true, nil
}

// with returns what to keep beside the deed, nil when nothing is.
func (k keeper[T]) with(res T) (*Replay, error) {
	if k.first.Key == "" {
		return nil, nil
	}
	r := k.first
	var err error
	if r.Answer, err = encode(res); err != nil {
		return nil, err
	}
	if len(r.Answer) <= maxAnswer {
		return &r, nil
	}
	switch f := any(&res).(type) {
	case *ApplyResult:
		f.Plan = countsOf(f.Plan)
	case *RollbackResult:
		f.Plan = countsOf(f.Plan)
	}
	r.Answer, err = encode(res)
	return &r, err
}

// countsOf is a plan without what makes it long.
func countsOf(p *snapshot.Plan) *snapshot.Plan {
	return &snapshot.Plan{LiveVersion: p.LiveVersion, ContentHash: p.ContentHash, Disruptive: p.Disruptive, Changes: p.Changes}
}

// alone keeps the answer of a request that had nothing to do.
func (k keeper[T]) alone(ctx context.Context, res T) error {
	r, err := k.with(res)
	if r == nil || err != nil {
		return err
	}
	if err := k.s.store.PutReplay(ctx, *r); err != nil {
		return fmt.Errorf("keeping the answer: %w", err)
	}
	return nil
}
