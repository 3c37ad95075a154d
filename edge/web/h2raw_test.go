package web

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/zone"
)

// http2Client writes frames as a test wants them.
type http2Client struct {
	*http2.Framer
	t    testing.TB
	conn *tls.Conn
	enc  *hpack.Encoder
	buf  bytes.Buffer
	next uint32 // stream
}

// http2 opens a connection by HTTP/2 for www.example.com.
func (n *node) http2(a *authority, settings ...http2.Setting) *http2Client {
	n.t.Helper()
	conn, err := n.shake(a, "www.example.com", func(c *tls.Config) { c.NextProtos = []string{"h2"} })
	if err != nil {
		n.t.Fatal(err)
	}
	c := &http2Client{t: n.t, conn: conn, Framer: http2.NewFramer(conn, conn), next: 1}
	c.enc = hpack.NewEncoder(&c.buf)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.AllowIllegalWrites = true
	if _, err = io.WriteString(conn, http2.ClientPreface); err == nil {
		err = c.WriteSettings(settings...)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// block encodes fields, "name: value" in their order.
func (c *http2Client) block(fields ...string) []byte {
	c.t.Helper()
	c.buf.Reset()
	for _, f := range fields {
		at := strings.Index(f[1:], ": ") + 1
		if err := c.enc.WriteField(hpack.HeaderField{Name: f[:at], Value: f[at+2:]}); err != nil {
			c.t.Fatal(err)
		}
	}
	return c.buf.Bytes()
}

// request begins a stream with these fields.
func (c *http2Client) request(end bool, fields ...string) (stream uint32) {
	c.t.Helper()
	block := c.block(fields...)
	stream, c.next = c.next, c.next+2
	if err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true, EndStream: end}); err != nil {
		c.t.Fatal(err)
	}
	return stream
}

// outcome reads until it is known what becomes of a stream: its status, or the error that it or the connection ends with.
func (c *http2Client) outcome(stream uint32) string {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return err.Error()
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			if f.StreamID == stream {
				return f.PseudoValue("status")
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return f.ErrCode.String()
			}
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo { // without one an answer is on its way
				return f.ErrCode.String()
			}
		case *http2.SettingsFrame:
			if !f.IsAck() {
				if err := c.WriteSettingsAck(); err != nil {
					return err.Error()
				}
			}
		}
	}
}

// pseudo are the fields of a plain request, with others behind them.
func pseudo(more ...string) []string {
	return append([]string{":method: POST", ":scheme: https", ":authority: www.example.com", ":path: /p"}, more...)
}

// replaced is pseudo with one of the fields another.
func replaced(field string, more ...string) []string {
	fields := pseudo(more...)
	name, _, _ := strings.Cut(field[1:], ": ")
	for i := range fields {
		if strings.HasPrefix(fields[i], ":"+name+": ") {
			fields[i] = field
		}
	}
	return fields
}

