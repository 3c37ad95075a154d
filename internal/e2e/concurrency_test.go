package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"
	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/seal"
)

// TestProcessesDie has eight control planes on one Postgres. For ten seconds, or the duration that
// GUARDYN_TEST_SOAK names (minutes: what the checker holds grows with the square), clients apply, roll back and
// edit at processes chosen at random, while processes are killed and started again. All along there is one live
// row, and a node refuses nothing. In the end history is one line in which everything that was acknowledged has its
// place, nothing was published that no plan showed, and no edit is lost.
func TestProcessesDie(t *testing.T) {
	length := 10 * time.Second
	if soak := os.Getenv("GUARDYN_TEST_SOAK"); soak != "" {
		var err error
		if length, err = time.ParseDuration(soak); err != nil {
			t.Fatal(err)
		}
	}
	url := testpg.URL(t)
	p := newPlane(t, url, 8)
	for _, name := range []string{"one.test", "two.test"} {
		if _, err := p.steady.CreateZone(t.Context(), api.NewZone{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := func(client uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, client)) }

	d := &deeds{t: t, p: p, began: time.Now(), turns: make(chan struct{}, 1), consents: map[string]consent{}}
	d.apply(t.Context(), nil)
	node := p.addNode("edge-1")
	p.serving(d.versions[0])

	var (
		clients, watchers sync.WaitGroup
		looks, served     int
	)
	ctx, stop := context.WithCancel(t.Context())
	watched, unwatch := context.WithCancel(t.Context())
	defer func() { stop(); unwatch(); clients.Wait(); watchers.Wait() }()
	conn := connect(t, url)
	watcher := connect(t, url)
	watchers.Go(func() { looks = d.watch(watched, watcher) })
	watchers.Go(func() { served = watchNode(t, watched, node) })
	for i := range uint64(3) {
		clients.Go(func() {
			for r := random(100 + i); ctx.Err() == nil; d.turn() {
				d.apply(t.Context(), r)
			}
		})
		clients.Go(func() { d.edit(ctx, random(300+i), int(i)) })
	}
	clients.Go(func() {
		for r := random(200); ctx.Err() == nil; d.turn() {
			d.rollback(t.Context(), r)
		}
	})
	kills := d.killUntil(d.began.Add(length), random(400), connect(t, url))
	stop()
	clients.Wait()
	// What the killed left behind in the database ends too.
	p.await("no transaction open", func() error {
		var open int
		err := conn.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL`).Scan(&open)
		if err == nil && open > 0 {
			err = fmt.Errorf("%d are", open)
		}
		return err
	})

	d.apply(t.Context(), nil)
	unwatch()
	watchers.Wait()
	trusted, err := seal.Trust(p.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	have := d.checkRecords(conn)
	l := d.checkHistory(conn, trusted)
	t.Logf("%d kills, %d looks, %d generations, of which the node served %d%s", kills, looks, len(l.version), served, d.counts(l))
	if kills == 0 || len(l.version) < 10 {
		t.Errorf("%d processes were killed over %d generations: this proves little", kills, len(l.version))
	}
	if res := porcupine.CheckOperationsTimeout(l.model(0), d.history, 2*time.Minute); res != porcupine.Ok {
		t.Errorf("the history of the live row has no order: %v", res)
	}

	p.serving(l.version[uint64(len(l.version))])
	for name, content := range have {
		q := new(dns.Msg)
		q.SetQuestion(name+".", dns.TypeTXT)
		in, err := dns.Exchange(q, node.dns)
		if err != nil || len(in.Answer) != 1 || !strings.Contains(in.Answer[0].String(), `"`+content+`"`) {
			t.Errorf("the node answers for %s, which is %q: %v, %v", name, content, in, err)
		}
	}
	p.unrefused()
	for _, row := range query[struct{ Action, Target, Outcome string }](t, conn, `
		SELECT action, target, outcome FROM edge.audit
		WHERE action IN ('config.node_rejected', 'config.node_ahead', 'config.signing_stopped')`) {
		t.Errorf("audited: %+v", row)
	}
}

// killUntil kills one or two processes and starts them again, over and over: at any instant, and at the one in which
// the database tells that something was published, when who did it has not answered yet. It returns how many it killed.
func (d *deeds) killUntil(end time.Time, random *rand.Rand, conn *pgx.Conn) (kills int) {
	d.t.Helper()
	if _, err := conn.Exec(d.t.Context(), `LISTEN guardyn_edge`); err != nil {
		d.t.Fatal(err)
	}
	// Notifications are taken as they come: one that waited tells of no instant. Each ends one wait at most.
	published := make(chan struct{})
	ctx, stop := context.WithDeadline(d.t.Context(), end)
	var listener sync.WaitGroup
	defer func() { stop(); listener.Wait() }()
	listener.Go(func() {
		for {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				return
			}
			select {
			case published <- struct{}{}:
			default:
			}
		}
	})
	for ctx.Err() == nil {
		victims := random.Perm(len(d.p.members))[:1+random.IntN(2)]
		if random.IntN(3) > 0 {
			select {
			case <-published:
			case <-ctx.Done():
			}
			for i, m := range d.p.members {
				if m.deeds.Load() > 0 {
					victims = []int{i}
				}
			}
		}
		for _, i := range victims {
			d.p.members[i].control.kill()
		}
		for _, i := range victims {
			d.p.members[i].startControl()
		}
		kills += len(victims)
	}
	return kills
}

// watchNode asks the node for its health until ctx ends: its generation only rises, and it has refused nothing. It
// returns how many generations were seen.
func watchNode(t *testing.T, ctx context.Context, n *edgeNode) (seen int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last := uint64(0); ; {
		select {
		case <-ctx.Done():
			return seen
		case <-tick.C:
		}
		var health struct {
			Generation uint64          `json:"generation"`
			LastError  json.RawMessage `json:"last_error"`
			Ahead      bool            `json:"ahead_of_control_plane"`
		}
		resp, err := http.Get("http://" + n.admin + "/deephealth")
		if err == nil {
			err = json.NewDecoder(resp.Body).Decode(&health)
			_ = resp.Body.Close()
		}
		if err != nil || health.Generation < last || health.LastError != nil || health.Ahead {
			t.Errorf("the node, after generation %d: %+v, %s, %v", last, health, health.LastError, err)
			return seen
		}
		if health.Generation > last {
			seen++
		}
		last = health.Generation
	}
}

// connect returns a connection that ends with the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}
