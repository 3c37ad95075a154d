package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/seal"
)

// cohortFleet is control planes on one Postgres and nodes that belong to the cohort, all real processes. Commands and nodes come
// through gates, and so do the control planes to the database.
type cohortFleet struct {
	*marked            // its fleet is the operator's: through front
	t       testing.TB // of the scenario under way, as its fleet's
	root    testing.TB // that processes end with
	front   *gate      // to the control planes
	data    *gate      // from these to the database
	planes  []*plainControl
	members []*cohortNode
	db      *pgxpool.Pool   // past the gate
	breaks  atomic.Value    // string: the mark of requests that the origin fails, but for its front page
	spare   seal.SigningKey // that everybody trusts too, and nothing is signed with
	mark    int             // written last
	live    int             // published last
	sampler *sampler
	traffic *cohortTraffic
}

// plainControl is a control plane; its fleet has its own address.
type plainControl struct{ *fleet }

// cohortNode is an edge node that comes to the control planes through a gate of its own.
type cohortNode struct {
	*edgeNode
	id     string
	gate   *gate
	binary string // that it starts next
	// away is set while the node is cut off from the control planes, or was and has not caught up yet.
	away atomic.Bool
	// downs counts when the node went down and when it came back: odd while it is down.
	downs atomic.Int64
}

// newCohortFleet starts two control planes and five nodes, published once, every node in the cohort.
func newCohortFleet(t testing.TB) *cohortFleet {
	t.Helper()
	base := testpg.URL(t)
	c := &cohortFleet{root: t, t: t}
	c.breaks.Store("")
	c.data = gateToPostgres(t, base)
	config, err := pgxpool.ParseConfig(base)
	if err != nil {
		t.Fatal(err)
	}
	if c.db, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.db.Close)

	first := newFleet(t, throughGate(t, base, c.data), 0)
	if c.spare, err = seal.GenerateSigningKey(); err != nil {
		t.Fatal(err)
	}
	first.trusted = first.key.Public().String() + "," + c.spare.Public().String()
	first.origin = c.startOrigin(t, "127.0.0.1:0")
	other := *first
	other.apiAddr = freeAddr(t)
	other.startControl()
	c.planes = []*plainControl{{first}, {&other}}
	c.front = newGate(t, "tcp", "127.0.0.1:0", first.apiAddr, other.apiAddr)
	operator := *first
	operator.apiAddr, operator.nodes = c.front.addr, nil
	c.marked = newMarked(&operator)
	for i := range 5 {
		c.addNode(fmt.Sprintf("edge-%d", i+1))
		c.members[i].start(c)
	}
	if _, err := c.publish(t.Context(), c.mark); err != nil {
		t.Fatal(err)
	}
	c.settled()
	return c
}

// gateToPostgres stands before the server of a testpg URL.
func gateToPostgres(t testing.TB, base string) *gate {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: the path of a Unix socket is short.
	dir, err := os.MkdirTemp("", "gdn-pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	const socket = ".s.PGSQL.5432"
	return newGate(t, "unix", filepath.Join(dir, socket), filepath.Join(u.Query().Get("host"), socket))
}

// throughGate is base by way of g.
func throughGate(t testing.TB, base string, g *gate) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("host", filepath.Dir(g.addr))
	u.RawQuery = q.Encode()
	return u.String()
}

// startOrigin serves the page that askPage wants. Requests that bear the mark in breaks fail, but for those of the front page.
func (c *cohortFleet) startOrigin(t testing.TB, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mark := r.Header.Get("x-mark")
			if mark != "" && mark == c.breaks.Load() && r.URL.Path != "/" {
				http.Error(w, brokenPage, http.StatusInternalServerError)
				return
			}
			w.Header().Set("x-seen-mark", mark)
			fmt.Fprintf(w, "origin %s %s\n", r.Host, r.URL.RequestURI())
		}),
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return l.Addr().String()
}

const brokenPage = "the origin does not take this change"

func (c *cohortFleet) addNode(name string) *cohortNode {
	c.t.Helper()
	own := newGate(c.root, "tcp", "127.0.0.1:0", c.front.addr)
	f := *c.f
	f.apiAddr, f.t = own.addr, c.root
	n := &cohortNode{gate: own, binary: gdn, edgeNode: &edgeNode{
		f: &f, name: name, dns: freeAddr(c.root), http: freeAddr(c.root), admin: freeAddr(c.root),
	}}
	c.register(n)
	c.members = append(c.members, n)
	c.f.nodes = append(c.f.nodes, n.edgeNode)
	return n
}

