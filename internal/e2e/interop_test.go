package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// interopApex is the zone of testdata/interop.zone.
const interopApex = "interop.test."

// TestInterop publishes one zone file to a node and loads it into other authoritative servers, asks all of them the same,
// and compares the answers: the whole of each section but its order, TTLs, flags and response code. What differs for a
// reason is in interopDifferences; anything else is an error.
func TestInterop(t *testing.T) {
	file, err := os.ReadFile("testdata/interop.zone")
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, "", 1)
	apex := strings.TrimSuffix(interopApex, ".")
	f.gdn("zone", "create", apex)
	f.gdn("zone", "import", apex, f.file("interop.zone", string(file)))
	f.gdn("apply", "-m", "interop")
	f.serving(1)
	servers := map[string]string{"knot": startKnot(t, f), "nsd": startNSD(t, f)}

	used := make([]int, len(interopDifferences))
	queries := interopQueries(string(file))
	var differ int
	for _, q := range queries {
		own, err := q.ask(f.nodes[0].dns)
		if err != nil {
			t.Fatalf("node: %s: %v", q, err)
		}
		for name, addr := range servers {
			theirs, err := q.ask(addr)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, q, err)
			}
			found := differences(q, own, theirs)
			if len(found) == 0 {
				continue
			}
			if i := knownDifference(name, q, own, theirs, found); i >= 0 {
				used[i]++
				continue
			}
			if differ++; differ <= 20 {
				t.Errorf("%s: %s: %s\n--- the node\n%s\n--- %s\n%s", name, q, strings.Join(found, ", "), own, name, theirs)
			}
		}
	}
	if len(queries) < 1000 {
		t.Errorf("%d queries, want 1,000 and more", len(queries))
	}
	for i, d := range interopDifferences {
		if used[i] == 0 {
			t.Errorf("the difference to %s is not there any more: %s", d.server, d.reason)
		}
		t.Logf("%5d answers of %-5s differ: %s", used[i], d.server, d.reason)
	}
	t.Logf("%d queries, %d servers, %d differences without a reason", len(queries), len(servers), differ)
}

// installed is the path of a server that Debian puts out of a user's way.
func installed(t testing.TB, program, debian string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin") {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed: the Debian package %s has it, and hack/need.sh %s installs it", program, debian, debian)
	return ""
}

// startKnot serves the zone file by Knot DNS and returns its address.
func startKnot(t *testing.T, f *fleet) (addr string) {
	t.Helper()
	program := installed(t, "knotd", "knot")
	addr = freeAddr(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "knot.conf")
	text := fmt.Sprintf(`server:
    rundir: "%[1]s"
    listen: %[2]s
database:
    storage: "%[1]s"
zone:
  - domain: %[3]s
    storage: "%[4]s"
    file: "interop.zone"
    zonefile-sync: -1
    journal-content: none
    semantic-checks: off
log:
  - target: stderr
    any: warning
`, dir, strings.Replace(addr, ":", "@", 1), interopApex, f.dir)
	writeFile(t, conf, text)
	startBinary(t, program, "knot", nil, "-c", conf)
	f.await("knot answers", func() error { return answersZone(addr) })
	return addr
}

// startNSD serves the zone file by NSD and returns its address.
func startNSD(t *testing.T, f *fleet) (addr string) {
	t.Helper()
	program := installed(t, "nsd", "nsd")
	addr = freeAddr(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "nsd.conf")
	host, port, _ := strings.Cut(addr, ":")
	text := fmt.Sprintf(`server:
    ip-address: %[2]s
    port: %[3]s
    server-count: 1
    username: ""
    chroot: ""
    zonesdir: "%[1]s"
    database: ""
    pidfile: ""
    xfrdfile: "%[1]s/xfrd.state"
    xfrdir: "%[1]s"
    zonelistfile: "%[1]s/zone.list"
    minimal-responses: yes
    rrl-ratelimit: 0
remote-control:
    control-enable: no
zone:
    name: %[4]s
    zonefile: "%[5]s/interop.zone"
`, dir, host, port, interopApex, f.dir)
	writeFile(t, conf, text)
	startBinary(t, program, "nsd", nil, "-d", "-c", conf)
	f.await("nsd answers", func() error { return answersZone(addr) })
	return addr
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// answersZone reports whether a server has the zone.
func answersZone(addr string) error {
	a, err := dns.Exchange(new(dns.Msg).SetQuestion(interopApex, dns.TypeSOA), addr)
	if err == nil && (a.Rcode != dns.RcodeSuccess || len(a.Answer) != 1) {
		err = fmt.Errorf("it answers %v", a)
	}
	return err
}
