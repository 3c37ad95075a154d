package e2e_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/wat"
	"github.com/guardyn-edge/guardyn/zone"
)

const swapHost = "www.one.test"

// swapFleet is a node on which everything is in use, with the origin that its clients speak to.
type swapFleet struct {
	*marked
	*load
	node  *edgeNode
	roots *x509.CertPool
	// kept and renewed count what the origins were asked for, of two paths that the cache keeps.
	kept, renewed atomic.Int64
}

// newSwapFleet starts a control plane and one node that serves HTTPS, with TLS, a balancer over two origins, health checks and
// rules in every phase.
func newSwapFleet(t *testing.T) *swapFleet {
	t.Helper()
	out, err := exec.Command(gdn, "keys", "identity", "--json").Output()
	var id struct{ Recipient, Identity string }
	if err == nil {
		err = json.Unmarshal(out, &id)
	}
	if err != nil || id.Identity == "" {
		t.Fatalf("keys identity: %v\n%s", err, out)
	}
	s := &swapFleet{load: &load{t: t}, roots: x509.NewCertPool()}
	f := newFleet(t, "", 1, func(f *fleet) {
		f.identity, f.recipient, f.origin = id.Identity, id.Recipient, s.startOrigin()
	})
	s.marked, s.node = newMarked(f), f.nodes[0]
	cert, key := selfSigned(t, swapHost)
	s.roots.AppendCertsFromPEM(cert)
	f.gdn("pool", "set", "one.test", "web", f.file("web.yaml",
		"origins:\n  - {name: a, address: \""+f.origin+"\"}\n  - {name: b, address: \""+s.startOrigin()+"\"}\nhealth: {path: /healthz, interval: 1s}\n"))
	f.gdn("balancer", "set", "one.test", swapHost, f.file("balancer.yaml", "pools: [web]\nsticky: {cookie: home}\n"))
	f.gdn("list", "set", "one.test", "office", f.file("list.yaml", "kind: ip\nitems: [192.0.2.0/24]\n"))
	rules := func(phase, yaml string) {
		f.gdn("rules", "set", "one.test", phase, f.file(phase+".yaml", "rules:\n"+yaml))
	}
	rules("redirect", "  - {expression: 'http.path == \"/moved\"', action: redirect, parameters: {location: /page}}\n")
	rules("custom", "  - {expression: 'http.path.startsWith(\"/wp-\") && !in_list(ip.src, \"office\")', action: block}\n")
	rules("ratelimit", "  - {expression: 'true', action: rate_limit, parameters: {limit: 1000000, period: 1s}}\n")
	rules("origin", "  - {expression: 'http.path == \"/elsewhere\"', action: route, parameters: {pool: default}}\n")
	module, err := wat.Answer("Content-Type: text/plain\n\n"+functionPage, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.gdn("function", "add", "one.test", "hello", f.file("hello.wasm", string(module)))
	rules("function", "  - {expression: 'http.path == \"/function\"', action: function, parameters: {function: hello}}\n")
	f.gdn("settings", "set", "one.test", "trace_sampling=1%", "log_sampling=1%", "hsts=180d")
	f.gdn("tls", "add", "one.test", swapHost, "--cert", f.file("www.pem", string(cert)), "--key", f.file("www.key", string(key)))
	return s
}

// functionPage is what the function answers with.
const functionPage = "made here\n"

// write is marked.write with more that changes: a list whose copies would add up if a view were kept, and for how long what is
// under /renewed is fresh.
func (s *swapFleet) write(ctx context.Context, k int) error {
	items := make([]string, 2000)
	for i := range items {
		items[i] = fmt.Sprintf("10.%d.%d.%d/32", k%250, i/250, i%250)
	}
	if _, _, err := s.c.PutList(ctx, "one.test", "many", zone.List{Kind: zone.ListIP, Items: items}, api.WriteOptions{}); err != nil {
		return err
	}
	rules := api.Ruleset{Rules: []zone.Rule{{
		Expression: `http.path == "/renewed"`, Action: zone.ActionCache, Parameters: zone.Parameters{TTL: zone.Duration(time.Hour + time.Duration(k)*time.Second)},
	}}}
	if _, _, err := s.c.PutRuleset(ctx, "one.test", "cache", rules, api.WriteOptions{}); err != nil {
		return err
	}
	return s.marked.write(ctx, k)
}

// startOrigin serves the page that says what reached it, a WebSocket that echoes, and a stream of counted lines.
func (s *swapFleet) startOrigin() string {
	t := s.t
	t.Helper()
	mux := http.NewServeMux()
	for path, count := range map[string]*atomic.Int64{"/kept": &s.kept, "/renewed": &s.renewed} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			count.Add(1)
			w.Header().Set("Cache-Control", "max-age=3600")
			fmt.Fprintf(w, "origin %s\n", r.URL.Path)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-seen-mark", r.Header.Get("x-mark"))
		fmt.Fprintf(w, "origin %s %s\n", r.Host, r.URL.RequestURI())
	})
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/socket", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return l.Addr().String()
}

