package e2e_test

import (
	"bytes"
	"context"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/dynamo"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/admin"
	bridgehost "github.com/guardyn-edge/guardyn/bridge/host"
	"github.com/guardyn-edge/guardyn/internal/testdynamo"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
	"github.com/guardyn-edge/guardyn/internal/testpg"
)

// bridgeDoc is what a cohort's document says, as far as tests change it. Routes: temps, from a durable exclusive session, whose topics
// one member at a time moves in their order; field, from a durable session of each member, whose topics they share.
type bridgeDoc struct {
	window     string // of bridge.cluster
	rev        int    // that both routes write on messages
	plantID    string // the exclusive session's client id
	plantAlive int    // seconds of its keep_alive
	cloudAlive int
	sessions   string // more of them, as flow mappings with a leading comma
	routes     string
}

// newBridgeDoc is the first document. Trials are as short as proofs allow.
func newBridgeDoc() bridgeDoc {
	return bridgeDoc{plantID: "gdn-plant", plantAlive: 30, cloudAlive: 30}
}

// trial has members prove what they found again within two seconds, also on a machine that has other work.
const trial = ", confirm_window: 20s, soak: 4s"

func (d bridgeDoc) text(c *bridgeCohort) string {
	plant, cloud := c.plantAddr, c.cloudAddr
	return fmt.Sprintf(`bridge:
  deployment_mode: clustered
  shutdown_timeout: 15s
  drain_timeout: 10s
  cluster: {rollout: coordinated, members: [node-a, node-b, node-c], deadline: 60s%s}
sessions: [
  {id: plant, kind: mqtt, url: "mqtt://%s", client_id: %s, clean_start: false, session_expiry: 1h, exclusive: true, keep_alive: %ds},
  {id: field, kind: mqtt, url: "mqtt://%s", client_id: "gdn-field-{member}", clean_start: false, session_expiry: 1h},
  {id: cloud, kind: mqtt, url: "mqtt://%s", client_id: "gdn-cloud-{member}", credentials: "file:cloud.cred", keep_alive: %ds}%s
]
routes: [
  {id: temps, from: {session: plant, topic: "plant/#"}, to: {session: cloud, topic: "t/{1}"}, transform: {properties: {set: {rev: "%d"}}}},
  {id: field, from: {session: field, topic: "field/#", share: g}, to: {session: cloud, topic: "f/{1}"}, transform: {properties: {set: {rev: "%d"}}}}%s
]
`, d.window, plant, d.plantID, d.plantAlive, plant, cloud, d.cloudAlive, d.sessions, d.rev, d.rev, d.routes)
}

// bridgeCohort is three members of a bridge, real processes, between two brokers, with everything that they share in one store.
type bridgeCohort struct {
	t                    testing.TB
	dir                  string
	url                  string // of source, rollout store and lease store
	env                  []string
	store                barrier.Store // past any gate
	plant, cloud         *testmosquitto.Broker
	plantAddr, cloudAddr string
	doc                  bridgeDoc
	members              []*bridgeMember
}

// bridgeMember is one process, with a disk and credentials of its own.
type bridgeMember struct {
	c      *bridgeCohort
	id     string
	addr   string
	client *admin.Client
	*process
}

const bridgeToken = "let me in"

// postgresBridge is a cohort on a database of its own. gated, which may be nil, is what its members call the database; more are lines of
// the brokers' configuration.
func postgresBridge(t testing.TB, gated func(url string) string, more ...string) *bridgeCohort {
	t.Helper()
	url := testpg.URL(t)
	c := newBridgeCohort(t, url, nil, more...)
	store, err := sqlstore.Open(t.Context(), url, "bridge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	c.store = store
	if gated != nil {
		c.url = gated(url)
	}
	return c
}

// dynamoBridge is a cohort on a table of its own.
func dynamoBridge(t testing.TB) *bridgeCohort {
	t.Helper()
	server := os.Getenv(testdynamo.EnvURL)
	if server == "" {
		ctx, cancel := context.WithTimeout(t.Context(), testdynamo.StartTimeout)
		defer cancel()
		s, err := testdynamo.Start(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Stop() })
		server = s.URL()
	}
	table := testdynamo.Name()
	c := newBridgeCohort(t, "dynamodb:"+table+"?region=us-east-1&endpoint="+server, []string{"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test"})
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	store, err := dynamo.Open(t.Context(), client, dynamo.Options{Table: table, Cohort: "bridge"})
	if err != nil {
		t.Fatal(err)
	}
	c.store = store
	return c
}

