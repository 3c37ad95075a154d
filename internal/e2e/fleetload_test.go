package e2e_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/zeebo/blake3"
	_ "modernc.org/sqlite" // the driver, to write a platform's rows in bulk

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

const (
	fleetNodes    = 10_000
	fleetInterval = nodeproto.DefaultInterval
	// fleetConns carry the polls of all nodes by turns; a long poll has a connection of its own.
	fleetConns = 512
	// fleetWarm and fleetMeasured are how long the nodes poll before what counts, and for what counts.
	fleetWarm, fleetMeasured = 5 * time.Second, 20 * time.Second
)

// BenchmarkFleet is one control plane on SQLite with 10,000 registered nodes, each with its own token, whose polls
// one generator on the same machine sends. /polls: every node asks every 5 s. /long-polls: every node waits, one
// record changes and is applied, every node fetches the whole snapshot and acknowledges it; the generator throws
// the payload away unread. Run it with make bench.
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
	f.live.TrustedKeys, f.live.Boot = []seal.KeyID{f.key.ID()}, strings.Repeat("0", 32)
	f.apply(b)
	return f
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

// line is one keep-alive connection to the control plane.
type line struct {
	net.Conn
	r *bufio.Reader
}

func (f *loadedFleet) dial() (*line, error) {
	conn, err := net.Dial("tcp", f.apiAddr)
	if err != nil {
		return nil, err
	}
	return &line{conn, bufio.NewReader(conn)}, nil
}

// poll sends a node's poll and reads the head of the answer.
func (f *loadedFleet) poll(l *line, node int, wait time.Duration) (*http.Response, error) {
	query := fmt.Sprintf("have=%d&generation=%d&epoch=%d", f.live.Version, f.live.Generation, f.live.Epoch)
	if wait > 0 {
		query += fmt.Sprintf("&wait=%d", wait/time.Second)
	}
	return l.exchange("GET /v1/node/config?"+query+" HTTP/1.1\r\nHost: "+f.apiAddr+"\r\nAuthorization: Bearer "+f.tokens[node]+
		"\r\nUser-Agent: gdn\r\nAccept-Encoding: identity\r\nX-Guardyn-Config-Trusted-Keys: "+string(f.key.ID())+"\r\n\r\n", http.MethodGet)
}

func (f *loadedFleet) ack(l *line, node int, a nodeproto.Ack) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	resp, err := l.exchange(fmt.Sprintf("POST /v1/node/ack HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nUser-Agent: gdn\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", f.apiAddr, f.tokens[node], len(body), body), http.MethodPost)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("ack: %s %s", resp.Status, text)
	}
	return nil
}

func (l *line) exchange(request, method string) (*http.Response, error) {
	if _, err := io.WriteString(l, request); err != nil {
		return nil, err
	}
	return http.ReadResponse(l.r, &http.Request{Method: method})
}

