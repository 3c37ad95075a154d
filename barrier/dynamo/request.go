package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The bounds of what one call tries.
const (
	maxConflicts = 60 // writes that lost against another's: each time somebody made progress
	maxFaults    = 8  // requests that failed for another reason
	maxReads     = 3  // of one read
	maxLooks     = 40 // at a row that changes while it is read

	minBackoff = 5 * time.Millisecond
	maxBackoff = 500 * time.Millisecond
)

// once switches off the client's own retries: a decision that is repeated without a look may be sent after its time.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// pause waits before attempt n+1: longer each time, never for the same time as others.
func pause(ctx context.Context, n int) error {
	longest := min(minBackoff<<min(n, 10), maxBackoff)
	timer := time.NewTimer(rand.N(longest) + 1)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read makes a request that has no effect, or the same however often it is made, again if it fails.
func read[T any](ctx context.Context, s *Store, request func(context.Context) (T, error)) (T, error) {
	return requestWithin(ctx, s.o.ReadTimeout, request)
}

// requestWithin makes a request that may be repeated at will, each time for at most d.
func requestWithin[T any](ctx context.Context, d time.Duration, request func(context.Context) (T, error)) (out T, err error) {
	for n := range maxReads {
		if n > 0 {
			if stopped := pause(ctx, n+2); stopped != nil {
				return out, errors.Join(stopped, err)
			}
		}
		limited, cancel := context.WithTimeout(ctx, d)
		out, err = request(limited)
		cancel()
		if kind := judge(err); kind == noFault || kind == fatal {
			return out, err
		}
	}
	return out, err
}

func (s *Store) get(ctx context.Context, key item) (item, error) {
	out, err := read(ctx, s, func(ctx context.Context) (*dynamodb.GetItemOutput, error) {
		return s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: key, ConsistentRead: aws.Bool(true)}, once)
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// getAll reads up to 100 items by key, in any order; those that are not there are left out.
func (s *Store) getAll(ctx context.Context, keys ...item) ([]item, error) {
	var items []item
	want := map[string]types.KeysAndAttributes{s.table: {Keys: keys, ConsistentRead: aws.Bool(true)}}
	for n := 0; len(want) > 0; n++ {
		if n == maxReads {
			return nil, errors.New("the table does not answer in full")
		}
		if n > 0 {
			if err := pause(ctx, n+2); err != nil {
				return nil, err
			}
		}
		out, err := read(ctx, s, func(ctx context.Context) (*dynamodb.BatchGetItemOutput, error) {
			return s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: want}, once)
		})
		if err != nil {
			return nil, err
		}
		for _, found := range out.Responses {
			items = append(items, found...)
		}
		want = out.UnprocessedKeys
	}
	return items, nil
}

// query is a range of one partition, in order.
type query struct {
	partition  types.AttributeValue
	from, to   string   // sort keys, both included
	attributes []string // to return; nil: all
	limit      int32    // of items to look at in one request; 0: as many as fit
	timeout    time.Duration
}

// withPrefix is of all items whose sort keys begin so.
func withPrefix(key item, prefix string) query {
	return query{partition: key[attrPartition], from: prefix, to: prefix + "\U0010FFFF"}
}

// all hands each item of q to take until it returns false.
func (s *Store) all(ctx context.Context, q query, take func(item) (bool, error)) error {
	in := &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String(attrPartition + " = :pk AND " + attrSort + " BETWEEN :from AND :to"),
		ExpressionAttributeValues: item{":pk": q.partition, ":from": text(q.from), ":to": text(q.to)},
	}
	if q.limit > 0 {
		in.Limit = &q.limit
	}
	for i, a := range q.attributes {
		if in.ExpressionAttributeNames == nil {
			in.ExpressionAttributeNames, in.ProjectionExpression = map[string]string{}, new(string)
		} else {
			*in.ProjectionExpression += ", "
		}
		placeholder := fmt.Sprintf("#a%d", i)
		in.ExpressionAttributeNames[placeholder] = a
		*in.ProjectionExpression += placeholder
	}
	timeout := q.timeout
	if timeout == 0 {
		timeout = s.o.ReadTimeout
	}
	for {
		out, err := requestWithin(ctx, timeout, func(ctx context.Context) (*dynamodb.QueryOutput, error) {
			return s.client.Query(ctx, in, once)
		})
		if err != nil {
			return err
		}
		for _, it := range out.Items {
			if more, err := take(it); err != nil || !more {
				return err
			}
		}
		if len(out.LastEvaluatedKey) == 0 {
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// sortOf returns an item's sort key.
func sortOf(it item) string {
	if s, ok := it[attrSort].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
