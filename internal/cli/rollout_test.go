package cli

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/api"
)

var proposedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// played is a rollout of two nodes as it is after that many seconds.
func played(after int, state string, members ...api.RolloutMember) *api.Rollout {
	at := func(seconds int) time.Time { return proposedAt.Add(time.Duration(seconds) * time.Second) }
	r := &api.Rollout{
		ID: "r1", Generation: 7, Version: 3, Kind: "apply", ProposedBy: "you", Message: "move\x1b[2J it", State: state, EpochSize: 2,
		ConfirmWindow: api.Duration(time.Minute), Soak: api.Duration(10 * time.Second), Margin: 100,
		ProposedAt: proposedAt, Deadline: at(300), Now: at(after), Members: members,
	}
	switch state {
	case "proposed", "staging":
		r.Open = true
	case "committed":
		r.Open, r.OnTrial = true, true
		r.CommittedAt, r.ConfirmDeadline = at(2), at(62)
	default:
		r.DecidedAt, r.DecidedBy, r.Reason = at(after), "coordinator 4", "node2: answered 502"
		if state != "aborted" {
			r.CommittedAt, r.ConfirmDeadline = at(2), at(62)
		}
	}
	return r
}

func TestRolloutChanges(t *testing.T) {
	one, two := api.RolloutMember{ID: "1", Name: "node1"}, api.RolloutMember{ID: "2", Name: "node2"}
	with := func(m api.RolloutMember, change func(*api.RolloutMember)) api.RolloutMember { change(&m); return m }
	acked := func(m *api.RolloutMember) { m.Vote = "ack" }
	works := func(m *api.RolloutMember) {
		m.Vote, m.Serves, m.Converged, m.ConvergedSince, m.Detail = "ack", true, true, proposedAt.Add(3*time.Second), "soa 1/1"
	}
	a1, a2 := with(one, acked), with(two, acked)
	tests := []struct {
		name        string
		before, now *api.Rollout
		want        []string
	}{
		{"first", nil, played(0, "proposed", one, two), []string{"v3 is put to 2 nodes, which must agree by 2026-03-01 12:05:00Z and try it for 1m0s"}},
		{"taken up", played(0, "proposed", one, two), played(1, "staging", one, two), nil},
		{"a vote", played(1, "staging", one, two), played(1, "staging", a1, two), []string{"node1 has built it"}},
		{
			"a refusal", played(1, "staging", one, two), played(1, "staging", one, with(two, func(m *api.RolloutMember) { m.Vote, m.Reason = "nack", "bad\x07" })),
			[]string{`node2 cannot take it over: bad\x07`},
		},
		{"a restart", played(1, "staging", a1, two), played(1, "staging", with(a1, func(m *api.RolloutMember) { m.Restarted = true }), two), []string{"node1 has restarted since it voted"}},
		{"the last vote and the commit", played(1, "staging", a1, two), played(2, "committed", a1, a2), []string{"node2 has built it", "committed on trial, until 2026-03-01 12:01:02Z"}},
		{"evidence", played(2, "committed", a1, a2), played(3, "committed", with(one, works), a2), []string{"node1 serves it", "node1 has converged: soa 1/1"}},
		{
			"evidence lost", played(3, "committed", with(one, works), a2),
			played(9, "committed", with(one, func(m *api.RolloutMember) { works(m); m.Converged = false }), a2),
			[]string{"node1 does not say any more that it works"},
		},
		{
			"evidence expired, and is told once", played(9, "committed", with(one, func(m *api.RolloutMember) { works(m); m.Converged = false }), a2),
			played(12, "reverted", with(one, func(m *api.RolloutMember) { works(m); m.Converged = false }), a2),
			[]string{"reverted by coordinator 4: node2: answered 502"},
		},
		{
			"withdrawn", played(3, "committed", with(one, works), a2),
			played(9, "reverted", with(one, func(m *api.RolloutMember) { works(m); m.Converged, m.Withdrawn = false, "502" }), a2),
			[]string{"node1 does not work with it: 502", "reverted by coordinator 4: node2: answered 502"},
		},
		{"confirmed", played(3, "committed", a1, a2), played(20, "confirmed", a1, a2), []string{"confirmed: it works on every node"}},
		{"aborted", played(1, "staging", one, two), played(2, "aborted", one, two), []string{"aborted by coordinator 4: node2: answered 502"}},
		{"nothing", played(1, "staging", a1, two), played(2, "staging", a1, two), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := texts(rolloutChanges(tt.before, tt.now)); !slices.Equal(got, tt.want) {
				t.Errorf("said %q, want %q", got, tt.want)
			}
		})
	}
	// A whole rollout that is seen at its end alone is told too.
	all := texts(rolloutChanges(nil, played(20, "confirmed", with(one, works), with(two, works))))
	if len(all) != 9 || !strings.HasPrefix(all[8], "confirmed") {
		t.Errorf("seen at the end: %q", all)
	}
}

