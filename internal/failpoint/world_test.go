package failpoint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/internal/testport"
	"github.com/guardyn-edge/guardyn/seal"
)

// gdn is the program with failpoints, plain without, both built once from this tree.
var gdn, plain string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "guardyn-failpoint-")
	if err == nil {
		gdn, plain = filepath.Join(dir, "gdn"), filepath.Join(dir, "plain")
		for path, tags := range map[string]string{gdn: "failpoint", plain: ""} {
			build := exec.Command("go", "build", "-tags", tags, "-o", path, "github.com/guardyn-edge/guardyn/cmd/gdn")
			build.Stdout, build.Stderr = os.Stderr, os.Stderr
			if err = build.Run(); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build gdn:", err)
		os.Exit(1)
	}
	defer os.RemoveAll(dir)
	testpg.Main(m)
}

// Actions of a failpoint.
const (
	kill  = "kill"
	fault = "error"
)

// output keeps what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// world is one database and the control plane on it, a process that is started again and again.
type world struct {
	t        *testing.T
	dir      string
	database string
	key      seal.SigningKey
	trusted  string // public keys; empty: key's alone
	addr     string
	token    string
	client   *api.Client
	node     *follower
	liar     *api.NodeClient
	process  *exec.Cmd
	output   *output
	ended    chan struct{}
	edits    int                      // records that were added
	epoch    uint64                   // of the platform
	ahead    int                      // times that a node proved to be ahead
	old      []uint64                 // versions under the first key, which no node trusts any more
	reached  map[failpoint.Point]bool // on this database
	skipped  map[uint64]bool          // generations that recoveries left out
}

func environ(extra ...string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GUARDYN_") {
			env = append(env, kv)
		}
	}
	return append(env, extra...)
}

// newWorld publishes eight versions under one key and a ninth under another, which alone is trusted from then on.
func newWorld(t *testing.T, database string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), database: database, addr: freeAddr(t), epoch: 1, reached: map[failpoint.Point]bool{}, skipped: map[uint64]bool{}}
	if database == "" {
		w.database = "sqlite:" + filepath.Join(w.dir, "guardyn.db")
	}
	out, err := w.run(w.database, "", "migrate", "--bootstrap-operator", "op@example.com", "--workspace", "Amthal Group", "--json")
	var boot struct {
		Token string `json:"token"`
	}
	if err != nil || json.Unmarshal([]byte(out), &boot) != nil || boot.Token == "" {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	w.token = boot.Token
	tr := &http.Transport{DisableKeepAlives: true}
	if w.client, err = api.NewClient("http://"+w.addr, w.token, &http.Client{Transport: tr, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	w.newKey()
	w.start("")
	must(t, "zone create", second(w.client.CreateZone(t.Context(), api.NewZone{Name: "example.com"})))
	for range 8 {
		w.old = append(w.old, w.publish().Version)
	}
	w.stop()
	first := w.key.Public()
	w.newKey()
	w.trusted = first.String() + "," + w.key.Public().String()
	w.start("")
	w.publish()
	w.stop()
	w.trusted = ""
	w.start("")
	w.node = w.newFollower("fra1")
	w.liar = w.newNode("ams1")
	w.publish()
	w.consistent()
	w.stop()
	return w
}

func (w *world) newKey() {
	w.t.Helper()
	var err error
	if w.key, err = seal.GenerateSigningKey(); err != nil {
		w.t.Fatal(err)
	}
}

// start runs the control plane; arm is POINT=ACTION or empty.
func (w *world) start(arm string) {
	w.t.Helper()
	w.output, w.ended = &output{}, make(chan struct{})
	cmd := exec.Command(gdn, "serve")
	cmd.Env = environ("GUARDYN_DATABASE_URL="+w.database, "GUARDYN_CONFIG_SIGNING_KEY="+w.key.SecretHex(),
		"GUARDYN_LISTEN="+w.addr, "GUARDYN_CONFIG_PUBLIC_KEYS="+w.trusted, "GUARDYN_TEST_FAILPOINT="+arm)
	cmd.Stdout, cmd.Stderr = w.output, w.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.process = cmd
	ended, out := w.ended, w.output
	go func() { defer close(ended); _ = cmd.Wait() }()
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := http.Get("http://" + w.addr + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ended:
			w.t.Fatalf("the control plane ended:\n%s", out)
		case <-limit.C:
			w.t.Fatalf("the control plane is not ready after a minute: %v\n%.4000s", err, out)
		}
	}
}

func (w *world) stop() {
	_ = w.process.Process.Kill()
	<-w.ended
}

// died waits for the end of a process that killed itself.
func (w *world) died() {
	w.t.Helper()
	select {
	case <-w.ended:
	case <-time.After(time.Minute):
		w.t.Fatalf("the control plane lives:\n%s", w.output)
	}
	if ws := w.process.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
		w.t.Fatalf("the control plane ended otherwise: %v\n%s", w.process.ProcessState, w.output)
	}
}

