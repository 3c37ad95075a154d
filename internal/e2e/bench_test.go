package e2e_test

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// These benchmarks load real processes with the generators that the field uses, in turns with a peer (see
// servePeer). Generator and server share the machine, whose speed drifts: compare the CPU microseconds of the
// server per request, and above all their ratio to the peer's in the same round. Run them with make bench; each
// loads both sides rounds times, whatever b.N is.
const (
	seconds = "2"
	rounds  = 3
)

// BenchmarkDNS asks a node for 1,000 names by dnsperf; the peer is a bare handler of the DNS library.
func BenchmarkDNS(b *testing.B) {
	need(b, "dnsperf")
	f := newFleet(b, "", 1)
	var file, queries strings.Builder
	file.WriteString("$TTL 300\n@ NS ns1\nns1 A 192.0.2.53\n")
	for i := range 1000 {
		fmt.Fprintf(&file, "host%d A 192.0.2.%d\n", i, i%250+1)
		fmt.Fprintf(&queries, "host%d.bench.test A\n", i)
	}
	f.gdn("zone", "create", "bench.test")
	f.gdn("zone", "import", "bench.test", f.file("bench.zone", file.String()))
	f.gdn("apply", "-m", "bench")
	f.serving(1)
	addr := freeAddr(b)
	peer := startPeer(b, f, "dns", addr, func() error {
		_, err := dns.Exchange(new(dns.Msg).SetQuestion("host1.bench.test.", dns.TypeA), addr)
		return err
	})
	names := f.file("queries", queries.String())
	ask := func(server string) generator {
		host, port, _ := strings.Cut(server, ":")
		return generator{
			args: []string{"dnsperf", "-s", host, "-p", port, "-T", "1", "-c", "16", "-q", "200", "-l", seconds, "-d", names},
			done: `Queries completed:\s+(\d+)`, rate: `Queries per second:\s+([\d.]+)`, lost: `Queries lost:\s+(\d+)`,
		}
	}
	compare(b, side{f.nodes[0].process, ask(f.nodes[0].dns), false}, side{peer, ask(addr), true})
}

// BenchmarkProxy fetches a small page through a node by wrk, keep-alive, two rules in its path; the peer is a bare
// httputil.ReverseProxy to the same origin.
func BenchmarkProxy(b *testing.B) {
	need(b, "wrk")
	f := newFleet(b, "", 1)
	m := newMarked(f)
	if _, err := m.publish(b.Context(), 1); err != nil {
		b.Fatal(err)
	}
	f.serving(1)
	addr := freeAddr(b)
	peer := startPeer(b, f, "proxy", addr, func() error { return httpOK("http://" + addr + "/") })
	compare(b, side{f.nodes[0].process, wrk("http://"+f.nodes[0].http+"/page?x=1", "Host: www.one.test"), false},
		side{peer, wrk("http://"+addr+"/page?x=1", "Host: www.one.test"), true})
}

// BenchmarkPoll204 is the control plane's most frequent answer: a node that is current, authenticated. The peer
// is a bare handler of net/http that answers 204.
func BenchmarkPoll204(b *testing.B) {
	need(b, "wrk")
	f := newFleet(b, "", 1)
	f.gdn("zone", "create", "bench.test")
	f.gdn("apply", "-m", "bench")
	f.serving(1)
	f.nodes[0].kill()
	addr := freeAddr(b)
	peer := startPeer(b, f, "204", addr, func() error {
		if err := httpOK("http://" + addr); err != nil && !strings.Contains(err.Error(), "204") {
			return err
		}
		return nil
	})
	const path = "/v1/node/config?have=1&generation=1&epoch=1"
	auth := "Authorization: Bearer " + f.nodes[0].token
	compare(b, side{f.control, wrk("http://"+f.apiAddr+path, auth), false}, side{peer, wrk("http://"+addr+path, auth), true})
}

func need(b *testing.B, tool string) {
	b.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		b.Fatalf("%s is not installed; the Debian package has its name", tool)
	}
}

// generator is a command that loads a server, and where its output tells how many requests were answered, how
// many a second, and how many failed.
type generator struct {
	args             []string
	done, rate, lost string
}

func wrk(url, header string) generator {
	return generator{
		args: []string{"wrk", "-t2", "-c64", "-d" + seconds + "s", "-H", header, url},
		done: `(\d+) requests in`, rate: `Requests/sec:\s+([\d.]+)`, lost: `Non-2xx or 3xx responses: (\d+)`,
	}
}

// side is a server and what loads it.
type side struct {
	*process
	generator
	peer bool
}

// load runs the generator and returns requests/s and the server's CPU microseconds per request.
func (s side) load(b *testing.B) (perSecond, cpu float64) {
	b.Helper()
	before := s.cpuMicroseconds(b)
	out, err := exec.Command(s.args[0], s.args[1:]...).CombinedOutput()
	after := s.cpuMicroseconds(b)
	if err != nil {
		b.Fatalf("%s: %v\n%s", s.args[0], err, out)
	}
	// What a peer loses is its own affair.
	if n, ok := find(out, s.lost); ok && n > 0 && !s.peer {
		b.Errorf("%s: %.0f requests failed:\n%s", s.name, n, out)
	}
	answered, ok := find(out, s.done)
	if !ok || answered == 0 {
		b.Fatalf("%s tells no count:\n%s", s.args[0], out)
	}
	perSecond, _ = find(out, s.rate)
	return perSecond, (after - before) / answered
}

// compare loads both in turns and reports medians.
func compare(b *testing.B, own, peer side) {
	b.Helper()
	var rates, cpus, ratios []float64
	for range rounds {
		rate, cpu := own.load(b)
		_, peerCPU := peer.load(b)
		rates, cpus, ratios = append(rates, rate), append(cpus, cpu), append(ratios, cpu/peerCPU)
	}
	b.ReportMetric(0, "ns/op") // of no meaning here
	b.ReportMetric(median(rates), "requests/s")
	b.ReportMetric(median(cpus), "cpu-µs/request")
	b.ReportMetric(median(ratios), "×peer-cpu")
}

func median[T cmp.Ordered](v []T) T {
	return slices.Sorted(slices.Values(v))[len(v)/2]
}

func find(out []byte, pattern string) (float64, bool) {
	m := regexp.MustCompile(pattern).FindSubmatch(out)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	return n, err == nil
}

// cpuMicroseconds is what the process used so far, user and system (proc_pid_stat(5), fields 14 and 15, in
// clock ticks of 10 ms).
func (p *process) cpuMicroseconds(b *testing.B) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := bytes.Cut(raw, []byte(") "))
	fields := strings.Fields(string(rest))
	var ticks float64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return ticks * 10_000
}
