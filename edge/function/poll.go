package function

import (
	"encoding/binary"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// Sizes and kinds of WASI's subscriptions and events.
const (
	subscriptionSize = 48
	eventSize        = 32
	pollClock        = 0
	pollRead         = 1
	pollWrite        = 2
)

// pollOneoff waits until one of the times has come; descriptors are always ready: reading from standard input waits by itself.
func pollOneoff(c *call, m api.Memory, a []uint64) errno {
	n := a[2]
	if n == 0 || n > maxVectors {
		return inval
	}
	in, ok1 := view(m, a[0], n*subscriptionSize)
	out, ok2 := view(m, a[1], n*eventSize)
	if !ok1 || !ok2 || !put32(m, a[3], 0) {
		return fault
	}
	c.worked(eventWork * int(n))
	// What they say, before events are written over it.
	type subscription struct {
		user  uint64
		kind  byte
		wait  time.Duration
		fault errno
	}
	subscriptions := make([]subscription, n)
	least, ready := time.Duration(1<<62), false
	for i := range subscriptions {
		raw := in[i*subscriptionSize:]
		s := subscription{user: binary.LittleEndian.Uint64(raw), kind: raw[8]}
		switch s.kind {
		case pollClock:
			s.wait, s.fault = c.timeout(raw)
		case pollRead, pollWrite:
			fd := binary.LittleEndian.Uint32(raw[16:])
			if fd > 2 || (fd == 0) != (s.kind == pollRead) {
				s.fault = badf
			}
		default:
			return inval
		}
		if s.kind != pollClock || s.fault != success {
			ready = true
		} else {
			least = min(least, s.wait)
		}
		subscriptions[i] = s
	}
	if !ready {
		c.sleep(least)
	}
	events := uint64(0)
	for _, s := range subscriptions {
		if s.kind == pollClock && s.fault == success && (ready && s.wait > 0 || s.wait > least) {
			continue
		}
		e := out[events*eventSize:][:eventSize]
		clear(e)
		binary.LittleEndian.PutUint64(e, s.user)
		binary.LittleEndian.PutUint16(e[8:], uint16(s.fault))
		e[10] = s.kind
		if s.kind != pollClock && s.fault == success {
			binary.LittleEndian.PutUint64(e[16:], 1)
		}
		events++
	}
	return ok(put32(m, a[3], events))
}

// timeout reads the time of a subscription, as what is left until then in whole steps of the clock.
func (c *call) timeout(raw []byte) (time.Duration, errno) {
	clock := binary.LittleEndian.Uint32(raw[16:])
	left := binary.LittleEndian.Uint64(raw[24:])
	if clock > 3 {
		return 0, inval
	}
	if binary.LittleEndian.Uint16(raw[40:])&1 != 0 { // absolute
		now := uint64(time.Second + time.Since(c.begun))
		if clock == 0 {
			now = uint64(c.f.engine.config.Now().UnixNano())
		}
		left = max(left, now) - now
	}
	const most = uint64(time.Hour) // longer than any call
	d := time.Duration(min(left, most))
	return (d + clockStep - 1) / clockStep * clockStep, success
}

// sleep lets time pass, until the call's is over at most.
func (c *call) sleep(d time.Duration) {
	c.wait(func() {
		if d <= 0 {
			return
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.waits():
		}
	})
}
