package host

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
)

const (
	// accessLogStdout as a destination is the standard output.
	accessLogStdout = "stdout"
	// accessLogWaiting is how many records may wait for the destination; those beyond are dropped and counted: a pipe that nobody
	// reads must not hold up requests.
	accessLogWaiting = 8192
	// accessLogWaitingBytes bounds them together, since a client decides how long its record is.
	accessLogWaitingBytes = 16 << 20
	// accessLogBuffer is how many bytes are written at once while more are waiting.
	accessLogBuffer = 64 << 10
)

// accessLog writes records, one JSON object a line, beside the requests that they tell of. It owns one goroutine.
type accessLog struct {
	to      io.WriteCloser
	lines   chan []byte
	bytes   atomic.Int64 // of what waits
	dropped atomic.Uint64
	failed  atomic.Uint64

	mu     sync.RWMutex // guards closed, and that nothing is sent after it
	closed bool
	ended  chan struct{}
}

// openAccessLog opens a destination: "stdout", or a file that is appended to and may be truncated or moved away by whoever
// rotates it (moved: until the node is started again it writes into the moved one). Nil, nil for "".
func openAccessLog(destination string) (*accessLog, error) {
	switch destination {
	case "":
		return nil, nil
	case accessLogStdout:
		return newAccessLog(keepOpen{os.Stdout}), nil
	}
	f, err := os.OpenFile(destination, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return newAccessLog(f), nil
}

// keepOpen is a destination that is not this log's to close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

func newAccessLog(to io.WriteCloser) *accessLog {
	l := &accessLog{to: to, lines: make(chan []byte, accessLogWaiting), ended: make(chan struct{})}
	go l.run()
	return l
}

// logger returns what the data plane gives its records to; nil for a nil log.
func (l *accessLog) logger() *slog.Logger {
	if l == nil {
		return nil
	}
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{ReplaceAttr: withoutConstants}))
}

// withoutConstants leaves out what is the same in each record, and when it was written: "start" says when the request came.
func withoutConstants(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
		return slog.Attr{}
	}
	return a
}

// Write implements io.Writer for one record. It does not wait.
func (l *accessLog) Write(line []byte) (int, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return len(line), nil
	}
	n := int64(len(line))
	if l.bytes.Add(n) > accessLogWaitingBytes {
		l.bytes.Add(-n)
		l.dropped.Add(1)
		return len(line), nil
	}
	select {
	case l.lines <- append([]byte(nil), line...):
	default:
		l.bytes.Add(-n)
		l.dropped.Add(1)
	}
	return len(line), nil
}

// run writes until the log is closed; it flushes when nothing waits.
func (l *accessLog) run() {
	defer close(l.ended)
	w := bufio.NewWriterSize(l.to, accessLogBuffer)
	for line := range l.lines {
		_, err := w.Write(line)
		l.bytes.Add(-int64(len(line)))
		if err == nil && len(l.lines) == 0 {
			err = w.Flush()
		}
		if err != nil {
			l.failed.Add(1)
			w.Reset(l.to) // what could not be written is lost; the next may go
		}
	}
	if err := w.Flush(); err != nil {
		l.failed.Add(1)
	}
}

// close writes what waits and closes the destination.
func (l *accessLog) close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.lines)
	}
	l.mu.Unlock()
	<-l.ended
	return l.to.Close()
}
