package function

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/wat"
)

func answered(t testing.TB, f *Function, r *Request) *Response {
	t.Helper()
	resp, err := f.Call(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resp.Close)
	return resp
}

// called reports how a call ended whose answer nobody needs.
func called(f *Function, r *Request) error {
	resp, err := f.Call(context.Background(), r)
	if err == nil {
		resp.Close()
	}
	return err
}

func TestUsage(t *testing.T) {
	e := newEngine(t, Config{})
	f := compile(t, e, zoneFunction(assemble(t, hello)))
	r := answered(t, f, get())
	if r.Status != 200 || string(r.Body) != "hello\n" || r.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("answered %d %v %q", r.Status, r.Header, r.Body)
	}
	if r.Usage.Memory != 64<<10 || r.Usage.Output != 32 || r.Usage.Time <= 0 {
		t.Errorf("it took %+v", r.Usage)
	}
	if c := f.Counts(); c.Results[Answered] != 1 || c.Memory != 64<<10 || c.Time < r.Usage.Time {
		t.Errorf("counted %+v", c)
	}
}

// TestNothingStays runs functions that look for what an earlier request has left: in memory that they do not write, in memory that has
// grown, in globals, tables and the stack.
func TestNothingStays(t *testing.T) {
	tests := []struct{ name, module string }{
		{"small memory", `(memory 2) (func (export "_start") i32.const 100000 call $look i32.const 100000 call $leave)`},
		{"large memory", `(memory 17) (func (export "_start") i32.const 1000000 call $look i32.const 1000000 call $leave)`},
		{"memory that grows", `(memory 1) (func (export "_start") i32.const 20 memory.grow drop i32.const 1000000 call $look i32.const 1000000 call $leave)`},
		{"memory that grows and is not seen again", `(memory 1) (func (export "_start") (local $i i32)
			i32.const 20 memory.grow drop
			i32.const 65536 local.set $i
			loop $l local.get $i call $look local.get $i call $leave local.get $i i32.const 4096 i32.add local.tee $i i32.const 1376256 i32.lt_u br_if $l end)`},
		{"globals", `(memory 1) (global $g (mut i32) (i32.const 0)) (func (export "_start") global.get $g if unreachable end i32.const 1 global.set $g)`},
		{"tables", `(memory 1) (table 2 funcref) (elem (i32.const 0) $f) (func $f) (func (export "_start")
			i32.const 1 table.get 0 ref.is_null i32.eqz if unreachable end i32.const 1 ref.func $f table.set 0)`},
		{"data that was dropped", `(memory 1) (data "abcd") (func (export "_start") i32.const 100 i32.const 0 i32.const 4 memory.init 0 data.drop 0)`},
	}
	const body = `
		(data (i32.const 64) "Status: 200\n\n")
		(func $look (param $at i32) local.get $at i32.load if unreachable end)
		(func $leave (param $at i32) local.get $at i32.const 305419896 i32.store)
		(func $answer (export "answer") i32.const 64 i32.const 13 call $write)`
	e := newEngine(t, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// Each ends by answering.
			module := strings.TrimSuffix(tt.module, ")") + " call $answer)" + body
			f := compile(t, e, zoneFunction(assemble(t, module)))
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() {
					for range 50 {
						if err := called(f, get()); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			calls.Wait()
		})
	}
}

// TestAnswersDoNotMix calls one function from many sides, each with a body of its own.
func TestAnswersDoNotMix(t *testing.T) {
	e := newEngine(t, Config{})
	module, err := wat.Echo()
	if err != nil {
		t.Fatal(err)
	}
	f := compile(t, e, zoneFunction(module))
	var calls sync.WaitGroup
	for side := range 8 {
		calls.Go(func() {
			for i := range 50 {
				want := strings.Repeat(fmt.Sprintf("%d-%d ", side, i), 1+i*40)
				r, err := f.Call(context.Background(), post(want))
				if err != nil {
					t.Error(err)
					return
				}
				if _, got, _ := bytes.Cut(r.Body, []byte("\x00\x00")); string(got) != want {
					t.Errorf("of %.20q came back %.20q", want, got)
				}
				r.Close()
			}
		})
	}
	calls.Wait()
}

