package remote_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// request is a call as it is written, with who may make it: m the member a, c a coordinator, o the operator alice.
type request struct {
	name, path, body string
	may              string
}

const (
	asRef = `"rollout":{"id":"rollout-1","generation":7}`
	asA   = `"member":"a","boot":"boot"`
	asB   = `"member":"b","boot":"boot"`
)

// matrix is the whole table of calls and principals.
var matrix = []request{
	{"current", "GET /row", "", "c o"},
	{"look at itself", "GET /view?member=a", "", "m c o"},
	{"look at another", "GET /view?member=b", "", "c o"},
	{"look at nobody", "GET /view", "", "c o"},
	{"watch the head", "GET /watch?topic=head", "", "m c o"},
	{"watch the votes", "GET /watch?topic=votes", "", "c o"},

	{"join", "POST /join", `{` + asA + `,"incarnation":0}`, "m"},
	{"join as another", "POST /join", `{` + asB + `,"incarnation":0}`, ""},
	{"join as nobody", "POST /join", `{"boot":"boot"}`, ""},
	{"ack", "POST /ack", `{` + asRef + `,` + asA + `,"build_digest":"x"}`, "m"},
	{"ack as another", "POST /ack", `{` + asRef + `,` + asB + `,"build_digest":"x"}`, ""},
	{"ack as nobody", "POST /ack", `{}`, ""},
	{"nack", "POST /nack", `{` + asRef + `,` + asA + `,"reason":"x"}`, "m"},
	{"nack as another", "POST /nack", `{` + asRef + `,` + asB + `,"reason":"x"}`, ""},
	{"converge", "POST /converge", `{` + asRef + `,` + asA + `,"detail":"x"}`, "m"},
	{"converge as another", "POST /converge", `{` + asRef + `,` + asB + `,"detail":"x"}`, ""},
	{"withdraw", "POST /withdraw", `{` + asRef + `,` + asA + `,"reason":"x"}`, "m"},
	{"withdraw as another", "POST /withdraw", `{` + asRef + `,` + asB + `,"reason":"x"}`, ""},

	{"claim", "POST /claim", `{"token":1}`, "c"},
	{"commit", "POST /commit", `{` + asRef + `,"token":1}`, "c"},
	{"confirm", "POST /confirm", `{` + asRef + `,"token":1}`, "c"},
	{"abort by claim", "POST /abort", `{` + asRef + `,"by":{"token":1},"reason":"x"}`, "c"},
	{"abort by operator", "POST /abort", `{` + asRef + `,"by":{"operator":"alice"},"reason":"x"}`, "o"},
	{"abort by another operator", "POST /abort", `{` + asRef + `,"by":{"operator":"bob"},"reason":"x"}`, ""},
	{"abort by deadman", "POST /abort", `{` + asRef + `,"by":{` + asA + `},"reason":"x"}`, ""},
	{"revert by claim", "POST /revert", `{` + asRef + `,"by":{"token":1},"reason":"x"}`, "c"},
	{"revert by operator", "POST /revert", `{` + asRef + `,"by":{"operator":"alice"},"reason":"x"}`, "o"},
	{"revert by another operator", "POST /revert", `{` + asRef + `,"by":{"operator":"bob"},"reason":"x"}`, ""},
	{"revert by deadman", "POST /revert", `{` + asRef + `,"by":{` + asA + `},"reason":"x"}`, "m"},
	{"revert by another's deadman", "POST /revert", `{` + asRef + `,"by":{` + asB + `},"reason":"x"}`, ""},
	{"revert by nobody's deadman", "POST /revert", `{` + asRef + `,"by":{"boot":"boot"},"reason":"x"}`, ""},
	{"revert by deadman and claim", "POST /revert", `{` + asRef + `,"by":{"token":1,` + asA + `},"reason":"x"}`, ""},
	{"revert by deadman and operator", "POST /revert", `{` + asRef + `,"by":{"operator":"alice",` + asA + `},"reason":"x"}`, ""},
	{"revert by claim and operator", "POST /revert", `{` + asRef + `,"by":{"token":1,"operator":"alice"},"reason":"x"}`, ""},

	{"propose as alice", "POST /propose", `{"id":"r","proposer":"alice","digest":"test:1"}`, "c o"},
	{"propose as another", "POST /propose", `{"id":"r","proposer":"control-1","digest":"test:1"}`, "c"},
	{"roster", "POST /roster", `{"revision":0,"members":["a"]}`, "c o"},
	{"baseline", "POST /baseline", `{"generation":0,"digest":"test:1","version":1}`, "c o"},

	{"acquire", "POST /lease/acquire", `{"holder":"h","ttl_ms":1000}`, "c"},
	{"renew", "POST /lease/renew", `{"holder":"h","token":1,"ttl_ms":1000}`, "c"},
	{"release", "POST /lease/release", `{"holder":"h","token":1,"ttl_ms":1000}`, "c"},

	{"put", "PUT /artefact?digest=test:1", "bytes", "c o"},
	{"get what the row names", "GET /artefact?digest=test:named", "", "m c"},
	{"get what it does not name", "GET /artefact?digest=test:other", "", "c"},
	{"get nothing", "GET /artefact", "", "c"},
}