// polls has every node ask every interval, evenly spread, over fleetConns connections.
func (f *loadedFleet) polls(b *testing.B) {
	b.Helper()
	// By connection: how long each poll took, and by the second in which it was due.
	took := make([][]time.Duration, fleetConns)
	seconds := make([][fleetMeasured / time.Second][]time.Duration, fleetConns)
	begin := time.Now().Add(fleetWarm)
	end := begin.Add(fleetMeasured)
	ctx, cancel := context.WithDeadline(b.Context(), begin)
	defer cancel()
	var nodes sync.WaitGroup
	for c := range fleetConns {
		nodes.Go(func() {
			l, err := f.dial()
			if err != nil {
				b.Error(err)
				return
			}
			defer l.Close()
			timer := time.NewTimer(0)
			for round := time.Duration(0); ; round++ {
				for node := c; node < fleetNodes; node += fleetConns {
					due := begin.Add(-fleetWarm + round*fleetInterval + fleetInterval*time.Duration(node)/fleetNodes)
					if due.After(end) {
						return
					}
					timer.Reset(time.Until(due))
					<-timer.C
					sent := time.Now()
					resp, err := f.poll(l, node, 0)
					if err != nil || resp.StatusCode != http.StatusNoContent {
						b.Errorf("poll of node %d: %v %v", node, resp, err)
						return
					}
					if at := due.Sub(begin); at >= 0 && due.Before(end) {
						t := time.Since(sent)
						took[c] = append(took[c], t)
						seconds[c][at/time.Second] = append(seconds[c][at/time.Second], t)
					}
				}
			}
		})
	}
	<-ctx.Done()
	before := f.control.cpuMicroseconds(b)
	nodes.Wait()
	cpu := f.control.cpuMicroseconds(b) - before
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(all) == 0 {
		b.Fatal("no poll was answered")
	}
	// Whatever else the machine does spoils some seconds wholly: the median second is what the control plane does.
	var worst []time.Duration
	for second := range seconds[0] {
		var of []time.Duration
		for c := range seconds {
			of = append(of, seconds[c][second]...)
		}
		slices.Sort(of)
		worst = append(worst, of[len(of)*99/100])
	}
	b.ReportMetric(0, "ns/op") // of no meaning here
	b.ReportMetric(float64(len(all))/fleetMeasured.Seconds(), "polls/s")
	b.ReportMetric(milliseconds(all[len(all)/2]), "p50-ms")
	b.ReportMetric(milliseconds(all[len(all)*99/100]), "p99-ms")
	b.ReportMetric(milliseconds(median(worst)), "p99-ms-median-second")
	b.ReportMetric(cpu/float64(len(all)), "cpu-µs/poll")
	f.reportMemory(b)
}

// longPolls has every node wait, applies one change, and measures until the last one has acknowledged it.
func (f *loadedFleet) longPolls(b *testing.B) {
	b.Helper()
	lines := make([]*line, fleetNodes)
	for i := range lines {
		var err error
		if lines[i], err = f.dial(); err != nil {
			b.Fatal(err)
		}
		defer lines[i].Close()
	}
	var applied, woken, acked []time.Duration // since the request to apply was sent
	var bytes int64
	var cpu float64
	for range rounds {
		old := f.live
		wakes, acks := make([]time.Time, fleetNodes), make([]time.Time, fleetNodes)
		var nodes sync.WaitGroup
		for i, l := range lines {
			nodes.Go(func() {
				resp, err := f.poll(l, i, nodeproto.MaxWait)
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Errorf("long poll of node %d: %v %v", i, resp, err)
					return
				}
				wakes[i] = time.Now()
				a := old
				a.Version, _ = strconv.ParseUint(resp.Header.Get(seal.HeaderVersion), 10, 64)
				a.Generation, _ = strconv.ParseUint(resp.Header.Get(seal.HeaderGeneration), 10, 64)
				a.ContentHash, a.Freshness = resp.Header.Get(seal.HeaderHash), "fresh"
				a.Activation = seal.SignedActivation(resp.Header.Get(seal.HeaderActivation))
				n, err := io.Copy(io.Discard, resp.Body)
				if err == nil {
					err = f.ack(l, i, a)
				}
				if err != nil {
					b.Errorf("node %d: %v", i, err)
					return
				}
				acks[i] = time.Now()
				if i == 0 {
					bytes = n
				}
			})
		}
		f.await("all nodes wait", func() error { return f.waiting(fleetNodes) })
		before := f.control.cpuMicroseconds(b)
		next := *f // whoever polls reads f.live
		sent := next.apply(b)
		applied = append(applied, time.Since(sent))
		nodes.Wait()
		f.live = next.live
		cpu = f.control.cpuMicroseconds(b) - before
		if b.Failed() {
			return
		}
		last := func(at []time.Time) time.Duration { return slices.MaxFunc(at, time.Time.Compare).Sub(sent) }
		woken, acked = append(woken, last(wakes)), append(acked, last(acks))
	}
	b.ReportMetric(0, "ns/op") // of no meaning here
	b.ReportMetric(median(applied).Seconds(), "s-to-applied")
	b.ReportMetric(median(woken).Seconds(), "s-to-last-head")
	b.ReportMetric(median(acked).Seconds(), "s-to-last-ack")
	b.ReportMetric(float64(bytes)/1e6, "MB-payload")
	b.ReportMetric(cpu/1e6, "cpu-s")
	f.reportMemory(b)
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
