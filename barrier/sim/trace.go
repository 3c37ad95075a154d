package sim

import (
	"fmt"
	"time"
)

// The trace keeps its beginning and its end.
const (
	traceHead = 60
	traceTail = 400
)

// trace is what happened, for people. When it is off it costs nothing.
type trace struct {
	on      bool
	head    []string
	tail    []string // a ring
	next    int
	skipped int
}

func newTrace(on bool) *trace { return &trace{on: on} }

func (t *trace) add(now time.Duration, who, format string, args ...any) {
	if !t.on {
		return
	}
	line := fmt.Sprintf("%9.3f %-6s %s", now.Seconds(), who, fmt.Sprintf(format, args...))
	switch {
	case len(t.head) < traceHead:
		t.head = append(t.head, line)
	case len(t.tail) < traceTail:
		t.tail = append(t.tail, line)
	default:
		t.tail[t.next] = line
		t.next = (t.next + 1) % traceTail
		t.skipped++
	}
}

func (t *trace) lines() []string {
	all := t.head
	if t.skipped > 0 {
		all = append(all, fmt.Sprintf("          … %d lines …", t.skipped))
	}
	all = append(all, t.tail[t.next:]...)
	return append(all, t.tail[:t.next]...)
}
