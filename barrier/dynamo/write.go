package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/guardyn-edge/guardyn/barrier"
)

// action is one part of a write: exactly one of put, remove and check is set.
type action struct {
	put    item
	remove item // by key
	check  item // by key: nothing is done to it
	when   condition
}

func put(it item, when condition) action        { return action{put: it, when: when} }
func remove(key item, when condition) action    { return action{remove: key, when: when} }
func checkThat(key item, when condition) action { return action{check: key, when: when} }

// errWrite is what a request to write came to, other than success.
type errWrite struct {
	fault fault
	err   error
}

func (e *errWrite) Error() string { return e.err.Error() }
func (e *errWrite) Unwrap() error { return e.err }

// errChanged is an errWrite of a row that changed while it was read.
var errChanged = &errWrite{fault: conflict, err: errors.New("it changed while it was read")}

// write does all of the actions or none, in one request that is sent once. Its error is an *errWrite.
func (s *Store) write(ctx context.Context, actions ...action) error {
	var err error
	if len(actions) == 1 && actions[0].put != nil {
		_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &s.table, Item: actions[0].put,
			ConditionExpression: actions[0].when.clause(), ExpressionAttributeValues: actions[0].when.values,
		}, once)
	} else {
		in := &dynamodb.TransactWriteItemsInput{}
		for _, a := range actions {
			in.TransactItems = append(in.TransactItems, s.transactItem(a))
		}
		_, err = s.client.TransactWriteItems(ctx, in, once)
	}
	if kind := judge(err); kind != noFault {
		return &errWrite{fault: kind, err: err}
	}
	return nil
}

func (c condition) clause() *string {
	if c.expression == "" {
		return nil
	}
	return aws.String(c.expression)
}

func (s *Store) transactItem(a action) types.TransactWriteItem {
	clause, values := a.when.clause(), a.when.values
	switch {
	case a.put != nil:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &s.table, Item: a.put, ConditionExpression: clause, ExpressionAttributeValues: values,
		}}
	case a.remove != nil:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &s.table, Key: a.remove, ConditionExpression: clause, ExpressionAttributeValues: values,
		}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &s.table, Key: a.check, ConditionExpression: clause, ExpressionAttributeValues: values,
		}}
	}
}

// repeat calls try until it returns something else than an *errWrite that another look may overcome. try reads, decides and
// writes; what it writes has the nonce, which is the same at each try: whichever of its writes took effect, and
// however late, try finds its own nonce and knows that it is done. No two can, since all have the condition
// that what they found still stands.
func (s *Store) repeat(ctx context.Context, what string, try func(ctx context.Context, nonce string) error) error {
	nonce := rand.Text()
	conflicts, faults := 0, 0
	for {
		err := try(ctx, nonce)
		failed := new(errWrite)
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &failed):
			if barrier.Code(err) != "" {
				return err
			}
			return fmt.Errorf("%s: %w", what, err)
		case failed.fault == conflict:
			conflicts++
		default:
			faults++
		}
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		case failed.fault == fatal:
			return fmt.Errorf("%s: %w", what, err)
		case conflicts > maxConflicts:
			return fmt.Errorf("%s: lost %d times against other writers: %w", what, conflicts, err)
		case faults > maxFaults:
			return fmt.Errorf("%s: failed %d times: %w", what, faults, err)
		}
		n := conflicts / 4
		if faults > 0 {
			n = faults + 2
		}
		if stopped := pause(ctx, n); stopped != nil {
			return fmt.Errorf("%s: %w", what, errors.Join(stopped, err))
		}
	}
}

// changeHead writes what decide makes of the head, if that is another, together with the actions that it returns. load, which may be
// nil, reads what else decide needs, after the head and before the clock.
//
// The write has one condition, that the head's Revision is still the one that was read first; see Commit for why that
// is enough.
func (s *Store) changeHead(ctx context.Context, what string, load func(context.Context, storedHead) error,
	decide func(h barrier.Head, now time.Time, nonce string) (barrier.Head, []action, error),
) (barrier.Head, error) {
	var result barrier.Head
	err := s.repeat(ctx, what, func(ctx context.Context, nonce string) error {
		h, err := s.head(ctx)
		if err != nil {
			return err
		}
		result = h.Head
		if h.nonce == nonce {
			return nil // written by an earlier try, whose answer was lost
		}
		if load != nil {
			if err := load(ctx, h); err != nil {
				return s.ifStill(ctx, h, err)
			}
		}
		now := s.now()
		limited, cancel := context.WithTimeout(ctx, s.o.RequestTimeout)
		defer cancel()
		next, with, err := decide(h.Head, now, nonce)
		if err != nil && load != nil {
			return s.ifStill(ctx, h, err)
		}
		if err != nil {
			return err
		}
		result = next
		if next.Revision == h.Revision {
			return nil
		}
		it, err := s.headItem(next, nonce)
		if err != nil {
			return err
		}
		return s.write(limited, append([]action{put(it, h.unchanged())}, with...)...)
	})
	return result, err
}

// ifStill returns err if it was judged from a head that still stands: what was read after the head may have belonged to its successor.
func (s *Store) ifStill(ctx context.Context, h storedHead, err error) error {
	again, failed := s.head(ctx)
	switch {
	case failed != nil:
		return failed
	case again.Revision != h.Revision:
		return errChanged
	default:
		return err
	}
}
