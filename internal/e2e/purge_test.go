package e2e_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/testpg"
)

// countingOrigin answers with how often a path was asked for, to be stored for an hour; a path's first segment is its tag.
type countingOrigin struct {
	addr string
	mu   sync.Mutex
	n    map[string]int
}

func startCountingOrigin(t testing.TB) *countingOrigin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &countingOrigin{addr: l.Addr().String(), n: map[string]int{}}
	srv := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			o.mu.Lock()
			o.n[r.URL.RequestURI()]++
			n := o.n[r.URL.RequestURI()]
			o.mu.Unlock()
			w.Header().Set("Cache-Control", "max-age=3600")
			w.Header().Set("Cache-Tag", strings.Split(r.URL.Path, "/")[1])
			fmt.Fprintf(w, "%s %d", r.URL.RequestURI(), n)
		}),
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return o
}

// purgePaths are what every node caches.
var purgePaths = []string{"/a/1", "/a/1?q", "/a/2", "/b/1"}

// purgeFleet is control planes and nodes that cache a zone.
type purgeFleet struct {
	*plane
	client *http.Client
}

func newPurgeFleet(t *testing.T, database string, processes, nodes int) *purgeFleet {
	t.Helper()
	p := newPlane(t, database, processes)
	for i := range nodes {
		p.addNode(fmt.Sprintf("edge-%d", i+1))
	}
	o := startCountingOrigin(t)
	p.gdn("zone", "create", "purge.test")
	p.gdn("pool", "set", "purge.test", "default", p.file("pool.yaml", "origins:\n  - {name: counting, address: \""+o.addr+"\"}\n"))
	p.gdn("record", "add", "purge.test", "www", "A", "127.0.0.1", "--proxied")
	p.gdn("apply", "--accept-disruption", "--wait")
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	f := &purgeFleet{plane: p, client: &http.Client{Transport: tr, Timeout: 20 * time.Second}}
	// What was cached before a node knew its place in the log it drops then.
	f.await("nodes that follow the log", func() error {
		for _, n := range f.nodes {
			if err := n.follows(); err != nil {
				return err
			}
		}
		return nil
	})
	return f
}

// follows tells whether the node knows its place in the log of purges.
func (n *edgeNode) follows() error {
	resp, err := http.Get("http://" + n.admin + "/metrics")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && !strings.Contains(string(text), "\nguardyn_edge_purge_sequence ") {
		err = fmt.Errorf("%s does not know its place", n.name)
	}
	return err
}

// get asks a node, and returns what the origin counted when it made the answer.
func (f *purgeFleet) get(n *edgeNode, path string) string {
	f.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+n.http+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	req.Host = "www.purge.test"
	resp, err := f.client.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	count, found := strings.CutPrefix(string(body), path+" ")
	if err != nil || resp.StatusCode != http.StatusOK || !found {
		f.t.Fatalf("%s of %s: %s %q, %v", path, n.name, resp.Status, body, err)
	}
	return count
}

// cached is what every node serves of every path.
func (f *purgeFleet) cached() map[string][]string {
	f.t.Helper()
	all := map[string][]string{}
	for _, n := range f.nodes {
		for _, path := range purgePaths {
			all[path] = append(all[path], f.get(n, path))
		}
	}
	return all
}

// changed are the paths whose answers are others on every node; one that is on some nodes alone fails the test.
func (f *purgeFleet) changed(before map[string][]string) (paths []string) {
	f.t.Helper()
	now := f.cached()
	for _, path := range purgePaths {
		other := 0
		for i := range f.nodes {
			if now[path][i] != before[path][i] {
				other++
			}
		}
		switch other {
		case len(f.nodes):
			paths = append(paths, path)
		case 0:
		default:
			f.t.Errorf("%s is asked for again by %d of %d nodes", path, other, len(f.nodes))
		}
	}
	return paths
}

func (f *purgeFleet) wantChanged(what string, before map[string][]string, want ...string) {
	f.t.Helper()
	if got := f.changed(before); !slices.Equal(got, want) {
		f.t.Errorf("%s: asked for again: %q, want %q", what, got, want)
	}
}

// done waits until every node has done what api.Client.PurgeByID tells of.
func (f *purgeFleet) done(id string) {
	f.t.Helper()
	f.await("purge "+id, func() error {
		p, err := f.steady.PurgeByID(f.t.Context(), "purge.test", id)
		if err == nil && (p.Done != p.Nodes || p.Nodes != len(f.nodes)) {
			err = fmt.Errorf("%d of %d, waiting for %s", p.Done, p.Nodes, p.Waiting)
		}
		return err
	})
}

