package barrier_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

func proposal(changes ...func(*barrier.Proposal)) barrier.Proposal {
	p := barrier.Proposal{ID: "r4", Proposer: "bob", Digest: "t:d4", Version: 40, RosterRevision: 4}
	for _, change := range changes {
		change(&p)
	}
	return p
}

// saw is p by who has seen h.
func saw(h barrier.Head, p barrier.Proposal) barrier.Proposal {
	p.Seen = h.Generation
	return p
}

func TestPropose(t *testing.T) {
	p := proposal(func(p *barrier.Proposal) { p.Window = window })
	want := map[string]outcome{
		none: does, committed: does, aborted: does, confirmed: does, reverted: does,
		proposed: fails(barrier.ErrOpen), staging: fails(barrier.ErrOpen), trial: fails(barrier.ErrOpen),
	}
	matrix(t, want, func(h barrier.Head) (barrier.Head, error) { return h.Propose(roster, saw(h, p), decided) })

	t.Run("the same id with the same digest", func(t *testing.T) {
		again := proposal(func(p *barrier.Proposal) { p.ID, p.Digest = "r3", next.Digest })
		same := except(everywhere(nil), does, none)
		matrix(t, same, func(h barrier.Head) (barrier.Head, error) { return h.Propose(roster, saw(h, again), decided) })
	})
	t.Run("what it makes", func(t *testing.T) {
		h, err := head(reverted).Propose(roster, saw(head(reverted), p), decided)
		if err != nil {
			t.Fatal(err)
		}
		wantRollout := barrier.Rollout{
			Ref: barrier.Ref{ID: "r4", Generation: 4}, Digest: "t:d4", Version: 40, Proposer: "bob", RosterRevision: 4, EpochSize: 2,
			Window: window, Soak: barrier.DefaultSoak, Grace: barrier.DefaultGrace, EvidenceTTL: barrier.DefaultEvidenceTTL,
			ProposedAt: decided, Deadline: decided.Add(barrier.DefaultDeadline), State: barrier.Proposed,
		}
		wantPrevious := barrier.Outcome{Ref: ref, Digest: next.Digest, Version: next.Version, State: barrier.Reverted}
		if *h.Rollout != wantRollout || *h.Previous != wantPrevious || h.Generation != 4 || h.Committed != was || h.Claim != claim {
			t.Errorf("%+v\n%+v\n%+v", h, h.Rollout, h.Previous)
		}
	})
	empty := head(none)
	empty.Committed = barrier.Pointer{}
	tests := []struct {
		name   string
		head   barrier.Head
		roster barrier.Roster
		p      barrier.Proposal
		want   outcome
		gen    uint64
	}{
		{"to another roster", head(none), roster, proposal(func(p *barrier.Proposal) { p.RosterRevision = 3 }), fails(barrier.ErrRoster), 0},
		{"to nobody", head(none), barrier.Roster{Revision: 4}, proposal(), fails(barrier.ErrInvalid), 0},
		{"a window with nothing to go back to", empty, roster, p, fails(barrier.ErrNoBaseline), 0},
		{"no window with nothing to go back to", empty, roster, proposal(), does, 3},
		{"above a number", head(none), roster, proposal(func(p *barrier.Proposal) { p.After = 99 }), does, 100},
		{"above a lower number", head(none), roster, proposal(func(p *barrier.Proposal) { p.After = 1 }), does, 3},
		{"what is not valid", head(none), roster, barrier.Proposal{}, fails(barrier.ErrInvalid), 0},
		{"the same id with another digest", head(staging), roster, proposal(func(p *barrier.Proposal) { p.ID = "r3" }), fails(barrier.ErrInvalid), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after, err := tt.head.Propose(tt.roster, saw(tt.head, tt.p), decided)
			judge(t, tt.want, tt.head, after, err)
			if tt.gen != 0 && after.Rollout.Generation != tt.gen {
				t.Errorf("generation %d, want %d", after.Rollout.Generation, tt.gen)
			}
		})
	}
	t.Run("by who has not seen the newest generation, or a later one", func(t *testing.T) {
		for _, seen := range []uint64{head(aborted).Generation - 1, head(aborted).Generation + 1} {
			p := proposal(func(p *barrier.Proposal) { p.Seen = seen })
			after, err := head(aborted).Propose(roster, p, decided)
			judge(t, fails(barrier.ErrStale), head(aborted), after, err)
		}
	})
	t.Run("names what is in the way", func(t *testing.T) {
		var open *barrier.OpenError
		_, err := head(trial).Propose(roster, p, decided)
		if !errors.As(err, &open) || open.Rollout.Ref != ref || !strings.Contains(err.Error(), "generation 3 (r3) is committed, proposed by alice") {
			t.Errorf("%v", err)
		}
	})
}

