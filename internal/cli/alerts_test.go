package cli_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/cli"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/seal"
)

// alertRules are those of the document, as Prometheus reads them.
func alertRules(t *testing.T) []alertRule {
	t.Helper()
	var text strings.Builder
	for _, b := range readBlocks(t, "../../docs/operations/alerts.md") {
		if b.language == "yaml" {
			text.WriteString(b.text)
		}
	}
	var file struct {
		Groups []struct {
			Name  string      `yaml:"name"`
			Rules []alertRule `yaml:"rules"`
		} `yaml:"groups"`
	}
	d := yaml.NewDecoder(strings.NewReader(text.String()))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatalf("the yaml blocks are no rules file: %v", err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 20 {
		t.Fatalf("%d groups", len(file.Groups))
	}
	return file.Groups[0].Rules
}

type alertRule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// TestAlertsTellTheTruth holds the alerts against what a fleet shows that has published both ways and of which one node refuses
// what it is offered: every metric is there, with every label that is asked for.
func TestAlertsTellTheTruth(t *testing.T) {
	rules := alertRules(t)
	shown := shownByAFleet(t)
	page, err := os.ReadFile("../../docs/operations/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rules {
		if seen[r.Alert] || !regexp.MustCompile(`^Guardyn[A-Za-z0-9]+$`).MatchString(r.Alert) {
			t.Errorf("alert %q is there twice, or misnamed", r.Alert)
		}
		seen[r.Alert] = true
		if _, err := time.ParseDuration(strings.Replace(r.For, "1d", "24h", 1)); r.For != "" && err != nil {
			t.Errorf("%s: for %q", r.Alert, r.For)
		}
		if s := r.Labels["severity"]; s != "page" && s != "ticket" || r.Annotations["summary"] == "" {
			t.Errorf("%s: severity %q, summary %q", r.Alert, s, r.Annotations["summary"])
		}
		for _, problem := range promProblems(r.Expr, shown) {
			t.Errorf("%s: %s: %s", r.Alert, r.Expr, problem)
		}
	}
	for _, r := range rules {
		if mixed := mixedCohorts(r.Expr); mixed != "" {
			t.Errorf("%s: %s: it takes %s of several cohorts together", r.Alert, r.Expr, mixed)
		}
	}
	for _, name := range regexp.MustCompile(`\bguardyn_\w+`).FindAllString(string(page), -1) {
		if shown[name] == nil {
			t.Errorf("the page names %s, and nothing shows it", name)
		}
	}
}

// promWords are what an expression here may have beside metrics, labels and numbers.
var promWords = []string{
	"absent", "count", "count_values", "histogram_quantile", "increase", "max", "min", "min_over_time", "rate", "sum", "time", "vector",
	"by", "on", "group_left", "and", "or", "unless",
}

var promToken = regexp.MustCompile(`^(?:\s+|"[^"\\\n]*"|\d+(?:\.\d+)?[smhd]?|[A-Za-z_]\w*|=~|!=|!~|==|<=|>=|[-+*/<>=,(){}\[\]])`)

// promProblems is a small check of an expression: tokens, brackets that match, metrics and labels that are shown. What Prometheus
// itself makes of it needs its parser, which would be a library of its size in this module.
func promProblems(expr string, shown map[string]map[string]bool) (problems []string) {
	var open []string
	var metric, last string // metric: the selector that is read or was read last
	labels := map[string]bool{}
	for rest := expr; rest != ""; {
		token := promToken.FindString(rest)
		if token == "" {
			return append(problems, fmt.Sprintf("no expression at %.20q", rest))
		}
		rest = rest[len(token):]
		in := ""
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		switch {
		case strings.TrimSpace(token) == "":
			continue
		case token == "{" || token == "[" || token == "(":
			if token == "(" && slices.Contains([]string{"by", "on", "group_left"}, last) {
				token = "labels"
			}
			open = append(open, token)
		case token == "}" || token == "]" || token == ")":
			if want := map[string][]string{"}": {"{"}, "]": {"["}, ")": {"(", "labels"}}[token]; !slices.Contains(want, in) {
				return append(problems, fmt.Sprintf("%s closes %q", token, in))
			}
			open = open[:len(open)-1]
		case in == "[":
			if !regexp.MustCompile(`^\d+[smhd]$`).MatchString(token) {
				problems = append(problems, fmt.Sprintf("%q is no time span", token))
			}
		case !regexp.MustCompile(`^[A-Za-z_]`).MatchString(token):
		case in == "{":
			if token != "job" && !shown[metric][token] { // every series has a job, and up nothing else
				problems = append(problems, fmt.Sprintf("%s has no label %q", metric, token))
			}
		case in == "labels":
			labels[token] = true
		case slices.Contains(promWords, token):
		case token == "up" || shown[token] != nil:
			metric = token
			for label := range shown[metric] {
				labels["of "+label] = true
			}
		default:
			problems = append(problems, fmt.Sprintf("there is no %q", token))
		}
		last = token
	}
	if len(open) > 0 {
		problems = append(problems, fmt.Sprintf("%q is not closed", open))
	}
	for label := range labels {
		if plain, of := strings.CutPrefix(label, "of "); !of && plain != "instance" && plain != "job" && !labels["of "+label] {
			problems = append(problems, fmt.Sprintf("nothing in it has the label %q", label))
		}
	}
	return problems
}

// mixedCohorts returns a metric that every cohort shows, of a fleet or a bridge, and that is aggregated over all jobs of one Prometheus: neither are
// the jobs told apart nor is one chosen.
func mixedCohorts(expr string) string {
	shared := regexp.MustCompile(`\b(?:max|min|sum|count|absent)(?: by \(([^)]*)\))? ?\((?:\w+\()?(guardyn_(?:rollout|bridge)_\w+)(\{[^}]*\})?`)
	for _, m := range shared.FindAllStringSubmatch(expr, -1) {
		by := strings.Split(m[1], ", ")
		if !slices.Contains(by, "job") && !slices.Contains(by, "instance") && !strings.Contains(m[3], `job="`) {
			return m[2]
		}
	}
	return ""
}

func TestMixedCohorts(t *testing.T) {
	for expr, want := range map[string]string{
		`max(guardyn_rollout_state{state="proposed"}) == 1`:                              "guardyn_rollout_state",
		`max by (session) (guardyn_bridge_session_state{state="connected"}) == 0`:        "guardyn_bridge_session_state",
		`min(min_over_time(guardyn_rollout_state{state="reverted"}[1h])) == 0`:           "guardyn_rollout_state",
		`max(guardyn_rollout_roster_size{job=~"guardyn-bridge.*"}) > 1`:                  "guardyn_rollout_roster_size",
		`max by (job) (guardyn_rollout_state{state="proposed"}) == 1`:                    "",
		`max(guardyn_rollout_roster_size{job="guardyn-control"}) < max(guardyn_nodes)`:   "",
		`sum by (instance, route) (guardyn_bridge_route_in_flight) > 0`:                  "",
		`min by (job) (min_over_time(guardyn_rollout_state{state="reverted"}[1h])) == 0`: "",
	} {
		if got := mixedCohorts(expr); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

func TestPromProblems(t *testing.T) {
	shown := map[string]map[string]bool{"guardyn_a": {"state": true}, "guardyn_b_total": {}}
	for _, row := range []struct {
		expr string
		ok   bool
	}{
		{`max(guardyn_a{state=~"x|y"}) == 1`, true},
		{`sum by (state, instance) (rate(guardyn_a[5m])) > 0.05 and sum by (instance) (rate(guardyn_b_total[5m])) > 1`, true},
		{`guardyn_a < on () group_left () max(guardyn_b_total)`, true},
		{`max by (job) (guardyn_a{state="x",job=~"b.*"}) == 1 unless on (job) max by (job) (guardyn_b_total)`, true},
		{`max(guardyn_c) == 1`, false},
		{`max(guardyn_a{status="x"}) == 1`, false},
		{`sum by (route) (guardyn_a)`, false},
		{`max(guardyn_a == 1`, false},
		{`max(guardyn_a}) == 1`, false},
		{`rate(guardyn_b_total[5]) > 0`, false},
		{`maximum(guardyn_a) > 0`, false},
		{`guardyn_a ? 1`, false},
	} {
		if got := promProblems(row.expr, shown); (got == nil) != row.ok {
			t.Errorf("%s: %q", row.expr, got)
		}
	}
}

// shownByAFleet returns the labels of every metric that control plane and nodes show.
func shownByAFleet(t *testing.T) map[string]map[string]bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	env := map[string]string{}
	dir := t.TempDir()
	environ := startDev(t, dir)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	op, err := api.NewClient(env["GUARDYN_API_URL"], env["GUARDYN_TOKEN"], nil)
	must(err)
	for _, name := range []string{"node1", "node2"} {
		_, err := op.UndrainNode(ctx, name)
		must(err)
	}
	_, err = op.CreateZone(ctx, api.NewZone{Name: "example.com"})
	must(err)
	var said strings.Builder
	if code := cli.Run(ctx, []string{
		"tls", "add", "example.com", "www.example.com", "--cert", filepath.Join(dir, "demo.pem"), "--key", filepath.Join(dir, "demo.key"),
	}, cli.Env{Stdin: strings.NewReader(""), Stdout: &said, Stderr: &said, Environ: append(os.Environ(), environ...)}); code != 0 {
		t.Fatal(said.String())
	}
	publish := func(content string, o api.RolloutOptions) *api.ApplyResult {
		t.Helper()
		_, err := op.AddRecord(ctx, "example.com", api.RecordEdit{Name: "www", Type: "A", Content: content})
		must(err)
		res, err := op.Apply(ctx, api.ApplyRequest{Rollout: &o})
		must(err)
		return res
	}
	publish("192.0.2.1", api.RolloutOptions{Mode: "direct"})

	// A node that trusts other keys, and tells what it can.
	made, err := op.CreateNode(ctx, api.NewNode{Name: "stranger"})
	must(err)
	key, err := seal.GenerateSigningKey()
	must(err)
	trusted, err := seal.Trust(key.Public())
	must(err)
	stranger, err := host.StartEdge(ctx, host.EdgeConfig{
		APIURL: env["GUARDYN_API_URL"], Token: made.Secret, PublicKeys: trusted, StateDir: t.TempDir(),
		DNSAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0",
		AccessLog: filepath.Join(t.TempDir(), "access.log"), TraceEndpoint: "http://127.0.0.1:1",
	})
	must(err)
	defer func() { must(stranger.Close(context.WithoutCancel(ctx))) }()

	shown := map[string]map[string]bool{}
	shownByABridge(ctx, t, shown)
	node1 := "http://" + env["GUARDYN_NODE1_ADMIN"]
	until(ctx, t, func() bool { return scrape(t, node1, shown) && shown["guardyn_rollout_flaps_total"] != nil })
	// Whether it is committed does not matter: it ends.
	res := publish("192.0.2.2", api.RolloutOptions{Mode: "coordinated"})
	until(ctx, t, func() bool {
		r, err := op.AwaitRollout(ctx, res.Rollout.ID, "", 0)
		return err == nil && !r.Open
	})
	dns := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, env["GUARDYN_NODE1_DNS"])
	}}
	_, err = dns.LookupHost(ctx, "www.example.com.")
	must(err)
	until(ctx, t, func() bool {
		return scrape(t, node1, shown) && scrape(t, env["GUARDYN_API_URL"], shown) && scrape(t, "http://"+stranger.AdminAddr(), shown) &&
			shown["guardyn_edge_config_refused"] != nil && shown["guardyn_edge_poll_age_seconds"] != nil &&
			shown["guardyn_edge_tls_certificate_expires_seconds"] != nil && shown["guardyn_rollout_resolved_total"] != nil
	})
	return shown
}

// until asks until it is so.
func until(ctx context.Context, t *testing.T, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
}

var (
	sample = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? \S+$`)
	label  = regexp.MustCompile(`(\w+)="`)
)

// scrape adds the metrics of one process.
func scrape(t *testing.T, url string, shown map[string]map[string]bool) bool {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range sample.FindAllStringSubmatch(string(text), -1) {
		if shown[m[1]] == nil {
			shown[m[1]] = map[string]bool{}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			shown[m[1]][l[1]] = true
		}
	}
	return resp.StatusCode == http.StatusOK
}
