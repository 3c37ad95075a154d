package dynamo_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/dynamo"
	"github.com/guardyn-edge/guardyn/internal/testdynamo"
)

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}

// sortKeys lists the items of a partition by sort key.
func sortKeys(t testing.TB, table, partition string) []string {
	t.Helper()
	var keys []string
	pages := dynamodb.NewQueryPaginator(testdynamo.Client(t), &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: partition}},
	})
	for pages.HasMorePages() {
		page := must(pages.NextPage(t.Context()))(t)
		for _, it := range page.Items {
			keys = append(keys, it["sk"].(*types.AttributeValueMemberS).Value)
		}
	}
	return keys
}

func count(keys []string, prefix string) int {
	n := 0
	for _, k := range keys {
		if strings.HasPrefix(k, prefix) {
			n++
		}
	}
	return n
}

func TestArtefactsOfAllSizes(t *testing.T) {
	const chunk = 350 << 10
	o := options(newTable(t))
	s := open(t, o)
	total := 0
	for _, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, barrier.MaxArtefactBytes} {
		d := barrier.Digest(fmt.Sprintf("test:%d", size))
		want := noise(size)
		ok(t, s.Put(t.Context(), d, want))
		if got := must(s.Get(t.Context(), d))(t); !bytes.Equal(got, want) {
			t.Errorf("%d bytes come back as %d others", size, len(got))
		}
		total += (size + chunk - 1) / chunk
	}
	keys := sortKeys(t, o.Table, "ARTEFACTS#"+o.Cohort)
	if n := count(keys, "CHUNK#"); n != total || count(keys, "MANIFEST#") != 6 || len(keys) != total+6 {
		t.Errorf("%d chunks, want %d, among %q", n, total, keys)
	}
}

func TestArtefactThatIsNotWholeIsNotThere(t *testing.T) {
	w := newWire()
	s := open(t, options(newTable(t)), w.use)
	w.set(func(r request) fate {
		if r.operation == "TransactWriteItems" {
			return answer(400, "AccessDeniedException", "") // the manifest
		}
		return pass
	})
	if err := s.Put(t.Context(), "test:a", noise(1<<20)); err == nil {
		t.Fatal("Put without a manifest succeeds")
	}
	w.set(nil)
	if _, err := s.Get(t.Context(), "test:a"); !errors.Is(err, barrier.ErrNoArtefact) {
		t.Errorf("Get: %v", err)
	}
	want := noise(1 << 20)
	ok(t, s.Put(t.Context(), "test:a", want))
	if got := must(s.Get(t.Context(), "test:a"))(t); !bytes.Equal(got, want) {
		t.Error("other bytes come back")
	}
}

