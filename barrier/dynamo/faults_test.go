package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/dynamo"
)

// firstWrite gives the first request that can change the table to f.
func firstWrite(f fate) func(request) fate {
	done := false
	return func(r request) fate {
		if !r.writes() || done {
			return pass
		}
		done = true
		return f
	}
}

// step is a write, and what must be there of it.
type step struct {
	name string
	do   func(t *testing.T, s *dynamo.Store) error
}

// steps go through a rollout with a window and one without, so that each write meets the fate once.
func steps() []step {
	var (
		roster barrier.Roster
		lease  barrier.Lease
		ro     barrier.Rollout
		last   barrier.Proposal
	)
	propose := func(p func(barrier.Roster) barrier.Proposal) func(*testing.T, *dynamo.Store) error {
		return func(t *testing.T, s *dynamo.Store) (err error) {
			last = p(roster)
			last.Seen = ro.Generation
			ro, err = s.Propose(t.Context(), last)
			if err == nil && (ro.ID != last.ID || ro.State != barrier.Proposed) {
				t.Errorf("Propose returned %+v", ro)
			}
			return err
		}
	}
	claim := step{"claim", func(t *testing.T, s *dynamo.Store) error { return s.Claim(t.Context(), lease.Token) }}
	acks := step{"ack", func(t *testing.T, s *dynamo.Store) error {
		return s.Ack(t.Context(), ro.Ref, "a", "boot", "built")
	}}
	commit := step{"commit", func(t *testing.T, s *dynamo.Store) error { return s.Commit(t.Context(), ro.Ref, lease.Token) }}
	return []step{
		{"set roster", func(t *testing.T, s *dynamo.Store) (err error) {
			roster, err = s.SetRoster(t.Context(), 0, []barrier.MemberID{"a"})
			return err
		}},
		{"join", func(t *testing.T, s *dynamo.Store) error {
			reg, err := s.Join(t.Context(), "a", "boot", 0)
			if reg != (barrier.Registration{Boot: "boot", Incarnation: 1}) {
				t.Errorf("Join returned %+v", reg)
			}
			return err
		}},
		{"adopt baseline", func(t *testing.T, s *dynamo.Store) error {
			outcome, err := s.AdoptBaseline(t.Context(), barrier.Pointer{Digest: "test:baseline"})
			if outcome != barrier.BaselineAdopted {
				t.Errorf("AdoptBaseline returned %s", outcome)
			}
			return err
		}},
		{"put artefact", func(t *testing.T, s *dynamo.Store) error {
			return s.Put(t.Context(), "test:artefact", []byte("bytes"))
		}},
		{"acquire", func(t *testing.T, s *dynamo.Store) (err error) {
			lease, err = s.Acquire(t.Context(), "holder", barrier.MaxLease)
			if lease.Token != 1 {
				t.Errorf("Acquire returned %+v", lease)
			}
			return err
		}},
		{"renew", func(t *testing.T, s *dynamo.Store) error { return s.Renew(t.Context(), lease) }},
		{"propose", propose(proposal)},
		claim,
		{"nack", func(t *testing.T, s *dynamo.Store) error { return s.Nack(t.Context(), ro.Ref, "a", "boot", "no") }},
		{"abort", func(t *testing.T, s *dynamo.Store) error {
			return s.Abort(t.Context(), ro.Ref, barrier.ByClaim(lease.Token), "refused")
		}},
		{"propose a window", propose(windowed)},
		claim, acks, commit,
		{"converge", func(t *testing.T, s *dynamo.Store) error {
			return s.Converge(t.Context(), ro.Ref, "a", "boot", "works")
		}},
		{"confirm", func(t *testing.T, s *dynamo.Store) error {
			until(t, s, func(row barrier.Row) bool {
				return row.Now.After(row.Seats[0].Ballot.ConvergedSince.Add(ro.Soak + row.Margin))
			})
			return s.Confirm(t.Context(), ro.Ref, lease.Token)
		}},
		{"propose another window", propose(windowed)},
		claim, acks, commit,
		{"withdraw", func(t *testing.T, s *dynamo.Store) error {
			return s.Withdraw(t.Context(), ro.Ref, "a", "boot", "does not work")
		}},
		{"revert", func(t *testing.T, s *dynamo.Store) error {
			return s.Revert(t.Context(), ro.Ref, barrier.ByClaim(lease.Token), "withdrawn")
		}},
		{"release", func(t *testing.T, s *dynamo.Store) error { return s.Release(t.Context(), lease) }},
	}
}

