package api_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/store"
)

func TestMain(m *testing.M) { testpg.Main(m) }

// plane is a control plane on a real database that listens on a real socket.
type plane struct {
	t     testing.TB
	url   string
	addr  string
	svc   *control.Service
	store *store.DB
	// rollouts is the cohort that svc proposes to and nodes vote in.
	rollouts *sqlstore.Store
	key      seal.SigningKey
	drain    context.CancelFunc
	// Tokens by principal: operator, viewer, editor, admin (of the workspace Acme), stranger (admin of the
	// workspace Other), node, node2.
	tokens map[string]string
	nodes  map[string]string // ids by name
}

// database gives a new SQLite file's URL.
func database(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "guardyn.db")
}

type planeOption func(*planeConfig)

type planeConfig struct {
	url    string
	now    func() time.Time
	server func(*http.Server)
	logs   io.Writer
	ready  func(context.Context) []api.Problem
}

func newPlane(t testing.TB, opts ...planeOption) *plane {
	t.Helper()
	var cfg planeConfig
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.url == "" {
		cfg.url = database(t)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := store.Migrate(ctx, cfg.url); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(ctx, cfg.url)
	if err != nil {
		t.Fatal(err)
	}
	key, err := seal.GenerateSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	if cfg.logs != nil {
		logger = slog.New(slog.NewTextHandler(cfg.logs, nil))
	}
	// As the host wires them: one database, one transaction.
	var svc *control.Service
	writer, reader := db.Pools()
	dialect := sqlstore.Dialect(db.Kind())
	if err := sqlstore.Migrate(ctx, writer, dialect); err != nil {
		t.Fatal(err)
	}
	rollouts, err := sqlstore.New(ctx, writer, dialect, "nodes", sqlstore.ReadFrom(reader),
		sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, before, after barrier.Head) error {
			return db.DecideIn(ctx, tx, before, after, svc.Decided)
		}))
	if err != nil {
		t.Fatal(err)
	}
	db.JoinCohort(func(tx *sql.Tx) store.CohortTx { return rollouts.In(tx) })
	svc, err = control.New(control.Config{Store: db, Cohort: rollouts, SigningKey: key, Now: cfg.now, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	draining, drain := context.WithCancel(context.Background())
	h, err := api.NewHandler(svc, api.Options{Now: cfg.now, Logger: logger, Draining: draining, Ready: cfg.ready, Rollouts: rollouts})
	if err != nil {
		t.Fatal(err)
	}
	server := api.NewHTTPServer(h, nil)
	if cfg.server != nil {
		cfg.server(server)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = svc.Run(ctx) })
	running.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		drain()
		server.Close()
		cancel()
		running.Wait()
		h.Close()
		if err := errors.Join(rollouts.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	p := &plane{
		t: t, url: "http://" + l.Addr().String(), addr: l.Addr().String(), svc: svc, store: db, rollouts: rollouts, key: key, drain: drain,
		tokens: map[string]string{"anonymous": ""}, nodes: map[string]string{},
	}
	p.populate()
	return p
}

// populate makes the principals that tests speak as.
func (p *plane) populate() {
	p.t.Helper()
	ctx := p.t.Context()
	first, err := control.Bootstrap(ctx, p.store, time.Now(), "operator@example.com", "Acme")
	p.must(err)
	p.tokens["operator"] = first.Token.Secret
	op := p.client("operator")
	_, err = op.CreateWorkspace(ctx, api.NewWorkspace{Name: "Other", Plan: first.Workspace.Plan})
	p.must(err)
	for _, u := range []struct{ name, workspace, role string }{
		{"viewer", "Acme", "viewer"},
		{"editor", "Acme", "editor"},
		{"admin", "Acme", "admin"},
		{"stranger", "Other", "admin"},
	} {
		email := u.name + "@example.com"
		_, err := op.CreateUser(ctx, api.NewUser{Email: email})
		p.must(err)
		p.must(op.SetMembership(ctx, email, api.Membership{Workspace: u.workspace, Role: u.role}))
		tok, err := op.CreateToken(ctx, api.NewToken{Name: u.name, User: email, Workspace: u.workspace})
		p.must(err)
		p.tokens[u.name] = tok.Secret
	}
	for _, name := range []string{"node", "node2"} {
		n, err := op.CreateNode(ctx, api.NewNode{Name: name})
		p.must(err)
		p.tokens[name], p.nodes[name] = n.Secret, n.ID
	}
}

func (p *plane) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *plane) client(as string) *api.Client {
	p.t.Helper()
	c, err := api.NewClient(p.url, p.tokens[as], nil)
	p.must(err)
	return c
}

