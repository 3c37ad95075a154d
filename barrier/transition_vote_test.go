package barrier_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

func TestJoin(t *testing.T) {
	old := barrier.Registration{Boot: "a.1", Incarnation: 1, Joined: 1}
	for _, state := range states {
		h := head(state)
		open := state == proposed || state == staging || state == trial
		t.Run("when "+state, func(t *testing.T) {
			after, reg, err := h.Join(old, true, "a.2", 1)
			judge(t, outcome{effect: open}, h, after, err)
			if want := (barrier.Registration{Boot: "a.2", Incarnation: 2, Joined: h.Generation}); reg != want {
				t.Errorf("registration %+v, want %+v", reg, want)
			}
		})
	}
	tests := []struct {
		name        string
		reg         barrier.Registration
		seated      bool
		boot        barrier.BootID
		incarnation uint64
		want        outcome
	}{
		{"first of the member", barrier.Registration{}, false, "a.1", 0, again},
		{"of no member of the epoch", old, false, "a.2", 1, again},
		{"the same again", old, true, "a.1", 0, again},
		{"of a process that read too long ago", barrier.Registration{Boot: "a.2", Incarnation: 2}, true, "a.1", 1, fails(barrier.ErrSuperseded)},
		{"of a process that read what is not there", old, true, "a.3", 2, fails(barrier.ErrSuperseded)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := head(staging)
			after, reg, err := h.Join(tt.reg, tt.seated, tt.boot, tt.incarnation)
			judge(t, tt.want, h, after, err)
			if err != nil && reg != tt.reg {
				t.Errorf("a failure changed the registration: %+v", reg)
			}
		})
	}
}

// ballots runs a call that makes a ballot in every state.
func ballots(t *testing.T, want map[string]outcome, call func(h barrier.Head) (barrier.Ballot, error)) {
	t.Helper()
	for _, state := range states {
		t.Run("when "+state, func(t *testing.T) {
			_, err := call(head(state))
			if o := want[state]; !errors.Is(err, o.err) || (o.err == nil) != (err == nil) {
				t.Errorf("error = %v, want %v", err, o.err)
			}
		})
	}
}

func TestVote(t *testing.T) {
	now := start.Add(time.Second)
	want := map[string]outcome{
		none: fails(barrier.ErrUnknown), proposed: does, staging: does, committed: fails(barrier.ErrDecided), aborted: fails(barrier.ErrDecided),
		trial: fails(barrier.ErrDecided), confirmed: fails(barrier.ErrDecided), reverted: fails(barrier.ErrDecided),
	}
	t.Run("ack", func(t *testing.T) {
		ballots(t, want, func(h barrier.Head) (barrier.Ballot, error) { return h.Ack(ref, seat("a"), "a.1", "built", now) })
	})
	t.Run("nack", func(t *testing.T) {
		ballots(t, want, func(h barrier.Head) (barrier.Ballot, error) { return h.Nack(ref, seat("a"), "a.1", "no", now) })
	})
	// I5: the same vote again is a success in every state; its answer may have been lost.
	t.Run("ack again", func(t *testing.T) {
		ballots(t, except(everywhere(nil), fails(barrier.ErrUnknown), none), func(h barrier.Head) (barrier.Ballot, error) {
			return h.Ack(ref, seat("a", acked), "a.1", "built", deadline.Add(time.Hour))
		})
	})
	type votes struct {
		name  string
		ref   barrier.Ref
		seat  *barrier.Seat
		boot  barrier.BootID
		build string
		now   time.Time
		want  error
	}
	for _, tt := range []votes{
		{"at the deadline", ref, seat("a"), "a.1", "built", deadline, nil},
		{"a moment later", ref, seat("a"), "a.1", "built", deadline.Add(1), barrier.ErrLate},
		{"on another rollout", barrier.Ref{ID: "x", Generation: 3}, seat("a"), "a.1", "built", now, barrier.ErrUnknown},
		{"of a stranger", ref, nil, "a.1", "built", now, barrier.ErrStranger},
		{"of an earlier process", ref, seat("a", restarted), "a.1", "built", now, barrier.ErrSuperseded},
		{"of a joiner", ref, seat("a", restarted), "a.1b", "built", now, barrier.ErrJoinedLate},
		{"with another build", ref, seat("a", acked), "a.1", "other", now, barrier.ErrVoted},
		{"after a nack", ref, seat("a", nacked), "a.1", "built", now, barrier.ErrVoted},
		{"after an earlier process's", ref, seat("a", acked, func(s *barrier.Seat) { s.Registration.Boot = "a.2" }), "a.2", "other", now, nil},
		{"with too long a build digest", ref, seat("a"), "a.1", strings.Repeat("x", barrier.MaxDigestBytes+1), now, barrier.ErrInvalid},
		{"with a build digest that is no text", ref, seat("a"), "a.1", "\xff", now, barrier.ErrInvalid},
		{"without a build digest", ref, seat("a"), "a.1", "", now, nil},
	} {
		t.Run("ack "+tt.name, func(t *testing.T) {
			b, err := head(staging).Ack(tt.ref, tt.seat, tt.boot, tt.build, tt.now)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error = %v, want %v", err, tt.want)
			}
			if want := (barrier.Ballot{Boot: tt.boot, Vote: barrier.Acked, BuildDigest: tt.build, VotedAt: tt.now}); err == nil && b != want {
				t.Errorf("ballot %+v, want %+v", b, want)
			}
		})
	}
	t.Run("nack again, in other words", func(t *testing.T) {
		s := seat("a", nacked)
		if b, err := head(staging).Nack(ref, s, "a.1", "still no", now); err != nil || b != s.Ballot {
			t.Errorf("%+v, %v; want the first", b, err)
		}
	})
	t.Run("nack after an ack", func(t *testing.T) {
		if _, err := head(staging).Nack(ref, seat("a", acked), "a.1", "no", now); !errors.Is(err, barrier.ErrVoted) {
			t.Error(err)
		}
	})
}

