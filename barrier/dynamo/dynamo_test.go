package dynamo_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/dynamo"
	"github.com/guardyn-edge/guardyn/internal/testdynamo"
)

func TestMain(m *testing.M) { testdynamo.Main(m) }

// options are of a cohort whose processes share one clock.
func options(table, cohort string) dynamo.Options {
	return dynamo.Options{
		Table: table, Cohort: cohort,
		ClockSkew: time.Millisecond, RequestTimeout: 600 * time.Millisecond, Poll: 20 * time.Millisecond,
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

func TestSmoke(t *testing.T) {
	s := open(t, options(newTable(t), "c"))
	r, err := s.SetRoster(t.Context(), 0, []barrier.MemberID{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Members {
		if _, err := s.Join(t.Context(), m, "boot", 0); err != nil {
			t.Fatal(err)
		}
	}
	ro, err := s.Propose(t.Context(), barrier.Proposal{ID: "r1", Proposer: "me", Digest: "test:1", RosterRevision: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Claim(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Members {
		if err := s.Ack(t.Context(), ro.Ref, m, "boot", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(t.Context(), ro.Ref, 1); err != nil {
		t.Fatal(err)
	}
	row, err := s.Current(t.Context())
	t.Logf("%+v %v", row, err)
}