func (p *plane) nodeClient(as string) *api.NodeClient {
	p.t.Helper()
	c, err := api.NewNodeClient(p.url, p.tokens[as], nil)
	p.must(err)
	return c
}

// publish makes the zone (once) with one more TXT record, and applies.
func (p *plane) publish(value string) *api.ApplyResult {
	p.t.Helper()
	ctx := p.t.Context()
	op := p.client("operator")
	if _, err := op.Zone(ctx, "example.com"); err != nil {
		_, err = op.CreateZone(ctx, api.NewZone{Name: "example.com"})
		p.must(err)
		_, err = op.AddRecord(ctx, "example.com", api.RecordEdit{Name: "www", Type: "A", Content: "192.0.2.10"})
		p.must(err)
	}
	_, err := op.AddRecord(ctx, "example.com", api.RecordEdit{Name: "@", Type: "TXT", Content: value})
	p.must(err)
	res, err := op.Apply(ctx, api.ApplyRequest{Message: "publish " + value, AcceptDisruption: true})
	p.must(err)
	return res
}

// answer is what came back for a raw request: everything as it was on the wire, less the Date.
type answer struct {
	status int
	header http.Header
	body   string
	wire   string
}

// raw sends bytes as they are and reads what comes until the server closes.
func (p *plane) raw(request string) answer {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	p.must(err)
	defer conn.Close()
	p.must(conn.SetDeadline(time.Now().Add(20 * time.Second)))
	_, err = io.WriteString(conn, request)
	p.must(err)
	// The answer is whole when its length is there: a server that closes over a body that it did not read
	// resets the connection after it.
	var wire bytes.Buffer
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &wire)), &http.Request{Method: method})
	if err != nil {
		p.t.Fatalf("%.200q: %v in %q", request, err, wire.String())
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		p.t.Fatalf("%.200q: %v in %q", request, err, wire.String())
	}
	head, body, _ := strings.Cut(wire.String(), "\r\n\r\n")
	var kept []string
	for line := range strings.SplitSeq(head, "\r\n") {
		if !strings.HasPrefix(line, "Date: ") {
			kept = append(kept, line)
		}
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body, wire: strings.Join(kept, "\r\n") + "\r\n\r\n" + body}
}

// request writes a raw request of principal as; extra are whole header lines.
func (p *plane) request(as, method, target, body string, extra ...string) answer {
	p.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", method, target, p.addr)
	if token := p.tokens[as]; token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	for _, line := range extra {
		b.WriteString(line + "\r\n")
	}
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return p.raw(b.String())
}

// problem returns err as the problem document that it must be.
func problem(t testing.TB, err error) *api.Error {
	t.Helper()
	var e *api.Error
	if !errors.As(err, &e) {
		t.Fatalf("not a problem document: %v", err)
	}
	return e
}

// wantProblem checks status and code of the problem document that err must be.
func wantProblem(t testing.TB, err error, status int, code string) *api.Error {
	t.Helper()
	e := problem(t, err)
	if e.Status != status || e.Code != code {
		t.Fatalf("answer %d %s (%v), want %d %s", e.Status, e.Code, e, status, code)
	}
	return e
}

func apiNewZone(name string) api.NewZone { return api.NewZone{Name: name} }