// until reads the row until it is as it should be.
func until(t testing.TB, s *dynamo.Store, is func(barrier.Row) bool) {
	t.Helper()
	for !is(must(s.Current(t.Context()))(t)) {
	}
}

func TestOneFaultIsOvercome(t *testing.T) {
	cancelled := `,"CancellationReasons":[{"Code":"TransactionConflict","Message":"by the test"},{"Code":"None"}]`
	tests := []struct {
		name   string
		fate   fate
		writes int // of a write that is one request
	}{
		{"none", pass, 1},
		{"applied, the answer lost", forget, 1}, // its own nonce is found: it is not written again
		{"lost", lose, 2},
		{"internal server error", answer(500, "InternalServerError", ""), 2},
		{"unavailable", answer(503, "ServiceUnavailable", ""), 2},
		{"throttled", answer(400, "ProvisionedThroughputExceededException", ""), 2},
		{"throttled by rate", answer(400, "ThrottlingException", ""), 2},
		{"transaction conflict", answer(400, "TransactionCanceledException", cancelled), 2},
		{"conflict of a single write", answer(400, "TransactionConflictException", ""), 2},
		{"no answer", hang, 2},
	}
	table := newTable(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := options(table)
			if tt.name == "no answer" {
				o.RequestTimeout /= 4
			}
			w := newWire()
			s := open(t, o, w.use)
			for _, step := range steps() {
				w.set(firstWrite(tt.fate))
				if err := step.do(t, s); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				have := 0
				for _, r := range w.requests() {
					if r.writes() && r.operation != "BatchWriteItem" { // which sweeps
						have++
					}
				}
				want := tt.writes
				if step.name == "put artefact" {
					want = 3 + tt.writes - 1 // upload, chunk, manifest
					if tt.name == "applied, the answer lost" {
						want++ // of a chunk, which is put again without a look
					}
				}
				if have != want {
					t.Errorf("%s: %d requests to write, want %d", step.name, have, want)
				}
			}
			row := must(s.Current(t.Context()))(t)
			if row.Rollout.State != barrier.Reverted || row.Generation != 3 || row.Committed.Generation != 2 || row.Previous.State != barrier.Confirmed {
				t.Errorf("row = %+v", row)
			}
			// Each step wrote the head once: roster, baseline, and of the rollouts 3, 4 and 5.
			if row.Revision != 14 {
				t.Errorf("revision = %d, want 14: a write took effect twice or not at all", row.Revision)
			}
			if got := must(s.Acquire(t.Context(), "another", barrier.MaxLease))(t); got.Token != 2 {
				t.Errorf("the next lease is %+v, want token 2", got)
			}
		})
	}
}

// A write that is still under way when it is given up and sent again takes effect once, whichever arrives first.
func TestDelayedWriteIsRecognised(t *testing.T) {
	w := newWire()
	s := open(t, options(newTable(t)), w.use)
	roster := members(t, s, 1)
	n := 0
	var delayed *http.Request
	var body string
	w.set(func(r request) fate {
		if r.operation != "TransactWriteItems" {
			return pass
		}
		switch n++; n {
		case 1: // the first is held back
			return func(w *wire, req *http.Request) (*http.Response, error) {
				delayed, body = req.Clone(context.WithoutCancel(req.Context())), r.body
				return nil, errBroken
			}
		default: // and arrives just before the second
			return func(w *wire, req *http.Request) (*http.Response, error) {
				delayed.Body = respond(200, body).Body
				resp, err := w.next.RoundTrip(delayed)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("the delayed request: %v, %v", resp, err)
				}
				return pass(w, req)
			}
		}
	})
	p := proposal(roster)
	ro := must(s.Propose(t.Context(), p))(t)
	w.set(nil)
	row := must(s.Current(t.Context()))(t)
	if n != 2 || row.Generation != 1 || *row.Rollout != ro || len(row.Seats) != 1 {
		t.Errorf("after %d requests %+v was proposed, and the row is %+v", n, ro, row)
	}
}