// selfSigned makes a certificate for host and its key, in PEM.
func selfSigned(t testing.TB, host string) (cert, key []byte) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TestAppliesUnderLoad publishes two hundred small changes, or as many as fit into the duration that GUARDYN_TEST_SOAK names,
// on a node that has everything in use, while clients hammer it: DNS by UDP and TCP, HTTP/1.1, HTTP/2, connections that each
// are for one request, and WebSockets and streams that are open from the first change to the last. No request fails, every
// answer is wholly of one version, and nothing is left of a version that is over.
func TestAppliesUnderLoad(t *testing.T) {
	const applies, settled = 200, 15
	more := func(k int) bool { return k <= applies }
	if soak := os.Getenv("GUARDYN_TEST_SOAK"); soak != "" {
		d, err := time.ParseDuration(soak)
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(d)
		more = func(int) bool { return time.Now().Before(end) }
	}
	s := newSwapFleet(t)
	publish := func(k int) uint64 {
		t.Helper()
		if err := s.write(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		res, err := s.c.Apply(t.Context(), api.ApplyRequest{Message: fmt.Sprintf("mark %d", k), AcceptDisruption: true})
		if err != nil {
			t.Fatal(err)
		}
		return res.Version
	}
	s.f.serving(publish(0))
	idle := s.held()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for _, q := range []dns.Question{{Name: "one.test.", Qtype: dns.TypeTXT}, {Name: "alias.one.test.", Qtype: dns.TypeTXT}} {
		for _, network := range []string{"udp", "tcp"} {
			s.hammer(ctx, "DNS by "+network, func() (string, error) {
				return askMark(&dns.Client{Net: network, Timeout: 10 * time.Second}, s.node.dns, q)
			})
		}
	}
	for path, body := range map[string]string{"/kept": "origin /kept\n", "/renewed": "origin /renewed\n", "/function": functionPage} {
		c := &http.Transport{}
		s.connected = append(s.connected, c)
		client := &http.Client{Timeout: 20 * time.Second, Transport: c}
		s.hammer(ctx, path, func() (string, error) { return askWhole(client, "http://"+s.node.http+path, body) })
	}
	overTLS := &tls.Config{RootCAs: s.roots, ServerName: swapHost}
	secure := "https://" + s.node.https
	for what, c := range map[string]*http.Transport{
		"HTTP/1.1":                    {},
		"HTTP/1.1, many connections":  {DisableKeepAlives: true},
		"HTTP/1.1 over TLS":           {TLSClientConfig: overTLS.Clone(), TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}},
		"HTTP/2":                      {TLSClientConfig: overTLS.Clone(), ForceAttemptHTTP2: true},
		"HTTP/2, another connection":  {TLSClientConfig: overTLS.Clone(), ForceAttemptHTTP2: true},
		"HTTP/1.1, the way to itself": {MaxConnsPerHost: 1},
	} {
		url := "http://" + s.node.http
		if c.TLSClientConfig != nil {
			url = secure
		}
		client := &http.Client{Timeout: 20 * time.Second, Transport: protocol{c, strings.HasPrefix(what, "HTTP/2")}}
		s.connected = append(s.connected, c)
		s.hammer(ctx, what, func() (string, error) { return askURL(client, url+"/page?x=1") })
	}
	plain := &http.Transport{TLSClientConfig: overTLS.Clone()}
	two := &http.Transport{TLSClientConfig: overTLS.Clone(), ForceAttemptHTTP2: true}
	s.connected = append(s.connected, plain, two)
	long := &http.Client{Transport: plain}
	s.socket(ctx, "WebSocket", "ws://"+s.node.http+"/socket", long)
	s.socket(ctx, "WebSocket over TLS", "wss://"+s.node.https+"/socket", long)
	s.stream(ctx, "stream by HTTP/1.1", "http://"+s.node.http+"/stream", long)
	s.stream(ctx, "stream by HTTP/2", secure+"/stream", &http.Client{Transport: protocol{two, true}})

	var last uint64
	var before held
	for k := 1; more(k) && s.failures.Load() == 0; k++ {
		if last = publish(k); k == settled {
			s.f.serving(last)
			before = s.held()
		}
	}
	s.f.serving(last)
	after := s.held()
	s.h2load(ctx, 2000)
	stop()
	s.clients.Wait()
	if n := s.failures.Load(); n > 0 {
		t.Fatalf("%d requests failed", n)
	}
	s.report(applies)
	// What no change treats otherwise is kept over all of them; what each treats otherwise is asked for anew by each, but for one that came
	// while an answer was on its way, which is judged by the change then and serves both.
	if n := s.kept.Load(); n > 2 {
		t.Errorf("what is kept alike was fetched %d times", n)
	}
	if n, of := s.renewed.Load(), int64(len(s.seen["/renewed"])); n < of/2 || n > of+2*int64(len(s.seen["HTTP/1.1"])) {
		t.Errorf("what each change keeps otherwise was fetched %d times under %d versions", n, of)
	}
	// A view of this platform takes about 200 kB: those of all changes since would take more.
	t.Logf("held under load after %d changes: %+v; after all: %+v", settled, before, after)
	if grown := after.heap - before.heap; grown > 10<<20 {
		t.Errorf("%.1f MB more are held after %d more changes", float64(grown)/1e6, applies-settled)
	}
	// As many clients have connections, and as many of theirs to origins are idle, but for what is opening or closing just then.
	if more := after.files - before.files; more > 40 {
		t.Errorf("%d more files are open after %d more changes", more, applies-settled)
	}
	for _, c := range s.connected {
		c.CloseIdleConnections()
	}
	s.f.await("nothing is left of clients", func() error {
		// Idle connections to the two origins stay, without a goroutine each.
		if now := s.held(); now.goroutines > idle.goroutines+4 {
			return fmt.Errorf("%d goroutines, %d before", now.goroutines, idle.goroutines)
		}
		return nil
	})
}

