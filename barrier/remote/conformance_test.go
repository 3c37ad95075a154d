package remote_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/barriertest"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// The suite runs over a real server, each call with the credentials that may make it and no others.
func TestConformance(t *testing.T) {
	barriertest.Run(t, func(t testing.TB) barriertest.Opener {
		s := memory.New(memory.Options{})
		h := remote.NewHandler(remote.Backend{Store: s, Leases: s, Artefacts: s}, authorize, remote.Options{})
		server := httptest.NewServer(http.StripPrefix(prefix, h))
		t.Cleanup(func() {
			h.Close()
			server.Close()
		})
		return func(t testing.TB) barriertest.Handles {
			transport := http.DefaultTransport.(*http.Transport).Clone()
			transport.MaxIdleConnsPerHost = 16
			d := &door{t: t, address: server.URL, http: &http.Client{Transport: transport}, clients: map[remote.Principal]*remote.Client{}}
			t.Cleanup(d.close)
			return barriertest.Handles{Store: d, Leases: d, Artefacts: d}
		}
	})
}

// door is one process that has the credentials of the whole cohort, and uses for each call those that it needs.
type door struct {
	t       testing.TB
	address string
	http    *http.Client

	mu      sync.Mutex
	clients map[remote.Principal]*remote.Client
}

func (d *door) as(p remote.Principal) *remote.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.clients[p]; c != nil {
		return c
	}
	c, err := remote.NewClient(d.address+prefix, remote.ClientOptions{HTTP: d.http, Authorize: remote.Bearer(credential(p)), Timeout: time.Minute})
	if err != nil {
		d.t.Fatal(err)
	}
	d.clients[p] = c
	return c
}

func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.clients {
		c.Close()
	}
	d.http.CloseIdleConnections()
}

func (d *door) member(m barrier.MemberID) *remote.Client {
	if m == "" {
		m = "-" // nobody has the credentials of no member
	}
	return d.as(memberOf(m))
}

// by returns who has the credentials for an authority: for all of one that mixes kinds, and for none a coordinator.
func (d *door) by(a barrier.Authority, aborts bool) *remote.Client {
	p := remote.Principal{Member: a.Member, Coordinator: a.Token != 0, Operator: a.Operator}
	// Members cannot abort at all: what the store says of it takes somebody who can.
	p.Coordinator = p.Coordinator || p == remote.Principal{} || aborts && p.Operator == ""
	return d.as(p)
}

func (d *door) Current(ctx context.Context) (barrier.Row, error) {
	return d.as(coordinator).Current(ctx)
}

func (d *door) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	return d.member(m).Look(ctx, m)
}

func (d *door) Watch(ctx context.Context, t barrier.Topic) <-chan struct{} {
	return d.as(coordinator).Watch(ctx, t)
}

func (d *door) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	return d.member(m).Join(ctx, m, boot, incarnation)
}

func (d *door) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, build string) error {
	return d.member(m).Ack(ctx, r, m, boot, build)
}

func (d *door) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return d.member(m).Nack(ctx, r, m, boot, reason)
}

func (d *door) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	return d.member(m).Converge(ctx, r, m, boot, detail)
}

func (d *door) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return d.member(m).Withdraw(ctx, r, m, boot, reason)
}

func (d *door) Claim(ctx context.Context, t barrier.Token) error {
	return d.as(coordinator).Claim(ctx, t)
}

func (d *door) Commit(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return d.as(coordinator).Commit(ctx, r, t)
}

func (d *door) Confirm(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return d.as(coordinator).Confirm(ctx, r, t)
}

func (d *door) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return d.by(by, true).Abort(ctx, r, by, reason)
}

func (d *door) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return d.by(by, false).Revert(ctx, r, by, reason)
}

func (d *door) Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	return d.as(coordinator).Propose(ctx, p)
}

func (d *door) SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	return d.as(alice).SetRoster(ctx, revision, members)
}

func (d *door) AdoptBaseline(ctx context.Context, p barrier.Pointer) (barrier.BaselineOutcome, error) {
	return d.as(alice).AdoptBaseline(ctx, p)
}

func (d *door) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	return d.as(coordinator).Acquire(ctx, holder, ttl)
}

func (d *door) Renew(ctx context.Context, l barrier.Lease) error {
	return d.as(coordinator).Renew(ctx, l)
}

func (d *door) Release(ctx context.Context, l barrier.Lease) error {
	return d.as(coordinator).Release(ctx, l)
}

func (d *door) Put(ctx context.Context, digest barrier.Digest, b []byte) error {
	return d.as(alice).Put(ctx, digest, b)
}

func (d *door) Get(ctx context.Context, digest barrier.Digest) ([]byte, error) {
	return d.as(coordinator).Get(ctx, digest)
}