func TestPutsAtOnceLeaveOne(t *testing.T) {
	o := options(newTable(t))
	want := noise(400 << 10)
	var wait sync.WaitGroup
	for range 4 {
		s := open(t, o)
		wait.Go(func() {
			if err := s.Put(t.Context(), "test:a", want); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := must(open(t, o).Get(t.Context(), "test:a"))(t); !bytes.Equal(got, want) {
		t.Error("other bytes come back")
	}
	if keys := sortKeys(t, o.Table, "ARTEFACTS#"+o.Cohort); len(keys) != 3 {
		t.Errorf("%q are left, want a manifest and two chunks", keys)
	}
}

func TestProposeDeletesWhatNothingNames(t *testing.T) {
	o := options(newTable(t))
	w := newWire()
	clock := &uptime{}
	o.Now = func() time.Time { return time.Now().Add(clock.now()) }
	s := open(t, o, w.use)
	roster := members(t, s, 3)
	run := func(d barrier.Digest) {
		t.Helper()
		p := after(t, s, proposal(roster))
		p.Digest = d
		ro := must(s.Propose(t.Context(), p))(t)
		ok(t, s.Claim(t.Context(), 1))
		ack(t, s, ro.Ref, roster.Members...)
		ok(t, s.Commit(t.Context(), ro.Ref, 1))
	}
	artefacts := func() string { return strings.Join(sortKeys(t, o.Table, "ARTEFACTS#"+o.Cohort), " ") }
	put := func(s *dynamo.Store, names ...string) {
		t.Helper()
		for _, name := range names {
			ok(t, s.Put(t.Context(), barrier.Digest("test:"+name), noise(400<<10)))
		}
	}
	put(s, "unused", "old", "previous", "committed", "again")
	// A Put that died before its manifest.
	w.set(func(r request) fate {
		if r.operation == "TransactWriteItems" {
			return answer(400, "AccessDeniedException", "")
		}
		return pass
	})
	if err := s.Put(t.Context(), "test:never", noise(1)); err == nil {
		t.Fatal("Put without a manifest succeeds")
	}
	w.set(nil)
	for _, d := range []barrier.Digest{"test:old", "test:previous", "test:committed"} {
		run(d)
	}
	if keys := sortKeys(t, o.Table, "ARTEFACTS#"+o.Cohort); count(keys, "MANIFEST#") != 5 || count(keys, "UPLOAD#") != 1 {
		t.Errorf("within the retention: %q", keys)
	}
	row := sortKeys(t, o.Table, "COHORT#"+o.Cohort)
	if count(row, "EPOCH#") != 1 || count(row, "BALLOT#") != 3 || count(row, "REGISTRATION#") != 3 || count(row, "HEAD") != 1 {
		t.Errorf("of three rollouts there is left: %q", row)
	}

	clock.pass(barrier.ArtefactRetention + time.Minute)
	put(s, "again")
	put(s, "next")
	p := after(t, s, proposal(roster))
	p.Digest = "test:next"
	must(s.Propose(t.Context(), p))(t) // the previous one is test:committed now
	if have := artefacts(); count(strings.Fields(have), "MANIFEST#") != 3 || count(strings.Fields(have), "CHUNK#") != 6 || count(strings.Fields(have), "UPLOAD#") != 0 {
		t.Errorf("after the retention: %s", have)
	}
	for _, name := range []string{"committed", "next", "again"} {
		must(s.Get(t.Context(), barrier.Digest("test:"+name)))(t)
	}
	for _, name := range []string{"unused", "old", "previous"} {
		if _, err := s.Get(t.Context(), barrier.Digest("test:"+name)); !errors.Is(err, barrier.ErrNoArtefact) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if row := sortKeys(t, o.Table, "COHORT#"+o.Cohort); count(row, "EPOCH#") != 1 || count(row, "BALLOT#") != 0 {
		t.Errorf("after the fourth: %q", row)
	}
}

// An artefact that is put again, or proposed, while it is about to be deleted stays.
func TestProposeDeletesNothingThatIsWantedAgain(t *testing.T) {
	o := options(newTable(t))
	w := newWire()
	clock := &uptime{}
	o.Now = func() time.Time { return time.Now().Add(clock.now()) }
	s, other := open(t, o, w.use), open(t, o)
	roster := members(t, s, 1)
	// In this order: the artefact of the rollout before is not deleted.
	for _, tc := range []struct {
		name      string
		meanwhile func(barrier.Rollout)
	}{
		{"put again", func(barrier.Rollout) { ok(t, other.Put(t.Context(), "test:a", noise(10))) }},
		{"proposed", func(open barrier.Rollout) {
			ok(t, other.Abort(t.Context(), open.Ref, barrier.ByOperator("test"), "next"))
			p := after(t, other, proposal(roster))
			p.Digest = "test:a"
			must(other.Propose(t.Context(), p))(t)
		}},
	} {
		ok(t, s.Put(t.Context(), "test:a", noise(10)))
		clock.pass(barrier.ArtefactRetention + time.Minute)
		deletes := false
		p := after(t, s, proposal(roster))
		w.set(func(r request) fate {
			if r.operation == "TransactWriteItems" && strings.Contains(r.body, "MANIFEST#test:a") && !deletes {
				deletes = true
				tc.meanwhile(*must(other.Current(t.Context()))(t).Rollout)
			}
			return pass
		})
		ro, err := s.Propose(t.Context(), p)
		ok(t, err)
		w.set(nil)
		if !deletes {
			t.Errorf("%s: nothing was about to be deleted", tc.name)
		}
		if _, err := s.Get(t.Context(), "test:a"); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		newest := must(s.Current(t.Context()))(t).Rollout
		if newest.Open() {
			ok(t, s.Abort(t.Context(), newest.Ref, barrier.ByOperator("test"), "end of "+string(ro.ID)))
		}
	}
}
