package node_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
)

// A node that is killed runs in a process of its own, with its disk, and reaches the cluster of the test over HTTP: the
// rollout store by barrier/remote, the control plane by a few messages in gob.

// serve lets a child process be the member.
func (m *member) serve(mux *http.ServeMux) {
	handle(mux, "/poll", m.Poll)
	handle(mux, "/self", func(ctx context.Context, _ string) (nodeproto.Self, error) { return m.Self(ctx) })
	handle(mux, "/candidate", m.Candidate)
	handle(mux, "/ack", func(ctx context.Context, a nodeproto.Ack) (string, error) { return "", m.Ack(ctx, a) })
}

func handle[In, Out any](mux *http.ServeMux, path string, f func(context.Context, In) (Out, error)) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := gob.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := f(r.Context(), in)
		switch {
		case errors.Is(err, nodeproto.ErrAhead):
			http.Error(w, err.Error(), http.StatusConflict)
		case errors.Is(err, barrier.ErrNoArtefact):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			_ = gob.NewEncoder(w).Encode(out)
		}
	})
}

// distant is the control plane as the child reaches it.
type distant struct {
	url  string
	next func() // called at an event
	arm  func()
}

func tell[In, Out any](ctx context.Context, url string, in In) (out Out, err error) {
	body := &strings.Builder{}
	if err := gob.NewEncoder(body).Encode(in); err != nil {
		return out, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body.String()))
	if err != nil {
		return out, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return out, gob.NewDecoder(resp.Body).Decode(&out)
	case http.StatusConflict:
		return out, nodeproto.ErrAhead
	case http.StatusNotFound:
		return out, barrier.ErrNoArtefact
	default:
		return out, errors.New(resp.Status)
	}
}

func (d *distant) Poll(ctx context.Context, p nodeproto.Poll) (nodeproto.Answer, error) {
	return tell[nodeproto.Poll, nodeproto.Answer](ctx, d.url+"/poll", p)
}

func (d *distant) Self(ctx context.Context) (nodeproto.Self, error) {
	return tell[string, nodeproto.Self](ctx, d.url+"/self", "?")
}

func (d *distant) Candidate(ctx context.Context, digest string) (nodeproto.Candidate, error) {
	d.arm()
	return tell[string, nodeproto.Candidate](ctx, d.url+"/candidate", digest)
}

func (d *distant) Ack(ctx context.Context, a nodeproto.Ack) error {
	d.next()
	_, err := tell[nodeproto.Ack, string](ctx, d.url+"/ack", a)
	return err
}

// killedTiming is the pace of a member in real time.
var killedTiming = barrier.Timing{Poll: 30 * time.Millisecond}

// killedMember runs the node of dir until it serves generation last for good, or is killed at an event: a durable step, a swap or
// an acknowledgement, counted from when it fetches the candidate. It prints how many there were.
func killedMember(dir, url string, at int, last uint64) int {
	var mu sync.Mutex
	armed, event := false, 0
	next := func() {
		mu.Lock()
		defer mu.Unlock()
		if !armed {
			return
		}
		if event++; event == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	d, err := durable.Open(dir)
	if err != nil {
		panic(err)
	}
	d.AfterStep(func(string, durable.Step) error { next(); return nil })
	src := &distant{url: url, next: next, arm: func() { mu.Lock(); armed = true; mu.Unlock() }}
	store, err := remote.NewClient(url+"/rollout", remote.ClientOptions{})
	if err != nil {
		panic(err)
	}
	a, err := node.New(node.Config{
		Source: src, Host: &host{onSwap: next}, Keys: testSigner(1).trust(), Dir: d, Interval: 20 * time.Millisecond, Wait: 5 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := a.Boot(ctx); err != nil {
		panic(err)
	}
	go func() { _ = a.Run(ctx) }()
	go func() { _ = a.RunRollouts(ctx, node.RolloutConfig{Store: store, Source: src, Timing: killedTiming}) }()
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if ctx.Err() != nil {
			return 2
		}
		if s := a.Status(); s.Generation == last && s.Trial == "" && s.Rollout.Applied && !s.Rollout.ConfirmPending && s.Rollout.State != barrier.Committed {
			mu.Lock()
			defer mu.Unlock()
			fmt.Println(event)
			return 0
		}
	}
}

// eventually waits, in real time.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("never: %s", what)
		}
	}
}

