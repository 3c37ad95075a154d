package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// These benchmarks load real processes with the generators that the field uses and report requests/s and, since
// generator and server share the machine, the server's CPU microseconds per request. Run them with
// make bench; each runs its load once, for as long as seconds says, whatever b.N is.
const seconds = "5"

// BenchmarkDNS asks a node for 1,000 names by dnsperf.
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
	host, port, _ := strings.Cut(f.nodes[0].dns, ":")
	args := []string{"-s", host, "-p", port, "-T", "1", "-c", "16", "-q", "200", "-l", seconds, "-d", f.file("queries", queries.String())}
	load(b, f.nodes[0].process, `Queries completed:\s+(\d+)`, `Queries per second:\s+([\d.]+)`, `(?m)Queries lost:\s+(\d+)`, "dnsperf", args...)
}

// BenchmarkProxy fetches a small page through a node by wrk, keep-alive,.
func BenchmarkProxy(b *testing.B) {
	need(b, "wrk")
	f := newFleet(b, "", 1)
	m := newMarked(f)
	if _, err := m.publish(b.Context(), 1); err != nil {
		b.Fatal(err)
	}
	f.serving(1)
	load(b, f.nodes[0].process, `(\d+) requests in`, `Requests/sec:\s+([\d.]+)`, `Non-2xx or 3xx responses: (\d+)`,
		"wrk", "-t2", "-c64", "-d"+seconds+"s", "-H", "Host: www.one.test", "http://"+f.nodes[0].http+"/page?x=1")
}

// BenchmarkPoll204 is the control plane's most frequent answer: a node that is current, authenticated.
func BenchmarkPoll204(b *testing.B) {
	need(b, "wrk")
	f := newFleet(b, "", 1)
	f.gdn("zone", "create", "bench.test")
	f.gdn("apply", "-m", "bench")
	f.serving(1)
	f.nodes[0].kill()
	load(b, f.control, `(\d+) requests in`, `Requests/sec:\s+([\d.]+)`, `Non-2xx or 3xx responses: (\d+)`,
		"wrk", "-t2", "-c64", "-d"+seconds+"s", "-H", "Authorization: Bearer "+f.nodes[0].token,
		"http://"+f.apiAddr+"/v1/node/config?have=1&generation=1&epoch=1")
}

func need(b *testing.B, tool string) {
	b.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		b.Fatalf("%s is not installed; the Debian package has its name", tool)
	}
}

// load runs a generator against p and reports what it says. done, rate and lost are where its output tells
// how many were answered, how many a second, and how many failed.
func load(b *testing.B, p *process, done, rate, lost, name string, args ...string) {
	b.Helper()
	before := p.cpuMicroseconds(b)
	out, err := exec.Command(name, args...).CombinedOutput()
	after := p.cpuMicroseconds(b)
	if err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
	if n, ok := find(out, lost); ok && n > 0 {
		b.Errorf("%.0f requests failed:\n%s", n, out)
	}
	answered, ok := find(out, done)
	if !ok || answered == 0 {
		b.Fatalf("%s tells no count:\n%s", name, out)
	}
	perSecond, _ := find(out, rate)
	b.ReportMetric(0, "ns/op") // of no meaning here
	b.ReportMetric(perSecond, "requests/s")
	b.ReportMetric((after-before)/answered, "cpu-µs/request")
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
