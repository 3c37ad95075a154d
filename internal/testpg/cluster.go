package testpg

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ErrNotInstalled says what to install.
var ErrNotInstalled = errors.New("PostgreSQL is not installed: apt-get install postgresql (no initdb in PATH or under /usr/lib/postgresql)")

// Options of a cluster.
type Options struct {
	// Durable keeps fsync on, as in production. Without it a commit costs no disk write.
	Durable bool
}

// Cluster is a running PostgreSQL server of one's own. Only a Unix socket in a private directory leads to
// it, so any number can run at once.
type Cluster struct {
	dir    string
	server *os.Process
	exited chan struct{} // closed when the server is gone
	log    *tail
}

// Start makes a cluster in a new temporary directory and returns when it accepts connections. It works as
// root too, where the server runs as the user postgres. The caller must Stop it; should this process die
// first, the server ends with it (on Linux).
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	as, err := serverUser()
	if err != nil {
		return nil, err
	}
	base := os.TempDir()
	if as != nil {
		base = "/tmp" // root's own may be closed to the user postgres
	}
	dir, err := os.MkdirTemp(base, "guardyn-postgres-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, exited: make(chan struct{}), log: &tail{most: 16 << 10}}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			return nil, err
		}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres",
		"-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
	c.prepare(initdb, as)
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return c, c.serve(ctx, filepath.Join(bin, "postgres"), as, o)
}

func (c *Cluster) prepare(cmd *exec.Cmd, as *syscall.Credential) {
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
}

// serve starts the server and waits until its log says that it is ready.
func (c *Cluster) serve(ctx context.Context, postgres string, as *syscall.Credential, o Options) error {
	args := []string{
		"-D", filepath.Join(c.dir, "data"), "-k", c.dir,
		"-c", "listen_addresses=", "-c", "max_connections=500", "-c", "log_destination=stderr", "-c", "logging_collector=off",
	}
	if !o.Durable {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	cmd := exec.Command(postgres, args...)
	c.prepare(cmd, as)
	endWithParent(cmd.SysProcAttr)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	ready := make(chan struct{})
	started := make(chan error, 1)
	go func() {
		// The signal that ends the server with its parent is sent when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		c.log.follow(stderr, "database system is ready to accept connections", ready)
		_ = cmd.Wait() // how it ended is told by the log
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	c.server = cmd.Process
	select {
	case <-ready:
		return nil
	case <-c.exited:
		return fmt.Errorf("postgres ended before it was ready:\n%s", c.log)
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("wait for postgres: %w\n%s", ctx.Err(), c.log), c.Stop())
	}
}

// Stop ends the server at once, with every connection, and removes its directory.
func (c *Cluster) Stop() error {
	err := c.server.Signal(syscall.SIGQUIT) // "immediate shutdown": what it holds is thrown away anyway
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err == nil {
		<-c.exited
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// URL leads the superuser to the database of that name.
func (c *Cluster) URL(database string) string {
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: url.Values{"host": {c.dir}, "user": {"postgres"}}.Encode()}
	return u.String()
}

// binaries finds the directory of the server's programs, the newest when there are several.
func binaries() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if _, err := os.Stat(filepath.Join(filepath.Dir(initdb), "postgres")); err == nil {
			return filepath.Dir(initdb), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", ErrNotInstalled
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // not a number: the oldest
		return n
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

// serverUser is whom the server runs as: nil for oneself, since PostgreSQL refuses to run as root only.
func serverUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user to run it as (apt-get install postgresql makes one): %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// tail keeps the end of a log.
type tail struct {
	most int // bytes

	mu   sync.Mutex
	last []byte
}

// follow reads r to its end and closes seen at the first line that holds text.
func (t *tail) follow(r io.Reader, text string, seen chan<- struct{}) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		t.mu.Lock()
		t.last = append(t.last, line...)
		if over := len(t.last) - t.most; over > 0 {
			t.last = bytes.Clone(t.last[over:])
		}
		t.mu.Unlock()
		if seen != nil && strings.Contains(line, text) {
			close(seen)
			seen = nil
		}
		if err != nil {
			return
		}
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