// killed is one run: a node that serves version 1 is put to a rollout of version 2 and killed at an event; then a new process
// goes on. It returns how the rollout ended, what the new process booted, and how many events a run without a kill has.
func killed(t *testing.T, installed string, at int, revert bool) (end barrier.State, booted uint64, events int) {
	t.Helper()
	c := newCluster(t, sealery{})
	c.begin()
	defer c.halt()
	m := c.node(t.TempDir(), 0)
	m.interval = 20 * time.Millisecond
	if err := os.CopyFS(m.dir, os.DirFS(installed)); err != nil {
		t.Fatal(err)
	}
	c.roster(m.id)
	mux := http.NewServeMux()
	handler := remote.NewHandler(remote.Backend{Store: c.store}, func(*http.Request) (remote.Principal, error) {
		return remote.Principal{Member: barrier.MemberID(m.id)}, nil
	}, remote.Options{})
	mux.Handle("/rollout/", http.StripPrefix("/rollout", handler))
	m.serve(mux)
	server := httptest.NewServer(mux)
	defer handler.Close()
	defer server.Close()

	last := 2
	if revert {
		last = 3
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NODE_TEST_DIR="+m.dir, "NODE_TEST_URL="+server.URL, "NODE_TEST_EVENT="+strconv.Itoa(at), "NODE_TEST_LAST="+strconv.Itoa(last))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	eventually(t, "the node joins", func() bool {
		v, err := c.store.Look(t.Context(), barrier.MemberID(m.id))
		return err == nil && v.Registration.Boot != ""
	})
	ro := c.propose(2, 40*time.Second)
	if revert {
		go c.revertOnTrial(t.Context(), m, ro)
	}
	var exit *exec.ExitError
	switch err := <-exited; {
	case err == nil:
		if events, err = strconv.Atoi(strings.TrimSpace(out.String())); err != nil {
			t.Fatal(err)
		}
	case !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL:
		t.Fatalf("node ended otherwise: %v\n%s", err, out.String())
	}
	boots := m.saved().Current
	raw, err := os.ReadFile(filepath.Join(m.dir, boots))
	if err != nil {
		t.Fatal(err)
	}
	if kind := kindOf(t, raw); kind == seal.KindProvisional {
		t.Errorf("event %d: boots from %s, which is provisional", at, boots)
	}
	mark := m.saved().Marks[c.s.key.ID()].Generation

	m.start()
	defer func() { m.stop() }()
	booted = m.host.versions()[0]
	eventually(t, "the rollout ends", func() bool {
		row, err := c.store.Current(t.Context())
		return err == nil && !row.Rollout.Open()
	})
	c.settle()
	end = c.state()
	eventually(t, fmt.Sprintf("event %d: the node serves what is live after %s", at, end), func() bool {
		s := m.agent.Status()
		live := c.now()
		return s.Version == live.version && s.Generation == live.generation && s.Trial == "" && s.Rollout.Applied
	})
	if now := m.saved().Marks[c.s.key.ID()].Generation; now < mark {
		t.Errorf("event %d: the mark fell from %d to %d", at, mark, now)
	}
	if booted == 2 && end != barrier.Confirmed {
		t.Errorf("event %d: booted what was on trial, which was %s", at, end)
	}
	for _, v := range m.host.versions() {
		if v == 2 && end != barrier.Confirmed {
			t.Errorf("event %d: served %v after the kill, and the rollout was %s", at, m.host.versions(), end)
		}
	}
	return end, booted, events
}

// revertOnTrial reverts by an operator once the node says that it serves the trial.
func (c *cluster) revertOnTrial(ctx context.Context, m *member, ro barrier.Rollout) {
	for tick := time.NewTicker(2 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		if m.lastAck().Generation == ro.Generation {
			_ = c.store.Revert(ctx, ro.Ref, barrier.ByOperator("test"), "enough")
			return
		}
	}
}

func kindOf(t *testing.T, slot []byte) seal.ActivationKind {
	t.Helper()
	_, rest, _ := strings.Cut(string(slot), `"activation":"`)
	signed, _, _ := strings.Cut(rest, `"`)
	act, _, err := seal.VerifyActivation(seal.SignedActivation(signed), testSigner(1).trust())
	if err != nil {
		t.Fatal(err)
	}
	return act.Kind
}

// TestKilledInARollout kills a node with SIGKILL behind each durable step, each swap and each acknowledgement of a coordinated
// install, and of one that is taken back. The next process boots what is confirmed, and the rollout ends as the rules say: aborted
// before the vote, reverted on trial, and confirmed once it was.
func TestKilledInARollout(t *testing.T) {
	installed := t.TempDir()
	run(t, installed, testSigner(1).trust(), &host{}, &source{interval: time.Millisecond, answers: []answer{offers(testSigner(1), newCluster(t, sealery{}).now().Artefact)}})
	for _, row := range []struct {
		name   string
		revert bool
		ends   []barrier.State
	}{
		{"confirmed", false, []barrier.State{barrier.Aborted, barrier.Reverted, barrier.Confirmed}},
		{"reverted", true, []barrier.State{barrier.Aborted, barrier.Reverted}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, _, events := killed(t, installed, 0, row.revert)
			if events < 30 {
				t.Fatalf("%d events: the test no longer crosses the install", events)
			}
			var mu sync.Mutex
			ends := map[barrier.State]int{}
			t.Run("at", func(t *testing.T) {
				for at := 1; at <= events; at++ {
					t.Run(strconv.Itoa(at), func(t *testing.T) {
						t.Parallel()
						end, _, _ := killed(t, installed, at, row.revert)
						mu.Lock()
						ends[end]++
						mu.Unlock()
					})
				}
			})
			for _, end := range row.ends {
				if ends[end] == 0 {
					t.Errorf("no kill ended as %s: %v", end, ends)
				}
			}
			t.Logf("%d events: %v", events, ends)
		})
	}
}
