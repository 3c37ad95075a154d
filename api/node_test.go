package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

func TestPoll(t *testing.T) {
	p := newPlane(t)
	headers := []string{seal.HeaderVersion, seal.HeaderHash, seal.HeaderSignature, seal.HeaderKeyID, seal.HeaderActivation, seal.HeaderGeneration, seal.HeaderFreshness}
	poll := func(query string, lines ...string) answer {
		t.Helper()
		return p.request("node", "GET", "/v1/node/config"+query, "", lines...)
	}
	check := func(name string, a answer, status int, present ...string) {
		t.Helper()
		if a.status != status {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, status)
		}
		want := map[string]bool{}
		for _, h := range present {
			want[h] = true
		}
		for _, h := range headers {
			if got := a.header.Get(h) != ""; got != want[h] {
				t.Errorf("%s: header %s is %q", name, h, a.header.Get(h))
			}
		}
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: may be stored", name)
		}
	}
	check("nothing published", poll("?have=0"), 204)
	check("nothing published, new form", poll("?have=0&generation=0&epoch=0"), 204)
	check("ahead of nothing", poll("?have=7&generation=7&epoch=1"), 409)

	res := p.publish("one")
	full := []string{seal.HeaderVersion, seal.HeaderHash, seal.HeaderSignature, seal.HeaderKeyID, seal.HeaderActivation, seal.HeaderGeneration}
	a := poll("?have=0")
	check("first", a, 200, full...)
	if a.header.Get("Content-Type") != "application/octet-stream" || a.header.Get("Content-Length") != strconv.Itoa(len(a.body)) {
		t.Errorf("payload's headers %v", a.header)
	}
	version, generation := strconv.FormatUint(res.Version, 10), strconv.FormatUint(res.Generation, 10)
	if a.header.Get(seal.HeaderVersion) != version || a.header.Get(seal.HeaderGeneration) != generation || a.header.Get(seal.HeaderHash) != res.ContentHash {
		t.Errorf("envelope %v", a.header)
	}
	current := "?have=" + version + "&generation=" + generation + "&epoch=1"
	check("current by version", poll("?have="+version), 204, seal.HeaderVersion, seal.HeaderGeneration)
	b := poll(current)
	check("current", b, 204, seal.HeaderVersion, seal.HeaderGeneration)
	if b.body != "" || b.header.Get(seal.HeaderVersion) != version {
		t.Errorf("204 with %q, version %s", b.body, b.header.Get(seal.HeaderVersion))
	}
	check("fresh", poll(current+"&nonce=0123456789abcdef"), 204, seal.HeaderVersion, seal.HeaderGeneration, seal.HeaderFreshness)
	check("fresh artefact", poll("?have=0&nonce=0123456789abcdef"), 200, append(full, seal.HeaderFreshness)...)
	check("ahead", poll("?have=9&generation=9&epoch=1"), 409)
	check("ahead by epoch", poll("?have="+version+"&generation="+generation+"&epoch=2"), 409)
	check("the artefact was lost", poll("?have=0&generation="+generation+"&epoch=1"), 200, full...)

	for name, row := range map[string]struct{ query, header, says string }{
		"no have":             {query: "?generation=1&epoch=1", says: "have"},
		"no query":            {query: "", says: "have"},
		"unknown":             {query: "?have=0&debug=1", says: "debug"},
		"repeated":            {query: "?have=0&have=0", says: "more than once"},
		"escaped name":        {query: "?h%61ve=0", says: "unknown_parameter"},
		"empty pair":          {query: "?have=0&", says: "unknown_parameter"},
		"negative":            {query: "?have=-1", says: "have"},
		"sign":                {query: "?have=+1", says: "have"},
		"leading zero":        {query: "?have=01", says: "have"},
		"2^64":                {query: "?have=18446744073709551616", says: "have"},
		"exponent":            {query: "?have=1e2", says: "have"},
		"half":                {query: "?have=0&generation=1", says: "epoch"},
		"short nonce":         {query: "?have=0&nonce=0123456789abcde", says: "nonce"},
		"long nonce":          {query: "?have=0&nonce=" + strings.Repeat("0", 65), says: "nonce"},
		"nonce not hex":       {query: "?have=0&nonce=0123456789abcdeg", says: "nonce"},
		"wait too long":       {query: "?have=0&wait=56", says: "wait"},
		"wait overflow":       {query: "?have=0&wait=18446744073709551615", says: "wait"},
		"key ids":             {query: "?have=0", header: "x-guardyn-config-trusted-keys: nope", says: "key id"},
		"too many key ids":    {query: "?have=0", header: "x-guardyn-config-trusted-keys: " + strings.Repeat("0123456789abcdef,", 64) + "0123456789abcdef", says: "64"},
		"everything is named": {query: "?hav=1&wait=99&nonce=x", says: "parameter wait"},
	} {
		var lines []string
		if row.header != "" {
			lines = append(lines, row.header)
		}
		if a := poll(row.query, lines...); a.status != 400 || !strings.Contains(a.body, row.says) {
			t.Errorf("%s: %d %s, want 400 with %q", name, a.status, a.body, row.says)
		}
	}
}