func TestFaultsThatLastAreToldInTime(t *testing.T) {
	conflict := `,"CancellationReasons":[{"Code":"TransactionConflict"},{"Code":"None"}]`
	invalid := `,"CancellationReasons":[{"Code":"None"},{"Code":"ValidationError"}]`
	tests := []struct {
		name string
		fate fate
		most int // requests to write
	}{
		{"lost", lose, 9},
		{"internal server error", answer(500, "InternalServerError", ""), 9},
		{"throttled", answer(400, "ThrottlingException", ""), 9},
		{"conflict", answer(400, "TransactionCanceledException", conflict), 61},
		{"condition that never holds", answer(400, "ConditionalCheckFailedException", ""), 61},
		{"no permission", answer(400, "AccessDeniedException", ""), 1},
		{"invalid", answer(400, "ValidationException", ""), 1},
		{"invalid in a transaction", answer(400, "TransactionCanceledException", invalid), 1},
		{"no table", answer(400, "ResourceNotFoundException", ""), 1},
	}
	table := newTable(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWire()
			s := open(t, options(table), w.use)
			w.set(func(r request) fate {
				if r.writes() {
					return tt.fate
				}
				return pass
			})
			_, err := s.SetRoster(t.Context(), 0, []barrier.MemberID{"a"})
			if err == nil || barrier.Code(err) != "" || !strings.HasPrefix(err.Error(), "set roster: ") {
				t.Errorf("error = %v, want one that is none of the port's", err)
			}
			if n := w.writes(); n != tt.most {
				t.Errorf("%d requests to write, want %d", n, tt.most)
			}
			w.set(nil)
			if row := must(s.Current(t.Context()))(t); row.Revision != 0 {
				t.Errorf("row = %+v, want nothing", row)
			}
		})
	}
}

func TestReadsAreRepeated(t *testing.T) {
	w := newWire()
	s := open(t, options(newTable(t)), w.use)
	members(t, s, 2)
	for name, f := range map[string]fate{
		"lost": lose, "unavailable": answer(503, "ServiceUnavailable", ""), "throttled": answer(400, "ThrottlingException", ""),
	} {
		w.set(func(r request) fate {
			if r.n == 0 {
				return f
			}
			return pass
		})
		if row, err := s.Current(t.Context()); err != nil || len(row.Roster.Members) != 2 {
			t.Errorf("%s once: %+v, %v", name, row, err)
		}
		w.set(func(request) fate { return f })
		if _, err := s.Current(t.Context()); err == nil || barrier.Code(err) != "" {
			t.Errorf("%s always: error = %v", name, err)
		}
		if n := len(w.requests()); n != 3 {
			t.Errorf("%s always: %d requests, want 3", name, n)
		}
	}
	// What a batch leaves out is asked for again.
	w.set(func(r request) fate {
		if r.operation == "BatchGetItem" && r.n == 0 {
			_, keys, _ := strings.Cut(r.body, `"RequestItems":`)
			return func(*wire, *http.Request) (*http.Response, error) {
				return respond(200, `{"Responses":{},"UnprocessedKeys":`+keys), nil
			}
		}
		return pass
	})
	if v, err := s.Look(t.Context(), "m0001"); err != nil || v.Registration.Boot != bootOf("m0001") {
		t.Errorf("Look = %+v, %v", v, err)
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	w := newWire()
	o := options(newTable(t))
	o.RequestTimeout = time.Hour
	s := open(t, o, w.use)
	w.set(func(r request) fate {
		if r.writes() {
			return hang
		}
		return pass
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Claim(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v", err)
	}
}