// held is what the node's process holds: bytes on the heap once it was collected, goroutines, and open files, which connections are too.
type held struct{ heap, goroutines, files int }

func (s *swapFleet) held() held {
	s.t.Helper()
	number := func(path, pattern string) int {
		s.t.Helper()
		res, err := http.Get("http://" + s.node.admin + "/debug/pprof/" + path)
		if err != nil {
			s.t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			s.t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			s.t.Fatalf("%s says nothing of %s", path, pattern)
		}
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			s.t.Fatal(err)
		}
		return n
	}
	heap, goroutines := number("heap?debug=1&gc=1", `# HeapAlloc = (\d+)`), number("goroutine?debug=1", `total (\d+)`)
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.node.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	return held{heap, goroutines, len(files)}
}

// h2load asks by HTTP/2 as another client than Go's speaks it.
func (s *swapFleet) h2load(ctx context.Context, n int) {
	s.t.Helper()
	cmd := exec.CommandContext(ctx, "h2load", "-n", strconv.Itoa(n), "-c", "4", "-m", "20", "--connect-to="+s.node.https, "https://"+swapHost+"/page?x=1")
	out, err := cmd.CombinedOutput()
	want := fmt.Sprintf("requests: %[1]d total, %[1]d started, %[1]d done, %[1]d succeeded, 0 failed, 0 errored, 0 timeout", n)
	if err != nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "Application protocol: h2") {
		s.t.Errorf("h2load: %v\n%s", err, out)
	}
}