// TestNothingIsGranted looks for files, sockets, precise clocks and unbounded randomness.
func TestNothingIsGranted(t *testing.T) {
	const module = `
		(import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "sock_accept" (func $sock_accept (param i32 i32 i32) (result i32)))
		(import "wasi_snapshot_preview1" "fd_pread" (func $fd_pread (param i32 i32 i32 i64 i32) (result i32)))
		(memory 2) (data (i32.const 64) "Status: 200\n\n")
		(func $is (param $got i32) (param $want i32) local.get $got local.get $want i32.ne if unreachable end)
		(func (export "_start") (local $i i32)
			i32.const 3 i32.const 16 call $fd_prestat_get i32.const 8 call $is
			i32.const 3 i32.const 0 i32.const 64 i32.const 5 i32.const 0 i64.const -1 i64.const -1 i32.const 0 i32.const 16 call $path_open i32.const 8 call $is
			i32.const 3 i32.const 0 i32.const 16 call $sock_accept i32.const 8 call $is
			i32.const 0 i32.const 16 i32.const 1 i64.const 0 i32.const 16 call $fd_pread i32.const 8 call $is
			;; both clocks go in steps of a millisecond
			i32.const 0 i64.const 1 i32.const 16 call $clock_time_get i32.const 0 call $is
			i32.const 16 i64.load i64.const 1000000 i64.rem_u i32.wrap_i64 i32.const 0 call $is
			i32.const 1 i64.const 1 i32.const 16 call $clock_time_get i32.const 0 call $is
			i32.const 16 i64.load i64.const 1000000 i64.rem_u i32.wrap_i64 i32.const 0 call $is
			i32.const 9 i64.const 1 i32.const 16 call $clock_time_get i32.const 28 call $is
			;; a mebibyte of random bytes and no more
			loop $more i32.const 1024 i32.const 65536 call $random_get i32.const 0 call $is
				local.get $i i32.const 1 i32.add local.tee $i i32.const 16 i32.lt_u br_if $more end
			i32.const 1024 i32.const 1 call $random_get i32.const 29 call $is
			;; what is out of memory is said to be
			i32.const 131071 i32.const 2 call $random_get i32.const 21 call $is
			i32.const 1 i32.const 131071 i32.const 1 i32.const 16 call $fd_write i32.const 21 call $is
			i32.const 5 i32.const 16 i32.const 1 i32.const 16 call $fd_write i32.const 8 call $is
			i32.const 64 i32.const 13 call $write)`
	e := newEngine(t, Config{})
	answered(t, compile(t, e, zoneFunction(assemble(t, module))), get())
}

func TestRandomBytesDiffer(t *testing.T) {
	e := newEngine(t, Config{})
	f := compile(t, e, zoneFunction(assemble(t, `(memory 1) (data (i32.const 64) "Status: 200\n\n") (func (export "_start")
		i32.const 64 i32.const 13 call $write i32.const 128 i32.const 16 call $random_get drop i32.const 128 i32.const 16 call $write)`)))
	if a, b := answered(t, f, get()), answered(t, f, get()); bytes.Equal(a.Body, b.Body) || len(a.Body) != 16 {
		t.Errorf("two calls got %x and %x", a.Body, b.Body)
	}
}

func TestSleep(t *testing.T) {
	// A relative time of 30 ms, the same as one that has been, and both with standard input.
	module := assemble(t, `(memory 1) (data (i32.const 64) "Status: 200\n\n")
		(data (i32.const 128) "\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\80\c3\c9\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
		(func (export "_start")
			i32.const 128 i32.const 256 i32.const 1 i32.const 16 call $poll_oneoff if unreachable end
			i32.const 16 i32.load i32.const 1 i32.ne if unreachable end
			i32.const 256 i32.load i32.const 1 i32.ne if unreachable end
			i32.const 64 i32.const 13 call $write)`)
	e := newEngine(t, Config{})
	f := compile(t, e, zoneFunction(module))
	if r := answered(t, f, get()); r.Usage.Time < 30*time.Millisecond {
		t.Errorf("it slept for %s", r.Usage.Time)
	}
}

