package web

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// idleClock measures how long nothing has passed, either way, over what an answer, a stream of both directions or a tunnel has
// become. What passes in one direction keeps the other open.
type idleClock struct {
	timeout atomic.Int64 // nanoseconds
	last    atomic.Int64 // when something passed, Unix nanoseconds
}

func newIdleClock(timeout time.Duration) *idleClock {
	c := new(idleClock)
	c.timeout.Store(int64(timeout))
	c.touch(time.Now())
	return c
}

// errIdle is the error of a stream that was silent for too long.
var errIdle error = idleTimeout{}

type idleTimeout struct{}

func (idleTimeout) Error() string { return "nothing passed for too long" }
func (idleTimeout) Timeout() bool { return true }

func (c *idleClock) touch(now time.Time) { c.last.Store(now.UnixNano()) }

// end is when the time is up unless something passes.
func (c *idleClock) end() time.Time { return time.Unix(0, c.last.Load()+c.timeout.Load()) }

// read reads from conn, for as long as anything passes. until is the deadline that is set, and is moved by a quarter of the
// timeout at least, so that most reads set none.
func (c *idleClock) read(conn net.Conn, until *time.Time, p []byte) (int, error) {
	c.touch(time.Now()) // who reads has taken what came before
	for again := false; ; again = true {
		if end := c.end(); again || end.Sub(*until) > time.Duration(c.timeout.Load()/4) || until.After(end) {
			if err := conn.SetReadDeadline(end); err != nil {
				return 0, err
			}
			*until = end
		}
		n, err := conn.Read(p)
		if n > 0 {
			c.touch(time.Now())
			return n, err
		}
		if err == nil || !timedOut(err) {
			return n, err
		}
		if !time.Now().Before(c.end()) {
			return 0, errIdle
		}
	}
}

// guard calls end, on a goroutine of its own, once nothing has passed for the timeout, unless release was called before.
func (c *idleClock) guard(end func()) (release func()) {
	var (
		mu    sync.Mutex
		timer *time.Timer
		over  bool
	)
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(time.Until(c.end()), func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if left := time.Until(c.end()); left > 0 {
			timer.Reset(left)
			return
		}
		over = true
		end()
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}
