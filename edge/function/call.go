package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
)

const (
	// prefetch is how much of a request's body is waited for before the call takes a place.
	prefetch = 64 << 10
	// maxStderr is what is kept of standard error.
	maxStderr = 4 << 10
	// attendAfter is how long a call computes before it attends to its client.
	attendAfter = 10 * time.Millisecond
	// stackShare is what is counted for the frames of a call, beside its memory.
	stackShare = 256 << 10
)

// call is one on its way. It is the context of all that its instance does.
type call struct {
	context.Context // of the request, until the call's time is over
	cancel          context.CancelFunc

	f        *Function
	begun    time.Time
	deadline time.Time
	turn     turn
	memory   linear

	environ  []byte   // variables, each ended by a zero byte
	offsets  []uint32 // where they begin
	body     io.Reader
	first    []byte // of the body, before what the reader brings
	bodyErr  error
	stdin    bool // it may be read still
	stop     func()
	stopping *time.Timer   // stops the reading of the body at the deadline
	stopped  chan struct{} // closed when it has

	out    []byte
	stderr []byte
	random int   // bytes given
	work   int   // of the host for the instance, since others were let have their turn, in instructions
	held   int64 // bytes that are counted of the node's memory, beside those of memory

	attend func() // nil once it was called

	ended Kind // why the host ended it; Answered while it did not
}

// Value implements context.Context for those of the runtime and for finding the call.
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return nil // the request's values are none of a function's business
}

type callKey struct{}

// callOf finds the call in the context of a host function.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.(*call); ok {
		return c
	}
	return ctx.Value(callKey{}).(*call)
}

// Call answers a request by an instance of its own. The error is an *Error. The answer's body belongs to the caller.
func (f *Function) Call(ctx context.Context, r *Request) (*Response, error) {
	begun := time.Now()
	c := &call{f: f, begun: begun, deadline: begun.Add(f.timeout), body: r.Body, stop: r.Interrupt, stdin: r.Body != nil, attend: r.Attend}
	c.Context, c.cancel = context.WithDeadline(ctx, c.deadline)
	defer c.cancel()
	c.turn.light, c.turn.long = &f.state.light, &f.state.long
	resp, failed := c.answer(r)
	if c.stopping != nil && !c.stopping.Stop() {
		<-c.stopped
	}
	runtime.KeepAlive(f.program)
	kind, u := Answered, Usage{Time: time.Since(begun), Memory: c.memory.size, Output: len(c.out), Stderr: c.stderr}
	if failed != nil {
		kind, failed.Usage = failed.Kind, u
	}
	f.state.counts.add(kind, u.Time, u.Memory)
	f.engine.counts.calls.add(kind, u.Time, u.Memory)
	if failed != nil {
		c.letGo()
		return nil, failed
	}
	resp.Usage, resp.release = u, c.letGo
	return resp, nil
}

func (c *call) fail(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Function: c.f.name, Reason: fmt.Sprintf(format, args...), Cause: c.bodyErr}
}

func (c *call) answer(r *Request) (*Response, *Error) {
	e := c.f.engine
	if err := c.readAhead(); err != nil {
		return nil, err
	}
	c.environ, c.offsets = appendEnvironment(c.environ, c.f.environment, r)
	if !e.admission.enter(&c.f.state.place, c.waits) {
		return nil, c.over("there is no place for it")
	}
	defer e.admission.leave(&c.f.state.place)
	if !e.processors.take(&c.turn, c.waits) {
		e.processors.give(&c.turn)
		return nil, c.over("there is no processor for it")
	}
	failed := c.run()
	e.processors.give(&c.turn)
	if failed != nil {
		return nil, failed
	}
	resp, err := parseAnswer(c.out)
	if err != nil {
		return nil, c.fail(BadAnswer, "%v", err)
	}
	return resp, nil
}

// waits is called before the call waits for something, and returns what is closed when it is over.
func (c *call) waits() <-chan struct{} {
	if c.attend != nil {
		c.attend()
		c.attend = nil
	}
	return c.Done()
}

// hold counts n more bytes; false: the node has no more for functions.
func (c *call) hold(n int) bool {
	if !c.f.engine.memories.reserveBytes(int64(n)) {
		return false
	}
	c.held += int64(n)
	return true
}

// letGo gives back what hold has counted.
func (c *call) letGo() {
	c.f.engine.memories.used.Add(-c.held)
	c.held = 0
}

// over is the error of a call that waited for something until its client left or its time was over.
func (c *call) over(what string) *Error {
	if err := c.Err(); errors.Is(err, context.Canceled) {
		return c.fail(Left, "the client left")
	}
	return c.fail(Busy, "%s", what)
}

