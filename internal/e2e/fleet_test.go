package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/testport"
	"github.com/guardyn-edge/guardyn/seal"
)

// gdn is the binary under test, built once from this tree.
var gdn string

func TestMain(m *testing.M) {
	if which := os.Getenv(envPeer); which != "" {
		fmt.Fprintln(os.Stderr, servePeer(which))
		os.Exit(1)
	}
	// Tests that are parallel wait for leases and windows nearly all of the time; -parallel says otherwise.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "guardyn-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		gdn = filepath.Join(dir, "gdn")
		build := exec.Command("go", "build", "-o", gdn, "github.com/guardyn-edge/guardyn/cmd/gdn")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build gdn:", err)
			return 1
		}
		return m.Run()
	}())
}

// process is a gdn that runs in the background.
type process struct {
	t      testing.TB
	name   string
	cmd    *exec.Cmd
	output *lines
	ended  chan struct{}
}

// lines keeps what a process printed, for the log of a test that fails.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() < 1<<20 {
		l.buf.Write(p)
	}
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func startProcess(t testing.TB, name string, env []string, args ...string) *process {
	t.Helper()
	return startBinary(t, gdn, name, env, args...)
}

func startBinary(t testing.TB, binary, name string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, output: &lines{}, ended: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Env = append(cleanEnviron(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	// A process must not outlive the test binary, however that one ends.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(p.ended); _ = p.cmd.Wait() }()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("--- output of %s\n%s", name, p.output)
		}
	})
	return p
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// cleanEnviron is this process's environment without Guardyn's own variables.
func cleanEnviron() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GUARDYN_") {
			env = append(env, kv)
		}
	}
	return env
}

// fleet is one control plane on a database of its own, and edge nodes, all real processes.
type fleet struct {
	t        testing.TB
	dir      string
	database string
	key      seal.SigningKey
	trusted  string // public keys for control plane and nodes, comma-separated; empty: key's own
	apiAddr  string
	token    string // of an operator in the workspace
	control  *process
	nodes    []*edgeNode
	origin   string // host:port of the demo origin
	identity string // of age, that nodes open private keys with; empty: they serve no HTTPS
	// recipient is the identity's.
	recipient string
}

type edgeNode struct {
	f                *fleet
	name, token, dir string
	dns, http, admin string
	https            string // empty: HTTPS is not served
	*process
}

// newFleet starts a control plane and n nodes. database is empty for SQLite; change, if any, comes before the start.
func newFleet(t testing.TB, database string, n int, change ...func(*fleet)) *fleet {
	t.Helper()
	key, err := seal.GenerateSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, dir: t.TempDir(), database: database, key: key, apiAddr: freeAddr(t), origin: startOrigin(t)}
	if f.database == "" {
		f.database = "sqlite:" + filepath.Join(f.dir, "guardyn.db")
	}
	for _, c := range change {
		c(f)
	}
	out := f.run([]string{"GUARDYN_DATABASE_URL=" + f.database}, "migrate", "--bootstrap-operator", "op@example.com", "--workspace", "Amthal Group", "--json")
	var boot struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(out), &boot); err != nil || boot.Token == "" {
		t.Fatalf("migrate printed no token: %v\n%s", err, out)
	}
	f.token = boot.Token
	f.startControl()
	for i := range n {
		name := fmt.Sprintf("edge-%d", i+1)
		var added struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(f.gdn("node", "add", name, "--json")), &added); err != nil || added.Token == "" {
			t.Fatalf("node add gave no token: %v", err)
		}
		node := &edgeNode{
			f: f, name: name, token: added.Token, dir: filepath.Join(f.dir, name),
			dns: freeAddr(t), http: freeAddr(t), admin: freeAddr(t),
		}
		if f.identity != "" {
			node.https = freeAddr(t)
		}
		node.start()
		f.nodes = append(f.nodes, node)
	}
	return f
}

func (f *fleet) startControl() {
	f.t.Helper()
	f.control = startProcess(f.t, "control plane", f.controlEnv(), "serve")
	f.await("control plane ready", func() error { return httpOK("http://" + f.apiAddr + "/readyz") })
}

func (f *fleet) controlEnv() []string {
	env := []string{
		"GUARDYN_DATABASE_URL=" + f.database, "GUARDYN_CONFIG_SIGNING_KEY=" + f.key.SecretHex(),
		"GUARDYN_LISTEN=" + f.apiAddr, "GUARDYN_ALLOWED_ORIGINS=127.0.0.0/8", "GUARDYN_CONFIG_PUBLIC_KEYS=" + f.publicKeys(),
	}
	if f.recipient != "" {
		env = append(env, "GUARDYN_SECRET_RECIPIENT="+f.recipient)
	}
	return env
}

