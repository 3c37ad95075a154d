package e2e_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zeebo/blake3"
	_ "modernc.org/sqlite" // the driver, to write a platform's rows in bulk

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

const (
	fleetNodes    = 10_000
	fleetInterval = nodeproto.DefaultInterval
	// fleetVerified nodes verify what they are sent.
	fleetVerified = 10
	// fleetWarm and fleetMeasured are how long the nodes poll before what counts, and for what counts.
	fleetWarm, fleetMeasured = 5 * time.Second, 20 * time.Second
)

// BenchmarkFleet is one control plane on SQLite with 10,000 registered nodes, each with its own token and connection,
// which one generator on the same machine plays. /polls: every node asks every 5 s; a poll's time begins when it is
// due. /long-polls: every node waits, one record changes and is applied, every node says what payload it holds, fetches
// what it is sent, and acknowledges it; the generator receives every byte and checks that all are sent the same, and what
// came to a few of the nodes is unpacked and verified wholly, once the clock has stopped. Run it with make bench.
func BenchmarkFleet(b *testing.B) {
	b.Run("zones=10000/polls", func(b *testing.B) { newLoadedFleet(b, 1000, 10_000).polls(b) })
	b.Run("zones=10000/long-polls", func(b *testing.B) { newLoadedFleet(b, 1000, 10_000).longPolls(b) })
	// What the fan-out costs without the bytes.
	b.Run("zones=100/long-polls", func(b *testing.B) { newLoadedFleet(b, 10, 100).longPolls(b) })
}

type loadedFleet struct {
	*fleet
	client *api.Client
	tokens []string
	live   nodeproto.Ack // what every node serves

	keyID   string // deriving it costs as much as a signature
	scratch []byte
	// held is the payload that every node has: their only copy of it, as dictionary names it.
	held       []byte
	dictionary string
	keys       seal.TrustedKeys
}

// newLoadedFleet starts a control plane whose platform is published, and nodes that are there as tokens alone.
func newLoadedFleet(b *testing.B, workspaces, zones int) *loadedFleet {
	b.Helper()
	f := &loadedFleet{fleet: newFleet(b, "", 0)}
	f.gdn("zone", "create", "bench.test")
	f.control.kill()
	f.tokens = seedPlatform(b, strings.TrimPrefix(f.database, "sqlite:"), workspaces, zones)
	f.startControl()
	var err error
	if f.client, err = api.NewClient("http://"+f.apiAddr, f.token, nil); err != nil {
		b.Fatal(err)
	}
	f.live.Boot, f.keyID = strings.Repeat("0", 32), string(f.key.ID())
	if f.keys, err = seal.Trust(f.key.Public()); err != nil {
		b.Fatal(err)
	}
	f.apply(b)
	node, err := api.NewNodeClient("http://"+f.apiAddr, f.tokens[0], nil)
	if err != nil {
		b.Fatal(err)
	}
	first, err := node.Poll(b.Context(), nodeproto.Poll{})
	if err != nil {
		b.Fatal(err)
	}
	f.hold(b, *first.Artefact)
	return f
}

// hold verifies an artefact, as nodes do, and has all of them hold it from now on.
func (f *loadedFleet) hold(b *testing.B, a seal.Artefact) {
	b.Helper()
	v, err := seal.Open(a, f.keys, nil)
	if err != nil {
		b.Fatal(err)
	}
	if got := v.Activation().Generation; got != f.live.Generation {
		b.Fatalf("generation %d came, %d is live", got, f.live.Generation)
	}
	f.held = a.Payload
	id := seal.DictionaryOf(a.Payload)
	f.dictionary = base64.StdEncoding.EncodeToString(id[:])
}

// verified takes an answer apart that a node kept, as it would, and returns the artefact.
func (f *loadedFleet) verified(b *testing.B, a answer) seal.Artefact {
	b.Helper()
	h := http.Header{}
	for line := range strings.SplitSeq(string(a.head), "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Add(name, value)
		}
	}
	art, err := seal.ReadHeader(h)
	if err != nil {
		b.Fatal(err)
	}
	art.Payload = a.body
	if h.Get("Content-Encoding") == "dcz" {
		if art.Payload, err = seal.Decode(seal.Coding{Body: a.body, Signature: h.Get(seal.HeaderCoding)}, art, f.held, f.keys); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := seal.Open(art, f.keys, nil); err != nil {
		b.Fatal(err)
	}
	return art
}

