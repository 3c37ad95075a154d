package testdynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/guardyn-edge/guardyn/internal/testport"
)

// maxStarts is how many ports are tried: another process can take one between its choice and the start.
const maxStarts = 5

// Server is a running DynamoDB Local of one's own, whose tables are in memory. It listens on all interfaces, as
// it offers no choice, at a port that nobody knows, and holds nothing but what tests put there.
type Server struct {
	port    string
	release func() // of the port
	process *os.Process
	exited  chan struct{} // closed when it is gone
	log     *tail
}

// Start fetches the server if this user's cache does not have it, and returns when it answers. The caller must Stop it;
// should this process die first, the server ends with it (on Linux).
func Start(ctx context.Context) (*Server, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, errors.New("java is not installed: apt-get install openjdk-17-jre-headless")
	}
	dir, err := serverDirectory(ctx)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		s, err := start(ctx, java, dir)
		if err == nil || n == maxStarts || ctx.Err() != nil {
			return s, err
		}
	}
}

func start(ctx context.Context, java, dir string) (*Server, error) {
	addr, release, err := testport.Reserve()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	s := &Server{port: port, release: release, exited: make(chan struct{}), log: &tail{most: 16 << 10}}
	// Its runs are short: what the compiler and the collector for long ones cost is never earned back.
	cmd := exec.Command(java, "-Xmx768m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.library.path="+filepath.Join(dir, "DynamoDBLocal_lib"), "-jar", jar,
		"-port", port, "-inMemory", "-sharedDb", "-disableTelemetry")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + os.TempDir()}
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	endWithParent(cmd.SysProcAttr)
	started := make(chan error, 1)
	go func() {
		// The signal that ends the server with its parent is sent when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is told by the log
			close(s.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: %w", err)
	}
	s.process = cmd.Process
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !s.answers(ctx) {
		select {
		case <-ticker.C:
		case <-s.exited:
			return nil, fmt.Errorf("DynamoDB Local ended before it answered:\n%s", s.log)
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for DynamoDB Local: %w\n%s", ctx.Err(), s.log), s.Stop())
		}
	}
	return s, nil
}

// answers tells whether the server lists its tables, as a DynamoDB would.
func (s *Server) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL(), strings.NewReader("{}"))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20200101/"+region+"/dynamodb/aws4_request, SignedHeaders=host, Signature=test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Stop ends the server at once, with all that it holds.
func (s *Server) Stop() error {
	err := s.process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err == nil {
		<-s.exited
		s.release()
	}
	return err
}

// URL is where the server answers.
func (s *Server) URL() string { return "http://127.0.0.1:" + s.port }

// tail keeps the end of a log.
type tail struct {
	most int // bytes

	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	if over := len(t.last) - t.most; over > 0 {
		t.last = bytes.Clone(t.last[over:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
