package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// A node that installs a thousand small changes, while clients come and go, holds in the end what it held after the first
// hundred: nothing of an old view, no goroutine, no socket.
func TestInstallsReturnToTheirBand(t *testing.T) {
	const warm = 100
	installs := uint64(1000)
	if testing.Short() { // under the race detector, to which a few are as good
		installs = 200
	}
	key := signingKey(t)
	trusted, err := seal.Trust(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer origin.Close()

	plane := &playedControlPlane{t: t, key: key, origin: origin.Listener.Addr().String()}
	server := httptest.NewServer(plane)
	defer server.Close()
	node, err := host.StartEdge(t.Context(), host.EdgeConfig{
		APIURL: server.URL, Token: "gdn_" + fmt.Sprintf("%064x", 1), PublicKeys: trusted, StateDir: t.TempDir(),
		DNSAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0",
		AllowedOrigins: loopback(), RateLimitExempt: loopback(), Interval: time.Millisecond, Wait: 50 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()

	var after footprint
	for v := uint64(1); v <= installs; v++ {
		plane.publish(v)
		plane.served(v)
		passingClient(t, node, v)
		if v == warm {
			after = settled(t, footprint{})
		}
	}
	end := settled(t, after)
	t.Logf("after %d installs: %+v; after %d: %+v", warm, after, installs, end)
	if !end.within(after) {
		t.Errorf("after %d installs the node holds %+v, after %d it held %+v", installs, end, warm, after)
	}
}

func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

// passingClient asks over a connection of its own by DNS and HTTP, and leaves.
func passingClient(t *testing.T, node *host.Edge, version uint64) {
	t.Helper()
	if got := passingDNS(t, node); got != strconv.FormatUint(version, 10) {
		t.Fatalf("over DNS: version %s, want %d", got, version)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: version%2 == 0}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+node.HTTPAddr()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "www.example.test"
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || string(body) != "ok" {
		t.Fatalf("version %d over HTTP: %s %q %v", version, resp.Status, body, err)
	}
}

// passingDNS asks for the version that is served, over a connection of its own.
func passingDNS(t *testing.T, node *host.Edge) string {
	t.Helper()
	q := new(dns.Msg).SetQuestion("v.example.test.", dns.TypeTXT)
	answer, _, err := (&dns.Client{Net: "tcp"}).Exchange(q, node.DNSAddr())
	if err != nil || len(answer.Answer) != 1 {
		t.Fatalf("over DNS: %v %v", err, answer)
	}
	return answer.Answer[0].(*dns.TXT).Txt[0]
}

// footprint is what a process holds, this test's own part included, which does not grow.
type footprint struct {
	Heap       uint64 // bytes that are reachable
	Goroutines int
	Files      int // descriptors
}

// within allows a tenth of the heap and a megabyte, and what connections that are being closed hold.
func (f footprint) within(of footprint) bool {
	return f.Heap <= of.Heap+of.Heap/10+1<<20 && f.Goroutines <= of.Goroutines+8 && f.Files <= of.Files+8
}

// settled measures until it is within of, since what clients left behind is given up a moment later, or for ten seconds. For
// the zero footprint it takes the least of ten measurements.
func settled(t *testing.T, of footprint) footprint {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	least := measure(t)
	for n := 1; ; n++ {
		f := measure(t)
		least = footprint{min(least.Heap, f.Heap), min(least.Goroutines, f.Goroutines), min(least.Files, f.Files)}
		if of == (footprint{}) && n == 10 || of != (footprint{}) && least.within(of) {
			return least
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return least
		}
	}
}

func measure(t *testing.T) footprint {
	t.Helper()
	runtime.GC()
	runtime.GC() // what finalizers and pools kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return footprint{Heap: m.HeapAlloc, Goroutines: runtime.NumGoroutine(), Files: len(files)}
}

// playedControlPlane answers polls with the version that was published last, sealed by the real key, and hears
// acknowledgements.
type playedControlPlane struct {
	t      *testing.T
	key    seal.SigningKey
	origin string
	change func(*zone.Zone) // of what is published; nil: nothing
	now    atomic.Pointer[published]
	acked  atomic.Uint64
}

type published struct {
	artefact   seal.Artefact
	version    uint64
	superseded chan struct{} // closed by the next publish
	heard      chan struct{} // closed by the first acknowledgement
}

func (c *playedControlPlane) publish(version uint64) {
	c.t.Helper()
	name := zone.MustName("example.test")
	z := &zone.Zone{ID: "0190f6a0-0000-7000-8000-000000000001", Name: name}
	hostname, port, err := net.SplitHostPort(c.origin)
	if err != nil {
		c.t.Fatal(err)
	}
	txt, err := zone.ParseRecord(name, "v", "TXT", strconv.FormatUint(version, 10), 0, false)
	if err != nil {
		c.t.Fatal(err)
	}
	www, err := zone.ParseRecord(name, "www", "A", "192.0.2.1", 0, true)
	if err != nil {
		c.t.Fatal(err)
	}
	z.Records = []zone.Record{txt, www}
	address := zone.Origin{Name: "origin", Address: net.JoinHostPort(hostname, port)}
	z.Pools = map[string]zone.Pool{"default": {Origins: []zone.Origin{address}}}
	if c.change != nil {
		c.change(z)
	}
	snap, _, err := snapshot.Build(snapshot.Input{
		Zones: []snapshot.ZoneInput{{Workspace: "w", Zone: z}}, AllowedOrigins: loopback(), Now: time.Unix(0, 0),
	}, snapshot.Meta{Version: version, CreatedAt: time.Unix(0, 0)})
	if err != nil {
		c.t.Fatal(err)
	}
	sealed, err := seal.Seal(c.key, snap)
	if err != nil {
		c.t.Fatal(err)
	}
	signed, err := seal.Activate(c.key, sealed, seal.Activation{
		Platform: "0190f6a0-0000-7000-8000-000000000000", Epoch: 1, Generation: version, Kind: seal.KindApply,
		ParentGeneration: version - 1, IssuedAt: time.Unix(int64(version), 0),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	old := c.now.Swap(&published{
		artefact: seal.Artefact{Sealed: sealed, Activation: signed}, version: version,
		superseded: make(chan struct{}), heard: make(chan struct{}),
	})
	if old != nil {
		close(old.superseded)
	}
}

// served waits for the node's acknowledgement.
func (c *playedControlPlane) served(version uint64) {
	c.t.Helper()
	select {
	case <-c.now.Load().heard:
	case <-time.After(time.Minute):
		c.t.Fatalf("version %d is not served after a minute", version)
	}
}

func (c *playedControlPlane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := c.now.Load()
	switch {
	case r.Method == http.MethodPost:
		var ack struct {
			Version uint64 `json:"version"`
			Error   any    `json:"error"`
		}
		if err := json.NewDecoder(r.Body).Decode(&ack); err != nil || ack.Error != nil {
			c.t.Errorf("acknowledgement %+v: %v", ack, err)
		}
		if p != nil && ack.Version == p.version && c.acked.Swap(ack.Version) != ack.Version {
			close(p.heard)
		}
		w.WriteHeader(http.StatusNoContent)
		return
	case p != nil && r.URL.Query().Get("have") == strconv.FormatUint(p.version, 10):
		select {
		case <-p.superseded:
			p = c.now.Load()
		case <-r.Context().Done():
			return
		}
	case p == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if nonce := r.URL.Query().Get("nonce"); nonce != "" {
		fresh, err := seal.SignFreshness(c.key, seal.FreshnessStatement{
			Nonce: nonce, Epoch: 1, Generation: p.version, ContentHash: p.artefact.ContentHash, IssuedAt: time.Now(),
		})
		if err != nil {
			c.t.Error(err)
		}
		w.Header().Set(seal.HeaderFreshness, fresh)
	}
	seal.WriteHeader(w.Header(), p.artefact)
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(p.artefact.Payload)
}
