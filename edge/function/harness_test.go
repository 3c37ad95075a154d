package function

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/wat"
	"github.com/guardyn-edge/guardyn/zone"
)

// imports are what the modules of tests import.
const imports = `
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $fd_prestat_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open" (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
`

// helpers are functions that tests' modules may have after their own: $write sends length bytes at from to standard output.
const helpers = `
  (func $write (param $from i32) (param $length i32)
    i32.const 0 local.get $from i32.store
    i32.const 4 local.get $length i32.store
    i32.const 1 i32.const 0 i32.const 1 i32.const 8 call $fd_write drop)
`

// assemble returns a module with the imports and helpers.
func assemble(t testing.TB, fields string) []byte {
	t.Helper()
	b, err := wat.Assemble("(module " + imports + fields + helpers + ")")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// hello answers with a head and "hello\n".
const hello = `(memory 1) (data (i32.const 64) "Content-Type: text/plain\n\nhello\n")
  (func (export "_start") i32.const 64 i32.const 32 call $write)`

func newEngine(t testing.TB, c Config) *Engine {
	t.Helper()
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if m := e.Metrics(); m.Running != 0 || m.Waiting != 0 || m.Memory != 0 {
			t.Errorf("at the end there are %d calls, %d waiting, and %d bytes of memory", m.Running, m.Waiting, m.Memory)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func compile(t testing.TB, e *Engine, f zone.Function) *Function {
	t.Helper()
	out, err := e.Compile("test", f, zone.Ceilings{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func duration(d time.Duration) zone.Duration { return zone.Duration(d) }

func get(change ...func(*Request)) *Request {
	r := &Request{
		Method: "GET", Scheme: "http", Host: "www.example.com", Path: "/", Protocol: "HTTP/1.1", Port: 80,
		Client: netip.MustParseAddr("192.0.2.7"), Header: http.Header{},
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func post(body string) *Request {
	return get(func(r *Request) { r.Method, r.Body, r.Length = "POST", strings.NewReader(body), int64(len(body)) })
}

// failure calls and returns the error, which must be one.
func failure(t testing.TB, f *Function, r *Request) *Error {
	t.Helper()
	resp, err := f.Call(context.Background(), r)
	if err == nil {
		t.Fatalf("it was answered: %d %q", resp.Status, resp.Body)
	}
	return err.(*Error)
}

// zoneFunction is a function without limits of its own.
func zoneFunction(module []byte) zone.Function { return zone.Function{Module: module} }