// apply changes one record and publishes. It returns when the request was sent.
func (f *loadedFleet) apply(b *testing.B) (sent time.Time) {
	b.Helper()
	file := fmt.Sprintf("@ 300 TXT \"generation %d\"\n", f.live.Generation+1)
	if _, err := f.client.ImportZone(b.Context(), "bench.test", strings.NewReader(file), api.ImportOptions{Replace: true}); err != nil {
		b.Fatal(err)
	}
	sent = time.Now()
	res, err := f.client.Apply(b.Context(), api.ApplyRequest{Message: "bench", AcceptDisruption: true})
	if err != nil {
		b.Fatal(err)
	}
	f.live.Version, f.live.Generation, f.live.Epoch = res.Version, res.Generation, 1
	return sent
}

// seedPlatform writes rows past the store, in bulk: workspaces × zones with ten records each, and the nodes, whose
// tokens it returns.
func seedPlatform(b *testing.B, path string, workspaces, zones int) []string {
	b.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(b.Context(), nil)
	if err != nil {
		b.Fatal(err)
	}
	exec := func(statement string, args ...any) {
		if _, err := tx.ExecContext(b.Context(), statement, args...); err != nil {
			b.Fatalf("%v\n%s", err, statement)
		}
	}
	series := func(name string, n int) string {
		return fmt.Sprintf(`(WITH RECURSIVE %[1]s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM %[1]s WHERE n < %[2]d) SELECT n FROM %[1]s) AS %[1]s`, name, n)
	}
	const zoneID = `'01890000-0000-7000-8000-' || printf('%012x', s.n)`
	exec(`INSERT INTO workspace (id, name, plan, created_at) SELECT 'w' || s.n, 'workspace ' || s.n, 'standard', 0 FROM ` + series("s", workspaces))
	exec(`INSERT INTO zone (id, workspace_id, name, revision, records, created_at)
		SELECT `+zoneID+`, 'w' || (s.n % $1 + 1), 'zone' || s.n || '.example', 1, 10, 0 FROM `+series("s", zones), workspaces)
	exec(`INSERT INTO record (zone_id, id, name, type, content, content_key, ttl, proxied)
		SELECT ` + zoneID + `, 'r' || r.n, 'host' || r.n || '.zone' || s.n || '.example', 1, '192.0.2.' || (s.n % 250 + 1), printf('%032x', r.n), NULL, 0
		FROM ` + series("s", zones) + `, ` + series("r", 10))
	tokens := make([]string, fleetNodes)
	for i := range tokens {
		secret := blake3.Sum256([]byte(strconv.Itoa(i)))
		tokens[i] = "gdn_" + base64.RawURLEncoding.EncodeToString(secret[:])
		hash := blake3.Sum256([]byte(tokens[i]))
		id := fmt.Sprintf("node-%d", i)
		exec(`INSERT INTO node (id, name, address, created_at) VALUES ($1, $1, '', 0)`, id)
		exec(`INSERT INTO token (id, name, hash, node_id, created_at) VALUES ($1, $1, $2, $1, 0)`, id, hash[:])
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
	return tokens
}

// pollRequest is a node's poll, as gdn edge sends it.
func (f *loadedFleet) pollRequest(node int, wait time.Duration) []byte {
	query := fmt.Sprintf("have=%d&generation=%d&epoch=%d", f.live.Version, f.live.Generation, f.live.Epoch)
	if wait > 0 {
		query += fmt.Sprintf("&wait=%d", wait/time.Second)
	}
	return []byte("GET /v1/node/config?" + query + " HTTP/1.1\r\nHost: " + f.apiAddr + "\r\nAuthorization: Bearer " + f.tokens[node] +
		"\r\nUser-Agent: gdn\r\nAccept-Encoding: dcz\r\nAvailable-Dictionary: :" + f.dictionary + ":\r\nX-Guardyn-Config-Trusted-Keys: " + f.keyID + "\r\n\r\n")
}

// appendAck appends the acknowledgement of what an artefact's headers say. It is what json.Marshal writes of it.
func (f *loadedFleet) appendAck(request []byte, node int, a answer) []byte {
	body := fmt.Appendf(f.scratch[:0], `{"version":%s,"generation":%s,"epoch":%d,"content_hash":"%s","boot":"%s","trusted_keys":["%s"],"freshness":"fresh","activation":"%s"}`,
		a.header(seal.HeaderVersion), a.header(seal.HeaderGeneration), f.live.Epoch, a.header(seal.HeaderHash), f.live.Boot,
		f.keyID, a.header(seal.HeaderActivation))
	f.scratch = body
	request = fmt.Appendf(request, "POST /v1/node/ack HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nUser-Agent: gdn\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", f.apiAddr, f.tokens[node], len(body))
	return append(request, body...)
}

// polls has every node ask every interval, evenly spread.
func (f *loadedFleet) polls(b *testing.B) {
	b.Helper()
	g := newCrowd(b, f.apiAddr, fleetNodes)
	requests := make([][]byte, fleetNodes)
	for i := range requests {
		requests[i] = f.pollRequest(i, 0)
	}
	due := make([]time.Time, fleetNodes)
	var all []time.Duration
	var seconds [fleetMeasured / time.Second][]time.Duration // by the second in which a poll was due
	begin := time.Now().Add(fleetWarm)
	end := begin.Add(fleetMeasured)
	whole := func(i int, a answer) {
		if a.status != http.StatusNoContent {
			g.fail(i, fmt.Errorf("polled: %s", a.head))
		}
		if at := due[i].Sub(begin); at >= 0 && due[i].Before(end) {
			took := time.Since(due[i])
			all = append(all, took)
			seconds[at/time.Second] = append(seconds[at/time.Second], took)
		}
	}
	var cpu, own float64
	head := func(int, answer) {}
	next := begin.Add(-fleetWarm)
	for node, left := 0, 0; next.Before(end) || left > 0; {
		for now := time.Now(); next.Before(end) && !next.After(now); node = (node + 1) % fleetNodes {
			if cpu == 0 && !next.Before(begin) {
				cpu, own = f.control.cpuMicroseconds(b), ownMicroseconds(b)
			}
			due[node] = next
			g.ask(node, requests[node])
			left++
			next = next.Add(fleetInterval / fleetNodes)
		}
		wait := time.Second
		if next.Before(end) {
			wait = time.Until(next)
		}
		if err := g.run(wait, head, func(i int, a answer) { left--; whole(i, a) }); err != nil {
			b.Fatal(err)
		}
	}
	cpu, own = f.control.cpuMicroseconds(b)-cpu, ownMicroseconds(b)-own
	slices.Sort(all)
	// Whatever else the machine does spoils some seconds wholly: the median second is what the control plane does.
	var worst []time.Duration
	for _, of := range seconds {
		slices.Sort(of)
		worst = append(worst, of[len(of)*99/100])
	}
	b.ReportMetric(0, "ns/op") // of no meaning here
	b.ReportMetric(float64(len(all))/fleetMeasured.Seconds(), "polls/s")
	b.ReportMetric(milliseconds(all[len(all)/2]), "p50-ms")
	b.ReportMetric(milliseconds(all[len(all)*99/100]), "p99-ms")
	b.ReportMetric(milliseconds(all[len(all)-1]), "max-ms")
	b.ReportMetric(milliseconds(median(worst)), "p99-ms-median-second")
	b.ReportMetric(cpu/float64(len(all)), "cpu-µs/poll")
	b.ReportMetric(own/float64(len(all)), "generator-µs/poll")
	f.reportMemory(b)
}

// longPolls has every node wait, applies one change, and measures until the last one has acknowledged it.
func (f *loadedFleet) longPolls(b *testing.B) {
	b.Helper()
	g := newCrowd(b, f.apiAddr, fleetNodes)
	var applied, first, woken, fetched, acked, cpu, own []float64 // seconds, since the request to apply was sent
	var each int64                                                // bytes that a node is sent
	for range rounds {
		var coding []byte
		kept := map[int]answer{}
		for i := range g.lines {
			g.lines[i].keeps = i%(fleetNodes/fleetVerified) == 0
			g.ask(i, f.pollRequest(i, nodeproto.MaxWait))
		}
		f.await("all nodes wait", func() error { return f.waiting(fleetNodes) })
		// Everybody waits: whoever is heard of from here on is told of the next generation.
		cpuBefore, ownBefore := f.control.cpuMicroseconds(b), ownMicroseconds(b)
		next := *f
		sent := make(chan time.Time, 1)
		done := make(chan time.Time, 1)
		go func() {
			defer close(done)
			sent <- next.apply(b)
			done <- time.Now()
		}()
		var firstHead, lastHead, lastBody, lastAck time.Time
		left := fleetNodes
		acking := make([]bool, fleetNodes)
		var request []byte
		head := func(i int, a answer) {
			if acking[i] {
				return
			}
			lastHead = time.Now()
			if firstHead.IsZero() {
				firstHead = lastHead
			}
		}
		whole := func(i int, a answer) {
			now := time.Now()
			switch {
			case acking[i] && a.status == http.StatusNoContent:
				lastAck = now
				left--
			case !acking[i] && a.status == http.StatusOK:
				lastBody, each = now, a.length
				acking[i] = true
				if signature := a.header(seal.HeaderCoding); coding == nil {
					coding = bytes.Clone(signature)
				} else if !bytes.Equal(signature, coding) {
					g.fail(i, errors.New("it was sent something else than others"))
				}
				if g.lines[i].keeps {
					kept[i] = answer{a.status, bytes.Clone(a.head), a.length, bytes.Clone(a.body)}
				}
				request = f.appendAck(request[:0], i, a)
				g.ask(i, request)
			default:
				g.fail(i, fmt.Errorf("answered: %s", a.head))
			}
		}
		for left > 0 {
			if err := g.run(time.Second, head, whole); err != nil {
				b.Fatal(err)
			}
		}
		end, ok := <-done
		if !ok {
			b.FailNow()
		}
		start := <-sent
		f.live = next.live
		for to, at := range map[*[]float64]time.Time{&applied: end, &first: firstHead, &woken: lastHead, &fetched: lastBody, &acked: lastAck} {
			*to = append(*to, at.Sub(start).Seconds())
		}
		cpu = append(cpu, (f.control.cpuMicroseconds(b)-cpuBefore)/1e6)
		own = append(own, (ownMicroseconds(b)-ownBefore)/1e6)
		if len(kept) != fleetVerified {
			b.Fatalf("%d nodes kept what came", len(kept))
		}
		var last seal.Artefact
		for _, a := range kept {
			last = f.verified(b, a)
		}
		f.hold(b, last)
	}
	b.ReportMetric(0, "ns/op") // of no meaning here
	b.ReportMetric(median(applied), "s-to-applied")
	b.ReportMetric(median(first), "s-to-first-head")
	b.ReportMetric(median(woken), "s-to-last-head")
	b.ReportMetric(median(fetched), "s-to-last-body")
	b.ReportMetric(median(acked), "s-to-last-ack")
	b.ReportMetric(slices.Max(acked), "s-to-last-ack-worst")
	b.ReportMetric(float64(len(f.held))/1e3, "kB-payload")
	b.ReportMetric(float64(each)/1e3, "kB-sent-to-each")
	b.ReportMetric(median(cpu), "cpu-s")
	b.ReportMetric(median(own), "generator-cpu-s")
	f.reportMemory(b)
}

// ownMicroseconds is what this process used so far, user and system.
func ownMicroseconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// waiting asks the control plane how many polls wait.
func (f *loadedFleet) waiting(want int) error {
	resp, err := http.Get("http://" + f.apiAddr + "/metrics")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if n, ok := find(text, `(?m)^guardyn_long_polls (\S+)`); !ok || int(n) != want {
		return fmt.Errorf("%v polls wait", n)
	}
	return nil
}

// reportMemory reports what the control plane has resident now and had at most (proc_pid_status(5)).
func (f *loadedFleet) reportMemory(b *testing.B) {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.control.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for field, unit := range map[string]string{"VmRSS": "MB-resident", "VmHWM": "MB-peak"} {
		kib, ok := find(raw, field+`:\s+(\d+) kB`)
		if !ok {
			b.Fatalf("no %s in\n%s", field, raw)
		}
		b.ReportMetric(kib*1024/1e6, unit)
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