// inWindow are the states' outcomes for what is said in a confirm window.
func inWindow() map[string]outcome {
	return map[string]outcome{
		none: fails(barrier.ErrUnknown), proposed: fails(barrier.ErrNoWindow), staging: fails(barrier.ErrNoWindow), committed: fails(barrier.ErrNoWindow),
		aborted: fails(barrier.ErrDecided), trial: does, confirmed: fails(barrier.ErrDecided), reverted: fails(barrier.ErrDecided),
	}
}

// speakers are those who may not speak for the seat.
var speakers = []struct {
	name string
	seat *barrier.Seat
	boot barrier.BootID
	want error
}{
	{"of a stranger", nil, "a.1", barrier.ErrStranger},
	{"of an earlier process", seat("a", acked, restarted), "a.1", barrier.ErrSuperseded},
	{"of a process that did not ack", seat("a", acked, restarted), "a.1b", barrier.ErrJoinedLate},
}

func TestConverge(t *testing.T) {
	now := decided.Add(20 * time.Second)
	ballots(t, inWindow(), func(h barrier.Head) (barrier.Ballot, error) {
		return h.Converge(ref, seat("a", acked), "a.1", "works", now)
	})
	for _, tt := range speakers {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := head(trial).Converge(ref, tt.seat, tt.boot, "works", now); !errors.Is(err, tt.want) {
				t.Errorf("error = %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("after a withdrawal", func(t *testing.T) {
		if _, err := head(trial).Converge(ref, seat("a", withdrawn), "a.1", "works", now); !errors.Is(err, barrier.ErrWithdrawn) {
			t.Error(err)
		}
	})
	first := decided.Add(time.Second)
	for _, tt := range []struct {
		name           string
		seat           *barrier.Seat
		now            time.Time
		since, renewed time.Time
	}{
		{"first", seat("a", acked), now, now, now},
		{"renewed in time", seat("a", converged(now)), now.Add(ttl), first, now.Add(ttl)},
		{"renewed too late", seat("a", converged(now)), now.Add(ttl + 1), now.Add(ttl + 1), now.Add(ttl + 1)},
		{"at the same instant", seat("a", converged(now)), now, first, now},
		{"before it, by less than evidence lasts", seat("a", converged(now)), now.Add(-ttl), first, now},
		{"before it, since the store's clock stepped back", seat("a", converged(now)), now.Add(-ttl - 1), now.Add(-ttl - 1), now.Add(-ttl - 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := head(trial).Converge(ref, tt.seat, "a.1", "works", tt.now)
			if err != nil || !b.ConvergedSince.Equal(tt.since) || !b.RenewedAt.Equal(tt.renewed) || b.Detail != "works" || b.Vote != barrier.Acked {
				t.Errorf("%+v, %v; want evidence since %v, renewed %v", b, err, tt.since, tt.renewed)
			}
		})
	}
}

func TestWithdraw(t *testing.T) {
	now := decided.Add(20 * time.Second)
	matrix(t, inWindow(), func() func(h barrier.Head) (barrier.Head, error) {
		s := seat("a", acked)
		return func(h barrier.Head) (barrier.Head, error) {
			after, b, err := h.Withdraw(ref, s, "a.1", "broken", now)
			if err == nil {
				s.Ballot = b
			}
			return after, err
		}
	}())
	for _, tt := range speakers {
		t.Run(tt.name, func(t *testing.T) {
			h := head(trial)
			after, _, err := h.Withdraw(ref, tt.seat, tt.boot, "broken", now)
			judge(t, fails(tt.want), h, after, err)
		})
	}
	t.Run("takes the evidence back", func(t *testing.T) {
		h := head(trial)
		after, b, err := h.Withdraw(ref, seat("a", converged(now)), "a.1", "", now)
		judge(t, does, h, after, err)
		if !b.ConvergedSince.IsZero() || !b.RenewedAt.IsZero() || b.Withdrawn != "no reason given" || !b.WithdrawnAt.Equal(now) {
			t.Errorf("%+v", b)
		}
	})
	t.Run("again keeps the first reason", func(t *testing.T) {
		h, s := head(trial), seat("a", withdrawn)
		after, b, err := h.Withdraw(ref, s, "a.1", "worse", now)
		judge(t, again, h, after, err)
		if !reflect.DeepEqual(b, s.Ballot) {
			t.Errorf("%+v", b)
		}
	})
}
