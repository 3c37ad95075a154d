package node_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
)

// TestMain lets the test binary be the node that is killed: it installs version 2 over what its directory
// holds and ends itself at the given event.
func TestMain(m *testing.M) {
	if dir := os.Getenv("NODE_TEST_DIR"); dir != "" {
		at, err := strconv.Atoi(os.Getenv("NODE_TEST_EVENT"))
		if err != nil {
			panic(err)
		}
		if url := os.Getenv("NODE_TEST_URL"); url != "" {
			last, err := strconv.ParseUint(os.Getenv("NODE_TEST_LAST"), 10, 64)
			if err != nil {
				panic(err)
			}
			os.Exit(killedMember(dir, url, at, last))
		}
		os.Exit(crashingNode(dir, at, os.Getenv("NODE_TEST_LOAD") != ""))
	}
	os.Exit(m.Run())
}

// crashingNode counts durable steps, the swap and the acknowledgement as events and kills the process at
// event number at; at 0 it dies while it compiles version 2.
func crashingNode(dir string, at int, duringLoad bool) int {
	event := 0
	die := func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	next := func() {
		if event++; event == at {
			die()
		}
	}
	d, err := durable.Open(dir)
	if err != nil {
		panic(err)
	}
	d.AfterStep(func(string, durable.Step) error { next(); return nil })
	s, h := testSigner(1), &host{onSwap: next}
	if duringLoad {
		h.prepare = func(c *seal.Candidate) error {
			if c.Snapshot().Meta().Version == 2 {
				die()
			}
			return nil
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	src := &ackEvent{source: source{answers: []answer{offers(s, s.artefact(2, 2))}, end: cancel}, next: next}
	a, err := node.New(node.Config{Source: src, Host: h, Keys: s.trust(), Dir: d, Interval: time.Millisecond})
	if err != nil {
		panic(err)
	}
	if _, err := a.Boot(ctx); err != nil {
		panic(err)
	}
	if err := a.Run(ctx); err != nil {
		panic(err)
	}
	return 0
}

type ackEvent struct {
	source
	next func()
}

func (s *ackEvent) Ack(ctx context.Context, a nodeproto.Ack) error {
	s.next()
	return s.source.Ack(ctx, a)
}

// crash runs a node that dies at an event and reports whether it did.
func crash(t *testing.T, dir string, at int, duringLoad bool) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NODE_TEST_DIR="+dir, "NODE_TEST_EVENT="+strconv.Itoa(at))
	if duringLoad {
		cmd.Env = append(cmd.Env, "NODE_TEST_LOAD=1")
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("node ended otherwise: %v\n%s", err, out)
	}
	return true
}

// TestKilledAtEveryEvent kills a node with SIGKILL behind each durable step, at the swap and at the
// acknowledgement of an install. The next boot serves the whole old version or the whole new one, its mark
// never goes back, and it reaches the new version.
func TestKilledAtEveryEvent(t *testing.T) {
	s := testSigner(1)
	served := map[uint64]int{}
	event := 1
	for ; ; event++ {
		dir := t.TempDir()
		first := &source{interval: time.Millisecond, answers: []answer{offers(s, s.artefact(1, 1))}}
		run(t, dir, s.trust(), &host{}, first)
		if !crash(t, dir, event, false) {
			break
		}
		h := &host{}
		old := &source{interval: time.Millisecond, answers: []answer{offers(s, s.artefact(1, 1))}}
		run(t, dir, s.trust(), h, old)
		booted := h.served[0]
		served[booted]++
		if h.serving() != booted {
			t.Errorf("event %d: an offer of version 1 changed what is served: %v", event, h.served)
		}
		if booted != 1 && booted != 2 {
			t.Errorf("event %d: booted version %d", event, booted)
		}
		h = &host{}
		run(t, dir, s.trust(), h, &source{interval: time.Millisecond, answers: []answer{offers(s, s.artefact(2, 2))}})
		if h.serving() != 2 {
			t.Errorf("event %d: the node does not reach version 2: %v", event, h.served)
		}
	}
	// Boot: marker and its removal; install: marker, slot, state: five files of four steps, two swaps and two
	// acknowledgements.
	if event-1 != 24 || served[1] == 0 || served[2] == 0 {
		t.Errorf("%d events, booted %v: the test no longer crosses the install", event-1, served)
	}
}

// TestCrashAtLoad: a snapshot that ends the process while it is compiled is tried twice and then left alone.
func TestCrashAtLoad(t *testing.T) {
	s, dir := testSigner(1), t.TempDir()
	run(t, dir, s.trust(), &host{}, &source{interval: time.Millisecond, answers: []answer{offers(s, s.artefact(1, 1))}})
	for i := range 2 {
		if !crash(t, dir, 0, true) {
			t.Fatalf("attempt %d did not crash", i+1)
		}
	}
	if crash(t, dir, 0, true) {
		t.Fatal("a third attempt was made")
	}
	h := &host{}
	src := &source{interval: time.Millisecond, answers: []answer{offers(s, s.artefact(2, 2)), offers(s, s.artefact(3, 3))}}
	run(t, dir, s.trust(), h, src)
	if h.serving() != 3 || h.served[0] != 1 {
		t.Errorf("served %v, want 1 from disk and then 3, never 2", h.served)
	}
	var codes []string
	for _, a := range src.acks {
		if a.Error != nil {
			codes = append(codes, a.Error.Code)
		}
	}
	if len(codes) != 1 || codes[0] != "crashed_at_load" {
		t.Errorf("reported %v", codes)
	}
}
