package host

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func TestAccessLogFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	for range 2 { // the second one appends
		l, err := openAccessLog(path)
		if err != nil {
			t.Fatal(err)
		}
		l.logger().Info("request", slog.Int("status", 200), slog.String("path", "/a"))
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		l.logger().Info("after the end")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var record map[string]any
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil || len(record) != 2 || record["status"] != 200.0 || record["path"] != "/a" {
			t.Errorf("%s: %v", lines.Bytes(), err)
		}
	}
	if n != 2 {
		t.Errorf("%d records, want 2", n)
	}
	if _, err := openAccessLog(filepath.Join(path, "x")); err == nil {
		t.Error("a path below a file was opened")
	}
	if l, err := openAccessLog(""); l != nil || err != nil || l.logger() != nil || l.close() != nil {
		t.Errorf("no destination: %v, %v", l, err)
	}
}

// TestAccessLogNobodyReads: a pipe that nobody reads takes what fits, and what comes beyond the bound is dropped and counted.
func TestAccessLogNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := newAccessLog(w)
	line := make([]byte, 1024)
	for l.dropped.Load() == 0 {
		if n, err := l.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	r.Close() // the writer's write fails now
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if l.failed.Load() == 0 {
		t.Error("records were lost and not counted")
	}
}

// TestAccessLogBytes: what waits is bounded by its bytes too.
func TestAccessLogBytes(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l := newAccessLog(w)
	line := make([]byte, 1<<20)
	const fit = accessLogWaitingBytes >> 20
	for range 2 * fit {
		if n, err := l.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	// One may be on its way out of the queue already.
	if dropped := l.dropped.Load(); dropped < fit-1 || dropped > fit || l.bytes.Load() > accessLogWaitingBytes {
		t.Errorf("%d of %d records dropped, %d bytes wait", dropped, 2*fit, l.bytes.Load())
	}
	r.Close()
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if l.bytes.Load() != 0 {
		t.Errorf("at the end %d bytes wait", l.bytes.Load())
	}
}

// TestAccessLogWhole: what is logged before the end is there after it, in order.
func TestAccessLogWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l, err := openAccessLog(path)
	if err != nil {
		t.Fatal(err)
	}
	const records = accessLogWaiting / 2
	for i := range records {
		l.logger().Info("request", slog.Int("n", i))
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var record struct{ N int }
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil || record.N != n {
			t.Fatalf("record %d: %s %v", n, lines.Bytes(), err)
		}
	}
	if n != records || l.dropped.Load() != 0 {
		t.Errorf("%d records and %d dropped, want %d", n, l.dropped.Load(), records)
	}
}
