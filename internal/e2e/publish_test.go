package e2e_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// marked is a configuration in which everything that one answer can show carries the same mark: two
// records of one RRset, a chain over two zones, and three places that a proxied answer passes.
type marked struct {
	f *fleet
	c *api.Client
}

func newMarked(f *fleet) *marked {
	f.t.Helper()
	c, err := api.NewClient("http://"+f.apiAddr, f.token, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.gdn("zone", "create", "one.test")
	f.gdn("zone", "create", "two.test")
	f.gdn("settings", "set", "one.test", "version_header=true")
	f.gdn("pool", "set", "one.test", "default", f.file("pool.yaml", "origins:\n  - {name: demo, address: \""+f.origin+"\"}\n"))
	return &marked{f, c}
}

// publish writes mark k everywhere and applies. It returns the version.
func (m *marked) publish(ctx context.Context, k int) (uint64, error) {
	if err := m.write(ctx, k); err != nil {
		return 0, err
	}
	res, err := m.c.Apply(ctx, api.ApplyRequest{Message: fmt.Sprintf("mark %d", k), AcceptDisruption: true})
	if err != nil {
		return 0, fmt.Errorf("apply: %w", err)
	}
	return res.Version, nil
}

// write writes mark k everywhere, for the next apply.
func (m *marked) write(ctx context.Context, k int) error {
	one := fmt.Sprintf(`$TTL 60
@ SOA ns1 hostmaster 1 7200 3600 1209600 300
@ NS ns1
ns1 A 192.0.2.53
@ TXT "mark=%[1]d first"
@ TXT "mark=%[1]d second"
alias CNAME c%[1]d.two.test.
www A 127.0.0.1 ; proxied
`, k)
	two := fmt.Sprintf("$TTL 60\nc%[1]d TXT \"mark=%[1]d\"\n", k)
	for name, file := range map[string]string{"one.test": one, "two.test": two} {
		if _, err := m.c.ImportZone(ctx, name, strings.NewReader(file), api.ImportOptions{Replace: true}); err != nil {
			return fmt.Errorf("import %s: %w", name, err)
		}
	}
	for phase, of := range map[string]string{
		// What a request is asked with is part of what is cached: those of the paths that the cache keeps are asked for alike.
		"transform_request":  `http.path != "/kept" && http.path != "/renewed"`,
		"transform_response": "true",
	} {
		rules := api.Ruleset{Rules: []zone.Rule{{
			Expression: of, Action: zone.ActionSetHeader,
			Parameters: zone.Parameters{Name: "x-mark", Value: fmt.Sprint(k)},
		}}}
		if _, _, err := m.c.PutRuleset(ctx, "one.test", phase, rules, api.WriteOptions{}); err != nil {
			return fmt.Errorf("put %s: %w", phase, err)
		}
	}
	return nil
}

// askMark asks a node by DNS and returns the mark, or an error for anything but a whole answer of one
// version.
func askMark(c *dns.Client, server string, q dns.Question) (string, error) {
	msg := new(dns.Msg)
	msg.SetQuestion(q.Name, q.Qtype)
	in, _, err := c.Exchange(msg, server)
	if err != nil {
		return "", err
	}
	if in.Rcode != dns.RcodeSuccess || !in.Authoritative || len(in.Answer) != 2 {
		return "", fmt.Errorf("answer is not whole: %s", in)
	}
	var marks []string
	for _, rr := range in.Answer {
		switch rr := rr.(type) {
		case *dns.TXT:
			mark, _, _ := strings.Cut(strings.TrimPrefix(strings.Join(rr.Txt, ""), "mark="), " ")
			marks = append(marks, mark)
		case *dns.CNAME:
			marks = append(marks, strings.TrimSuffix(strings.TrimPrefix(rr.Target, "c"), ".two.test."))
		default:
			return "", fmt.Errorf("unexpected record %s", rr)
		}
	}
	if marks[0] != marks[1] || marks[0] == "" {
		return "", fmt.Errorf("one answer of two versions: %s", in)
	}
	return marks[0], nil
}

// askPage fetches the proxied page and checks that every part of the answer is of one version.
func askPage(c *http.Client, addr string) (mark string, err error) {
	return askURL(c, "http://"+addr+"/page?x=1")
}

// askURL is askPage for a node's URL of the page.
func askURL(c *http.Client, url string) (mark string, err error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Host = "www.one.test"
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK || string(body) != "origin www.one.test /page?x=1\n" {
		return "", fmt.Errorf("answer is not whole: %s %q", resp.Status, body)
	}
	mark = resp.Header.Get("x-mark")
	if seen := resp.Header.Get("x-seen-mark"); mark == "" || seen != mark {
		return "", fmt.Errorf("one answer of two versions: request rules marked %q, response rules %q", seen, mark)
	}
	if resp.Header.Get("x-guardyn-version") == "" {
		return "", fmt.Errorf("answer does not name its version")
	}
	return mark, nil
}

// TestControlPlaneAway kills the control plane: nodes answer; a node killed and started without it answers
// from its disk; once the control plane is back, one apply reaches both.
func TestControlPlaneAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", 2)
	m := newMarked(f)
	version, err := m.publish(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	f.serving(version)

	f.control.kill()
	f.answers("1")
	f.nodes[1].kill()
	f.nodes[1].start()
	f.await("node back from its disk", func() error {
		_, err := askPage(http.DefaultClient, f.nodes[1].http)
		return err
	})
	f.answers("1")

	f.startControl()
	if version, err = m.publish(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	f.serving(version)
	f.answers("2")
	if out := f.gdn("node", "list"); !strings.Contains(out, "edge-1") || !strings.Contains(out, "edge-2") {
		t.Errorf("node list:\n%s", out)
	}
}

// TestNodeTellsItself asks a node by DNS which one it is and what it serves.
func TestNodeTellsItself(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", 1)
	f.gdn("zone", "create", "one.test")
	f.gdn("apply", "-m", "first")
	f.serving(1)
	q := new(dns.Msg)
	q.SetQuestion("version.guardyn.", dns.TypeTXT)
	q.Question[0].Qclass = dns.ClassCHAOS
	q.SetEdns0(1232, false)
	q.IsEdns0().Option = append(q.IsEdns0().Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
	in, err := dns.Exchange(q, f.nodes[0].dns)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Answer) != 1 || !strings.Contains(in.Answer[0].String(), "version=1") {
		t.Errorf("version: %s", in)
	}
	if opt := in.IsEdns0(); opt == nil || len(opt.Option) != 1 || opt.Option[0].String() != hex.EncodeToString([]byte("edge-1")) {
		t.Errorf("NSID: %s", in)
	}
}

// answers checks that every node answers by DNS and HTTP with mark.
func (f *fleet) answers(mark string) {
	f.t.Helper()
	for _, n := range f.nodes {
		for _, network := range []string{"udp", "tcp"} {
			got, err := askMark(&dns.Client{Net: network}, n.dns, dns.Question{Name: "alias.one.test.", Qtype: dns.TypeTXT})
			if err != nil || got != mark {
				f.t.Errorf("%s over %s: mark %q, %v; want %q", n.name, network, got, err, mark)
			}
		}
		if got, err := askPage(http.DefaultClient, n.http); err != nil || got != mark {
			f.t.Errorf("%s over HTTP: mark %q, %v; want %q", n.name, got, err, mark)
		}
	}
}

// TestSecondNodeOnOneDirectory proves that two processes never share a state directory.
func TestSecondNodeOnOneDirectory(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "", 1)
	n := f.nodes[0]
	second := startProcess(t, "second node", []string{
		"GUARDYN_API_URL=http://" + f.apiAddr, "GUARDYN_NODE_TOKEN=" + n.token,
		"GUARDYN_CONFIG_PUBLIC_KEYS=" + f.key.Public().String(), "GUARDYN_STATE_DIR=" + n.dir,
		"GUARDYN_DNS_LISTEN=127.0.0.1:0", "GUARDYN_HTTP_LISTEN=127.0.0.1:0", "GUARDYN_ADMIN_LISTEN=127.0.0.1:0",
	}, "edge")
	<-second.ended
	if code := second.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(second.output.String(), "in use by another process") {
		t.Errorf("exit code %d:\n%s", code, second.output)
	}
	if c, err := net.Dial("tcp", n.http); err != nil {
		t.Errorf("the first node is gone: %v", err)
	} else {
		_ = c.Close()
	}
}
