package web

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/edge/http1"
)

// tunnel joins client and origin once both have left HTTP for WebSocket (RFC 6455 §4), until one of them breaks off
// or both have ended their side. Rules of the response phases run on the answer that switches.
func (x *exchange) tunnel(c *originConn, t *transit) {
	defer c.Close()
	a := &t.head
	upgrade := a.get("Upgrade")
	if len(x.r.Header["Upgrade"]) == 0 || !strings.EqualFold(upgrade, "websocket") ||
		!http1.Lists(a.connection, "upgrade") || http1.Lists(a.connection, "close") || a.chunked || a.length > 0 {
		x.originFailed(headError("it switches to a protocol that was not asked for"))
		return
	}
	h := x.w.Header()
	x.answerHeader(a)
	delete(h, "Content-Length")
	x.came(http.StatusSwitchingProtocols)
	x.runResponsePhases()
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{upgrade}
	w, ok := x.w.ResponseWriter.(*http1.Response)
	if !ok {
		x.originFailed(headError("it switches to a protocol that HTTP/2 has no place for"))
		return
	}
	client := w.Hijack()
	defer client.Close()
	x.w.status = http.StatusSwitchingProtocols
	if x.w.version != "" {
		h[versionHeader] = []string{x.w.version}
	}
	head := append(make([]byte, 0, 1024), "HTTP/1.1 101 Switching Protocols\r\n"...)
	for name, values := range h {
		for _, v := range values {
			head = appendField(head, name, v)
		}
	}
	head = append(append(head, "\r\n"...), t.body.in...)
	if _, err := client.Write(head); err != nil {
		return
	}
	x.endTrace(x.server.config.Now()) // a WebSocket may last for days
	x.w.bytes += int64(len(t.body.in))
	x.join(client, c)
}

// join copies both ways until nothing has passed either way for Config.StreamIdleTimeout or, once one side is done,
// Config.IdleTimeout.
func (x *exchange) join(client net.Conn, c *originConn) {
	var half atomic.Bool // one of both has ended its side
	idle := newIdleClock(x.server.config.StreamIdleTimeout)
	c.idle = nil // this one measures both ways
	end := func() {
		client.Close()
		c.release()
	}
	oneWay := func(dst, src net.Conn) (n int64) {
		buf := x.server.buffers.Get()
		defer x.server.buffers.Put(buf)
		var until time.Time
		for {
			m, err := idle.read(src, &until, buf)
			if m > 0 {
				n += int64(m)
				if _, err := dst.Write(buf[:m]); err != nil {
					end()
					return n
				}
			}
			if err == nil {
				continue
			}
			closing, ok := dst.(interface{ CloseWrite() error })
			if err != io.EOF || !ok || half.Swap(true) {
				end()
				return n
			}
			// This side is done. The other may go on for as long as it says something: it looks at the clock again.
			idle.timeout.Store(int64(min(x.server.config.IdleTimeout, x.server.config.StreamIdleTimeout)))
			dst.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed connection ends the read too
			if closing.CloseWrite() != nil {
				end()
			}
			return n
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		oneWay(c, client)
	}()
	x.w.bytes += oneWay(client, c)
	<-done
}
