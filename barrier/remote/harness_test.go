package remote_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

const prefix = "/v1/barrier/edge"

var (
	coordinator = remote.Principal{Coordinator: true}
	alice       = remote.Principal{Operator: "alice"}
)

func memberOf(m barrier.MemberID) remote.Principal { return remote.Principal{Member: m} }

// credential is p as a bearer token that the tests' handlers believe.
func credential(p remote.Principal) string {
	v := url.Values{"member": {string(p.Member)}, "operator": {p.Operator}}
	if p.Coordinator {
		v.Set("coordinator", "yes")
	}
	return v.Encode()
}

func authorize(r *http.Request) (remote.Principal, error) {
	raw, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	v, err := url.ParseQuery(raw)
	if !ok || err != nil || raw == "stranger" {
		return remote.Principal{}, errors.New("nobody knows the secret reason")
	}
	return remote.Principal{
		Member: barrier.MemberID(v.Get("member")), Coordinator: v.Get("coordinator") != "", Operator: v.Get("operator"),
	}, nil
}

// serve runs a handler of b behind a real server, until t ends.
func serve(t testing.TB, b remote.Backend, o remote.Options) (*httptest.Server, *remote.Handler) {
	h := remote.NewHandler(b, authorize, o)
	s := httptest.NewServer(http.StripPrefix(prefix, h))
	t.Cleanup(func() {
		h.Close() // first, so that watches do not keep the server
		s.Close()
	})
	return s, h
}

// client speaks to the server at address as p.
func client(t testing.TB, address string, p remote.Principal, o remote.ClientOptions) *remote.Client {
	t.Helper()
	o.Authorize = remote.Bearer(credential(p))
	c, err := remote.NewClient(address+prefix, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// spy is a backend that notes what reaches it, and answers with what a test says.
type spy struct {
	mu    sync.Mutex
	calls []seen
	err   error
	row   barrier.Row
	view  barrier.View
	bytes []byte
	hints map[barrier.Topic][]chan struct{}
	hold  chan struct{} // if not nil, calls wait until it is closed or their context ends
}

// seen is one call that reached the backend.
type seen struct {
	method string
	args   []any
}

func (s *spy) backend() remote.Backend { return remote.Backend{Store: s, Leases: s, Artefacts: s} }

func (s *spy) call(ctx context.Context, method string, args ...any) error {
	s.mu.Lock()
	s.calls = append(s.calls, seen{method, args})
	err, hold := s.err, s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// took returns the calls since the last took.
func (s *spy) took() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *spy) Current(ctx context.Context) (barrier.Row, error) {
	return s.row, s.call(ctx, "Current")
}

func (s *spy) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	return s.view, s.call(ctx, "Look", m)
}

func (s *spy) Watch(ctx context.Context, t barrier.Topic) <-chan struct{} {
	_ = s.call(context.Background(), "Watch", t)
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hints == nil {
		s.hints = map[barrier.Topic][]chan struct{}{}
	}
	s.hints[t] = append(s.hints[t], ch)
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.hints[t] != nil {
			delete(s.hints, t)
			close(ch)
		}
	})
	return ch
}

// hint tells all who watch t.
func (s *spy) hint(t barrier.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ch := range s.hints[t] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (s *spy) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	return barrier.Registration{Boot: boot, Incarnation: incarnation + 1}, s.call(ctx, "Join", m, boot, incarnation)
}

func (s *spy) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, build string) error {
	return s.call(ctx, "Ack", r, m, boot, build)
}

func (s *spy) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return s.call(ctx, "Nack", r, m, boot, reason)
}

func (s *spy) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	return s.call(ctx, "Converge", r, m, boot, detail)
}

func (s *spy) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return s.call(ctx, "Withdraw", r, m, boot, reason)
}

func (s *spy) Claim(ctx context.Context, t barrier.Token) error { return s.call(ctx, "Claim", t) }

func (s *spy) Commit(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return s.call(ctx, "Commit", r, t)
}

func (s *spy) Confirm(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return s.call(ctx, "Confirm", r, t)
}

func (s *spy) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return s.call(ctx, "Abort", r, by, reason)
}

func (s *spy) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return s.call(ctx, "Revert", r, by, reason)
}

func (s *spy) Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	return barrier.Rollout{Ref: barrier.Ref{ID: p.ID, Generation: 1}}, s.call(ctx, "Propose", p)
}

func (s *spy) SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	return barrier.Roster{Revision: revision + 1, Members: members}, s.call(ctx, "SetRoster", revision, members)
}

