package durable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/guardyn-edge/guardyn/internal/durable"
)

func lines(path string) *durable.Lines {
	return &durable.Lines{Path: path, Mark: `{"n":`, Whole: json.Valid}
}

// TestLinesMend: what a crash has left of a line is cut off or ended, and the next one is a line of its own whatever there was.
func TestLinesMend(t *testing.T) {
	long := `{"n":"` + strings.Repeat("x", 200<<10)
	for _, tt := range []struct {
		name, had string
		mended    string
		torn      durable.Torn
	}{
		{"nothing", "", "", durable.Torn{}},
		{"whole", "{\"n\":1}\n", "{\"n\":1}\n", durable.Torn{}},
		{"torn", "{\"n\":1}\n{\"n\":", "{\"n\":1}\n", durable.Torn{Size: 5, Begin: `{"n":`, Cut: true}},
		{"torn in its mark", "{\"n\":1}\n{\"", "{\"n\":1}\n", durable.Torn{Size: 2, Begin: `{"`, Cut: true}},
		{"torn, and nothing before", `{"n":1`, "", durable.Torn{Size: 6, Begin: `{"n":1`, Cut: true}},
		{"torn, over several blocks", "{\"n\":1}\n" + long, "{\"n\":1}\n", durable.Torn{Size: int64(len(long)), Begin: long[:64], Cut: true}},
		{"lacks its end alone", "{\"n\":1}\n{\"n\":2}", "{\"n\":1}\n{\"n\":2}\n", durable.Torn{Size: 7, Begin: `{"n":2}`}},
		{"zeros of a power cut", "{\"n\":1}\n\x00\x00\x00", "{\"n\":1}\n", durable.Torn{Size: 3, Begin: "\x00\x00\x00", Cut: true}},
		{"torn, then zeros", "{\"n\":1}\n{\"n\":2\x00\x00", "{\"n\":1}\n", durable.Torn{Size: 8, Begin: "{\"n\":2\x00\x00", Cut: true}},
		{"zeros, then text", "\x00\x00see", "\x00\x00see\n", durable.Torn{Size: 5, Begin: "\x00\x00see"}},
		{"somebody else's", "{\"n\":1}\na note", "{\"n\":1}\na note\n", durable.Torn{Size: 6, Begin: "a note"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lines")
			for _, how := range []string{"Mend", "Append"} {
				if err := os.WriteFile(path, []byte(tt.had), 0o600); err != nil {
					t.Fatal(err)
				}
				want, torn, err := tt.mended, durable.Torn{}, error(nil)
				if how == "Mend" {
					torn, err = lines(path).Mend(t.Context())
				} else {
					torn, err = lines(path).Append(t.Context(), []byte("{\"n\":9}\n"))
					want += "{\"n\":9}\n"
				}
				if err != nil || torn != tt.torn {
					t.Errorf("%s tells %+v, %v", how, torn, err)
				}
				if got, err := os.ReadFile(path); err != nil || string(got) != want {
					t.Errorf("%s leaves %q, %v", how, got, err)
				}
			}
		})
	}
	if _, err := lines(filepath.Join(t.TempDir(), "none")).Mend(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
}

// TestLinesTakenBack: what a full disk took of lines is not left there, and what was there is.
func TestLinesTakenBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	if _, err := lines(path).Append(t.Context(), []byte("{\"n\":1}\n")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DURABLE_TEST_FULL="+path)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "file too large" {
		t.Errorf("appended: %q, %v", out, err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "{\"n\":1}\n" {
		t.Errorf("it has %q, %v", got, err)
	}
}

// appendToFull appends a line in a process whose files may have 20 bytes: the disk is full within it.
func appendToFull(path string) int {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 20, Max: 20}); err != nil {
		fmt.Print(err)
		return 1
	}
	_, err := lines(path).Append(context.Background(), []byte("{\"n\":\"twenty and more\"}\n"))
	if errno := unix.Errno(0); errors.As(err, &errno) {
		err = errno
	}
	fmt.Print(err)
	return 0
}

// TestLinesTogether: lines of several that append at once are whole, and each is there once.
func TestLinesTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	const writers, each = 4, 25
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			l := lines(path)
			for i := range each {
				text := fmt.Sprintf("{\"n\":\"%d.%d\",\"x\":%q}\n", w, i, strings.Repeat("x", 5000))
				if torn, err := l.Append(t.Context(), []byte(text)); err != nil || torn != (durable.Torn{}) {
					t.Errorf("%+v, %v", torn, err)
				}
			}
		})
	}
	work.Wait()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(raw) {
		var l struct{ N string }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%.40q: %v", line, err)
		}
		seen[l.N] = true
	}
	if len(seen) != writers*each || bytes.Count(raw, []byte("\n")) != writers*each {
		t.Errorf("%d lines, %d of them different", bytes.Count(raw, []byte("\n")), len(seen))
	}
}
