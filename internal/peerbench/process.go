package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// readyTimeout bounds how long a server may take until it answers.
const readyTimeout = 30 * time.Second

// clockTick is the unit of /proc/PID/stat: USER_HZ is 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// process is a server's, the leader of a group of its own that its children are in.
type process struct {
	name   string
	cmd    *exec.Cmd
	output *tail
	ended  chan struct{}
}

// tail keeps the last of what a process printed, 16 KiB at most.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 16<<10; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// launch starts a program in the bench's directory; stop ends it.
func (b *bench) launch(name string, env []string, program string, args ...string) (*process, error) {
	p := &process{name: name, output: &tail{}, ended: make(chan struct{})}
	p.cmd = exec.Command(program, args...)
	p.cmd.Dir = b.dir
	p.cmd.Env = append(cleanEnviron(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	b.processes = append(b.processes, p)
	return p, nil
}

// await waits until ready returns nil.
func (p *process) await(ready func() error) error {
	deadline := time.NewTimer(readyTimeout)
	defer deadline.Stop()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended before it answered:\n%s", p.name, p.output)
		case <-deadline.C:
			return fmt.Errorf("%s does not answer: %w\n%s", p.name, err, p.output)
		case <-every.C:
		}
	}
}

// stop ends the group, the impatient way when it does not go by itself.
func (p *process) stop() {
	group := -p.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-p.ended
}

// cpu is what the processes of the group have used so far, user and system. It is an error when the leader has ended.
func (p *process) cpu() (time.Duration, error) {
	select {
	case <-p.ended:
		return 0, fmt.Errorf("%s has ended:\n%s", p.name, p.output)
	default:
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, name := range stats {
		raw, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended meanwhile
		} else if err != nil {
			return 0, err
		}
		group, used, err := parseStat(string(raw))
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		if group == p.cmd.Process.Pid {
			sum += used
		}
	}
	return sum, nil
}

// parseStat takes the process group and the time used from a line of proc_pid_stat(5), fields 5, 14 and 15. The name in
// field 2 may hold anything, so what counts is the last parenthesis.
func parseStat(line string) (group int, used time.Duration, err error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return 0, 0, errors.New("no name of a process")
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 13 {
		return 0, 0, fmt.Errorf("%d fields after the name, want 13 and more", len(fields))
	}
	var n [3]int64
	for i, at := range []int{2, 11, 12} {
		if n[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	return int(n[0]), time.Duration(n[1]+n[2]) * clockTick, nil
}

// cleanEnviron is this process's environment without Guardyn's own variables.
func cleanEnviron() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GUARDYN_") {
			env = append(env, kv)
		}
	}
	return env
}

// find is the path of a program: in the directory of those built here, in PATH, or where Debian puts servers.
func (b *bench) find(program string) (string, error) {
	dirs := append([]string{b.bin}, filepath.SplitList(os.Getenv("PATH"))...)
	for _, dir := range append(dirs, "/usr/sbin", "/usr/local/sbin") {
		path, err := filepath.Abs(filepath.Join(dir, program))
		if err != nil {
			return "", err
		}
		if path, err = exec.LookPath(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("not installed")
}