// run runs a command against a database and returns what it printed on standard output, and on both streams when it
// failed.
func (w *world) run(database, arm string, args ...string) (string, error) {
	cmd := exec.Command(gdn, args...)
	cmd.Env = environ("GUARDYN_DATABASE_URL="+database, "GUARDYN_TEST_FAILPOINT="+arm)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out) + stderr.String(), err
	}
	return string(out), nil
}

// answer is what a deed was answered.
type answer struct {
	status   int
	body     string
	replayed bool
}

func (a answer) result() (r struct {
	Version    uint64 `json:"version"`
	Generation uint64 `json:"generation"`
	Code       string `json:"code"`
},
) {
	_ = json.Unmarshal([]byte(a.body), &r)
	return r
}

// post sends a deed under an idempotency key, once.
func (w *world) post(path, key, body string) (answer, error) {
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://"+w.addr+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(text), resp.Header.Get("Idempotent-Replayed") == "true"}, err
}

// edit adds a record that nothing else has.
func (w *world) edit() {
	w.t.Helper()
	w.edits++
	must(w.t, "record add", second(w.client.AddRecord(w.t.Context(), "example.com", api.RecordEdit{
		Name: fmt.Sprintf("r%d", w.edits), Type: "TXT", Content: "v",
	})))
}

// publish edits and applies, which must do, and has the node follow.
func (w *world) publish() *api.ApplyResult {
	w.t.Helper()
	w.edit()
	res, err := w.client.Apply(w.t.Context(), api.ApplyRequest{Message: "next", AcceptDisruption: true})
	must(w.t, "the next apply", err)
	if !res.Applied {
		w.t.Fatalf("the next apply did nothing: %+v", res)
	}
	if w.node != nil {
		w.node.follow(w)
	}
	return res
}

// follower is a node that takes each activation, one after another.
type follower struct {
	c    *api.NodeClient
	art  *seal.Artefact
	act  seal.Activation
	boot string
}

func (w *world) newNode(name string) *api.NodeClient {
	w.t.Helper()
	n, err := w.client.CreateNode(w.t.Context(), api.NewNode{Name: name})
	must(w.t, "node add", err)
	return w.nodeClient(n.Secret)
}

func (w *world) nodeClient(secret string) *api.NodeClient {
	w.t.Helper()
	c, err := api.NewNodeClient("http://"+w.addr, secret, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	must(w.t, "node", err)
	return c
}

func (w *world) newFollower(name string) *follower {
	return &follower{c: w.newNode(name), boot: strings.Repeat("0b", 16)}
}

// follow takes the one activation that is new: it follows the one that the node has, and is wholly what it says.
func (n *follower) follow(w *world) {
	w.t.Helper()
	ans, err := n.c.Poll(w.t.Context(), nodeproto.Poll{Have: n.act.Version, Generation: n.act.Generation, Epoch: n.act.Epoch})
	must(w.t, "poll", err)
	if ans.Artefact == nil {
		w.t.Fatalf("the node is offered nothing over generation %d", n.act.Generation)
	}
	trust, err := seal.Trust(w.key.Public())
	must(w.t, "trust", err)
	v, err := seal.Open(*ans.Artefact, trust, nil)
	must(w.t, "the node opens what it is offered", err)
	act := v.Activation()
	// A recovery leaves out what a node that was ahead showed.
	follows := act.Generation == n.act.Generation+1 || act.Generation > n.act.Generation && act.Epoch > n.act.Epoch
	for g := n.act.Generation + 1; g < act.Generation; g++ {
		w.skipped[g] = true
	}
	if had := n.act.Generation; had != 0 && (!follows || act.ParentGeneration != had) {
		w.t.Fatalf("generation %d follows %d; the node has %d", act.Generation, act.ParentGeneration, had)
	}
	if act.Epoch != w.epoch {
		w.t.Fatalf("the node is offered epoch %d in epoch %d", act.Epoch, w.epoch)
	}
	n.art, n.act = ans.Artefact, act
	n.ack(w)
}

func (n *follower) ack(w *world) {
	w.t.Helper()
	must(w.t, "ack", n.c.Ack(w.t.Context(), nodeproto.Ack{
		Version: n.act.Version, Generation: n.act.Generation, Epoch: n.act.Epoch, ContentHash: n.act.ContentHash,
		Boot: n.boot, TrustedKeys: []seal.KeyID{w.key.ID()}, Activation: n.art.Activation,
	}))
}

// proof is an ack of what this database never issued, signed with its key all the same.
func (w *world) proof() nodeproto.Ack {
	w.t.Helper()
	act := w.node.act
	act.Generation += 10
	act.Epoch = w.epoch
	signed, err := seal.Activate(w.key, w.node.art.Sealed, act)
	must(w.t, "sign", err)
	return nodeproto.Ack{
		Version: act.Version, Generation: act.Generation, Epoch: act.Epoch, ContentHash: act.ContentHash,
		Boot: w.node.boot, TrustedKeys: []seal.KeyID{w.key.ID()}, Activation: signed,
	}
}

func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func second[T any](_ T, err error) error { return err }

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, release, err := testport.Reserve()
	must(t, "reserve a port", err)
	t.Cleanup(release)
	return addr
}
