package function

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/guardyn-edge/guardyn/internal/metering"
)

// errno is WASI's.
type errno uint32

const (
	success errno = 0
	badf    errno = 8
	fault   errno = 21
	inval   errno = 28
	ioErr   errno = 29
	nosys   errno = 52
	notsup  errno = 58
	spipe   errno = 70
)

const (
	// maxVectors bounds the buffers of one fd_read or fd_write, and the subscriptions of one poll_oneoff.
	maxVectors = 1024
	// maxRandom bounds what a call gets from random_get, in bytes.
	maxRandom = 1 << 20
	// clockStep is how precise the clocks are.
	clockStep = time.Millisecond
)

// What the host works for an instance is counted in instructions, as what the instance computes is. A call of the host is paid with a few
// hundred of them; these are for what takes longer.
const (
	vectorWork = 20 // a buffer of a list, or the place of a variable
	eventWork  = 50 // a subscription
	bytesOfOne = 8  // bytes that are moved for one; random ones are one each
)

// worked is called before the host does what takes that many instructions. It lets others have their turn, or ends a call whose time is over,
// as often as while the instance computes: a tenth of a second of the host's must not hide behind some hundred instructions.
func (c *call) worked(instructions int) {
	if c.work += instructions; c.work >= metering.Quantum {
		c.work = 0
		c.compute()
	}
}

// wasiFunctions are those that do something. Every one is short, or waits until the call's time is over at most.
func wasiFunctions() map[string]hostFunction {
	return map[string]hostFunction{
		"args_get": argsGet, "args_sizes_get": argsSizesGet, "environ_get": environGet, "environ_sizes_get": environSizesGet,
		"clock_res_get": clockResGet, "clock_time_get": clockTimeGet, "random_get": randomGet,
		"fd_read": fdRead, "fd_write": fdWrite, "fd_close": fdClose, "fd_fdstat_get": fdStat, "fd_fdstat_set_flags": fdSetFlags,
		"fd_filestat_get": fileStat, "fd_seek": notSeekable, "fd_tell": notSeekable,
		"poll_oneoff": pollOneoff, "proc_exit": procExit, "sched_yield": schedYield, "proc_raise": unsupported,
	}
}

// absent answers for what needs a file or a socket: a function has none.
func absent(*call, api.Memory, []uint64) errno { return badf }

func unsupported(*call, api.Memory, []uint64) errno { return nosys }

// noMemory is what a module without memory gets written to.
func put32(m api.Memory, at, v uint64) bool {
	return m != nil && m.WriteUint32Le(uint32(at), uint32(v))
}

// view returns a range of memory; false: it is not in there.
func view(m api.Memory, at, n uint64) ([]byte, bool) {
	if m == nil {
		return nil, false
	}
	return m.Read(uint32(at), uint32(n))
}

func ok(done bool) errno {
	if !done {
		return fault
	}
	return success
}

func argsSizesGet(c *call, m api.Memory, a []uint64) errno {
	return ok(put32(m, a[0], 1) && put32(m, a[1], uint64(len(c.f.name)+1)))
}

func argsGet(c *call, m api.Memory, a []uint64) errno {
	to, in := view(m, a[1], uint64(len(c.f.name)+1))
	if !in || !put32(m, a[0], a[1]) {
		return fault
	}
	to[copy(to, c.f.name)] = 0
	return success
}

func environSizesGet(c *call, m api.Memory, a []uint64) errno {
	return ok(put32(m, a[0], uint64(len(c.offsets))) && put32(m, a[1], uint64(len(c.environ))))
}

func environGet(c *call, m api.Memory, a []uint64) errno {
	pointers, in := view(m, a[0], uint64(4*len(c.offsets)))
	to, in2 := view(m, a[1], uint64(len(c.environ)))
	if !in || !in2 {
		return fault
	}
	c.worked(len(c.environ)/bytesOfOne + vectorWork*len(c.offsets))
	copy(to, c.environ)
	for i, at := range c.offsets {
		binary.LittleEndian.PutUint32(pointers[4*i:], uint32(a[1])+at)
	}
	return success
}

// Clocks of WASI: 0 is of the day, 1 goes on evenly; 2 and 3, of the processor's time, are the same as 1 here.
func clockResGet(_ *call, m api.Memory, a []uint64) errno {
	if a[0] > 3 {
		return inval
	}
	return ok(m != nil && m.WriteUint64Le(uint32(a[1]), uint64(clockStep)))
}

func clockTimeGet(c *call, m api.Memory, a []uint64) errno {
	var now int64
	switch {
	case a[0] == 0:
		now = c.f.engine.config.Now().UnixNano()
	case a[0] <= 3:
		now = int64(time.Second + time.Since(c.begun)) // programs take zero for none
	default:
		return inval
	}
	return ok(m != nil && m.WriteUint64Le(uint32(a[2]), uint64(now-now%int64(clockStep))))
}

