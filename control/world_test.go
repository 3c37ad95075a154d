package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/store"
	"github.com/guardyn-edge/guardyn/zone"
)

func TestMain(m *testing.M) { testpg.Main(m) }

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// world is one control plane on a real database with an operator, a workspace and a second one.
type world struct {
	url   string
	store *store.DB
	key   seal.SigningKey
	clock *clock
	svc   *control.Service

	operator control.Principal // admin of the workspace "Amthal Group"
	editor   control.Principal // of the same
	viewer   control.Principal
	stranger control.Principal // admin of the workspace "Other", no operator
}

// databases runs a test on each kind of database.
func databases(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("sqlite", func(t *testing.T) { test(t, newWorld(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, worldOn(t, migratedPostgres.URL(t))) })
}

// migrate is what gdn migrate does to a database, but for whom it lets in. It takes longer than most tests: each gets a copy.
func migrate(ctx context.Context, url string) error {
	return errors.Join(store.Migrate(ctx, url), sqlstore.MigrateURL(ctx, url))
}

var migratedPostgres = testpg.NewTemplate(migrate)

// migratedSQLite is the content of such a file.
var migratedSQLite = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guardyn-control-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "guardyn.db")
	if err := migrate(context.Background(), "sqlite:"+path); err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		return nil, errors.Join(err, errors.New("the database is not one file"))
	}
	return os.ReadFile(path)
})

func newWorld(t testing.TB) *world {
	t.Helper()
	content, err := migratedSQLite()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "guardyn.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return worldOn(t, "sqlite:"+path)
}

// worldOn is one on a database that was migrated.
func worldOn(t testing.TB, url string) *world {
	t.Helper()
	ctx := context.Background()
	key, err := seal.GenerateSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{url: url, key: key, clock: &clock{t: time.Date(2026, 8, 27, 9, 14, 2, 0, time.UTC)}}
	w.store = w.open(t)
	w.svc = w.service(t, w.store, nil)
	boot, err := control.Bootstrap(ctx, w.store, w.clock.now(), "you@example.com", "Amthal Group")
	if err != nil {
		t.Fatal(err)
	}
	if w.operator, err = w.svc.Authenticate(ctx, boot.Token.Secret); err != nil {
		t.Fatal(err)
	}
	w.operator.From = "192.0.2.7"
	if _, err := w.svc.CreateWorkspace(ctx, w.operator, "Other", "standard"); err != nil {
		t.Fatal(err)
	}
	w.editor = w.member(t, "editor@example.com", "Amthal Group", control.RoleEditor)
	w.viewer = w.member(t, "viewer@example.com", "Amthal Group", control.RoleViewer)
	w.stranger = w.member(t, "stranger@example.net", "Other", control.RoleAdmin)
	return w
}

func (w *world) open(t testing.TB) *store.DB {
	t.Helper()
	st, err := store.Open(context.Background(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// service makes a control plane, as another process would, on st.
func (w *world) service(t testing.TB, st control.Store, change func(*control.Config)) *control.Service {
	t.Helper()
	cfg := control.Config{Store: st, SigningKey: w.key, Now: w.clock.now, Refresh: 5 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	svc, err := control.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// run runs svc until the test ends or stop is called.
func run(t testing.TB, svc *control.Service) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// member makes a user with a role in a workspace and returns whom a token of theirs speaks for.
func (w *world) member(t testing.TB, email, workspace string, role control.Role) control.Principal {
	t.Helper()
	ctx := context.Background()
	if _, err := w.svc.CreateUser(ctx, w.operator, email, false); err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.SetMembership(ctx, w.operator, email, workspace, role); err != nil {
		t.Fatal(err)
	}
	tok, err := w.svc.CreateToken(ctx, w.operator, control.TokenRequest{Name: "test", User: email, Workspace: workspace})
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.svc.Authenticate(ctx, tok.Secret)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// node registers a node and returns whom its token speaks for.
func (w *world) node(t testing.TB, name string) control.Principal {
	t.Helper()
	n, err := w.svc.CreateNode(context.Background(), w.operator, name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.svc.Authenticate(context.Background(), n.Secret)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) zone(t testing.TB, p control.Principal, name string) control.ZoneRow {
	t.Helper()
	z, err := w.svc.CreateZone(context.Background(), p, name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func (w *world) record(t testing.TB, p control.Principal, ref, name, rrtype, content string) control.RecordRow {
	t.Helper()
	r, err := w.svc.AddRecord(context.Background(), p, ref, control.RecordInput{Name: name, Type: rrtype, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) apply(t testing.TB, r control.ApplyRequest) control.ApplyResult {
	t.Helper()
	res, err := w.svc.Apply(context.Background(), w.operator, r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// published creates a zone with one record and applies it as version 1.
func (w *world) published(t testing.TB) control.ZoneRow {
	t.Helper()
	z := w.zone(t, w.editor, "example.com")
	w.record(t, w.editor, "example.com", "www", "A", "192.0.2.1")
	if res := w.apply(t, control.ApplyRequest{Message: "first", AcceptDisruption: true}); !res.Applied || res.Version != 1 {
		t.Fatalf("first apply: %+v", res)
	}
	return z
}

func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// problems returns what a ProblemsError holds; the test fails for any other error.
func problems(t testing.TB, what string, err error) []control.Problem {
	t.Helper()
	var ps *control.ProblemsError
	if !errors.As(err, &ps) {
		t.Fatalf("%s: %v, want problems", what, err)
	}
	return ps.Problems
}

// audited counts entries of an action.
func (w *world) audited(t testing.TB, action string) (entries []control.AuditEntry) {
	t.Helper()
	page := control.Page{Limit: control.MaxPage}
	for {
		l, err := w.svc.ListAudit(context.Background(), w.operator, true, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range l.Items {
			if a.Action == action {
				entries = append(entries, a)
			}
		}
		if page.After = l.Next; page.After == "" {
			return entries
		}
	}
}

// rule is a rule of the custom phase that blocks a path.
func rule(path string) zone.Rule {
	return zone.Rule{
		Expression: `http.path.startsWith("` + path + `")`, Action: zone.ActionBlock,
		Parameters: zone.Parameters{Status: 403},
	}
}

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }
