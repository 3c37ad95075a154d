package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/internal/wat"
	"github.com/guardyn-edge/guardyn/seal"
)

// The zones that are served: plain is apex without its final dot, rules has the rules, and called is answered by a function.
const (
	apex       = "bench.test."
	plainZone  = "bench.test"
	rulesZone  = "rules.test"
	calledZone = "function.test"
	plainHost  = "www." + plainZone
	rulesHost  = "www." + rulesZone
	calledHost = "www." + calledZone
)

// names is how many names are asked for over DNS.
const names = 1000

// bench is this node's fleet, an origin, and what else runs.
type bench struct {
	options
	dir       string
	queries   string // file for dnsperf
	zoneFile  string // for the peers
	origin    string // host:port
	api       string
	token     string
	dns, http string // of the node
	https     string // of the node, empty when this build does not serve it
	node      *process
	nginx     *process   // the origin
	processes []*process // in the order that they were started in
}

// stop ends everything, newest first.
func (b *bench) stop() {
	for i := len(b.processes) - 1; i >= 0; i-- {
		b.processes[i].stop()
	}
}

// start runs the origin, a control plane and a node, and publishes what the rows ask for.
func (b *bench) start() error {
	if err := b.writeZone(); err != nil {
		return err
	}
	if err := b.startOrigin(); err != nil {
		return err
	}
	if err := b.startFleet(); err != nil {
		return err
	}
	return b.publish()
}

// writeZone writes the zone of the DNS row for the peers, and the queries.
func (b *bench) writeZone() error {
	file := "$ORIGIN " + apex + "\n$TTL 300\n@ SOA ns1 hostmaster 1 3600 600 604800 300\n" + zoneRecords()
	var queries strings.Builder
	for i := range names {
		fmt.Fprintf(&queries, "host%d.%s A\n", i, plainZone)
	}
	b.zoneFile, b.queries = filepath.Join(b.dir, "bench.zone"), filepath.Join(b.dir, "queries")
	return cmp.Or(os.WriteFile(b.zoneFile, []byte(file), 0o644), os.WriteFile(b.queries, []byte(queries.String()), 0o644))
}

func zoneRecords() string {
	var s strings.Builder
	s.WriteString("@ NS ns1\nns1 A 192.0.2.53\n")
	for i := range names {
		fmt.Fprintf(&s, "host%d A 192.0.2.%d\n", i, i%250+1)
	}
	return s.String()
}

// gdn runs a command as the operator and returns what it prints.
func (b *bench) gdn(args ...string) (string, error) {
	return b.command([]string{"GUARDYN_API_URL=http://" + b.api, "GUARDYN_TOKEN=" + b.token}, args...)
}