func randomGet(c *call, m api.Memory, a []uint64) errno {
	to, in := view(m, a[0], a[1])
	if !in {
		return fault
	}
	if c.random += len(to); c.random > maxRandom {
		c.random = maxRandom + 1
		return ioErr
	}
	c.worked(len(to))
	_, _ = rand.Read(to) // it does not fail
	return success
}

// vectors calls f for each buffer of a list, until it returns false.
func (c *call) vectors(m api.Memory, at, n uint64, f func([]byte) bool) errno {
	if n > maxVectors {
		return inval
	}
	c.worked(vectorWork * int(n))
	list, in := view(m, at, 8*n)
	if !in {
		return fault
	}
	for ; len(list) > 0; list = list[8:] {
		b, in := view(m, uint64(binary.LittleEndian.Uint32(list)), uint64(binary.LittleEndian.Uint32(list[4:])))
		if !in {
			return fault
		}
		if len(b) > 0 && !f(b) {
			break
		}
	}
	return success
}

func fdRead(c *call, m api.Memory, a []uint64) errno {
	if a[0] != 0 {
		return badf
	}
	n := 0
	number := c.vectors(m, a[1], a[2], func(b []byte) bool {
		switch {
		case len(c.first) > 0:
			m := copy(b, c.first)
			c.first = c.first[m:]
			n += m
			return m == len(b)
		case n > 0 || !c.stdin:
			return false
		}
		n = c.read(b)
		return false
	})
	if number != success {
		return number
	}
	return ok(put32(m, a[3], uint64(n)))
}

// read waits for more of the request's body.
func (c *call) read(b []byte) (n int) {
	c.wait(func() {
		var err error
		if n, err = c.body.Read(b); err == io.EOF {
			c.stdin = false
		} else {
			c.bodyErr = err
		}
	})
	if c.bodyErr != nil {
		c.end(BodyFailed)
	}
	return n
}

func fdWrite(c *call, m api.Memory, a []uint64) errno {
	if a[0] != 1 && a[0] != 2 {
		return badf
	}
	n := 0
	number := c.vectors(m, a[1], a[2], func(b []byte) bool {
		n += len(b)
		if a[0] == 1 {
			if len(c.out)+len(b) > c.f.output {
				c.end(OutputOver)
			}
			if need := len(c.out) + len(b); need > cap(c.out) {
				more := max(need, min(2*cap(c.out), c.f.output), 512)
				if !c.hold(more - cap(c.out)) {
					c.end(Busy)
				}
				c.out = append(make([]byte, 0, more), c.out...)
			}
			c.out = append(c.out, b...)
			return true
		}
		if len(b) >= maxStderr {
			c.stderr, b = c.stderr[:0], b[len(b)-maxStderr:]
		} else if over := len(c.stderr) + len(b) - maxStderr; over > 0 {
			c.stderr = c.stderr[:copy(c.stderr, c.stderr[over:])]
		}
		c.stderr = append(c.stderr, b...)
		return true
	})
	if number != success {
		return number
	}
	return ok(put32(m, a[3], uint64(n)))
}

func standard(fd uint64) bool { return fd <= 2 }

func fdClose(_ *call, _ api.Memory, a []uint64) errno {
	if !standard(a[0]) {
		return badf
	}
	return success
}

// Rights of a descriptor.
const (
	rightRead  = 1 << 1
	rightWrite = 1 << 6
	rightPoll  = 1 << 27
)

func fdStat(_ *call, m api.Memory, a []uint64) errno {
	if !standard(a[0]) {
		return badf
	}
	to, in := view(m, a[1], 24)
	if !in {
		return fault
	}
	clear(to) // of a kind that is not known: no terminal, no file
	rights := uint64(rightWrite | rightPoll)
	if a[0] == 0 {
		rights = rightRead | rightPoll
	}
	binary.LittleEndian.PutUint64(to[8:], rights)
	return success
}

func fdSetFlags(_ *call, _ api.Memory, a []uint64) errno {
	switch {
	case !standard(a[0]):
		return badf
	case a[1] != 0:
		return notsup
	}
	return success
}

func fileStat(_ *call, m api.Memory, a []uint64) errno {
	if !standard(a[0]) {
		return badf
	}
	to, in := view(m, a[1], 64)
	if !in {
		return fault
	}
	clear(to)
	return success
}

func notSeekable(_ *call, _ api.Memory, a []uint64) errno {
	if !standard(a[0]) {
		return badf
	}
	return spipe
}

func procExit(_ *call, _ api.Memory, a []uint64) errno {
	panic(sys.NewExitError(uint32(a[0])))
}

func schedYield(c *call, _ api.Memory, _ []uint64) errno {
	c.compute()
	return success
}
