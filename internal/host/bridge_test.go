package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/admin"
	"github.com/guardyn-edge/guardyn/bridge/document"
	bridgehost "github.com/guardyn-edge/guardyn/bridge/host"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/internal/testpg"
)

// path is a data path that remembers what it was told to run, and tells that it has converged unless session "sick" is there.
type path struct {
	mu      sync.Mutex
	running *document.Document
	ran     []uint64
	changed chan struct{} // receives a value at each change
}

type onPath struct {
	p *path
	d *document.Document
}

func newPath() *path { return &path{changed: make(chan struct{}, 64)} }

func (p *path) Prepare(_ context.Context, d *document.Document) (bridge.Prepared, error) {
	return onPath{p, d}, nil
}
func (onPath) Discard() {}

func (o onPath) Swap(context.Context) error {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	o.p.running, o.p.ran = o.d, append(o.p.ran, o.d.Version)
	o.p.changed <- struct{}{}
	return nil
}

func (p *path) Status() bridge.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return bridge.Status{}
	}
	s := bridge.Status{Digest: p.running.Digest()}
	for _, x := range p.running.Sessions {
		s.Sessions = append(s.Sessions, bridge.SessionStatus{ID: x.ID, Converged: x.ID != "sick", Detail: "connection refused"})
	}
	return s
}
func (p *path) Drain(context.Context) error { return nil }
func (p *path) Stop(context.Context) error  { return nil }

const bridgeToken = "let me in"

// member is one started bridge with a client of its control surface.
type bridgeMember struct {
	path   *path
	client *admin.Client
}

// startBridge starts a member and ends it with the test.
func startBridge(t *testing.T, cfg host.BridgeConfig) bridgeMember {
	t.Helper()
	m := bridgeMember{path: newPath()}
	cfg.Listen, cfg.Token, cfg.Logger = "127.0.0.1:0", bridgeToken, slog.New(slog.DiscardHandler)
	cfg.Runner = func(host.BridgeParts) bridge.Runner { return m.path }
	b, err := host.StartBridge(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if m.client, err = admin.NewClient("http://"+b.Addr(), bridgeToken, nil); err != nil {
		t.Fatal(err)
	}
	return m
}

// runs waits until the data path was told to run these versions, in this order.
func (m bridgeMember) runs(t *testing.T, versions ...uint64) {
	t.Helper()
	for range versions {
		select {
		case <-m.path.changed:
		case <-time.After(time.Minute):
			t.Fatalf("not told to run %v", versions)
		}
	}
	m.path.mu.Lock()
	defer m.path.mu.Unlock()
	if got := fmt.Sprint(m.path.ran); !strings.HasSuffix(got, strings.Trim(fmt.Sprint(versions), "[")) {
		t.Errorf("ran %v, want %v last", m.path.ran, versions)
	}
}

func bridgeDocument(window string, sessions ...string) []byte {
	s := "version: 1\nbridge:\n  deployment_mode: clustered\n  cluster: {rollout: coordinated, members: [a, b, c], deadline: 1m" + window + "}\nsessions:\n"
	for _, id := range sessions {
		s += "  - {id: " + id + ", kind: nats, url: \"nats://" + id + "\"}\n"
	}
	return []byte(s)
}

// Trials: one that has time to confirm, and one that is to fail, which takes all of its window. See soak.
const (
	confirms = ", confirm_window: 60s, soak: 4s"
	reverts  = ", confirm_window: 12s, soak: 4s"
)

// TestBridgeCohorts runs whole cohorts of real hosts over real stores: a change by any member, one that is taken back, one that is
// refused.
func TestBridgeCohorts(t *testing.T) {
	for name, stores := range map[string]func(t *testing.T) (source, store string){
		"Postgres": func(t *testing.T) (string, string) { u := testpg.URL(t); return u, u },
		"SQLite and files": func(t *testing.T) (string, string) {
			return "", "sqlite:" + filepath.Join(t.TempDir(), "rollouts.db")
		},
	} {
		t.Run(name, func(t *testing.T) {
			src, store := stores(t)
			if err := host.MigrateBridge(t.Context(), src, store); err != nil {
				t.Fatal(err)
			}
			var members []bridgeMember
			for _, id := range []string{"a", "b", "c"} {
				cfg := host.BridgeConfig{
					Member: id, Name: "ours", Cohort: "ours", Source: src, RolloutStore: store, StateDir: filepath.Join(t.TempDir(), id),
					Initial: bridgeDocument(confirms, "s"), Timing: barrier.Timing{Poll: 100 * time.Millisecond}, Lease: time.Second, Poll: 50 * time.Millisecond,
				}
				if src == "" {
					cfg.Source = "file:" + filepath.Join(t.TempDir(), id+".yaml")
				}
				members = append(members, startBridge(t, cfg))
			}
			for _, m := range members {
				m.runs(t, 1)
			}
			put := func(m bridgeMember, doc []byte) (bridgehost.Outcome, error) {
				_, etag, err := m.client.Config(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return m.client.Put(t.Context(), doc, etag, false)
			}
			out, err := put(members[1], bridgeDocument(confirms, "s", "x"))
			if err != nil || out.Version != 2 || out.Rollout == nil {
				t.Fatalf("put: %+v, %v", out, err)
			}
			for _, m := range members {
				m.runs(t, 2)
			}
			ends(t, members[0], barrier.Confirmed)
			var refused *admin.Problem
			if _, err := put(members[1], bridgeDocument("", "s", "y")); err != nil && errors.As(err, &refused) {
				t.Errorf("a window may go: %v", err)
			}
			for _, m := range members {
				m.runs(t, 3)
			}
			ends(t, members[0], barrier.Confirmed) // on the terms of what ran before
			if out, err = put(members[1], bridgeDocument(reverts, "s")); err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				m.runs(t, 4)
			}
			ends(t, members[0], barrier.Committed)
			if out, err = put(members[1], bridgeDocument(reverts, "s", "sick")); err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				m.runs(t, 5, 4)
			}
			ends(t, members[0], barrier.Reverted)
			if _, err = put(members[1], []byte(strings.Replace(string(bridgeDocument("", "s")), ", c]", "]", 1))); !errors.As(err, &refused) || refused.Code != "refused" {
				t.Errorf("another roster: %v", err)
			}
		})
	}
}