func texts(lines []change) (out []string) {
	for _, line := range lines {
		out = append(out, line.text)
	}
	return out
}

// A line tells when what it says happened, also to who asks about a rollout that ended long ago.
func TestLineViewTimes(t *testing.T) {
	at := func(seconds float64) time.Time { return proposedAt.Add(time.Duration(seconds * float64(time.Second))) }
	one := api.RolloutMember{ID: "1", Name: "node1", Vote: "ack", VotedAt: at(1.5)}
	two := api.RolloutMember{ID: "2", Name: "node2", Vote: "ack", VotedAt: at(0.5)}
	trial := played(3, "committed", one, two)
	one.Serves, one.Converged, one.ConvergedSince, one.Detail = true, true, at(6), "soa 1/1"
	two.Serves, two.Converged, two.ConvergedSince, two.Withdrawn, two.WithdrawnAt = true, false, at(3), "502", at(8)
	ended := played(9, "reverted", one, two)
	ended.Now = at(3600)
	tests := []struct {
		name string
		show []*api.Rollout
		want string
	}{
		{"after its end", []*api.Rollout{ended}, `   0.0s  v3 is put to 2 nodes, which must agree by 2026-03-01 12:05:00Z and try it for 1m0s
   0.5s  node2 has built it
   1.5s  node1 has built it
   2.0s  committed on trial, until 2026-03-01 12:01:02Z
         node1 serves it
   6.0s  node1 has converged: soa 1/1
         node2 serves it
   8.0s  node2 does not work with it: 502
   9.0s  reverted by coordinator 4: node2: answered 502
`},
		{"from its beginning", []*api.Rollout{played(0, "proposed", api.RolloutMember{ID: "1", Name: "node1"}, api.RolloutMember{ID: "2", Name: "node2"}), trial, func() *api.Rollout {
			now := *ended
			now.Now = at(9.5)
			return &now
		}()}, `   0.0s  v3 is put to 2 nodes, which must agree by 2026-03-01 12:05:00Z and try it for 1m0s
   0.5s  node2 has built it
   1.5s  node1 has built it
   2.0s  committed on trial, until 2026-03-01 12:01:02Z
   6.0s  node1 has converged: soa 1/1
   8.0s  node2 does not work with it: 502
   9.0s  reverted by coordinator 4: node2: answered 502
   9.5s  node1 serves it
   9.5s  node2 serves it
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			v := &lineView{w: &out}
			for _, r := range tt.show {
				v.show(r)
			}
			if got := out.String(); got != tt.want {
				t.Errorf("printed\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// A drawing takes the place of the one before it, and never more room than the terminal has.
func TestTableView(t *testing.T) {
	var out bytes.Buffer
	columns, rows := 60, 24
	v := &tableView{w: &out, size: func() (int, int) { return columns, rows }}
	v.show(played(3, "committed", api.RolloutMember{ID: "1", Name: "node1", Vote: "ack", Serves: true, Converged: true, ConvergedSince: proposedAt, Detail: strings.Repeat("x", 100)},
		api.RolloutMember{ID: "2", Name: "node2", Vote: "nack", Reason: "bad\x1b[2J"}))
	want := `rollout    r1
change     v3, generation 7, apply by you: move\x1b[2J it
state      on trial — converged: 1 of 2 nodes; 59s left
trial      1m0s, works for 10s, 5xx up by less than 1.00%

NODE   BUILT           SERVES  CONVERGED
node1  yes             yes     yes, for 3s: xxxxxxxxxxxxxx…
node2  NO: bad\x1b[2J  -       -
`
	drawn := func() string {
		var lines []string
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.TrimRight(line, " \n")+"\n")
		}
		out.Reset()
		return strings.Join(lines, "")
	}
	if got := drawn(); got != want {
		t.Errorf("drew\n%s\nwant\n%s", got, want)
	}
	v.lost(errors.New("connection refused"))
	if got := drawn(); !strings.HasPrefix(got, "\x1b[8A\r\x1b[J") || !strings.Contains(got, "no answer  connection refused") {
		t.Errorf("without an answer: %q", got)
	}
	// A cohort that does not fit.
	var many []api.RolloutMember
	for range 100 {
		many = append(many, api.RolloutMember{Name: "n"})
	}
	rows = 12
	v.show(played(3, "staging", many...))
	if got := drawn(); strings.Count(got, "\n") > rows-1 || !strings.Contains(got, "… and 9") {
		t.Errorf("%d lines of %d: %q", strings.Count(got, "\n"), rows, got)
	}
}

// Who follows a rollout is not stopped by a control plane that restarts, and ends when the time is over.
func TestFollow(t *testing.T) {
	var asked atomic.Int64
	answers := []any{
		played(0, "proposed"), http.StatusServiceUnavailable, http.StatusInternalServerError, played(2, "confirmed"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1)) - 1
		switch v := answers[min(n, len(answers)-1)].(type) {
		case int:
			w.WriteHeader(v)
		case *api.Rollout:
			w.Header().Set("Content-Type", "application/json")
			_ = json.MarshalWrite(w, v)
		}
	}))
	defer server.Close()
	c, err := api.NewClient(server.URL, "t", nil)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	a := &app{Env: Env{Stderr: &errs}}
	r, err := a.follow(t.Context(), c, "current", 0, a.progressView())
	if err != nil || r.State != "confirmed" || asked.Load() != 4 {
		t.Fatalf("followed to %+v, %v after %d questions", r, err, asked.Load())
	}
	if n := strings.Count(errs.String(), "asking again"); n != 1 {
		t.Errorf("told %d times that nobody answers:\n%s", n, &errs)
	}

	answers = []any{played(0, "staging")}
	r, err = a.follow(t.Context(), c, "current", 250*time.Millisecond, quietView{})
	var ended *endedError
	if r == nil || !errors.As(err, &ended) || ended.exit != exitOpen {
		t.Errorf("at the end of the time: %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.follow(ctx, c, "current", 0, quietView{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted at once: %v", err)
	}
	answers = []any{http.StatusNotFound}
	if _, err := a.follow(t.Context(), c, "none", 0, quietView{}); err == nil || errors.As(err, &ended) {
		t.Errorf("of none: %v", err)
	}
	server.Close()
	if r, err := a.follow(t.Context(), c, "current", 250*time.Millisecond, quietView{}); r != nil || err == nil || errors.As(err, &ended) {
		t.Errorf("nobody there: %+v, %v", r, err)
	}
}

func TestWentLive(t *testing.T) {
	for _, tc := range []struct {
		state string
		trial bool
		want  bool
	}{
		{"proposed", false, false},
		{"staging", false, false},
		{"committed", true, false},
		{"committed", false, true},
		{"confirmed", false, true},
		{"aborted", false, false},
		{"reverted", false, false},
	} {
		if got := wentLive(&api.Rollout{State: tc.state, OnTrial: tc.trial}); got != tc.want {
			t.Errorf("%s, on trial %t: %t", tc.state, tc.trial, got)
		}
	}
}
