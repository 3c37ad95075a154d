package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestProgress(t *testing.T) {
	file := strings.Repeat("x", 4096)
	tests := []struct {
		name     string
		terminal bool
		size     int64
		want     string // at the start of what is printed
	}{
		{"terminal", true, 4096, "\rbad\\x1b.zone: 0% of 4 KiB sent"},
		{"terminal, size unknown", true, -1, "\rbad\\x1b.zone: 0 KiB sent"},
		{"empty file", true, 0, "\rbad\\x1b.zone: 0 KiB sent"},
		{"no terminal", false, 4096, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var errs bytes.Buffer
			a := &app{Env: Env{Stderr: &errs, StderrIsTerminal: tt.terminal}}
			p := a.newProgress(iotest.OneByteReader(strings.NewReader(file)), "bad\x1b.zone", tt.size)
			got, err := io.ReadAll(p)
			p.done()
			if err != nil || string(got) != file {
				t.Fatalf("read %d bytes, %v", len(got), err)
			}
			if !strings.HasPrefix(errs.String(), tt.want) || tt.want == "" && errs.Len() > 0 {
				t.Errorf("printed %q, want %q first", &errs, tt.want)
			}
			if tt.terminal && !strings.HasSuffix(errs.String(), "\r\x1b[K") {
				t.Errorf("printed %q, which leaves the line", &errs)
			}
		})
	}
}
