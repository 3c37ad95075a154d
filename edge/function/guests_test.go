package function

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// goGuest and cGuest are the functions of examples/functions, built once.
var (
	goGuest = sync.OnceValues(func() ([]byte, error) {
		return build("go", "GOOS=wasip1 GOARCH=wasm go build -ldflags=-s -o $0 main.go")
	})
	cGuest = sync.OnceValues(func() ([]byte, error) {
		return build("c", "clang --target=wasm32-wasi --sysroot=/usr -O2 -s -o $0 hello.c")
	})
)

func build(example, command string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "function-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "hello.wasm")
	cmd := exec.Command("bash", "-c", command, out)
	cmd.Dir = "../../examples/functions/" + example
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, &buildError{example, string(text), err}
	}
	return os.ReadFile(out)
}

type buildError struct {
	example, text string
	err           error
}

func (e *buildError) Error() string {
	return "build examples/functions/" + e.example + " (hack/need.sh clang installs what the one in C needs): " + e.err.Error() + "\n" + e.text
}

var guests = []struct {
	name  string
	build func() ([]byte, error)
	want  string
}{
	{"Go", goGuest, "Hello, edge!\nPOST / with 100000 bytes\n"},
	{"C", cGuest, "Hello, edge!\n"},
}

func TestGuests(t *testing.T) {
	e := newEngine(t, Config{})
	for _, g := range guests {
		t.Run(g.name, func(t *testing.T) {
			module, err := g.build()
			if err != nil {
				t.Fatal(err)
			}
			f := compile(t, e, zone.Function{Module: module})
			r := post(strings.Repeat("x", 100_000))
			r.Query = "name=edge"
			got := answered(t, f, r)
			if string(got.Body) != g.want || got.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("answered %v %q", got.Header, got.Body)
			}
			t.Logf("%+v, compiled in %s", got.Usage, e.Metrics().CompileTime)
		})
	}
}

// benchmarkCalls reports the processor time of a call beside how long it took.
func benchmarkCalls(b *testing.B, module []byte) {
	e := newEngine(b, Config{})
	f := compile(b, e, zone.Function{Module: module})
	answered(b, f, get())
	b.ReportAllocs()
	before := processorTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := called(f, get()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkGuests(b *testing.B) {
	b.Run("text", func(b *testing.B) { benchmarkCalls(b, assemble(b, hello)) })
	for _, g := range guests {
		b.Run(g.name, func(b *testing.B) {
			module, err := g.build()
			if err != nil {
				b.Fatal(err)
			}
			benchmarkCalls(b, module)
		})
	}
}
