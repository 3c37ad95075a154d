// Package testmosquitto runs a Mosquitto broker for a test, with a log that can be waited for, a proxy that cuts connections, and a client of
// another make than the bridge's own.
package testmosquitto

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/testport"
)

// Patience is how long a test waits for something that should happen soon.
const Patience = 30 * time.Second

// Broker is one that runs.
type Broker struct {
	Addr string // host:port, MQTT
	dir  string

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	lines []string
	more  chan struct{} // closed and replaced with each line
}

// find is where Debian and others put the broker.
func find() (string, error) {
	if path, err := exec.LookPath("mosquitto"); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/mosquitto")
}

// Start runs a broker until the test ends. config are lines of its configuration beside those that every broker here has. Without the
// program the test fails.
func Start(t testing.TB, config ...string) *Broker {
	t.Helper()
	program, err := find()
	if err != nil {
		t.Fatal("mosquitto is not installed: run hack/need.sh mosquitto")
	}
	b := &Broker{Addr: FreeAddr(t), dir: t.TempDir(), more: make(chan struct{})}
	_, port, _ := net.SplitHostPort(b.Addr)
	lines := append([]string{
		"listener " + port + " 127.0.0.1", "allow_anonymous true", "log_dest stderr", "log_type all", "connection_messages true",
		"persistence true", "persistence_location " + b.dir + "/", "autosave_interval 1", "autosave_on_changes true", "max_queued_messages 0",
	}, config...)
	if err := os.WriteFile(filepath.Join(b.dir, "mosquitto.conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.WriteFile(filepath.Join(b.dir, "mosquitto.conf"), []byte("user root\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.start(t, program)
	t.Cleanup(func() { b.stop(syscall.SIGKILL) })
	return b
}

// URL is the broker's.
func (b *Broker) URL() string { return "mqtt://" + b.Addr }

func (b *Broker) start(t testing.TB, program string) {
	t.Helper()
	cmd := exec.Command(program, "-c", filepath.Join(b.dir, "mosquitto.conf"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.cmd, b.ended = cmd, make(chan struct{})
	from := len(b.lines)
	ended := b.ended
	b.mu.Unlock()
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			b.mu.Lock()
			b.lines = append(b.lines, s.Text())
			close(b.more)
			b.more = make(chan struct{})
			b.mu.Unlock()
		}
		_ = cmd.Wait()
	}()
	b.await(t, from, "running")
}

func (b *Broker) stop(s syscall.Signal) {
	b.mu.Lock()
	cmd, ended := b.cmd, b.ended
	b.cmd = nil
	b.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Signal(s)
		<-ended
	}
}

// Kill ends the broker at once.
func (b *Broker) Kill() { b.stop(syscall.SIGKILL) }

// Restart runs it again, with what it has persisted.
func (b *Broker) Restart(t testing.TB) {
	t.Helper()
	program, err := find()
	if err != nil {
		t.Fatal(err)
	}
	b.start(t, program)
}

// Mark is the place that the log has come to.
func (b *Broker) Mark() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lines)
}

// Await waits for a line behind a mark that has all the words, and returns the place behind it.
func (b *Broker) Await(t testing.TB, mark int, words ...string) int {
	t.Helper()
	return b.await(t, mark, words...)
}

func (b *Broker) await(t testing.TB, at int, words ...string) int {
	t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		b.mu.Lock()
		for ; at < len(b.lines); at++ {
			if hasAll(b.lines[at], words) {
				b.mu.Unlock()
				return at + 1
			}
		}
		more, ended := b.more, b.ended
		b.mu.Unlock()
		select {
		case <-more:
		case <-ended:
			t.Fatalf("the broker ended before it said %q:\n%s", words, b.Tail(20))
		case <-timeout.C:
			t.Fatalf("the broker does not say %q:\n%s", words, b.Tail(40))
		}
	}
}

func hasAll(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// Count is how many lines behind a mark have all the words.
func (b *Broker) Count(mark int, words ...string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, line := range b.lines[mark:] {
		if hasAll(line, words) {
			n++
		}
	}
	return n
}

// Lines returns those behind a mark that have all the words.
func (b *Broker) Lines(mark int, words ...string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, line := range b.lines[mark:] {
		if hasAll(line, words) {
			out = append(out, line)
		}
	}
	return out
}

// Tail is the end of the log.
func (b *Broker) Tail(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.lines[max(0, len(b.lines)-n):], "\n")
}

// FreeAddr is an address of loopback that nothing listens on, the test's until its end.
func FreeAddr(t testing.TB) string {
	t.Helper()
	addr, release, err := testport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return addr
}

// Until waits, polling, until f is true; what says what is waited for.
func Until(t testing.TB, what string, f func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for !f() {
		select {
		case <-every.C:
		case <-ctx.Done():
			t.Fatalf("it does not come to pass: %s", what)
		}
	}
}
