package function

import (
	"context"
	"testing"
)

func TestHello(t *testing.T) {
	e := newEngine(t, Config{})
	f := compile(t, e, zoneFunction(assemble(t, hello)))
	r, err := f.Call(context.Background(), get())
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != 200 || string(r.Body) != "hello\n" || r.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("answered %d %v %q", r.Status, r.Header, r.Body)
	}
}

func BenchmarkHello(b *testing.B) {
	e := newEngine(b, Config{})
	f := compile(b, e, zoneFunction(assemble(b, hello)))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := f.Call(context.Background(), get()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
