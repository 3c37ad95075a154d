package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
)

// plane is several control-plane processes on one Postgres and the one address that stands before them. The
// embedded fleet has that address: commands and nodes come through it.
type plane struct {
	*fleet
	members []*member
	steady  *api.Client // through that address
	lossy   *api.Client // through one that loses answers; every request goes to a member of its own
}

// member is one of a plane's processes.
type member struct {
	*fleet
	client *api.Client
	deeds  atomic.Int64 // that it was asked for by client and has not answered
}

// loses is the share of connections whose answer is lost on the way back: one of so many.
const loses = 6

func newPlane(t testing.TB, database string, processes int) *plane {
	t.Helper()
	first := newFleet(t, database, 0)
	p := &plane{}
	var addrs []string
	for i := range processes {
		f := *first
		if i > 0 {
			f.apiAddr = freeAddr(t)
			f.startControl()
		}
		p.members = append(p.members, &member{fleet: &f, client: newClient(t, f.apiAddr, f.token, false)})
		addrs = append(addrs, f.apiAddr)
	}
	front := *first
	front.apiAddr = startBalancer(t, addrs, 0)
	p.fleet, p.steady = &front, newClient(t, front.apiAddr, front.token, false)
	p.lossy = newClient(t, startBalancer(t, addrs, loses), front.token, true)
	return p
}

// newClient gives up after a minute, and takes a new connection for each request when it is told so.
func newClient(t testing.TB, addr, token string, each bool) *api.Client {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: each}
	t.Cleanup(tr.CloseIdleConnections)
	c, err := api.NewClient("http://"+addr, token, &http.Client{Transport: tr, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pick chooses where a request goes: to one process, or to a balancer that loses answers, by which the second sending
// of a deed reaches another process than the first. Without random it is one that loses nothing. The request is over
// when end is called.
func (p *plane) pick(random *rand.Rand) (c *api.Client, end func()) {
	switch {
	case random == nil:
		return p.steady, func() {}
	case random.IntN(2) == 0:
		return p.lossy, func() {}
	}
	m := p.members[random.IntN(len(p.members))]
	m.deeds.Add(1)
	return m.client, func() { m.deeds.Add(-1) }
}

// addNode starts a node that polls through the balancer.
func (p *plane) addNode(name string) *edgeNode {
	p.t.Helper()
	var added struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(p.gdn("node", "add", name, "--json")), &added); err != nil || added.Token == "" {
		p.t.Fatalf("node add gave no token: %v", err)
	}
	n := &edgeNode{
		f: p.fleet, name: name, token: added.Token, dir: filepath.Join(p.dir, name),
		dns: freeAddr(p.t), http: freeAddr(p.t), admin: freeAddr(p.t),
	}
	n.start()
	p.nodes = append(p.nodes, n)
	return n
}

// startBalancer hands each connection to one of the backends, at random among those that accept it. A connection
// ends with its backend, and one of so many as loses says, unless that is 0, when its first answer comes.
func startBalancer(t testing.TB, backends []string, loses int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { balance(ctx, client, backends, loses > 0 && rand.IntN(loses) == 0) })
		}
	})
	t.Cleanup(func() {
		stop()
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

func balance(ctx context.Context, client net.Conn, backends []string, lose bool) {
	defer client.Close()
	for _, i := range rand.Perm(len(backends)) {
		backend, err := new(net.Dialer).DialContext(ctx, "tcp", backends[i])
		if err != nil {
			continue
		}
		end := func() { _ = client.Close(); _ = backend.Close() }
		defer context.AfterFunc(ctx, end)()
		var answers sync.WaitGroup
		answers.Go(func() {
			if lose {
				_, _ = backend.Read(make([]byte, 1))
			} else {
				_, _ = io.Copy(client, backend)
			}
			end()
		})
		_, _ = io.Copy(backend, client)
		end()
		answers.Wait()
		return
	}
}
