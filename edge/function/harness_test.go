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

// assemble returns a function that answers requests.
func assemble(t testing.TB, fields string) []byte {
	t.Helper()
	b, err := wat.WAGI(fields)
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
		Method: "GET", Scheme: "http", Host: "www.example.com", Path: "/",
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

func mustAddr(s string) netip.Addr { return netip.MustParseAddr(s) }