// TestWhatReachesTheOriginOfHTTP2 sends by HTTP/2 what would be more than one request, or another, once it is HTTP/1.1.
func TestWhatReachesTheOriginOfHTTP2(t *testing.T) {
	a := newAuthority(t)
	o := startRecorder(t)
	n := startNode(t, withTLS)
	other := site(o.address)
	other.Name, other.Records, other.LoadBalancers = zone.MustName("example.net"), []zone.Record{record("www.example.net", "192.0.2.1")},
		map[zone.Name]zone.LoadBalancer{zone.MustName("www.example.net"): {Pools: []string{"main"}}}
	tlsHost("www.example.net", a.issue(false, "www.example.net"))(other)
	n.publish(site(o.address, tlsHost("www.example.com", a.issue(false, "www.example.com"))), other)
	const crlf = "x\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
	for _, tc := range []struct {
		name    string
		fields  []string
		body    string // empty: none
		want    string
		reached string
	}{
		{"plain", pseudo(), "", "200", "POST /p "},
		{"a body without a length", pseudo(), "abcd", "200", "POST /p abcd"},
		{"a body with its length", pseudo("content-length: 4"), "abcd", "200", "POST /p abcd"},

		{"CR and LF in a value", pseudo("x-a: " + crlf), "", "PROTOCOL_ERROR", ""},
		{"LF in a value", pseudo("x-a: b\nx-guardyn-zone: evil"), "", "PROTOCOL_ERROR", ""},
		{"CR in a value", pseudo("x-a: b\rc"), "", "PROTOCOL_ERROR", ""},
		{"NUL in a value", pseudo("x-a: b\x00c"), "", "PROTOCOL_ERROR", ""},
		{"CR and LF in a name", pseudo("x-a\r\nhost: evil.example"), "", "PROTOCOL_ERROR", ""},
		{"a colon in a name", pseudo("host:x: evil.example"), "", "PROTOCOL_ERROR", ""},
		{"a space in a name", pseudo("transfer-encoding : chunked"), "", "PROTOCOL_ERROR", ""},
		{"capitals in a name", pseudo("X-A: b"), "", "PROTOCOL_ERROR", ""},
		{"an unknown pseudo field", pseudo(":host: evil.example"), "", "PROTOCOL_ERROR", ""},
		{"a pseudo field after the others", []string{":method: GET", ":scheme: https", ":path: /p", "x-a: b", ":authority: www.example.com"}, "", "PROTOCOL_ERROR", ""},
		{"a pseudo field twice", pseudo(":path: /smuggled"), "", "PROTOCOL_ERROR", ""},
		{"no path", []string{":method: GET", ":scheme: https", ":authority: www.example.com"}, "", "PROTOCOL_ERROR", ""},

		{"CR and LF in :path", replaced(":path: /" + crlf), "", "PROTOCOL_ERROR", ""},
		{"a space and a version in :path", replaced(":path: /p HTTP/1.1"), "", "400", ""},
		{"a :path that is an address", replaced(":path: https://evil.example/p"), "", "400", ""},
		{"a :path of another site", replaced(":path: //evil.example/p"), "", "200", "POST /evil.example/p "},
		{"a :path of a star", replaced(":path: *"), "", "400", ""},
		{"an empty :path", replaced(":path: "), "", "PROTOCOL_ERROR", ""},
		{"a fragment in :path", replaced(":path: /p#x"), "", "400", ""},
		{"CR and LF in :method", replaced(":method: GET /smuggled HTTP/1.1\r\nx: y"), "", "PROTOCOL_ERROR", ""},
		{"a request line in :method", replaced(":method: GET /smuggled HTTP/1.1"), "", "400", ""},
		{"a tab in :method", replaced(":method: GET\t/smuggled"), "", "400", ""},
		{"an empty :method", replaced(":method: "), "", "PROTOCOL_ERROR", ""},
		{"CONNECT", []string{":method: CONNECT", ":authority: www.example.com:443"}, "", "405", ""},
		{"TRACE", replaced(":method: TRACE"), "", "405", ""},
		{"CONNECT for WebSocket", []string{":method: CONNECT", ":protocol: websocket", ":scheme: https", ":path: /", ":authority: www.example.com"}, "", "PROTOCOL_ERROR", ""},

		{"a :scheme of another connection", replaced(":scheme: http"), "", "200", "POST /p "},
		{"such a :scheme and another host", append([]string{":scheme: http", ":authority: www.example.net"}, ":method: GET", ":path: /"), "", "421", ""},
		{"another host", replaced(":authority: www.example.net"), "", "421", ""},
		{"a :scheme with an authority in it", replaced(":scheme: https://evil.example/"), "", "PROTOCOL_ERROR", ""},

		{"a Host beside :authority", pseudo("host: WWW.example.com:443"), "", "200", "POST /p "},
		{"another Host beside :authority", pseudo("host: evil.example"), "", "400", ""},
		{"two Hosts beside :authority", pseudo("host: www.example.com", "host: www.example.com"), "", "400", ""},
		{"a Host alone", []string{":method: GET", ":scheme: https", ":path: /p", "host: www.example.com"}, "", "200", "GET /p "},
		{"two Hosts alone", []string{":method: GET", ":scheme: https", ":path: /p", "host: www.example.com", "host: evil.example"}, "", "400", ""},
		{"user information in :authority", replaced(":authority: u@www.example.com"), "", "PROTOCOL_ERROR", ""},
		{"a host as user information", replaced(":authority: evil.example@www.example.com"), "", "PROTOCOL_ERROR", ""},
		{"a path in :authority", replaced(":authority: www.example.com/evil"), "", "400", ""},
		{"a space in :authority", replaced(":authority: www.example.com evil"), "", "400", ""},
		{"an empty :authority", replaced(":authority: "), "", "400", ""},

		{"a coding", pseudo("transfer-encoding: chunked"), "0\r\n\r\n" + crlf, "400", ""},
		{"a coding under another name", pseudo("transfer_encoding: chunked", "content-length: 4"), "abcd", "200", "POST /p abcd"},
		{"connection", pseudo("connection: x-forwarded-for"), "", "400", ""},
		{"keep-alive", pseudo("keep-alive: timeout=5"), "", "400", ""},
		{"proxy-connection", pseudo("proxy-connection: keep-alive"), "", "400", ""},
		{"upgrade", pseudo("upgrade: h2c"), "", "400", ""},
		{"another te than trailers", pseudo("te: chunked"), "", "400", ""},
		{"te", pseudo("te: trailers"), "", "200", "POST /p "},

		{"two lengths", pseudo("content-length: 4", "content-length: 5"), "abcd", "400", ""},
		{"two equal lengths", pseudo("content-length: 4", "content-length: 4"), "abcd", "400", ""},
		{"a signed length", pseudo("content-length: +4"), "", "400", ""},
		{"an empty length", pseudo("content-length: "), "", "400", ""},
		{"a length that is too short", pseudo("content-length: 3"), "abcd", "PROTOCOL_ERROR", ""},
		{"a length that is too long", pseudo("content-length: 5"), "abcd", "400", ""},
		{"a length and no body", pseudo("content-length: 4"), "", "400", ""},

		{"the most fields", pseudo(slices.Repeat([]string{"x-a: b"}, http1.MaxFields)...), "", "200", "POST /p "},
		{"one field more", pseudo(slices.Repeat([]string{"x-a: b"}, http1.MaxFields+1)...), "", "431", ""},
		{"cookies apart", pseudo(slices.Repeat([]string{"cookie: a=b"}, http1.MaxFields+1)...), "", "200", "POST /p "},

		{"fields of the node", pseudo("x-forwarded-for: 203.0.113.1", "x-guardyn-zone: evil.example", "x_real_ip: 203.0.113.1", "forwarded: for=evil"), "", "200", "POST /p "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := n.http2(a)
			stream := c.request(tc.body == "", tc.fields...)
			if tc.body != "" {
				if err := c.WriteData(stream, true, []byte(tc.body)); err != nil {
					t.Fatal(err)
				}
			}
			if got := c.outcome(stream); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			c.conn.Close()
			var reached []string
			for _, r := range o.take(t) {
				if hosts := r.fields("Host"); hosts[0] != "www.example.com" || r.fields("X-Forwarded-For")[0] != "127.0.0.1" || r.fields("X-Forwarded-Proto")[0] != "https" {
					t.Errorf("the origin got %q", r.head)
				}
				method, target, _ := strings.Cut(strings.TrimSuffix(r.line, " HTTP/1.1"), " ")
				reached = append(reached, fmt.Sprintf("%s %s %s", method, target, r.body))
			}
			if got := strings.Join(reached, "|"); got != tc.reached {
				t.Errorf("the origin got %q, want %q", got, tc.reached)
			}
		})
	}
}