func (s *spy) AdoptBaseline(ctx context.Context, p barrier.Pointer) (barrier.BaselineOutcome, error) {
	return barrier.BaselineAdopted, s.call(ctx, "AdoptBaseline", p)
}

func (s *spy) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	return barrier.Lease{Holder: holder, Token: 1, TTL: ttl}, s.call(ctx, "Acquire", holder, ttl)
}

func (s *spy) Renew(ctx context.Context, l barrier.Lease) error   { return s.call(ctx, "Renew", l) }
func (s *spy) Release(ctx context.Context, l barrier.Lease) error { return s.call(ctx, "Release", l) }

func (s *spy) Put(ctx context.Context, d barrier.Digest, b []byte) error {
	return s.call(ctx, "Put", d, b)
}

func (s *spy) Get(ctx context.Context, d barrier.Digest) ([]byte, error) {
	return s.bytes, s.call(ctx, "Get", d)
}

// newSpy returns one whose row names the artefact test:named.
func newSpy() *spy {
	now := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	return &spy{
		row:   barrier.Row{Now: now},
		view:  barrier.View{Head: barrier.Head{Committed: barrier.Pointer{Digest: "test:named"}}, Now: now},
		bytes: []byte("artefact"),
	}
}

// ports is everything that a client is.
type ports interface {
	barrier.Store
	barrier.Leases
	barrier.Artefacts
}

var ref = barrier.Ref{ID: "rollout-1", Generation: 7}

// methods are all calls of the ports, each as well-formed as it can be, with the principal that may make it.
var methods = []struct {
	name string
	who  remote.Principal
	call func(context.Context, ports) error
}{
	{"Current", coordinator, func(ctx context.Context, p ports) error { _, err := p.Current(ctx); return err }},
	{"Look", memberOf("a"), func(ctx context.Context, p ports) error { _, err := p.Look(ctx, "a"); return err }},
	{"Join", memberOf("a"), func(ctx context.Context, p ports) error { _, err := p.Join(ctx, "a", "boot", 0); return err }},
	{"Ack", memberOf("a"), func(ctx context.Context, p ports) error { return p.Ack(ctx, ref, "a", "boot", "built") }},
	{"Nack", memberOf("a"), func(ctx context.Context, p ports) error { return p.Nack(ctx, ref, "a", "boot", "no") }},
	{"Converge", memberOf("a"), func(ctx context.Context, p ports) error { return p.Converge(ctx, ref, "a", "boot", "ok") }},
	{"Withdraw", memberOf("a"), func(ctx context.Context, p ports) error { return p.Withdraw(ctx, ref, "a", "boot", "no") }},
	{"Claim", coordinator, func(ctx context.Context, p ports) error { return p.Claim(ctx, 3) }},
	{"Commit", coordinator, func(ctx context.Context, p ports) error { return p.Commit(ctx, ref, 3) }},
	{"Confirm", coordinator, func(ctx context.Context, p ports) error { return p.Confirm(ctx, ref, 3) }},
	{"Abort", coordinator, func(ctx context.Context, p ports) error { return p.Abort(ctx, ref, barrier.ByClaim(3), "no") }},
	{"Revert", coordinator, func(ctx context.Context, p ports) error { return p.Revert(ctx, ref, barrier.ByClaim(3), "no") }},
	{"Propose", coordinator, func(ctx context.Context, p ports) error {
		_, err := p.Propose(ctx, barrier.Proposal{ID: "rollout-1", Proposer: "me", Digest: "test:1", Deadline: time.Minute})
		return err
	}},
	{"SetRoster", coordinator, func(ctx context.Context, p ports) error {
		_, err := p.SetRoster(ctx, 0, []barrier.MemberID{"a"})
		return err
	}},
	{"AdoptBaseline", coordinator, func(ctx context.Context, p ports) error {
		_, err := p.AdoptBaseline(ctx, barrier.Pointer{Digest: "test:1"})
		return err
	}},
	{"Acquire", coordinator, func(ctx context.Context, p ports) error {
		_, err := p.Acquire(ctx, "me", time.Second)
		return err
	}},
	{"Renew", coordinator, func(ctx context.Context, p ports) error {
		return p.Renew(ctx, barrier.Lease{Holder: "me", Token: 1, TTL: time.Second})
	}},
	{"Release", coordinator, func(ctx context.Context, p ports) error {
		return p.Release(ctx, barrier.Lease{Holder: "me", Token: 1, TTL: time.Second})
	}},
	{"Put", coordinator, func(ctx context.Context, p ports) error { return p.Put(ctx, "test:named", []byte("artefact")) }},
	{"Get", coordinator, func(ctx context.Context, p ports) error { _, err := p.Get(ctx, "test:named"); return err }},
}