// TestPurge purges in every way through two control planes, of nodes that are up, that are suspended, and while the control planes die.
func TestPurge(t *testing.T) {
	t.Parallel()
	for _, db := range []struct {
		name string
		url  func(testing.TB) string
	}{
		{"SQLite", func(testing.TB) string { return "" }},
		{"Postgres", testpg.URL},
	} {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			f := newPurgeFleet(t, db.url(t), 2, 3)
			before := f.cached()
			f.wantChanged("nothing", before)
			for _, row := range []struct {
				flags []string
				want  []string
			}{
				{[]string{"--url", "HTTP://www.purge.test:80/a/../a/1"}, []string{"/a/1"}},
				{[]string{"--prefix", "www.purge.test/a/1"}, []string{"/a/1", "/a/1?q"}},
				{[]string{"--tag", "a"}, []string{"/a/1", "/a/1?q", "/a/2"}},
				{[]string{"--all"}, purgePaths},
				{[]string{"--tag", "c", "--tag", "b"}, []string{"/b/1"}},
			} {
				before = f.cached()
				if out := f.gdnBoth(append([]string{"purge", "purge.test", "--wait"}, row.flags...)...); !strings.HasSuffix(out, "✓ done by 3 nodes\n") {
					t.Errorf("%q printed %q", row.flags, out)
				}
				f.wantChanged(fmt.Sprint(row.flags), before, row.want...)
			}

			// A node that stands still does it when it goes on.
			before = f.cached()
			f.signal(f.nodes[0], syscall.SIGSTOP)
			out := f.refused("purge", "purge.test", "--all", "--wait", "--timeout", "2s")
			if !strings.Contains(out, "1 of 3 nodes have not done it: edge-1") {
				t.Errorf("with a node that stands still: %s", out)
			}
			f.signal(f.nodes[0], syscall.SIGCONT)
			page, err := f.steady.Purges(t.Context(), "purge.test", api.PageOptions{Limit: 1})
			if err != nil || len(page.Items) != 1 {
				t.Fatalf("%+v, %v", page, err)
			}
			f.done(page.Items[0].ID)
			f.wantChanged("after it stood still", before, purgePaths...)

			// The control planes die after they have answered, and before any node has heard of it.
			before = f.cached()
			for _, n := range f.nodes {
				f.signal(n, syscall.SIGSTOP)
			}
			made, err := f.steady.Purge(t.Context(), "purge.test", api.NewPurge{Kind: "prefix", Values: []string{"www.purge.test/a/"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range f.members {
				m.control.kill()
			}
			for _, n := range f.nodes {
				f.signal(n, syscall.SIGCONT)
			}
			for _, m := range f.members {
				m.startControl()
			}
			f.done(made.ID)
			f.wantChanged("after the control planes died", before, "/a/1", "/a/1?q", "/a/2")

			// A node that starts is at the end of the log.
			f.nodes[1].kill()
			f.nodes[1].start()
			f.await("the node's place", f.nodes[1].follows)
			f.done(made.ID)

			f.measurePurges(5)
		})
	}
}

func (f *purgeFleet) signal(n *edgeNode, s syscall.Signal) {
	f.t.Helper()
	if err := n.cmd.Process.Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// measurePurges logs how long purges take from the request to the last node's acknowledgement, of nodes that wait and of such
// that have just done another.
func (f *purgeFleet) measurePurges(times int) {
	f.t.Helper()
	for _, quiet := range []bool{true, false} {
		var took []time.Duration
		for range times {
			if quiet {
				f.await("polls that wait", func() error {
					n := 0
					for _, m := range f.members {
						n += m.longPolls()
					}
					if n < len(f.nodes) {
						return fmt.Errorf("%d polls wait", n)
					}
					return nil
				})
			}
			began := time.Now()
			made, err := f.steady.Purge(f.t.Context(), "purge.test", api.NewPurge{Kind: "tag", Values: []string{"none"}})
			if err != nil {
				f.t.Fatal(err)
			}
			f.done(made.ID)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		f.t.Logf("nodes wait: %t; from the request until all %d have done it: half in %s, all in %s", quiet,
			len(f.nodes), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	}
}

// longPolls is how many polls wait at a control plane.
func (m *member) longPolls() (n int) {
	m.t.Helper()
	resp, err := http.Get("http://" + m.apiAddr + "/metrics")
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, found := strings.CutPrefix(line, "guardyn_long_polls "); found {
			n, err = strconv.Atoi(strings.TrimSpace(v))
		}
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}
