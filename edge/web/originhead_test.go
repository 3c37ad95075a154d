package web

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/zone"
)

// malformedAnswers are answers that two readers may read differently, or none can read.
var malformedAnswers = []struct{ name, answer string }{
	{"LF after the status line", "HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\nok"},
	{"LF after a field", "HTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok"},
	{"LF for the empty line", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok"},
	{"CR within a field", "HTTP/1.1 200 OK\r\nX-A: b\rContent-Length: 5\r\nContent-Length: 2\r\n\r\nok"},
	{"CR CR LF", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\r\n\r\nok"},
	{"CR within the status line", "HTTP/1.1 200 O\rK\r\nContent-Length: 2\r\n\r\nok"},
	{"NUL in a field", "HTTP/1.1 200 OK\r\nX-A: b\x00c\r\nContent-Length: 2\r\n\r\nok"},
	{"NUL in the status line", "HTTP/1.1 200 \x00\r\nContent-Length: 2\r\n\r\nok"},
	{"a continued line", "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\nok"},
	{"a continued first field", "HTTP/1.1 200 OK\r\n\tX-A: b\r\nContent-Length: 2\r\n\r\nok"},
	{"space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok"},
	{"a name with a space", "HTTP/1.1 200 OK\r\nX A: 2\r\n\r\nok"},
	{"a field without a name", "HTTP/1.1 200 OK\r\n: 2\r\n\r\nok"},
	{"a field without a colon", "HTTP/1.1 200 OK\r\nX-A\r\n\r\nok"},
	{"both lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
	{"both lengths, the other way", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
	{"two lengths that differ", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 1\r\n\r\nok"},
	{"a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok"},
	{"a signed length", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok"},
	{"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok"},
	{"an empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok"},
	{"a hexadecimal length", "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok"},
	{"a length beyond 2^63", "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nok"},
	{"another coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
	{"a coding twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
	{"no coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok"},
	{"a coding below HTTP/1.1", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
	{"a vertical tab before the coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
	{"HTTP/2", "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok"},
	{"HTTP/0.9", "<html>hello</html>\r\n"},
	{"another protocol", "SSH-2.0-OpenSSH_9.6\r\n"},
	{"an empty line first", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
	{"a status of two digits", "HTTP/1.1 20 OK\r\n\r\n"},
	{"a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n"},
	{"a status below 100", "HTTP/1.1 099 OK\r\n\r\n"},
	{"a status that is no number", "HTTP/1.1 2x0 OK\r\n\r\n"},
	{"a tab before the status", "HTTP/1.1\t200 OK\r\n\r\n"},
	{"a head of 70 KiB", "HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 70<<10) + "\r\n\r\n"},
	{"257 fields", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + strings.Repeat("X-A: b\r\n", http1.MaxFields) + "\r\n"},
	{"a switch that was not asked for", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"},
	{"interim answers without end", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim+1)},
	{"an interim answer that is malformed", "HTTP/1.1 103 Early Hints\r\nLink : x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
}

func TestMalformedAnswers(t *testing.T) {
	for _, tc := range malformedAnswers {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t)
			n.publish(site(rawOrigin(t, tc.answer)))
			c := n.dial()
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n")
			raw, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			for strings.HasPrefix(string(raw), "HTTP/1.1 102 ") {
				_, rest, _ := strings.Cut(string(raw), "\r\n\r\n")
				raw = []byte(rest)
			}
			if !strings.HasPrefix(string(raw), "HTTP/1.1 502 ") || n.Metrics().OriginErrors != 1 {
				t.Errorf("got %.200q", raw)
			}
		})
	}
}

func TestPlainAnswers(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		status       int
		body         string
	}{
		{"a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
		{"a length twice, the same", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
		{"spaces and tabs around values", "HTTP/1.1 200 OK\r\nContent-Length: \t2 \r\nX-A:b\r\n\r\nok", 200, "ok"},
		{"no reason", "HTTP/1.1 404 \r\nContent-Length: 2\r\n\r\nok", 404, "ok"},
		{"no reason and no space", "HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nok", 404, "ok"},
		{"a reason of other octets", "HTTP/1.1 404 Pas trouv\xe9\r\nContent-Length: 2\r\n\r\nok", 404, "ok"},
		{"a status beyond those that are known", "HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nok", 799, "ok"},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;x=\"y\"\r\no\r\n01 \r\nk\r\n0\r\n\r\n", 200, "ok"},
		{"to the connection's end", "HTTP/1.1 200 OK\r\n\r\nok", 200, "ok"},
		{"to the connection's end, below HTTP/1.1", "HTTP/1.0 200 OK\r\n\r\nok", 200, "ok"},
		{"no content", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nno", 204, ""},
		{"not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nno", 304, ""},
		{"reset content", "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\nno", 205, ""},
		{"more than its length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 No\r\n\r\n", 200, "ok"},
		{"a head of 60 KiB", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: " + strings.Repeat("a", 60<<10) + "\r\n\r\nok", 200, "ok"},
		{"a body larger than any buffer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20000\r\n" + strings.Repeat("a", 0x20000) + "\r\n0\r\n\r\n", 200, strings.Repeat("a", 0x20000)},
		{"interim answers", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t)
			n.publish(site(rawOrigin(t, tc.answer)))
			var last reply
			for _, r := range n.exchangeRaw("GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n") {
				last = r
			}
			if last.status != tc.status || last.body != tc.body {
				t.Errorf("got %d and %.100q", last.status, last.body)
			}
			if len(last.header["Content-Type"]) != 0 {
				t.Errorf("the node made up a Content-Type: %v", last.header)
			}
		})
	}
}

func TestAnswersOfManyFields(t *testing.T) {
	for _, tc := range []struct{ lines, status int }{{http1.MaxFields, 200}, {http1.MaxFields + 1, 502}} {
		fields := make(http.Header)
		for i := range tc.lines - 2 { // beside Content-Length and Date
			fields["X-A"] = append(fields["X-A"], fmt.Sprint(i))
		}
		o, _ := http2Origin(t, false, func(w http.ResponseWriter, _ *http.Request) {
			maps.Copy(w.Header(), fields)
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusOK)
		})
		n := startNode(t)
		n.publish(site(o.Listener.Addr().String(), scheme(zone.SchemeH2C)))
		if got := n.get("/"); got.status != tc.status || tc.status == 200 && len(got.header["X-A"]) != tc.lines-2 {
			t.Errorf("%d fields by HTTP/2: %d, want %d", tc.lines, got.status, tc.status)
		}
		n.publish(site(rawOrigin(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"+strings.Repeat("X-A: b\r\n", tc.lines-1)+"\r\n")))
		if got := n.get("/"); got.status != tc.status || tc.status == 200 && len(got.header["X-A"]) != tc.lines-1 {
			t.Errorf("%d fields by HTTP/1.1: %d, want %d", tc.lines, got.status, tc.status)
		}
	}
}

func TestAnswersDoNotDependOnHowTheyArrive(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nX-Sum: 1\r\n\r\n"
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"octets": iotest.OneByteReader, "halves": iotest.HalfReader, "data with the error": iotest.DataErrReader,
	} {
		var b originBody
		h := answerHead{chunked: true, length: -1, status: 200}
		_, body, _ := strings.Cut(answer, "\r\n\r\n")
		buf := make([]byte, 24) // smaller than what it has to hold
		b.begin(wrap(strings.NewReader(body)), &h, "GET", buf, nil)
		var got strings.Builder
		for {
			p, err := b.next()
			got.Write(p)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v after %q", name, err, got.String())
			}
		}
		if got.String() != "abc0123456789abcdef" || len(b.trailer) != 1 || len(b.in) != 0 {
			t.Errorf("%s: got %q, trailer %v, rest %q", name, got.String(), b.trailer, b.in)
		}
	}
}

func TestTrailersAreBounded(t *testing.T) {
	line := "X-T: " + strings.Repeat("t", 1000) + "\r\n"
	n := startNode(t)
	n.publish(site(rawOrigin(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"+strings.Repeat(line, 70)+"\r\n")))
	c := n.dial()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
	raw, err := io.ReadAll(c)
	if err != nil || strings.Contains(string(raw), "X-T") || !strings.HasSuffix(string(raw), "1\r\na\r\n") {
		t.Errorf("got %.300q, %v", raw, err)
	}
}

// FuzzAnswerHead holds that what is accepted is what net/http reads, too: status, length and framing.
func FuzzAnswerHead(f *testing.F) {
	for _, tc := range malformedAnswers {
		f.Add([]byte(tc.answer))
	}
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive, X-A\r\nX-A: b\r\n\r\nok"))
	f.Add([]byte("HTTP/1.0 200\r\nConnection: keep-alive\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var scan lineScan
		n, err := scan.scan(b)
		var parts lineScan
		for i := 1; i <= len(b); i++ {
			if m, err2 := parts.scan(b[:i]); m > 0 || err2 != nil {
				if m != n || (err2 != nil) != (err != nil) {
					t.Fatalf("in parts %d, %v; whole %d, %v", m, err2, n, err)
				}
				break
			}
		}
		if err != nil || n == 0 {
			return
		}
		var h answerHead
		if h.parse(string(b[:n])) != nil || h.status == http.StatusSwitchingProtocols || h.status < 200 {
			return
		}
		res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(b))), &http.Request{Method: "GET"})
		if err != nil {
			// It refuses versions of HTTP/1 that are to come, and a length that is told beside no body.
			if !strings.HasPrefix(string(b), "HTTP/1.1 ") && !strings.HasPrefix(string(b), "HTTP/1.0 ") {
				return
			}
			t.Fatalf("net/http refuses %q: %v", b[:n], err)
		}
		if res.StatusCode != h.status {
			t.Fatalf("status %d, net/http reads %d", h.status, res.StatusCode)
		}
		bodied := h.status != 204 && h.status != 304
		if want := fmt.Sprint(res.ContentLength, len(res.TransferEncoding) > 0); bodied && fmt.Sprint(h.length, h.chunked) != want {
			t.Fatalf("length and chunks %d %v, net/http reads %s", h.length, h.chunked, want)
		}
		for _, f := range h.fields {
			switch f.name {
			case "Content-Length", "Transfer-Encoding", "Trailer", "Connection":
				continue // which net/http takes away
			}
			if !strings.Contains(strings.Join(res.Header[f.name], "\n"), f.value) {
				t.Fatalf("%s: %q, net/http reads %q", f.name, f.value, res.Header[f.name])
			}
		}
	})
}