// send makes r with a bearer token, or none.
func (r request) send(t *testing.T, address, bearer string) (status int, answer string, h http.Header) {
	t.Helper()
	method, path, _ := strings.Cut(r.path, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, address+prefix+path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	req.Header.Set("Barrier-Request", "word")
	switch method {
	case http.MethodPost:
		req.Header.Set("Content-Type", "application/json")
	case http.MethodPut:
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw), resp.Header
}

var principals = []struct {
	letter string
	p      remote.Principal
}{
	{"m", memberOf("a")},
	{"c", coordinator},
	{"o", alice},
	{"-", remote.Principal{}},
}

func TestMatrix(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	s.view.Rollout = &barrier.Rollout{Digest: "test:candidate"}
	tried := map[string]bool{}
	for _, r := range matrix {
		path, _, _ := strings.Cut(r.path, "?")
		tried[path] = true
		for _, who := range principals {
			s.took()
			status, answer, h := r.send(t, server.URL, credential(who.p))
			reached := slices.ContainsFunc(s.took(), func(c seen) bool {
				return !(c.method == "Look" && strings.Contains(r.path, "/artefact")) // which asks what the row names
			})
			if h.Get("Barrier-Answer") != "word" {
				t.Errorf("%s by %s: the answer has no word", r.name, who.letter)
			}
			if slices.Contains(strings.Fields(r.may), who.letter) {
				if status != 200 {
					t.Errorf("%s by %s: %d %s", r.name, who.letter, status, answer)
				}
				continue
			}
			refused := status == 403 && strings.Contains(answer, `"code":"forbidden"`)
			if who.letter == "m" && strings.HasPrefix(r.name, "get ") {
				refused = status == 404 && strings.Contains(answer, `"code":"no_artefact"`)
			}
			if !refused || reached {
				t.Errorf("%s by %s: %d %s, reached the store: %v", r.name, who.letter, status, answer, reached)
			}
		}
	}
	for _, rt := range remote.Routes() {
		if !tried[rt.Method+" "+rt.Path] {
			t.Errorf("%s %s is not in the matrix", rt.Method, rt.Path)
		}
		delete(tried, rt.Method+" "+rt.Path)
	}
	if len(tried) > 0 {
		t.Errorf("there are no such routes: %v", tried)
	}
}

// Rights add up: one process may be all three, and is refused only what nobody may do.
func TestRightsAddUp(t *testing.T) {
	server, _ := serve(t, newSpy().backend(), remote.Options{})
	all := remote.Principal{Member: "a", Coordinator: true, Operator: "alice"}
	for _, r := range matrix {
		status, answer, _ := r.send(t, server.URL, credential(all))
		// What mixes kinds is the store's to refuse, when every part is the principal's own.
		may := r.may != "" || strings.Contains(r.name, "deadman and") || r.name == "revert by claim and operator" || r.name == "abort by deadman"
		if (status == 200) != may {
			t.Errorf("%s: %d %s", r.name, status, answer)
		}
	}
}

// Without good credentials every request is answered alike, whether there is something or not.
func TestUnauthenticated(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{Challenge: `Bearer realm="edge"`})
	var first string
	for _, r := range append(slices.Clone(matrix), request{"", "GET /no/such", "", ""}, request{"", "DELETE /row", "", ""}, request{"", "POST /ack", "{", ""}) {
		for _, bearer := range []string{"", "stranger"} {
			status, answer, h := r.send(t, server.URL, bearer)
			if status != 401 || h.Get("WWW-Authenticate") != `Bearer realm="edge"` || h.Get("Barrier-Answer") != "" {
				t.Errorf("%s: %d, header %v", r.path, status, h)
			}
			if first == "" {
				first = answer
			}
			if answer != first || strings.Contains(answer, "secret") {
				t.Errorf("%s: %q, and others get %q", r.path, answer, first)
			}
		}
	}
	if calls := s.took(); len(calls) > 0 {
		t.Errorf("reached the store: %v", calls)
	}
	c, err := remote.NewClient(server.URL+prefix, remote.ClientOptions{Authorize: remote.Bearer("stranger")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, m := range methods {
		if err := m.call(t.Context(), c); !errors.Is(err, remote.ErrUnauthenticated) || barrier.Code(err) != "" {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

func TestCredentialsThatCannotBeChecked(t *testing.T) {
	s := newSpy()
	h := remote.NewHandler(s.backend(), func(*http.Request) (remote.Principal, error) {
		return remote.Principal{Coordinator: true}, errors.Join(errors.New("secret"), remote.ErrUnavailable)
	}, remote.Options{})
	defer h.Close()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/row", nil))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "secret") || len(s.took()) > 0 {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestForbiddenAtTheClient(t *testing.T) {
	server, _ := serve(t, newSpy().backend(), remote.Options{})
	nobody := client(t, server.URL, remote.Principal{}, remote.ClientOptions{})
	for _, m := range methods {
		if err := m.call(t.Context(), nobody); !errors.Is(err, remote.ErrForbidden) || barrier.Code(err) != "" {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// What the credentials say is what the store is told.
func TestNamesComeFromTheCredentials(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	ctx := t.Context()
	op := client(t, server.URL, alice, remote.ClientOptions{})
	if err := op.Abort(ctx, ref, barrier.Authority{}, "x"); err != nil {
		t.Error(err)
	}
	if err := op.Revert(ctx, ref, barrier.ByOperator("alice"), "x"); err != nil {
		t.Error(err)
	}
	if _, err := op.Propose(ctx, barrier.Proposal{ID: "r", Digest: "test:1"}); err != nil {
		t.Error(err)
	}
	if _, err := op.Propose(ctx, barrier.Proposal{ID: "r", Digest: "test:1", Proposer: "bob"}); !errors.Is(err, remote.ErrForbidden) {
		t.Errorf("proposed as bob: %v", err)
	}
	want := []seen{
		{"Abort", []any{ref, barrier.ByOperator("alice"), "x"}},
		{"Revert", []any{ref, barrier.ByOperator("alice"), "x"}},
		{"Propose", []any{barrier.Proposal{ID: "r", Digest: "test:1", Proposer: "alice"}}},
	}
	if diff := cmp.Diff(want, s.took(), cmp.AllowUnexported(seen{})); diff != "" {
		t.Error(diff)
	}
	// No authority at all is for the store to judge.
	if err := client(t, server.URL, coordinator, remote.ClientOptions{}).Abort(ctx, ref, barrier.Authority{}, "x"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]seen{{"Abort", []any{ref, barrier.Authority{}, "x"}}}, s.took(), cmp.AllowUnexported(seen{})); diff != "" {
		t.Error(diff)
	}
}

// Every argument arrives as it was given, and every answer too.
func TestCallsArriveWhole(t *testing.T) {
	s := newSpy()
	server, _ := serve(t, s.backend(), remote.Options{})
	ctx := t.Context()
	c := client(t, server.URL, remote.Principal{Member: "a", Coordinator: true}, remote.ClientOptions{})
	odd := "line\n\x00\u2028 \"quoted\" <&> \U0001F600"
	p := barrier.Proposal{
		ID: "r", Proposer: odd, Digest: "test:/../%2e?&=+ #", Version: 1<<64 - 1, RosterRevision: 1 << 63, Seen: 1 << 61, After: 1 << 62,
		Deadline: 24 * time.Hour, Window: time.Hour, Soak: time.Minute, Grace: time.Second, EvidenceTTL: time.Millisecond,
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901234, time.UTC)
	ro := barrier.Rollout{Ref: ref, Digest: p.Digest, Window: time.Hour, ProposedAt: at, Deadline: at, State: barrier.Proposed}
	head := barrier.Head{
		Revision: 1<<64 - 1, Generation: 1 << 60, Claim: 1<<64 - 1, Committed: barrier.Pointer{Generation: 1, Digest: "test:1", Version: 2},
		Rollout: &ro, Previous: &barrier.Outcome{Ref: ref, Digest: "test:0", Version: 1, State: barrier.Aborted, Reason: odd},
	}
	ballot := barrier.Ballot{
		Boot: "boot", Vote: barrier.Acked, BuildDigest: odd, Reason: odd, VotedAt: at, ConvergedSince: at, RenewedAt: at.Add(1),
		Detail: odd, Withdrawn: odd, WithdrawnAt: at,
	}
	s.row = barrier.Row{
		Head: head, Roster: barrier.Roster{Revision: 3, Members: []barrier.MemberID{"a", "b"}},
		Seats: []barrier.Seat{{Member: "a", Registration: barrier.Registration{Boot: "boot", Incarnation: 2, Joined: 3}, Ballot: ballot}, {Member: "b"}},
		Now:   at, Margin: 250*time.Millisecond + 1,
	}
	s.view = barrier.View{Head: head, Registration: barrier.Registration{Boot: "boot"}, InEpoch: true, Ballot: ballot, Now: at}

	row, err := c.Current(ctx)
	want := s.row
	want.Margin = 251 * time.Millisecond // a margin is never shorter than it was
	if diff := cmp.Diff(want, row); err != nil || diff != "" {
		t.Error(err, diff)
	}
	view, err := c.Look(ctx, "a b&c")
	if diff := cmp.Diff(s.view, view); err != nil || diff != "" {
		t.Error(err, diff)
	}
	_, err = c.Propose(ctx, p)
	if err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		c.Ack(ctx, ref, "a", "boot", odd), c.Nack(ctx, ref, "a", "boot", odd), c.Converge(ctx, ref, "a", "boot", odd),
		c.Withdraw(ctx, ref, "a", "boot", odd), c.Revert(ctx, ref, barrier.ByDeadman("a", "boot"), odd),
		c.Put(ctx, p.Digest, nil), c.Put(ctx, p.Digest, []byte{0, 255}), c.Renew(ctx, barrier.Lease{Holder: "control 1 \U0001F600", Token: 1<<64 - 1, TTL: time.Second + 1}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	calls := s.took()
	wantCalls := []seen{
		{"Current", nil},
		{"Look", []any{barrier.MemberID("a b&c")}},
		{"Propose", []any{p}},
		{"Ack", []any{ref, barrier.MemberID("a"), barrier.BootID("boot"), odd}},
		{"Nack", []any{ref, barrier.MemberID("a"), barrier.BootID("boot"), odd}},
		{"Converge", []any{ref, barrier.MemberID("a"), barrier.BootID("boot"), odd}},
		{"Withdraw", []any{ref, barrier.MemberID("a"), barrier.BootID("boot"), odd}},
		{"Revert", []any{ref, barrier.ByDeadman("a", "boot"), odd}},
		{"Put", []any{p.Digest, []byte{}}},
		{"Put", []any{p.Digest, []byte{0, 255}}},
		{"Renew", []any{barrier.Lease{Holder: "control 1 \U0001F600", Token: 1<<64 - 1, TTL: time.Second + time.Millisecond}}},
	}
	if diff := cmp.Diff(wantCalls, calls, cmp.AllowUnexported(seen{})); diff != "" {
		t.Error(diff)
	}
}