// A poll that waits is answered the moment something is activated, and at its end.
func TestLongPoll(t *testing.T) {
	p := newPlane(t)
	first := p.publish("one")
	c := p.nodeClient("node")
	q := nodeproto.Poll{Have: first.Version, Generation: first.Generation, Epoch: 1, Wait: 55 * time.Second}
	type result struct {
		a   nodeproto.Answer
		err error
	}
	results := make(chan result, 8)
	var waiting sync.WaitGroup
	for range cap(results) {
		waiting.Go(func() {
			a, err := c.Poll(t.Context(), q)
			results <- result{a, err}
		})
	}
	p.until("all polls wait", func() bool { return p.svc.Stats().LongPolls == int64(cap(results)) })
	second := p.publish("two")
	waiting.Wait()
	for range cap(results) {
		r := <-results
		if r.err != nil || r.a.Artefact == nil || r.a.Artefact.Version != second.Version {
			t.Fatalf("woken with %+v, %v", r.a, r.err)
		}
		trusted, err := seal.Trust(p.key.Public())
		p.must(err)
		if _, err := seal.Open(*r.a.Artefact, trusted, nil); err != nil {
			t.Fatalf("what travelled does not open: %v", err)
		}
	}
	// At the end of the wait: 204.
	q = nodeproto.Poll{Have: second.Version, Generation: second.Generation, Epoch: 1, Wait: time.Second}
	a, err := c.Poll(t.Context(), q)
	if err != nil || a.Artefact != nil || a.Version != second.Version {
		t.Errorf("end of the wait: %+v, %v", a, err)
	}
	// A client that goes away does not stay in the count.
	q.Wait = 55 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := c.Poll(ctx, q); gone <- err }()
	p.until("the poll waits", func() bool { return p.svc.Stats().LongPolls == 1 })
	cancel()
	if err := <-gone; err == nil {
		t.Error("a poll that was given up succeeded")
	}
	p.until("the poll is released", func() bool { return p.svc.Stats().LongPolls == 0 })
	// A server that drains answers at once.
	go func() { _, err := c.Poll(t.Context(), q); gone <- err }()
	p.until("the poll waits", func() bool { return p.svc.Stats().LongPolls == 1 })
	p.drain()
	p.until("the poll is answered", func() bool { return p.svc.Stats().LongPolls == 0 })
	if err := <-gone; err != nil {
		t.Errorf("drained: %v", err)
	}
}

// until waits for a condition that another goroutine brings about.
func (p *plane) until(what string, ok func() bool) {
	p.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			p.t.Fatalf("gave up waiting: %s", what)
		}
	}
}