// readAhead waits for the body, or as much of it as is waited for, so that a client that takes its time takes no place.
func (c *call) readAhead() *Error {
	if !c.stdin {
		return nil
	}
	c.watchBody()
	buf := make([]byte, 0, 512)
	for len(buf) < prefetch {
		if len(buf) == cap(buf) {
			if !c.hold(cap(buf)) {
				return c.fail(Busy, "the node has no memory for it")
			}
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := c.body.Read(buf[len(buf):min(cap(buf), prefetch)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			c.stdin = false
			break
		}
		if err != nil {
			return c.bodyFailed(err)
		}
	}
	c.first = buf
	return nil
}

// watchBody has the reading of the body stopped at the deadline.
func (c *call) watchBody() {
	if c.stopping == nil && c.stop != nil {
		c.stopped = make(chan struct{})
		c.stopping = time.AfterFunc(time.Until(c.deadline), func() {
			defer close(c.stopped)
			c.stop()
		})
	}
}

func (c *call) bodyFailed(err error) *Error {
	c.bodyErr = err
	if c.late() {
		return c.fail(TimeOver, "the request's body did not come within its time, %s", c.f.timeout)
	}
	return c.fail(BodyFailed, "%v", err)
}

func (c *call) late() bool { return !time.Now().Before(c.deadline) }

// run makes an instance and runs it to its end.
func (c *call) run() *Error {
	e, p := c.f.engine, c.f.program
	if !e.memories.reserveBytes(stackShare) {
		return c.fail(Busy, "the node has no memory for it")
	}
	defer e.memories.used.Add(-stackShare)
	var ctx context.Context = c
	if p.most > 0 {
		if ok, err := e.memories.instance(&c.memory, p.least, c.f.memory); err != nil {
			return c.fail(Busy, "%v", err)
		} else if !ok {
			return c.fail(Busy, "the node has no memory for it")
		}
		defer c.memory.Free()
		ctx = experimental.WithMemoryAllocator(c, &c.memory)
	}
	m, err := e.runtime.InstantiateModule(ctx, p.compiled, instanceConfig)
	if err == nil {
		_, err = m.ExportedFunction("_start").Call(c)
		_ = m.Close(c) // it holds nothing but its memory
	}
	return c.outcome(err)
}

// instanceConfig has _start not be called by the runtime, and instances not be known by a name. The source of randomness is for the
// runtime's own WASI, which no instance has, and given because to seed the default one takes longer than all else of an instance.
var instanceConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(http.NoBody)

// outcome is the error of a call whose instance has ended in err.
func (c *call) outcome(err error) *Error {
	var exit *sys.ExitError
	switch {
	case c.bodyErr != nil:
		return c.bodyFailed(c.bodyErr)
	case c.ended == TimeOver:
		return c.fail(TimeOver, "it took longer than its time, %s", c.f.timeout)
	case c.ended == OutputOver:
		return c.fail(OutputOver, "it wrote more than %d bytes", c.f.output)
	case c.ended == StackOver:
		return c.fail(StackOver, "it called itself too deep")
	case c.ended == Busy:
		return c.fail(Busy, "the node has no memory for its output")
	case c.ended == Left:
		return c.fail(Left, "the client left")
	case err == nil:
		return nil
	case c.memory.refused:
		return c.fail(MemoryOver, "it failed after it was refused memory, with %d KiB", c.memory.size>>10)
	case errors.As(err, &exit) && exit.ExitCode() == 0:
		return nil
	case errors.As(err, &exit):
		return c.fail(Exited, "it ended with status %d", exit.ExitCode())
	}
	text := err.Error()
	if errors.As(err, new(runtime.Error)) {
		c.f.engine.config.Logger.Error("a function met a fault of this build", "function", c.f.name, "error", text)
		text, _, _ = strings.Cut(text, "\n")
	}
	return c.fail(Trapped, "%s", strings.TrimPrefix(text, "wasm error: "))
}

// end unwinds the instance, from within a host function.
func (c *call) end(k Kind) {
	c.ended = k
	panic(sys.NewExitError(1))
}

// check ends a call whose time is over or whose client has left.
func (c *call) check(now time.Time) {
	if !now.Before(c.deadline) {
		c.end(TimeOver)
	}
	if c.Err() != nil {
		c.expired()
	}
}

// expired ends a call whose context is over.
func (c *call) expired() {
	if errors.Is(c.Err(), context.Canceled) {
		c.end(Left)
	}
	c.end(TimeOver)
}

// compute is called while the instance computes, every now and then.
func (c *call) compute() {
	now := time.Now()
	c.check(now)
	if c.attend != nil && now.Sub(c.begun) > attendAfter {
		c.waits()
	}
	if !c.f.engine.processors.pass(&c.turn, now, c.waits) {
		c.expired()
	}
	runtime.Gosched()
}

// wait gives the processor back while f waits for something.
func (c *call) wait(f func()) {
	p := c.f.engine.processors
	p.give(&c.turn)
	f()
	if !p.take(&c.turn, c.waits) {
		c.expired()
	}
	c.check(time.Now())
}
