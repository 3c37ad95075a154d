package cli_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/store"
)

// TestRollouts runs each script of testdata/rollout against a control plane whose nodes say what the script has them say:
//
//	member NAME            a node that is in the cohort
//	ack NAME               it has built what is voted on
//	nack NAME REASON       it cannot
//	serve NAME             it acknowledges the newest rollout's generation
//	converge NAME DETAIL   the trial works there
//	withdraw NAME REASON   it does not
//	restart NAME           another process of it joins
//
// Each waits for the rollout to be where that is said.
func TestRollouts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/rollout",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			p := startPlayed(e.T().(testing.TB), filepath.Join(e.WorkDir, ".control.db"))
			e.Values[playedKey{}] = p
			e.Setenv("GUARDYN_API_URL", p.url)
			e.Setenv("GUARDYN_TOKEN", p.token)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"member": playing(1, (*played).member), "ack": playing(1, (*played).ack), "nack": playing(2, (*played).nack),
			"serve": playing(1, (*played).serve), "converge": playing(2, (*played).converge), "withdraw": playing(2, (*played).withdraw),
			"restart": playing(1, (*played).restart),
		},
	})
}

type playedKey struct{}

// playing makes a command of n arguments out of what a played fleet does.
func playing(n int, do func(*played, context.Context, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != n {
			ts.Fatalf("this takes %d arguments and no !", n)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		ts.Check(do(ts.Value(playedKey{}).(*played), ctx, args))
	}
}

// played is a control plane without a fleet.
type played struct {
	t          testing.TB
	url, token string
	op         *api.Client
	members    map[string]*playedNode
}

type playedNode struct {
	id    barrier.MemberID
	boot  barrier.BootID
	voter *remote.Client
	node  *api.NodeClient
}

func startPlayed(t testing.TB, path string) *played {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	url := "sqlite:" + path
	must(store.Migrate(ctx, url))
	must(sqlstore.MigrateURL(ctx, url))
	db, err := store.Open(ctx, url)
	must(err)
	key, err := seal.GenerateSigningKey()
	must(err)
	var svc *control.Service
	writer, reader := db.Pools()
	cohort, err := sqlstore.New(ctx, writer, sqlstore.SQLite, "nodes", sqlstore.ReadFrom(reader),
		sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, before, after barrier.Head) error {
			return db.DecideIn(ctx, tx, before, after, svc.Decided)
		}))
	must(err)
	db.JoinCohort(func(tx *sql.Tx) store.CohortTx { return cohort.In(tx) })
	svc, err = control.New(control.Config{Store: db, Cohort: cohort, SigningKey: key})
	must(err)
	h, err := api.NewHandler(svc, api.Options{Rollouts: cohort, Draining: ctx})
	must(err)
	server := api.NewHTTPServer(h, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	first, err := control.Bootstrap(ctx, db, time.Now(), "you@example.com", "Amthal Group")
	must(err)
	coordinator := barrier.NewCoordinator(barrier.CoordinatorOptions{
		Store: cohort, Leases: cohort, Lease: 30 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	var running sync.WaitGroup
	running.Go(func() { _ = svc.Run(ctx) })
	running.Go(func() { coordinator.Run(ctx) })
	running.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	p := &played{t: t, url: "http://" + l.Addr().String(), token: first.Token.Secret, members: map[string]*playedNode{}}
	t.Cleanup(func() {
		for _, m := range p.members {
			m.voter.Close()
		}
		cancel()
		server.Close()
		running.Wait()
		h.Close()
		if err := errors.Join(cohort.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	p.op, err = api.NewClient(p.url, p.token, nil)
	must(err)
	return p
}

func (p *played) member(ctx context.Context, args []string) error {
	made, err := p.op.CreateNode(ctx, api.NewNode{Name: args[0], Cohort: true})
	if err != nil {
		return err
	}
	m := &playedNode{id: barrier.MemberID(made.ID)}
	if m.voter, err = remote.NewClient(p.url+"/v1/node/rollout", remote.ClientOptions{Authorize: remote.Bearer(made.Secret)}); err != nil {
		return err
	}
	if m.node, err = api.NewNodeClient(p.url, made.Secret, nil); err != nil {
		return err
	}
	p.members[args[0]] = m
	return p.restart(ctx, args)
}

func (p *played) restart(ctx context.Context, args []string) error {
	m := p.members[args[0]]
	v, err := m.voter.Look(ctx, m.id)
	if err != nil {
		return err
	}
	m.boot += "x"
	_, err = m.voter.Join(ctx, m.id, m.boot, v.Registration.Incarnation)
	return err
}

// when waits for the newest rollout to be as is says, and does what a node says then.
func (p *played) when(ctx context.Context, name string, is func(*barrier.Rollout) bool, do func(*playedNode, barrier.Rollout) error) error {
	m := p.members[name]
	if m == nil {
		return errors.New("there is no member " + name)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		v, err := m.voter.Look(ctx, m.id)
		if err != nil {
			return err
		}
		if v.Rollout != nil && is(v.Rollout) {
			return do(m, *v.Rollout)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func voting(r *barrier.Rollout) bool  { return r.Voting() }
func onTrial(r *barrier.Rollout) bool { return r.OnTrial() }

func (p *played) ack(ctx context.Context, args []string) error {
	return p.when(ctx, args[0], voting, func(m *playedNode, r barrier.Rollout) error { return m.voter.Ack(ctx, r.Ref, m.id, m.boot, "built") })
}

func (p *played) nack(ctx context.Context, args []string) error {
	return p.when(ctx, args[0], voting, func(m *playedNode, r barrier.Rollout) error { return m.voter.Nack(ctx, r.Ref, m.id, m.boot, args[1]) })
}

func (p *played) converge(ctx context.Context, args []string) error {
	return p.when(ctx, args[0], onTrial, func(m *playedNode, r barrier.Rollout) error {
		return m.voter.Converge(ctx, r.Ref, m.id, m.boot, args[1])
	})
}

func (p *played) withdraw(ctx context.Context, args []string) error {
	return p.when(ctx, args[0], onTrial, func(m *playedNode, r barrier.Rollout) error {
		return m.voter.Withdraw(ctx, r.Ref, m.id, m.boot, args[1])
	})
}

func (p *played) serve(ctx context.Context, args []string) error {
	committed := func(r *barrier.Rollout) bool { return !r.CommittedAt.IsZero() }
	return p.when(ctx, args[0], committed, func(m *playedNode, r barrier.Rollout) error {
		return m.node.Ack(ctx, nodeproto.Ack{
			Version: r.Version, Generation: r.Generation, Epoch: 1, ContentHash: strings.TrimPrefix(string(r.Digest), "content:"),
			Boot: strings.Repeat("0a", 16),
		})
	})
}
