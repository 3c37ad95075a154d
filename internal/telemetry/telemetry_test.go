package telemetry

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

const uuid, traceID = "018f6f0c-3d2a-4f7e-9d7b-5a1c0e4f8a21", "018f6f0c3d2a4f7e9d7b5a1c0e4f8a21"

func TestLogs(t *testing.T) {
	var r Rollouts
	r.Note(uuid, 7)
	type named string
	for name, row := range map[string]struct {
		args []any
		want string // trace id
	}{
		"a rollout":                 {[]any{"rollout", uuid}, traceID},
		"of a type of its own":      {[]any{"rollout", named(uuid)}, traceID},
		"its generation":            {[]any{"act", "swap", "generation", uint64(7)}, traceID},
		"another generation":        {[]any{"generation", uint64(8)}, ""},
		"no generation":             {[]any{"generation", uint64(0)}, ""},
		"both, the rollout's wins":  {[]any{"generation", uint64(8), "rollout", uuid}, traceID},
		"no rollout":                {[]any{"rollout", "current"}, ""},
		"something else":            {[]any{"version", uint64(7)}, ""},
		"one that has a trace":      {[]any{"rollout", uuid, "trace_id", "own"}, "own"},
		"one that had it before it": {[]any{"trace_id", "own", "rollout", uuid}, "own"},
	} {
		var out bytes.Buffer
		l := slog.New(r.Logs(slog.NewTextHandler(&out, nil))).With("member", "a")
		l.Info("m", row.args...)
		line := strings.TrimSpace(out.String())
		if n := strings.Count(line, "trace_id="); row.want == "" && n != 0 || row.want != "" && (n != 1 || !strings.Contains(line, "trace_id="+row.want)) {
			t.Errorf("%s: %s", name, line)
		}
		if !strings.Contains(line, "member=a") {
			t.Errorf("%s: %s", name, line)
		}
	}
	for i := range uint64(maxKnown) {
		r.Note("other", 100+i)
		r.Note("other", 100+i) // again is nothing
	}
	if r.of(7) != "" || r.of(100) != "other" {
		t.Errorf("remembers %+v", r.known)
	}
}

func TestEndpoint(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, bad := range []string{"collector:4318", "ftp://x", "http://", "http://x?y=1", "://"} {
		if tr, err := New(Config{Endpoint: bad, Logger: log}); err == nil {
			t.Errorf("%s: taken", bad)
			_ = tr.Close()
		}
	}
	none, err := New(Config{})
	if none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
	// Nobody takes them.
	none.Rollout(uuid, Span{})
	none.Part(uuid, Span{})
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

// More spans than the queue takes, and no collector: nobody waits.
func TestSendingDoesNotWait(t *testing.T) {
	tr, err := New(Config{Endpoint: "http://127.0.0.1:1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for range 10 * maxQueue {
		tr.Part(uuid, Span{Name: "build", Start: start, End: start})
	}
	if took := time.Since(start); took > closeTimeout {
		t.Errorf("took %s", took)
	}
	_ = tr.Close()
	if took := time.Since(start); took > 3*closeTimeout {
		t.Errorf("with its end it took %s", took)
	}
}

func TestTraceID(t *testing.T) {
	for in, want := range map[string]string{
		uuid: traceID, "": "", "current": "", strings.Repeat("x", 36): "", "00000000-0000-0000-0000-000000000000": "",
	} {
		if got := TraceID(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