func newBridgeCohort(t testing.TB, url string, env []string, more ...string) *bridgeCohort {
	t.Helper()
	// No broker is restarted, and one that writes everything down at each change keeps no pace.
	more = append(more, "persistence false")
	c := &bridgeCohort{t: t, dir: t.TempDir(), url: url, doc: newBridgeDoc(), env: append(env, "GUARDYN_BRIDGE_TOKEN="+bridgeToken)}
	c.plant, c.cloud = testmosquitto.Start(t, more...), testmosquitto.Start(t, append(guarded(t), more...)...)
	c.plantAddr, c.cloudAddr = c.plant.Addr, c.cloud.Addr
	t.Cleanup(func() {
		if t.Failed() {
			lines := slices.DeleteFunc(c.plant.Lines(0, "gdn-plant"), func(l string) bool { return strings.Contains(l, "PUB") })
			t.Logf("--- the plant's broker on the exclusive session\n%s", strings.Join(lines, "\n"))
		}
	})
	if out, err := c.command("bridge", "migrate", "--source", url, "--rollout-store", url, "--lease-store", url); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	for _, id := range []string{"node-a", "node-b", "node-c"} {
		m := &bridgeMember{c: c, id: id, addr: freeAddr(t)}
		var err error
		if m.client, err = admin.NewClient("http://"+m.addr, bridgeToken, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(m.path(""), 0o700); err != nil {
			t.Fatal(err)
		}
		m.secret("cloud.cred", "username: "+id+"\npassword: "+id+"\n")
		c.members = append(c.members, m)
	}
	return c
}

// guarded is the configuration of a broker that knows the three members by their names, and lets node-c subscribe to nothing below
// new/ (Mosquitto's plugin for it; its file of rights does not cover subscribing).
func guarded(t testing.TB) []string {
	t.Helper()
	type acl struct {
		Kind  string `json:"acltype"`
		Topic string `json:"topic"`
		Allow bool   `json:"allow"`
	}
	type role struct {
		Name string `json:"rolename"`
		ACLs []acl  `json:"acls,omitzero"`
	}
	type client struct {
		Name       string `json:"username"`
		Password   string `json:"password"`
		Salt       string `json:"salt"`
		Iterations int    `json:"iterations"`
		Roles      []role `json:"roles,omitzero"`
	}
	var clients []client
	for _, id := range []string{"node-a", "node-b", "node-c"} {
		salt := []byte("salt: " + id) // twelve bytes
		key, err := pbkdf2.Key(sha512.New, id, salt, 101, 64)
		if err != nil {
			t.Fatal(err)
		}
		one := client{Name: id, Password: base64.StdEncoding.EncodeToString(key), Salt: base64.StdEncoding.EncodeToString(salt), Iterations: 101}
		if id == "node-c" {
			one.Roles = []role{{Name: "nothing-new"}}
		}
		clients = append(clients, one)
	}
	var denied []acl
	for _, topic := range []string{"new/#", "$share/g/new/#"} {
		denied = append(denied, acl{"subscribePattern", topic, false})
	}
	text, err := json.Marshal(map[string]any{
		"defaultACLAccess": map[string]bool{"publishClientSend": true, "publishClientReceive": true, "subscribe": true, "unsubscribe": true},
		"clients":          clients, "roles": []role{{"nothing-new", denied}, {"control", []acl{{"publishClientSend", "$CONTROL/#", true}}}},
		"groups": []map[string]any{{"groupname": "guests", "roles": []role{{Name: "control"}}}}, "anonymousGroup": "guests",
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rights.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	plugins, err := filepath.Glob("/usr/lib/*/mosquitto_dynamic_security.so")
	if err != nil || len(plugins) == 0 {
		t.Fatalf("Mosquitto's plugin mosquitto_dynamic_security.so is not below /usr/lib: %v", err)
	}
	return []string{"plugin " + plugins[0], "plugin_opt_config_file " + path}
}

// allow takes the ban off node-c.
func (c *bridgeCohort) allow() {
	mark := c.cloud.Mark()
	testmosquitto.Dial(c.t, c.cloud.Addr).Publish("$CONTROL/dynamic-security/v1", `{"commands": [{"command": "removeClientRole", "username": "node-c", "rolename": "nothing-new"}]}`)
	c.cloud.Await(c.t, mark, "removeClientRole")
}

// command runs gdn beside the members.
func (c *bridgeCohort) command(args ...string) (string, error) {
	cmd := exec.Command(gdn, args...)
	cmd.Env, cmd.Dir = append(cleanEnviron(), c.env...), c.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// file writes a file for a command to read, and returns its name.
func (c *bridgeCohort) file(name, content string) string {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return name
}

func (m *bridgeMember) path(name string) string { return filepath.Join(m.c.dir, m.id, name) }

func (m *bridgeMember) secret(name, content string) {
	m.c.t.Helper()
	if err := os.WriteFile(m.path(name), []byte(content), 0o600); err != nil {
		m.c.t.Fatal(err)
	}
}

// start starts the member's process.
func (m *bridgeMember) start(more ...string) {
	m.c.t.Helper()
	m.process = startProcess(m.c.t, m.id, m.c.env, append([]string{
		"bridge", "--member-id", m.id, "--source", m.c.url, "--rollout-store", m.c.url, "--lease-store", m.c.url, "--listen", m.addr,
		"--state-dir", m.path("state"), "--secrets-dir", m.path(""),
	}, more...)...)
	m.c.await(m.id+" answers", func() error { return httpOK("http://" + m.addr + "/healthz") })
}

// start starts every member, on the first document, and waits until all of them run it and have converged.
func (c *bridgeCohort) start() {
	c.t.Helper()
	for _, m := range c.members {
		m.start()
	}
	c.create()
	c.converged(1)
}

// create saves the document where there is none.
func (c *bridgeCohort) create() {
	c.t.Helper()
	c.file("first.yaml", c.doc.text(c))
	if out, err := c.command("bridge", "put", "first.yaml", "--create", "--url", "http://"+c.members[0].addr); err != nil {
		c.t.Fatalf("create: %v\n%s", err, out)
	}
}

// await asks until ok is nil; each answer of a real process is the event.
func (c *bridgeCohort) await(what string, ok func() error) {
	c.t.Helper()
	(&fleet{t: c.t}).await(what, ok)
}

// converged waits until these members, or all, run that version, are ready and in step, and everything that they run has converged.
func (c *bridgeCohort) converged(version uint64, members ...*bridgeMember) {
	c.t.Helper()
	if members == nil {
		members = c.members
	}
	c.await(fmt.Sprintf("version %d runs, and has converged", version), func() error {
		for _, m := range members {
			s, err := m.client.Status(c.t.Context())
			if err != nil {
				return err
			}
			if s.Version != version || !s.Ready || s.Rollout == nil || s.Rollout.ConfirmPending {
				return fmt.Errorf("%s is %s, runs version %d, %q, %+v", m.id, s.Phase, s.Version, s.Degraded, s.Rollout)
			}
			for _, x := range s.Sessions {
				if !x.Converged {
					return fmt.Errorf("%s: session %s: %s", m.id, x.ID, x.Detail)
				}
			}
		}
		return nil
	})
}

// row is the cohort's, past the members.
func (c *bridgeCohort) row() barrier.Row {
	c.t.Helper()
	row, err := c.store.Current(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return row
}

// put saves the document by one member, and returns its version and the generation that it is rolled out as.
func (c *bridgeCohort) put(by *bridgeMember, d bridgeDoc) (version, generation uint64) {
	c.t.Helper()
	generation = c.row().Generation + 1
	_, etag, err := by.client.Config(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := by.client.Put(c.t.Context(), []byte(d.text(c)), etag, false)
	if err != nil {
		c.t.Fatalf("put: %v", err)
	}
	return out.Version, generation
}

// ends waits until the rollout of that generation has ended, which must be so.
func (c *bridgeCohort) ends(generation uint64, want barrier.State) barrier.Rollout {
	c.t.Helper()
	ro := c.comes(fmt.Sprintf("generation %d is over", generation), generation, func(ro barrier.Rollout) bool { return !ro.Open() })
	c.t.Logf("generation %d, version %d: %s after %s %s", ro.Generation, ro.Version, ro.State, ro.DecidedAt.Sub(ro.ProposedAt).Round(time.Millisecond), ro.Reason)
	if ro.State != want || ro.Generation != generation {
		c.t.Fatalf("generation %d, %s: %s; want generation %d, %s", ro.Generation, ro.State, ro.Reason, generation, want)
	}
	return ro
}

// comes waits until a rollout of that generation, or a later one, is as is says.
func (c *bridgeCohort) comes(what string, generation uint64, is func(barrier.Rollout) bool) (ro barrier.Rollout) {
	c.t.Helper()
	c.await(what, func() error {
		row := c.row()
		if row.Rollout == nil || row.Rollout.Generation < generation || !is(*row.Rollout) {
			return fmt.Errorf("the row is at generation %d: %+v", row.Generation, row.Rollout)
		}
		ro = *row.Rollout
		return nil
	})
	return ro
}

// roll puts a change to the cohort by one member, which must end so, and waits until all run what follows.
func (c *bridgeCohort) roll(by *bridgeMember, d bridgeDoc, want barrier.State) barrier.Rollout {
	c.t.Helper()
	version, generation := c.put(by, d)
	ro := c.ends(generation, want)
	if want == barrier.Committed || want == barrier.Confirmed {
		c.doc = d
		c.converged(version)
	} else {
		c.converged(c.row().Committed.Version)
	}
	return ro
}

// holder is the member that holds the exclusive session.
func (c *bridgeCohort) holder() (held *bridgeMember) {
	c.t.Helper()
	c.await("one member holds the exclusive session", func() error {
		held = nil
		for _, m := range c.members {
			if s, err := m.client.Status(c.t.Context()); err == nil {
				for _, x := range s.Sessions {
					if x.ID == "plant" && x.State == bridge.Connected {
						held = m
					}
				}
			}
		}
		if held == nil {
			return fmt.Errorf("nobody does")
		}
		return nil
	})
	return held
}

// judges waits until the member says that of what its source holds.
func (m *bridgeMember) judges(verb, reason string) {
	m.c.t.Helper()
	m.c.await(m.id+" says that its source is "+verb, func() error {
		if s := m.status(); s.Source.Verb != verb || !strings.Contains(s.Source.Reason, reason) {
			return fmt.Errorf("it says %+v", s.Source)
		}
		return nil
	})
}

// status is what the member knows about itself.
func (m *bridgeMember) status() bridgehost.Status {
	m.c.t.Helper()
	s, err := m.client.Status(m.c.t.Context())
	if err != nil {
		m.c.t.Fatal(err)
	}
	return s
}

// heldOnce checks, by the log of a broker, that no two connections ever had one client id at one time.
func heldOnce(t testing.TB, b *testmosquitto.Broker, id string) (connections int) {
	t.Helper()
	open := 0
	for _, line := range b.Lines(0, id) {
		switch {
		case strings.Contains(line, "New client connected") && strings.Contains(line, " as "+id+" "):
			connections++
			if open++; open > 1 {
				t.Errorf("held twice: %s", line)
			}
		case strings.Contains(line, "Client "+id+" disconnected"), strings.Contains(line, "Client "+id+" closed"),
			strings.Contains(line, "Client "+id+" has exceeded timeout"):
			open--
		case strings.Contains(line, "already connected"), strings.Contains(line, "session taken over"):
			t.Errorf("held twice: %s", line)
		}
	}
	return connections
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