// register makes the node one of the cohort, with an empty state directory.
func (c *cohortFleet) register(n *cohortNode) {
	c.t.Helper()
	var added struct {
		ID    string `json:"id"`
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(c.f.gdn("node", "add", n.name, "--cohort", "--json")), &added); err != nil || added.Token == "" || added.ID == "" {
		c.t.Fatalf("node add gave no token: %v", err)
	}
	n.id, n.token, n.dir = added.ID, added.Token, filepath.Join(c.f.dir, added.ID)
}

// replace starts a new node in the place of one that was removed.
func (c *cohortFleet) replace(n *cohortNode) {
	c.t.Helper()
	c.register(n)
	n.start(c)
	c.f.await(n.name+" serves", func() error { return httpOK("http://" + n.admin + "/readyz") })
	n.up()
}

// start starts the node; what more names wins over what nodes are told otherwise.
func (n *cohortNode) start(c *cohortFleet, more ...string) {
	c.t.Helper()
	n.process = startBinary(c.root, n.binary, n.name, append([]string{
		"GUARDYN_API_URL=http://" + n.f.apiAddr, "GUARDYN_NODE_TOKEN=" + n.token,
		"GUARDYN_CONFIG_PUBLIC_KEYS=" + n.f.publicKeys(), "GUARDYN_STATE_DIR=" + n.dir,
		"GUARDYN_DNS_LISTEN=" + n.dns, "GUARDYN_HTTP_LISTEN=" + n.http, "GUARDYN_ADMIN_LISTEN=" + n.admin,
		"GUARDYN_EDGE_ADDRESSES=192.0.2.53,2001:db8::53", "GUARDYN_ALLOWED_ORIGINS=127.0.0.0/8",
		"GUARDYN_RATE_LIMIT_EXEMPT=127.0.0.0/8",
	}, more...), "edge")
	c.f.await(n.name+" alive", func() error { return httpOK("http://" + n.admin + "/healthz") })
}

// restart kills the node and starts it again.
func (n *cohortNode) restart(c *cohortFleet, more ...string) {
	c.t.Helper()
	n.down()
	n.kill()
	n.start(c, more...)
	n.up()
}

// down tells traffic and sampler that the node answers nobody from now on, up that it does again. What was asked in between
// counts for nothing.
func (n *cohortNode) down() { n.downs.Add(1) }
func (n *cohortNode) up()   { n.downs.Add(1) }

// command runs gdn as the operator and returns what it printed and its exit code.
func (c *cohortFleet) command(args ...string) (stdout, stderr string, exit int) {
	c.t.Helper()
	cmd := exec.Command(gdn, args...)
	cmd.Env = append(cleanEnviron(), "GUARDYN_API_URL=http://"+c.front.addr, "GUARDYN_TOKEN="+c.f.token)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		c.t.Fatalf("gdn %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// next writes the next mark everywhere, for whatever publishes it.
func (c *cohortFleet) next() {
	c.t.Helper()
	c.mark++
	if err := c.write(c.t.Context(), c.mark); err != nil {
		c.t.Fatal(err)
	}
}

// propose puts what was written to the cohort.
func (c *cohortFleet) propose(flags ...string) *api.Rollout {
	c.t.Helper()
	out := c.f.gdn(append([]string{"apply", "--coordinated", "--accept-disruption", "--json", "-m", fmt.Sprintf("mark %d", c.mark)}, flags...)...)
	var res api.ApplyResult
	if err := json.Unmarshal([]byte(out), &res); err != nil || res.Rollout == nil || res.Applied || res.Reason != "rollout" {
		c.t.Fatalf("apply --coordinated answered %v:\n%s", err, out)
	}
	return res.Rollout
}

// Exit codes of gdn rollout wait.
const (
	exitGood     = 0
	exitAborted  = 3
	exitReverted = 4
)

// ends waits for the rollout by gdn rollout wait, whose exit code must be exit, and returns it as it ended.
func (c *cohortFleet) ends(id string, exit int) *api.Rollout {
	c.t.Helper()
	out, errs, got := c.command("rollout", "wait", id, "--json", "--timeout", "90s")
	var r api.Rollout
	if err := json.Unmarshal([]byte(out), &r); err != nil || got != exit {
		c.t.Fatalf("gdn rollout wait ended with %d, want %d (%v):\n%s%s", got, exit, err, out, errs)
	}
	c.t.Logf("generation %d: %s after %s %s", r.Generation, r.State, r.DecidedAt.Sub(r.ProposedAt).Round(time.Millisecond), r.Reason)
	return &r
}