func TestAck(t *testing.T) {
	p := newPlane(t)
	res := p.publish("one")
	ctx, op := t.Context(), p.client("operator")
	good := nodeproto.Ack{
		Version: res.Version, Generation: res.Generation, Epoch: 1, ContentHash: res.ContentHash,
		Boot: strings.Repeat("0a", 16), TrustedKeys: []seal.KeyID{p.key.ID()}, Freshness: "fresh",
	}
	p.must(p.nodeClient("node").Ack(ctx, good))
	p.must(p.nodeClient("node").Ack(ctx, good)) // twice is once
	node := func(name string) api.Node {
		t.Helper()
		l, err := op.Nodes(ctx, api.PageOptions{})
		p.must(err)
		for _, n := range l.Items {
			if n.Name == name {
				return n
			}
		}
		t.Fatalf("no node %s", name)
		return api.Node{}
	}
	n := node("node")
	if n.Version != res.Version || n.VersionsBehind == nil || *n.VersionsBehind != 0 || *n.GenerationsBehind != 0 ||
		n.Freshness != "fresh" || len(n.TrustedKeys) != 1 || n.Address != "127.0.0.1" || n.LastSeen.IsZero() || n.AckedAt.IsZero() {
		t.Errorf("node %+v", n)
	}
	if n := node("node2"); n.VersionsBehind != nil || n.Version != 0 {
		t.Errorf("the other node: %+v", n)
	}
	never := good
	never.Version, never.Generation = 99, 99
	wantProblem(t, p.nodeClient("node2").Ack(ctx, never), http.StatusConflict, "node_ahead")
	if n := node("node2"); n.VersionsBehind != nil {
		t.Errorf("after a refused ack: %+v", n)
	}
	// There is no way to say for whom: what a later node may say beside is passed over.
	body, err := json.Marshal(map[string]any{"version": 0, "boot": good.Boot, "node": p.nodes["node"], "load": []int{1, 2}})
	p.must(err)
	if a := p.request("node2", "POST", "/v1/node/ack", string(body)); a.status != 204 {
		t.Errorf("an ack with more members: %d %s", a.status, a.body)
	}
	if n := node("node"); n.Version != res.Version {
		t.Errorf("node2 spoke for another: %+v", n)
	}
	if a := p.request("node2", "POST", "/v1/node/ack", `{"version":0,"version":1}`); a.status != 400 && a.status != 422 {
		t.Errorf("a repeated member: %d %s", a.status, a.body)
	}
	if a := p.request("node", "POST", "/v1/node/ack", `{"version":1,"boot":"`+strings.Repeat("x", 64<<10)+`"}`); a.status != 413 {
		t.Errorf("large ack: %d", a.status)
	}
	bad := good
	bad.Error = &nodeproto.AckError{Code: "compile_failed", Message: "zone example.com: \x1b[31mbad", Version: res.Version}
	p.must(p.nodeClient("node").Ack(ctx, bad))
	if n := node("node"); n.LastError == nil || n.LastError.Code != "compile_failed" {
		t.Errorf("after a rejection: %+v", n)
	}
	forged := good
	forged.Error = &nodeproto.AckError{Code: "signature_invalid", Message: "it does not verify", Version: res.Version}
	p.must(p.nodeClient("node").Ack(ctx, forged))
	if a := p.request("anonymous", "GET", "/metrics", ""); !strings.Contains(a.body, `guardyn_node_refusals_total{reason="signature"} 1`) ||
		!strings.Contains(a.body, `guardyn_node_refusals_total{reason="other"} 1`) {
		t.Errorf("metrics of refusals:\n%s", a.body)
	}
	log, err := op.Audit(ctx, api.AuditOptions{All: true})
	p.must(err)
	rejected := false
	for _, e := range log.Items {
		rejected = rejected || e.Action == "config.node_rejected" && strings.Contains(e.Actor, "node")
	}
	if !rejected {
		t.Error("the rejection is not in the audit log")
	}
}
