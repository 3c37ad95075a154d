package dynamo_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/dynamo"
	"github.com/guardyn-edge/guardyn/internal/testdynamo"
)

func TestMain(m *testing.M) { testdynamo.Main(m) }

// options are of a new cohort whose processes share one clock.
func options(table string) dynamo.Options {
	return dynamo.Options{
		Table: table, Cohort: "c-" + rand.Text(),
		ClockSkew: time.Millisecond, RequestTimeout: 2 * time.Second, Poll: 20 * time.Millisecond,
	}
}

// newTable makes a table of its own for the test.
func newTable(t testing.TB) string {
	t.Helper()
	name := testdynamo.Name()
	if err := dynamo.CreateTable(t.Context(), testdynamo.Client(t), name); err != nil {
		t.Fatal(err)
	}
	return name
}

func open(t testing.TB, o dynamo.Options, with ...func(*dynamodb.Options)) *dynamo.Store {
	t.Helper()
	s, err := dynamo.Open(t.Context(), testdynamo.Client(t, with...), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns v when there is no error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func bootOf(m barrier.MemberID) barrier.BootID { return barrier.BootID("boot-" + string(m)) }

// members makes n members the cohort, and joins each.
func members(t testing.TB, s *dynamo.Store, n int) barrier.Roster {
	t.Helper()
	ids := make([]barrier.MemberID, n)
	for i := range ids {
		ids[i] = barrier.MemberID(fmt.Sprintf("m%04d", i))
	}
	r := must(s.SetRoster(t.Context(), 0, ids))(t)
	for _, m := range r.Members {
		must(s.Join(t.Context(), m, bootOf(m), 0))(t)
	}
	return r
}

func proposal(roster barrier.Roster) barrier.Proposal {
	id := barrier.NewRolloutID()
	return barrier.Proposal{ID: id, Proposer: "test", Digest: barrier.Digest("test:" + string(id)), RosterRevision: roster.Revision}
}

// after is p by who has seen what the cohort has come to.
func after(t testing.TB, s *dynamo.Store, p barrier.Proposal) barrier.Proposal {
	t.Helper()
	p.Seen = must(s.Current(t.Context()))(t).Generation
	return p
}

// windowed is a proposal whose evidence outlives the margin of options.
func windowed(roster barrier.Roster) barrier.Proposal {
	p := proposal(roster)
	p.Window, p.Soak, p.EvidenceTTL = time.Hour, time.Millisecond, time.Minute
	return p
}

func ack(t testing.TB, s *dynamo.Store, r barrier.Ref, members ...barrier.MemberID) {
	t.Helper()
	for _, m := range members {
		ok(t, s.Ack(t.Context(), r, m, bootOf(m), "built"))
	}
}

// baseline gives the cohort something to go back to.
func baseline(t testing.TB, s *dynamo.Store) {
	t.Helper()
	must(s.AdoptBaseline(t.Context(), barrier.Pointer{Digest: "test:baseline"}))(t)
}