func (b *bench) command(env []string, args ...string) (string, error) {
	cmd := exec.Command(b.options.gdn, args...)
	cmd.Env = append(cleanEnviron(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("gdn %s: %w\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out), nil
}

// given is the token that a command printed as JSON.
func given(out string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	var v struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Token == "" {
		return "", fmt.Errorf("no token was printed: %q", out)
	}
	return v.Token, nil
}

func (b *bench) startFleet() (err error) {
	key, err := seal.GenerateSigningKey()
	if err != nil {
		return err
	}
	var admin string
	for _, addr := range []*string{&b.api, &b.dns, &b.http, &admin} {
		if *addr, err = freeAddr(); err != nil {
			return err
		}
	}
	path := filepath.Join(b.dir, "guardyn.db")
	database := "GUARDYN_DATABASE_URL=sqlite:" + path
	b.token, err = given(b.command([]string{database}, "migrate", "--bootstrap-operator", "op@example.com", "--workspace", "bench", "--json"))
	if err != nil {
		return err
	}
	if err := liftCeiling(path); err != nil {
		return fmt.Errorf("lift the plan's ceiling: %w", err)
	}
	if err := b.writeCertificate(); err != nil {
		return err
	}
	id, err := b.makeIdentity()
	if err != nil {
		return err
	}
	var toSeal, toOpen []string
	if id != nil {
		if b.https, err = freeAddr(); err != nil {
			return err
		}
		toSeal = []string{"GUARDYN_SECRET_RECIPIENT=" + id.Recipient}
		toOpen = []string{"GUARDYN_SECRET_IDENTITIES=" + id.Identity, "GUARDYN_HTTPS_LISTEN=" + b.https}
	}
	keys := "GUARDYN_CONFIG_PUBLIC_KEYS=" + key.Public().String()
	allowed := "GUARDYN_ALLOWED_ORIGINS=127.0.0.0/8"
	control, err := b.launch("control plane", append(toSeal,
		database, keys, allowed, "GUARDYN_CONFIG_SIGNING_KEY="+key.SecretHex(), "GUARDYN_LISTEN="+b.api,
	), b.options.gdn, "serve")
	if err != nil {
		return err
	}
	if err := control.await(func() error { return statusOK("http://" + b.api + "/readyz") }); err != nil {
		return err
	}
	token, err := given(b.gdn("node", "add", "edge", "--json"))
	if err != nil {
		return err
	}
	b.node, err = b.launch("node", append(toOpen,
		"GUARDYN_API_URL=http://"+b.api, "GUARDYN_NODE_TOKEN="+token, keys, allowed, "GUARDYN_STATE_DIR="+filepath.Join(b.dir, "node"),
		"GUARDYN_DNS_LISTEN="+b.dns, "GUARDYN_HTTP_LISTEN="+b.http, "GUARDYN_ADMIN_LISTEN="+admin,
		"GUARDYN_EDGE_ADDRESSES=192.0.2.53", "GUARDYN_RATE_LIMIT_EXEMPT=127.0.0.0/8",
	), b.options.gdn, "edge")
	if err != nil {
		return err
	}
	return b.node.await(func() error { return statusOK("http://" + admin + "/healthz") })
}

// publish makes both zones live and waits until the node serves them.
func (b *bench) publish() error {
	var items []string
	for i := range 100_000 {
		items = append(items, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	module, err := wat.Answer("Content-Type: text/plain\n\n"+body, 0)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"answer.wasm": string(module),
		"called.yaml": "rules:\n  - {expression: 'true', action: function, parameters: {function: answer}}\n",
		"import.zone": "$TTL 300\n" + zoneRecords(),
		"pool.yaml":   fmt.Sprintf("origins:\n  - {name: origin, address: %q}\n", b.origin),
		"list.yaml":   "kind: ip\nitems: [" + strings.Join(items, ", ") + "]\n",
		"rules.yaml":  rulesYAML(),
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	file := func(name string) string { return filepath.Join(b.dir, name) }
	commands := [][]string{
		{"zone", "create", plainZone},
		{"zone", "import", plainZone, file("import.zone")},
		{"zone", "create", rulesZone},
		{"pool", "set", plainZone, "default", file("pool.yaml")},
		{"pool", "set", rulesZone, "default", file("pool.yaml")},
		{"zone", "create", cachedZone},
		{"pool", "set", cachedZone, "default", file("pool.yaml")},
		{"record", "add", cachedZone, "www", "A", "192.0.2.1", "--proxied"},
		{"settings", "set", cachedZone, "log_sampling=0%", "trace_sampling=0%"},
		{"zone", "create", calledZone},
		{"function", "add", calledZone, "answer", file("answer.wasm")},
		{"rules", "set", calledZone, "function", file("called.yaml")},
		{"record", "add", calledZone, "www", "A", "192.0.2.1", "--proxied"},
		{"record", "add", plainZone, "www", "A", "192.0.2.1", "--proxied"},
		{"record", "add", rulesZone, "www", "A", "192.0.2.1", "--proxied"},
		{"list", "set", rulesZone, "blocked", file("list.yaml")},
		{"rules", "set", rulesZone, "custom", file("rules.yaml")},
		{"settings", "set", calledZone, "log_sampling=0%", "trace_sampling=0%"},
		{"settings", "set", plainZone, "log_sampling=0%", "trace_sampling=0%"},
		{"settings", "set", rulesZone, "log_sampling=0%", "trace_sampling=0%"},
	}
	if b.https != "" {
		commands = append(commands, []string{"tls", "add", plainZone, plainHost, "--cert", b.certFile(), "--key", b.keyFile()})
	}
	for _, args := range append(commands, []string{"apply", "-m", "bench", "--wait"}) {
		if _, err := b.gdn(args...); err != nil {
			return err
		}
	}
	return nil
}

// rulesYAML is 100 rules that do not match: a third each looks at the start of the path, its end, and the query; the last one
// looks the client up in the list.
func rulesYAML() string {
	var s strings.Builder
	s.WriteString("rules:\n")
	for i := range 99 {
		expression := [...]string{
			`http.path.startsWith("/private-%d/")`, `http.path.endsWith(".bak%d")`, `http.query.contains("token=%d")`,
		}[i%3]
		fmt.Fprintf(&s, "  - expression: '"+expression+"'\n    action: block\n", i)
	}
	s.WriteString("  - expression: 'in_list(ip.src, \"blocked\")'\n    action: block\n")
	return s.String()
}

func statusOK(url string) error {
	client := http.Client{Timeout: time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
