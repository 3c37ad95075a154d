package dynamo_test

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/guardyn-edge/guardyn/barrier"
)

// inputs collects what operations are called with, before they become requests.
type inputs struct {
	mu  sync.Mutex
	all []any
}

func (in *inputs) use(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("inputs",
			func(ctx context.Context, i middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				in.mu.Lock()
				in.all = append(in.all, i.Parameters)
				in.mu.Unlock()
				return next.HandleInitialize(ctx, i)
			}), middleware.Before)
	})
}

// The server of the tests never shows a stale read, so that reads are consistent can be seen in what is asked only.
func TestEveryReadIsConsistent(t *testing.T) {
	in := &inputs{}
	s := open(t, options(newTable(t)), in.use)
	roster := members(t, s, 3)
	baseline(t, s)
	ok(t, s.Put(t.Context(), "test:artefact", []byte("bytes")))
	must(s.Get(t.Context(), "test:artefact"))(t)
	lease := must(s.Acquire(t.Context(), "holder", barrier.MaxLease))(t)
	ok(t, s.Renew(t.Context(), lease))
	ok(t, s.Claim(t.Context(), lease.Token))
	ro := must(s.Propose(t.Context(), windowed(roster)))(t)
	ok(t, s.Claim(t.Context(), lease.Token))
	ack(t, s, ro.Ref, roster.Members...)
	ok(t, s.Commit(t.Context(), ro.Ref, lease.Token))
	for _, m := range roster.Members {
		ok(t, s.Converge(t.Context(), ro.Ref, m, bootOf(m), "works"))
		must(s.Look(t.Context(), m))(t)
	}
	must(s.Current(t.Context()))(t)
	ctx, cancel := context.WithCancel(t.Context())
	<-s.Watch(ctx, barrier.TopicVotes)
	cancel()
	ok(t, s.Withdraw(t.Context(), ro.Ref, "m0001", bootOf("m0001"), "does not work"))
	ok(t, s.Revert(t.Context(), ro.Ref, barrier.ByClaim(lease.Token), "withdrawn"))
	must(s.Propose(t.Context(), after(t, s, proposal(roster))))(t) // sweeps
	ok(t, s.Release(t.Context(), lease))

	seen := map[string]int{}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, input := range in.all {
		name := reflect.TypeOf(input).Elem().Name()
		seen[name]++
		switch input := input.(type) {
		case *dynamodb.GetItemInput:
			if !aws.ToBool(input.ConsistentRead) {
				t.Errorf("GetItem of %v is not consistent", input.Key)
			}
		case *dynamodb.QueryInput:
			if !aws.ToBool(input.ConsistentRead) || input.IndexName != nil {
				t.Errorf("Query of %v is not consistent, or of an index", input.ExpressionAttributeValues)
			}
		case *dynamodb.BatchGetItemInput:
			for table, of := range input.RequestItems {
				if !aws.ToBool(of.ConsistentRead) {
					t.Errorf("BatchGetItem from %s is not consistent", table)
				}
			}
		case *dynamodb.PutItemInput, *dynamodb.TransactWriteItemsInput, *dynamodb.DeleteItemInput, *dynamodb.BatchWriteItemInput, *dynamodb.DescribeTableInput:
		default:
			t.Errorf("the store calls %s, which this test does not know", name)
		}
	}
	for _, read := range []string{"GetItemInput", "QueryInput", "BatchGetItemInput"} {
		if seen[read] == 0 {
			t.Errorf("no %s was seen among %v", read, seen)
		}
	}
}

func TestWatchHintsAtVotesOfAnotherProcess(t *testing.T) {
	o := options(newTable(t))
	coordinator, member := open(t, o), open(t, o)
	roster := members(t, coordinator, 2)
	ro := must(coordinator.Propose(t.Context(), proposal(roster)))(t)
	for _, tt := range []struct {
		topic  barrier.Topic
		change func()
	}{
		{barrier.TopicVotes, func() { ack(t, member, ro.Ref, "m0000") }},
		{barrier.TopicVotes, func() { must(member.Join(t.Context(), "m0001", "boot-2", 1))(t) }},
		{barrier.TopicHead, func() { ok(t, member.Claim(t.Context(), 7)) }},
		{barrier.TopicHead, func() { must(member.SetRoster(t.Context(), roster.Revision, roster.Members[:1]))(t) }},
	} {
		hints := coordinator.Watch(t.Context(), tt.topic)
		<-hints // the first says that it looks
		tt.change()
		<-hints
	}
}

// A row that is read while others write belongs together: the roster and the epoch are the head's.
func TestCurrentIsOfOneHead(t *testing.T) {
	o := options(newTable(t))
	reader, writer := open(t, o), open(t, o)
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		roster := barrier.Roster{}
		for i := range 30 {
			all := []barrier.MemberID{"a", "b", "c"}
			var err error
			if roster, err = writer.SetRoster(t.Context(), roster.Revision, all[:1+i%3]); err != nil {
				t.Error(err)
				return
			}
			p := proposal(roster)
			p.Seen = uint64(i)
			ro, err := writer.Propose(t.Context(), p)
			if err != nil {
				t.Error(err)
				return
			}
			if err := writer.Abort(t.Context(), ro.Ref, barrier.ByOperator("test"), "next"); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		row := must(reader.Current(t.Context()))(t)
		if ro := row.Rollout; ro != nil {
			if len(row.Seats) != ro.EpochSize {
				t.Errorf("%v has %d seats of an epoch of %d", ro.Ref, len(row.Seats), ro.EpochSize)
			}
			if ro.Open() && row.Roster.Revision != ro.RosterRevision {
				t.Errorf("%v is open beside roster %d, and was proposed to %d", ro.Ref, row.Roster.Revision, ro.RosterRevision)
			}
		}
	}
}