func TestChangeRoster(t *testing.T) {
	members := []barrier.MemberID{"c", "a"}
	want := except(except(everywhere(nil), does, states...), fails(barrier.ErrOpen), trial)
	for _, state := range states {
		t.Run("when "+state, func(t *testing.T) {
			h := head(state)
			after, r, err := h.ChangeRoster(roster, 4, members, decided)
			judge(t, want[state], h, after, err)
			if err != nil {
				if !reflect.DeepEqual(r, roster) {
					t.Errorf("a failure changed the roster: %+v", r)
				}
				return
			}
			if r.Revision != 5 || !slices.Equal(r.Members, []barrier.MemberID{"a", "c"}) || !r.Contains("c") || r.Contains("b") {
				t.Errorf("%+v", r)
			}
			if state == proposed || state == staging {
				ro := after.Rollout
				if ro.State != barrier.Aborted || ro.Reason != "the roster changed from revision 4 to 5" || ro.DecidedBy != "roster change" || !ro.DecidedAt.Equal(decided) {
					t.Errorf("%+v", ro)
				}
			}
			// The answer was lost, and the same call comes again.
			repeated, r2, err := after.ChangeRoster(r, 4, members, decided)
			judge(t, again, after, repeated, err)
			if !reflect.DeepEqual(r2, r) {
				t.Errorf("%+v", r2)
			}
		})
	}
	var many []barrier.MemberID
	for i := range barrier.MaxMembers + 1 {
		many = append(many, barrier.MemberID(fmt.Sprintf("m%d", i)))
	}
	tests := []struct {
		name     string
		revision uint64
		members  []barrier.MemberID
		want     outcome
		says     string
	}{
		{"to the same members", 4, []barrier.MemberID{"b", "a"}, again, ""},
		{"of another revision", 3, members, fails(barrier.ErrRoster), "4, not 3"},
		{"of a revision that is to come", 5, []barrier.MemberID{"a", "b"}, fails(barrier.ErrRoster), ""},
		{"of a long gone revision, to the same members", 2, []barrier.MemberID{"a", "b"}, fails(barrier.ErrRoster), ""},
		{"to nobody", 4, nil, fails(barrier.ErrInvalid), "at least one"},
		{"to the most", 4, many[1:], does, ""},
		{"to too many", 4, many, fails(barrier.ErrInvalid), "at most 1000 members, not 1001"},
		{"to one who is named twice, and one without a name", 4, []barrier.MemberID{"x", "", "x", "x"}, fails(barrier.ErrInvalid), `member "" is empty; member "x" is named twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := head(none)
			after, _, err := h.ChangeRoster(roster, tt.revision, tt.members, decided)
			judge(t, tt.want, h, after, err)
			if tt.says != "" && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q does not say %q", err, tt.says)
			}
		})
	}
}

func TestAdoptBaseline(t *testing.T) {
	base := barrier.Pointer{Digest: "t:d0", Version: 1}
	with := func(p barrier.Pointer) barrier.Head {
		h := head(none)
		h.Committed = p
		return h
	}
	tests := []struct {
		name string
		head barrier.Head
		p    barrier.Pointer
		want outcome
		is   barrier.BaselineOutcome
	}{
		{"where nothing is committed", with(barrier.Pointer{}), base, does, barrier.BaselineAdopted},
		{"where it is", with(base), base, again, barrier.BaselineVerified},
		{"where another baseline is", with(barrier.Pointer{Digest: "t:other"}), base, fails(barrier.ErrInvalid), barrier.BaselineFailed},
		{"where something was committed since", with(was), base, again, barrier.BaselineSuperseded},
		{"that is none", with(barrier.Pointer{}), barrier.Pointer{}, fails(barrier.ErrInvalid), barrier.BaselineFailed},
		{"that has a version beyond numbers", with(barrier.Pointer{}), barrier.Pointer{Digest: "t:d", Version: 1 << 63}, fails(barrier.ErrInvalid), barrier.BaselineFailed},
		{"that has a generation", with(barrier.Pointer{}), was, fails(barrier.ErrInvalid), barrier.BaselineFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after, is, err := tt.head.AdoptBaseline(tt.p)
			judge(t, tt.want, tt.head, after, err)
			if is != tt.is || tt.want.effect && after.Committed != tt.p {
				t.Errorf("%s, %+v; want %s", is, after.Committed, tt.is)
			}
		})
	}
}

func TestWithDecision(t *testing.T) {
	p := barrier.Pointer{Generation: 9, Digest: "t:d9"}
	open := fails(barrier.ErrOpen)
	matrix(t, except(except(everywhere(nil), does, states...), open, proposed, staging, trial), func(h barrier.Head) (barrier.Head, error) {
		return h.WithDecision(p)
	})
	for name, p := range map[string]barrier.Pointer{
		"of no digest": {Generation: 9}, "of the generation that is": {Generation: 2, Digest: "t:x"}, "of an earlier one": {Generation: 1, Digest: "t:x"},
	} {
		t.Run(name, func(t *testing.T) {
			h := head(none)
			after, err := h.WithDecision(p)
			judge(t, fails(barrier.ErrInvalid), h, after, err)
		})
	}
	if h, _ := head(aborted).WithDecision(p); h.Committed != p || h.Generation != 9 {
		t.Errorf("%+v", h)
	}
}

func TestCheckProposal(t *testing.T) {
	type change = func(*barrier.Proposal)
	windowed := func(change change) change {
		return func(p *barrier.Proposal) {
			p.Window = window
			change(p)
		}
	}
	tests := []struct {
		name   string
		change change
		says   string // empty: valid
	}{
		{"plain", func(*barrier.Proposal) {}, ""},
		{"with a window", windowed(func(*barrier.Proposal) {}), ""},
		{"no id", func(p *barrier.Proposal) { p.ID = "" }, `id "" is empty`},
		{"an id of spaces", func(p *barrier.Proposal) { p.ID = "a b" }, "other characters"},
		{"too long an id", func(p *barrier.Proposal) { p.ID = barrier.RolloutID(strings.Repeat("x", 65)) }, "65 bytes, more than 64"},
		{"nobody", func(p *barrier.Proposal) { p.Proposer = "" }, "proposer is empty"},
		{"too long a proposer", func(p *barrier.Proposal) { p.Proposer = strings.Repeat("x", 201) }, "201 bytes"},
		{"a proposer that is no text", func(p *barrier.Proposal) { p.Proposer = "\xff" }, "not UTF-8"},
		{"a proposer with a NUL", func(p *barrier.Proposal) { p.Proposer = "a\x00" }, "NUL"},
		{"no digest", func(p *barrier.Proposal) { p.Digest = "" }, "not scheme:value"},
		{"no value", func(p *barrier.Proposal) { p.Digest = "t:" }, "not scheme:value"},
		{"no scheme", func(p *barrier.Proposal) { p.Digest = ":x" }, "not scheme:value"},
		{"a digest with a space", func(p *barrier.Proposal) { p.Digest = "t:a b" }, "printable"},
		{"too long a digest", func(p *barrier.Proposal) { p.Digest = barrier.Digest("t:" + strings.Repeat("x", 200)) }, "202 bytes"},
		{"a version beyond numbers", func(p *barrier.Proposal) { p.Version = 1 << 63 }, "version is"},
		{"after the end", func(p *barrier.Proposal) { p.After = 1<<64 - 1 }, "after is"},
		{"after what a database can count", func(p *barrier.Proposal) { p.After = 1<<62 + 1 }, "after is"},
		{"too short a deadline", func(p *barrier.Proposal) { p.Deadline = time.Millisecond }, "deadline is 1ms"},
		{"too long a deadline", func(p *barrier.Proposal) { p.Deadline = 25 * time.Hour }, "deadline is 25h"},
		{"half a millisecond", func(p *barrier.Proposal) { p.Deadline = time.Second + time.Microsecond }, "whole milliseconds"},
		{"soak without a window", func(p *barrier.Proposal) { p.Soak = soak }, "there is none"},
		{"grace without a window", func(p *barrier.Proposal) { p.Grace = grace }, "there is none"},
		{"evidence without a window", func(p *barrier.Proposal) { p.EvidenceTTL = ttl }, "there is none"},
		{"a negative window", func(p *barrier.Proposal) { p.Window = -time.Second }, "window is -1s"},
		{"too long a window", func(p *barrier.Proposal) { p.Window = 25 * time.Hour }, "window is 25h"},
		{"a window of twice the soak", windowed(func(p *barrier.Proposal) { p.Soak = window / 2 }), ""},
		{"a window of less", windowed(func(p *barrier.Proposal) { p.Soak = window/2 + time.Millisecond }), "less than twice the soak"},
		{"a negative soak", windowed(func(p *barrier.Proposal) { p.Soak = -time.Second }), "soak is -1s"},
		{"too long a grace", windowed(func(p *barrier.Proposal) { p.Grace = 2 * time.Hour }), "grace is 2h"},
		{"too short an evidence", windowed(func(p *barrier.Proposal) { p.EvidenceTTL = time.Millisecond }), "evidence_ttl is 1ms"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := proposal(tt.change).Check()
			switch {
			case tt.says == "" && err != nil, tt.says != "" && (!errors.Is(err, barrier.ErrInvalid) || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("error = %v, want %q", err, tt.says)
			}
		})
	}
	t.Run("all problems at once", func(t *testing.T) {
		err := barrier.Proposal{Deadline: -1, Window: -1}.Check()
		for _, what := range []string{"id ", "proposer ", "digest ", "deadline ", "window "} {
			if !strings.Contains(err.Error(), what) {
				t.Errorf("%q does not name %q", err, what)
			}
		}
	})
}