// ends waits until the newest rollout that the member knows of has ended so.
func ends(t *testing.T, m bridgeMember, want barrier.State) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		s, err := m.client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Rollout.State == want && !s.Rollout.ConfirmPending {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the rollout is %+v, want %s", s.Rollout, want)
		}
	}
}

func TestBridgeSettings(t *testing.T) {
	file := "file:" + filepath.Join(t.TempDir(), "bridge.yaml")
	for name, row := range map[string]struct {
		cfg  host.BridgeConfig
		says string
	}{
		"source":      {host.BridgeConfig{Source: "redis:x"}, "none of file:PATH"},
		"no source":   {host.BridgeConfig{}, "none of file:PATH"},
		"store":       {host.BridgeConfig{Source: file, Member: "a", Cohort: "c", RolloutStore: "redis:x"}, "rollout store: it is none of"},
		"not there":   {host.BridgeConfig{Source: file, Member: "a", Cohort: "c", RolloutStore: "sqlite:" + filepath.Join(t.TempDir(), "x.db")}, "gdn bridge migrate does"},
		"no member":   {host.BridgeConfig{Source: file, RolloutStore: "memory:"}, "--member-id"},
		"member's id": {host.BridgeConfig{Source: file, Member: "a b"}, `member id "a b"`},
		"initial":     {host.BridgeConfig{Source: file, Initial: []byte("x: 1")}, "the initial document"},
		"initial, of a cohort": {
			host.BridgeConfig{Source: file, Member: "a", Initial: bridgeDocument("", "s")}, "the initial document: the document is not valid: line 4: bridge.cluster.rollout",
		},
		"baseline": {host.BridgeConfig{Source: file, Baseline: "sha256:1"}, "is no digest"},
	} {
		row.cfg.Logger, row.cfg.Listen = slog.New(slog.DiscardHandler), "127.0.0.1:0"
		row.cfg.Runner = func(host.BridgeParts) bridge.Runner { return newPath() }
		if _, err := host.StartBridge(t.Context(), row.cfg); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBridgeLeases: one lease for each session, the same for all members of a bridge.
func TestBridgeLeases(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	if err := host.MigrateBridge(t.Context(), "", store); err != nil {
		t.Fatal(err)
	}
	leases := func(name string) bridge.Leases {
		var got bridge.Leases
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("version: 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := host.StartBridge(t.Context(), host.BridgeConfig{
			Source: "file:" + filepath.Join(dir, "b.yaml"), Name: name, LeaseStore: store, Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
			Runner: func(p host.BridgeParts) bridge.Runner { got = p.Leases; return newPath() },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := b.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return got
	}
	take := func(l bridge.Leases, session, holder string) error {
		s, err := l.Session(session)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Acquire(t.Context(), holder, time.Minute)
		return err
	}
	one, two, other := leases("ours"), leases("ours"), leases("theirs")
	if err := take(one, "plant", "a"); err != nil {
		t.Fatal(err)
	}
	if err := take(two, "plant", "b"); !errors.Is(err, barrier.ErrHeld) {
		t.Errorf("a session that another member holds: %v", err)
	}
	for name, err := range map[string]error{"another session": take(two, "cloud", "b"), "another bridge's": take(other, "plant", "b"), "its own": take(one, "plant", "a")} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