// waitingCall is a function that waits for its body's end.
func waitingCall(t testing.TB) []byte {
	t.Helper()
	module, err := wat.Echo()
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// held is a body of more than is waited for, that ends when it is let go.
type held struct {
	left  int
	began chan struct{}
	once  sync.Once
	end   <-chan struct{}
}

func (h *held) Read(p []byte) (int, error) {
	if h.left > 0 {
		n := min(h.left, len(p))
		h.left -= n
		return n, nil
	}
	h.once.Do(func() { close(h.began) })
	<-h.end
	return 0, errors.New("let go")
}

func TestConcurrencyIsBounded(t *testing.T) {
	e := newEngine(t, Config{Calls: 3, CallsPerFunction: 2, Waiting: 2, WaitingPerFunction: 1})
	f, g := compile(t, e, zoneFunction(waitingCall(t))), compile(t, e, zoneFunction(waitingCall(t)))
	quick := compile(t, e, zoneFunction(assemble(t, hello)))
	end := make(chan struct{})
	var calls sync.WaitGroup
	call := func(f *Function, ready bool) {
		b := &held{left: prefetch, began: make(chan struct{}), end: end}
		calls.Go(func() {
			_, _ = f.Call(context.Background(), get(func(r *Request) { r.Method, r.Body, r.Length = "POST", b, -1 }))
		})
		if ready {
			<-b.began
		}
	}
	call(f, true)
	call(f, true)
	call(g, true)
	if m := e.Metrics(); m.Running != 3 || m.Waiting != 0 {
		t.Fatalf("%d run, %d wait", m.Running, m.Waiting)
	}
	ctx, cancel := context.WithCancel(context.Background())
	results := make(chan error, 2)
	go func() { _, err := f.Call(ctx, get()); results <- err }() // in line, behind its own
	go func() { _, err := quick.Call(ctx, get()); results <- err }()
	for e.Metrics().Waiting != 2 { // each comes into its line by itself
		runtime.Gosched()
	}
	for _, full := range []*Function{f, quick, g} {
		if err := failure(t, full, get()); err.Kind != Busy {
			t.Errorf("beyond the line it ended in %v", err)
		}
	}
	cancel()
	for range 2 {
		var failed *Error
		if err := <-results; !errors.As(err, &failed) || failed.Kind != Left {
			t.Errorf("a client that left its line got %v", err)
		}
	}
	close(end)
	calls.Wait()
	answered(t, quick, get())
}

// TestOneFunctionDoesNotTakeAll fills what one function may have: it waits, others do not.
func TestOneFunctionDoesNotTakeAll(t *testing.T) {
	e := newEngine(t, Config{Calls: 10, CallsPerFunction: 2})
	f, quick := compile(t, e, zoneFunction(waitingCall(t))), compile(t, e, zoneFunction(assemble(t, hello)))
	end := make(chan struct{})
	var calls sync.WaitGroup
	for range 2 {
		b := &held{left: prefetch, began: make(chan struct{}), end: end}
		calls.Go(func() {
			_, _ = f.Call(context.Background(), get(func(r *Request) { r.Method, r.Body, r.Length = "POST", b, -1 }))
		})
		<-b.began
	}
	third := make(chan error, 1)
	go func() { third <- called(f, get()) }()
	for e.Metrics().Waiting != 1 {
		runtime.Gosched()
	}
	answered(t, quick, get())
	if m := e.Metrics(); m.Running != 2 || m.Waiting != 1 {
		t.Errorf("%d run, %d wait", m.Running, m.Waiting)
	}
	close(end)
	calls.Wait()
	if err := <-third; err != nil {
		t.Errorf("whose turn came got %v", err)
	}
}

func TestLineMovesOn(t *testing.T) {
	e := newEngine(t, Config{Calls: 1})
	f := compile(t, e, zoneFunction(assemble(t, hello)))
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if err := called(f, get()); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

func TestMemoryIsCounted(t *testing.T) {
	// A node for 3 MiB: one that has 2 of them leaves no room for another.
	e := newEngine(t, Config{Memory: 3 << 20})
	f := compile(t, e, zoneFunction(assemble(t, `(memory 33) (data (i32.const 64) "Status: 200\n\n")
		(func (export "_start") i32.const 64 i32.const 13 call $write)`)))
	answered(t, f, get())
	large := compile(t, e, zoneFunction(assemble(t, `(memory 60) (func (export "_start"))`)))
	if err := failure(t, large, get()); err.Kind != Busy {
		t.Errorf("a function that begins with more than there is ended in %v", err)
	}
	// An answer counts until it is closed.
	says := compile(t, e, zoneFunction(assemble(t, `(memory 1) (data (i32.const 64) "Status: 200\n\n") (func (export "_start") (local $i i32)
		i32.const 64 i32.const 13 call $write
		loop $l i32.const 0 i32.const 65535 call $write local.get $i i32.const 1 i32.add local.tee $i i32.const 20 i32.lt_u br_if $l end)`)))
	first, err := says.Call(context.Background(), get())
	if err != nil {
		t.Fatal(err)
	}
	if err := failure(t, says, get()); err.Kind != Busy {
		t.Errorf("beside an answer that is not read yet it ended in %v", err)
	}
	first.Close()
	answered(t, says, get()).Body = nil
	grows := compile(t, e, zoneFunction(assemble(t, `(memory 1) (func (export "_start") i32.const 60 memory.grow i32.const -1 i32.eq if unreachable end)`)))
	if err := failure(t, grows, get()); err.Kind != MemoryOver {
		t.Errorf("a function that grows to more than there is ended in %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Request)
		own    map[string]string
		want   []string // that are there
		not    []string // names that are not
	}{
		{
			"a path with escapes", func(r *Request) { r.Path, r.Query = "/a%20b%2Fc", "x=%41" }, nil,
			[]string{"PATH_INFO=/a b/c", "REQUEST_URI=/a%20b%2Fc?x=%41", "QUERY_STRING=x=%41", "SCRIPT_NAME="},
			nil,
		},
		{"no query", func(*Request) {}, nil, []string{"QUERY_STRING=", "REQUEST_URI=/"}, []string{"HTTPS", "CONTENT_LENGTH", "CONTENT_TYPE"}},
		{
			"https", func(r *Request) { r.Scheme = "https" }, nil,
			[]string{"HTTPS=on", "REQUEST_SCHEME=https", "SERVER_PORT=443", "SERVER_PROTOCOL=HTTP/1.1"},
			nil,
		},
		{"IPv6", func(r *Request) { r.Client = mustAddr("2001:db8::7") }, nil, []string{"REMOTE_ADDR=2001:db8::7"}, nil},
		{"a body", func(r *Request) {
			r.Body, r.Length = strings.NewReader("abc"), 3
			r.Header.Set("Content-Type", "a/b")
			r.Header.Set("Content-Length", "3")
		}, nil, []string{"CONTENT_LENGTH=3", "CONTENT_TYPE=a/b"}, []string{"HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"}},
		{"a body of unknown length", func(r *Request) { r.Body, r.Length = strings.NewReader("abc"), -1 }, nil, nil, []string{"CONTENT_LENGTH"}},
		{"the proxy of httpoxy", func(r *Request) { r.Header["Proxy"] = []string{"http://evil.example"} }, nil, nil, []string{"HTTP_PROXY"}},
		{
			"names that are two", func(r *Request) {
				r.Header["X_A"], r.Header["X-A"], r.Header["X.a"] = []string{"1"}, []string{"2"}, []string{"3"}
			}, nil,
			[]string{"HTTP_X_A=2"},
			nil,
		},
		{
			"several values", func(r *Request) { r.Header["X-A"], r.Header["Cookie"] = []string{"1", "2"}, []string{"a=1", "b=2"} }, nil,
			[]string{"HTTP_X_A=1, 2", "HTTP_COOKIE=a=1; b=2"},
			nil,
		},
		{"its own", func(*Request) {}, map[string]string{"KEY": "value", "PATH": "/bin"}, []string{"KEY=value", "PATH=/bin"}, nil},
		{
			"its own that a request has", func(*Request) {},
			map[string]string{"REQUEST_METHOD": "x", "HTTP_COOKIE": "a=1", "HTTPS": "on", "REMOTE_USER": "root"},
			[]string{"REQUEST_METHOD=GET"},
			[]string{"HTTP_COOKIE", "HTTPS", "REMOTE_USER"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, offsets := appendEnvironment(nil, sortedVariables(tt.own), get(tt.change))
			variables := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
			if len(variables) != len(offsets) {
				t.Errorf("%d variables, %d offsets", len(variables), len(offsets))
			}
			names := make([]string, len(variables))
			for i, v := range variables {
				names[i], _, _ = strings.Cut(v, "=")
				if !strings.HasPrefix(string(b[offsets[i]:]), v) {
					t.Errorf("variable %d does not begin at its offset", i)
				}
			}
			for _, want := range tt.want {
				if !slices.Contains(variables, want) {
					t.Errorf("%q is not among %q", want, variables)
				}
			}
			for _, not := range tt.not {
				if slices.Contains(names, not) {
					t.Errorf("%s is among %q", not, variables)
				}
			}
			slices.Sort(names)
			if len(slices.Compact(names)) != len(variables) {
				t.Errorf("a variable is there twice: %q", variables)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{"Status: 200\n\nbody", "Content-Type: a/b\r\n\r\n", "Location: /x\n\n", "", "\n", "A: b\n\n", "Status: 099\n\n", "Status: 200\nStatus: 200\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		r, err := parseAnswer(out)
		if err != nil {
			return
		}
		if r.Status < 200 || r.Status > 599 || !bytes.HasSuffix(out, r.Body) {
			t.Errorf("%q is read as %d %q", out, r.Status, r.Body)
		}
		for name, values := range r.Header {
			for _, v := range values {
				if strings.ContainsAny(name+v, "\r\n\x00") {
					t.Errorf("%q has the field %q: %q", out, name, v)
				}
			}
		}
	})
}
