package web

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/guardyn-edge/guardyn/zone"
)

// A client of HTTP/1.1 that takes nothing of its answer loses its connection, and the slot is free.
func TestClientThatTakesNothing(t *testing.T) {
	o := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for range 64 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	n := startNode(t, func(c *Config) { c.WriteStall = 100 * time.Millisecond })
	n.publish(site(o.address()))
	c := n.dial()
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
	waitFor(t, "the request is here", func() bool { return n.Metrics().InFlight == 1 })
	waitFor(t, "its slot is free", func() bool { return n.Metrics().InFlight == 0 && n.Metrics().Connections == 0 })
}

// However many addresses trusted proxies tell, so many are believed and passed on.
func TestChainIsBounded(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address(), func(z *zone.Zone) { z.Settings.TrustedProxies = []string{"127.0.0.0/8", "198.51.100.0/24"} }))
	var told []string
	for i := range 2 * maxChain {
		told = append(told, fmt.Sprintf("198.51.100.%d", i))
	}
	n.get("/", "X-Forwarded-For: "+strings.Join(told, ", "))
	chain := strings.Split(o.take()[0].header.Get("X-Forwarded-For"), ", ")
	if len(chain) != maxChain || chain[maxChain-1] != "127.0.0.1" || chain[0] != told[maxChain+1] {
		t.Errorf("%d addresses, %s first", len(chain), chain[0])
	}
}

// A record of the access log names so many rules.
func TestRulesOfARecordAreBounded(t *testing.T) {
	o := startOrigin(t)
	var log logBuffer
	n := startNode(t, func(c *Config) { c.AccessLog = slog.New(slog.NewJSONHandler(&log, nil)) })
	var rules []func(*zone.Zone)
	for range maxLogged + 4 {
		rules = append(rules, rule(zone.PhaseCustom, `true`, zone.ActionLog, zone.Parameters{}))
	}
	n.publish(site(o.address(), rules...))
	n.get("/")
	n.end()
	var record struct{ Rules []string }
	if err := json.Unmarshal([]byte(log.lines()[0]), &record); err != nil || len(record.Rules) != maxLogged {
		t.Errorf("%v, %v", record.Rules, err)
	}
}

// What a connection by HTTP/2 may have at once is told in the server's settings and held to.
func TestBoundsOfHTTP2(t *testing.T) {
	a := newAuthority(t)
	release := make(chan struct{})
	o := startOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/head" {
			<-release
		}
	})
	defer close(release)
	n := startNode(t, withTLS)
	n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	t.Run("settings", func(t *testing.T) {
		c := n.http2(a)
		got := make(map[http2.SettingID]uint32)
		window := uint32(65_535) // RFC 9113 §6.9.2
		for len(got) == 0 || window == 65_535 {
			f, err := c.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				f.ForeachSetting(func(s http2.Setting) error { got[s.ID] = s.Val; return nil })
			case *http2.WindowUpdateFrame:
				window += f.Increment
			}
		}
		for id, want := range map[http2.SettingID]uint32{
			http2.SettingMaxConcurrentStreams: maxStreams, http2.SettingMaxFrameSize: maxFrame, http2.SettingInitialWindowSize: streamWindow,
			http2.SettingHeaderTableSize: maxHeaderTable,
		} {
			if v, told := got[id]; told && v != want || !told && id != http2.SettingHeaderTableSize { // 4,096 is the default
				t.Errorf("%s is %d, want %d", id, v, want)
			}
		}
		if window != connWindow {
			t.Errorf("the connection's window is %d, want %d", window, connWindow)
		}
	})
	t.Run("streams", func(t *testing.T) {
		c := n.http2(a)
		if err := c.WriteSettingsAck(); err != nil {
			t.Fatal(err)
		}
		var last uint32
		for range maxStreams + 1 {
			last = c.request(true, ":method: GET", ":scheme: https", ":authority: www.example.com", ":path: /")
		}
		if got := c.outcome(last); got != http2.ErrCodeProtocol.String() && got != http2.ErrCodeRefusedStream.String() {
			t.Errorf("the stream beyond the bound: %s", got)
		}
	})
	t.Run("head", func(t *testing.T) {
		for _, tc := range []struct {
			fields int // of 4 KB
			want   string
		}{{15, "200"}, {17, "431"}, {40, "PROTOCOL_ERROR"}} { // far beyond the bound nobody reads on
			fields := pseudo()
			for i := range tc.fields {
				fields = append(fields, fmt.Sprintf("x-%d: %s", i, strings.Repeat("a", 4000)))
			}
			fields[3] = ":path: /head"
			c := n.http2(a)
			if got := c.outcome(c.pieces(fields...)); got != tc.want {
				t.Errorf("a head of %d KB: %s, want %s", 4*tc.fields, got, tc.want)
			}
		}
	})
}

// pieces is request in frames of 16 KiB.
func (c *http2Client) pieces(fields ...string) (stream uint32) {
	c.t.Helper()
	block := c.block(fields...)
	stream, c.next = c.next, c.next+2
	first := min(len(block), maxFrame)
	err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block[:first], EndStream: true, EndHeaders: first == len(block)})
	for block = block[first:]; err == nil && len(block) > 0; {
		n := min(len(block), maxFrame)
		err = c.WriteContinuation(stream, n == len(block), block[:n])
		block = block[n:]
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return stream
}

// Without a bound of its own a zone may have three quarters of the slots.
func TestMostOfTheSlots(t *testing.T) {
	if c := (Config{}).withDefaults(); c.MaxRequestsPerZone != 6144 {
		t.Errorf("%d of %d", c.MaxRequestsPerZone, c.MaxRequests)
	}
	if c := (Config{MaxRequests: 1}).withDefaults(); c.MaxRequestsPerZone != 1 {
		t.Errorf("%d of one", c.MaxRequestsPerZone)
	}
}

// A body that comes slowly, over a connection that has carried an exchange before, has the time that it has over a new one.
func TestSlowBodyOverAReusedConnection(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address()))
	if got := n.get("/"); got.status != 200 {
		t.Fatalf("got %+v", got)
	}
	o.take()
	c := n.dial()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
	pause := time.NewTimer(10 * attendAfter)
	defer pause.Stop()
	<-pause.C
	io.WriteString(c, "1\r\nb\r\n0\r\n\r\n")
	got := readReplies(t, c)
	if r := o.take(); len(got) != 1 || got[0].status != 200 || len(r) != 1 || r[0].body != "ab" {
		t.Errorf("got %+v; the origin got %+v", got, r)
	}
}