func (n *edgeNode) start() {
	n.f.t.Helper()
	env := []string{
		"GUARDYN_API_URL=http://" + n.f.apiAddr, "GUARDYN_NODE_TOKEN=" + n.token,
		"GUARDYN_CONFIG_PUBLIC_KEYS=" + n.f.publicKeys(), "GUARDYN_STATE_DIR=" + n.dir,
		"GUARDYN_DNS_LISTEN=" + n.dns, "GUARDYN_HTTP_LISTEN=" + n.http, "GUARDYN_ADMIN_LISTEN=" + n.admin,
		"GUARDYN_EDGE_ADDRESSES=192.0.2.53,2001:db8::53", "GUARDYN_ALLOWED_ORIGINS=127.0.0.0/8",
		"GUARDYN_RATE_LIMIT_EXEMPT=127.0.0.0/8",
		"GUARDYN_DNS_NSID=" + n.name, "GUARDYN_DNS_VERSION_CLIENTS=127.0.0.0/8",
	}
	if n.https != "" {
		env = append(env, "GUARDYN_HTTPS_LISTEN="+n.https, "GUARDYN_SECRET_IDENTITIES="+n.f.identity)
	}
	n.process = startProcess(n.f.t, n.name, env, "edge")
	n.f.await(n.name+" alive", func() error { return httpOK("http://" + n.admin + "/healthz") })
}

// publicKeys is what a process that starts now trusts.
func (f *fleet) publicKeys() string {
	if f.trusted != "" {
		return f.trusted
	}
	return f.key.Public().String()
}

// refused runs a command as the operator that must fail, and returns what it prints.
func (f *fleet) refused(args ...string) string {
	f.t.Helper()
	cmd := exec.Command(gdn, args...)
	cmd.Env = append(cleanEnviron(), "GUARDYN_API_URL=http://"+f.apiAddr, "GUARDYN_TOKEN="+f.token)
	out, err := cmd.CombinedOutput()
	if err == nil {
		f.t.Fatalf("gdn %s was done:\n%s", strings.Join(args, " "), out)
	}
	return string(out)
}

// gdnBoth is gdn, returning what came on both streams.
func (f *fleet) gdnBoth(args ...string) string {
	f.t.Helper()
	cmd := exec.Command(gdn, args...)
	cmd.Env = append(cleanEnviron(), "GUARDYN_API_URL=http://"+f.apiAddr, "GUARDYN_TOKEN="+f.token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("gdn %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// gdn runs a command as the operator and fails the test when it fails. It returns standard output.
func (f *fleet) gdn(args ...string) string {
	f.t.Helper()
	return f.run([]string{"GUARDYN_API_URL=http://" + f.apiAddr, "GUARDYN_TOKEN=" + f.token}, args...)
}

func (f *fleet) run(env []string, args ...string) string {
	f.t.Helper()
	cmd := exec.Command(gdn, args...)
	cmd.Env = append(cleanEnviron(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("gdn %s: %v\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// file writes a file for a command to read.
func (f *fleet) file(name, content string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// await tries until ok returns nil; each try is a question to a real process, whose answer is the event.
func (f *fleet) await(what string, ok func() error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.t.Fatalf("%s: still not after a minute: %v", what, err)
		}
	}
}

// serving waits until every node acknowledged that it serves version.
func (f *fleet) serving(version uint64) {
	f.t.Helper()
	f.await(fmt.Sprintf("all nodes on version %d", version), func() error {
		for _, n := range f.nodes {
			v, err := n.version()
			if err != nil {
				return err
			}
			if v != version {
				return fmt.Errorf("%s serves version %d", n.name, v)
			}
		}
		return nil
	})
}

// version asks the node's admin address what it serves.
func (n *edgeNode) version() (uint64, error) {
	resp, err := http.Get("http://" + n.admin + "/deephealth")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var h struct {
		Version uint64 `json:"version"`
	}
	err = json.NewDecoder(resp.Body).Decode(&h)
	return h.Version, err
}

func httpOK(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("%s: %s %s", url, resp.Status, body)
	}
	return nil
}

// freeAddr returns a loopback address that is the test's until its end. A port that must stay the same over restarts cannot be left to the
// kernel.
func freeAddr(t testing.TB) string {
	t.Helper()
	addr, release, err := testport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return addr
}

// startOrigin serves a page that says what reached it.
func startOrigin(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("x-seen-mark", r.Header.Get("x-mark"))
			fmt.Fprintf(w, "origin %s %s\n", r.Host, r.URL.RequestURI())
		}),
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return l.Addr().String()
}
