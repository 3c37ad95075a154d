package barrier_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

func TestChecks(t *testing.T) {
	long := strings.Repeat("x", barrier.MaxIDBytes+1)
	tests := []struct {
		name string
		err  error
		says string // empty: valid
	}{
		{"a member", barrier.CheckMember("a", "a.1_-Z9"), ""},
		{"a member without a name", barrier.CheckMember("", "a.1"), `member "" is empty`},
		{"a process without a name", barrier.CheckMember("a", ""), `boot "" is empty`},
		{"too long names", barrier.CheckMember(barrier.MemberID(long), barrier.BootID(long)), "65 bytes, more than 64; boot"},
		{"names of other characters", barrier.CheckMember("a/b", "a b"), "other characters"},

		{"a lease", barrier.CheckLease("c1", barrier.MinLease), ""},
		{"the longest lease", barrier.CheckLease(strings.Repeat("c", barrier.MaxNameBytes), barrier.MaxLease), ""},
		{"too short a lease", barrier.CheckLease("c1", barrier.MinLease-1), "ttl is"},
		{"too long a lease of nobody", barrier.CheckLease("", barrier.MaxLease+1), "holder is empty; ttl is"},

		{"an artefact", barrier.CheckArtefact("t:d", make([]byte, barrier.MaxArtefactBytes)), ""},
		{"too large an artefact", barrier.CheckArtefact("t", make([]byte, barrier.MaxArtefactBytes+1)), "not scheme:value; artefact has"},

		{"a digest", barrier.CheckDigest("t:!~"), ""},
		{"no digest", barrier.CheckDigest(""), "not scheme:value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			switch {
			case tt.says == "" && tt.err != nil, tt.says != "" && (!errors.Is(tt.err, barrier.ErrInvalid) || !strings.Contains(tt.err.Error(), tt.says)):
				t.Errorf("error = %v, want %q", tt.err, tt.says)
			}
		})
	}
}

func TestReasonsAreCutAtACharacter(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"short":      {"no", "no"},
		"empty":      {"", ""},
		"the most":   {strings.Repeat("x", 1000), strings.Repeat("x", 1000)},
		"longer":     {strings.Repeat("x", 1001), strings.Repeat("x", 997) + "…"},
		"characters": {strings.Repeat("é", 501), strings.Repeat("é", 498) + "…"},
		"not UTF-8":  {"a\xffb", "a\uFFFDb"},
		"with a NUL": {"a\x00b", "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := head(staging).Nack(ref, seat("a"), "a.1", tt.in, start)
			if err != nil || b.Reason != tt.want {
				t.Errorf("%q, %v; want %q", b.Reason, err, tt.want)
			}
		})
	}
}

func TestCodes(t *testing.T) {
	named := []error{
		barrier.ErrInvalid, barrier.ErrOpen, barrier.ErrRoster, barrier.ErrNoBaseline, barrier.ErrUnknown, barrier.ErrDecided, barrier.ErrFenced,
		barrier.ErrStranger, barrier.ErrSuperseded, barrier.ErrJoinedLate, barrier.ErrVoted, barrier.ErrBarrier, barrier.ErrNotConverged,
		barrier.ErrWithdrawn, barrier.ErrNoWindow, barrier.ErrLate, barrier.ErrEarly, barrier.ErrHeld, barrier.ErrLost, barrier.ErrNoArtefact,
	}
	seen := map[string]bool{}
	for _, err := range named {
		code := barrier.Code(err)
		if code == "" || seen[code] || !errors.Is(barrier.FromCode(code), err) {
			t.Errorf("%v has the code %q", err, code)
		}
		seen[code] = true
	}
	for code, err := range map[string]error{
		"open":       &barrier.OpenError{Rollout: *head(staging).Rollout},
		"decided":    &barrier.DecidedError{Ref: ref, State: barrier.Aborted, Reason: "why"},
		"lease_held": &barrier.HeldError{Holder: "c1"},
	} {
		if barrier.Code(err) != code || err.Error() == "" {
			t.Errorf("%v has the code %q, want %q", err, barrier.Code(err), code)
		}
	}
	if barrier.Code(errors.New("other")) != "" || barrier.FromCode("other") != nil || barrier.Code(nil) != "" {
		t.Error("what is none of the named errors has a code")
	}
	if text := (&barrier.DecidedError{Ref: ref, State: barrier.Aborted}).Error(); text != "the rollout was decided otherwise: generation 3 (r3) is aborted" {
		t.Error(text)
	}
	if text := (&barrier.HeldError{Holder: "c1"}).Error(); text != "another holds the lease: c1" {
		t.Error(text)
	}
}

func TestWords(t *testing.T) {
	for want, got := range map[string]string{
		"nothing":                         barrier.Pointer{}.String(),
		"generation 3 (version 30, t:d3)": next.String(),
		"generation 3 (r3)":               ref.String(),
		"coordinator 7":                   barrier.ByClaim(7).String(),
		"operator alice":                  barrier.ByOperator("alice").String(),
		"deadman of a":                    barrier.ByDeadman("a", "a.1").String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if !head(trial).Rollout.RevertDue().Equal(confirm.Add(grace)) || !(barrier.Rollout{}).RevertDue().Equal(time.Time{}) {
		t.Error("RevertDue")
	}
}
