package web

import (
	"fmt"
	"strings"
	"testing"
)

const head = "POST /p HTTP/1.1\r\nHost: www.example.com\r\n"

// framingCases are heads and bodies that two servers may read differently. each is followed by a request that must
// not be taken for one.
var framingCases = []struct {
	name, bytes string
	status      int
}{
	{"Content-Length and Transfer-Encoding", head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding and Content-Length", head + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", 400},
	{"two lengths that differ", head + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", 400},
	{"two lengths that agree", head + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd", 400},
	{"a list of lengths", head + "Content-Length: 4, 4\r\n\r\nabcd", 400},
	{"a signed length", head + "Content-Length: +4\r\n\r\nabcd", 400},
	{"a negative length", head + "Content-Length: -1\r\n\r\n", 400},
	{"a hexadecimal length", head + "Content-Length: 0x4\r\n\r\nabcd", 400},
	{"an empty length", head + "Content-Length:\r\n\r\n", 400},
	{"a length beyond 2^63", head + "Content-Length: 9223372036854775808\r\n\r\n", 400},
	{"a length with an underscore", head + "Content-Length: 1_0\r\n\r\n", 400},
	{"space before the colon of Transfer-Encoding", head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
	{"tab before the colon of Transfer-Encoding", head + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", 400},
	{"space before the colon of Content-Length", head + "Content-Length : 4\r\n\r\nabcd", 400},
	{"space within a name", head + "X Y: z\r\n\r\n", 400},
	{"vertical tab before chunked", head + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding twice", head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding chunked twice in one", head + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding identity", head + "Transfer-Encoding: identity\r\n\r\n", 400},
	{"Transfer-Encoding gzip, chunked", head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding xchunked", head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding in quotes", head + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding empty", head + "Transfer-Encoding:\r\n\r\n", 400},
	{"Transfer-Encoding under HTTP/1.0", "POST /p HTTP/1.0\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"folded Transfer-Encoding", head + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400},
	{"folded field", head + "X-A: b\r\n c\r\n\r\n", 400},
	{"folded field by tab", head + "X-A: b\r\n\tc\r\n\r\n", 400},
	{"folded first line", "POST /p HTTP/1.1\r\n Host: www.example.com\r\n\r\n", 400},
	{"LF alone after the request line", "POST /p HTTP/1.1\nHost: www.example.com\r\n\r\n", 400},
	{"LF alone after a field", head + "X-A: b\nContent-Length: 4\r\n\r\nabcd", 400},
	{"LF alone for the empty line", head + "\n", 400},
	{"CR within a field", head + "X-A: b\rTransfer-Encoding: chunked\r\n\r\n", 400},
	{"CR CR LF", head + "X-A: b\r\r\n\r\n", 400},
	{"CR within the request line", "POST /p\r HTTP/1.1\r\nHost: www.example.com\r\n\r\n", 400},
	{"NUL in a field", head + "X-A: b\x00c\r\n\r\n", 400},
	{"a field without a name", head + ": x\r\n\r\n", 400},
	{"a field without a colon", head + "X-A\r\n\r\n", 400},
	{"no Host", "POST /p HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400},
	{"two Hosts", head + "Host: evil.example\r\n\r\n", 400},
	{"a chunk size with a sign", head + "Transfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n", 400},
	{"a chunk size with 0x", head + "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", 400},
	{"a chunk size after space", head + "Transfer-Encoding: chunked\r\n\r\n 1\r\na\r\n0\r\n\r\n", 400},
	{"an empty chunk size", head + "Transfer-Encoding: chunked\r\n\r\n\r\na\r\n0\r\n\r\n", 400},
	{"a chunk size that overflows", head + "Transfer-Encoding: chunked\r\n\r\n10000000000000001\r\na\r\n0\r\n\r\n", 400},
	{"a chunk line ended by LF", head + "Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", 400},
	{"a chunk extension with LF", head + "Transfer-Encoding: chunked\r\n\r\n1;x\ny\r\na\r\n0\r\n\r\n", 400},
	{"a long chunk extension", head + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 300) + "\r\na\r\n0\r\n\r\n", 400},
	{"a chunk ended by LF", head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n", 400},
	{"a chunk longer than its size", head + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", 400},
	{"a last chunk ended by LF", head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\n\n", 400},
	{"a trailer that is folded", head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: a\r\n b\r\n\r\n", 400},
	{"HTTP/0.9", "GET /p\r\n\r\n", 400},
	{"HTTP/2.0 in a line", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
	{"a header of 100 KiB", head + "X: " + strings.Repeat("a", 100<<10) + "\r\n\r\n", 431},
	{"two spaces before the version", "POST /p  HTTP/1.1\r\nHost: www.example.com\r\n\r\n", 400},
	{"a tab in the request line", "POST\t/p HTTP/1.1\r\nHost: www.example.com\r\n\r\n", 400},
}

func TestFramingThatIsReadInTwoWaysIsRefused(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address()))
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
	for _, tc := range framingCases {
		t.Run(tc.name, func(t *testing.T) {
			got := n.exchangeRaw(tc.bytes + smuggled)
			if len(got) != 1 || got[0].status != tc.status || !got[0].closes {
				t.Errorf("got %+v, want one %d that closes", got, tc.status)
			}
		})
	}
	n.stop()
	o.Close() // waits for what it is still handling
	for _, r := range o.take() {
		if r.uri == "/smuggled" || r.complete {
			t.Errorf("the origin got %+v", r)
		}
	}
}

func TestFramingThatIsPlainPasses(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address()))
	for _, tc := range []struct{ name, bytes, body string }{
		{"a length", head + "Content-Length: 4\r\n\r\nabcd", "abcd"},
		{"a length in lower case with spaces", head + "content-length: \t 4 \r\n\r\nabcd", "abcd"},
		{"a length with zeros before", head + "Content-Length: 0004\r\n\r\nabcd", "abcd"},
		{"chunks", head + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n02\r\ncd\r\n0\r\n\r\n", "abcd"},
		{"chunks in capitals, with extensions", head + "TRANSFER-ENCODING: Chunked\r\n\r\nA;x=y\r\n0123456789\r\n0;z\r\n\r\n", "0123456789"},
		{"a trailer", head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: y\r\n\r\n", "a"},
		{"LF in a body", head + "Content-Length: 6\r\n\r\na\nb\n\nc", "a\nb\n\nc"},
		{"a body that looks like a head", head + "Content-Length: 19\r\n\r\nGET / HTTP/1.1\n\n\r\n\r", "GET / HTTP/1.1\n\n\r\n\r"},
		{"no body", head + "\r\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := n.exchangeRaw(tc.bytes + "GET /next HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n")
			if len(got) != 2 || got[0].status != 200 || got[1].status != 200 {
				t.Fatalf("got %+v, want two answers", got)
			}
			reached := o.take()
			if len(reached) != 2 || reached[0].body != tc.body || reached[1].uri != "/next" {
				t.Errorf("the origin got %+v", reached)
			}
		})
	}
}

func TestRefusalKeepsItsPlaceAmongPipelinedRequests(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address()))
	get := "GET /%d HTTP/1.1\r\nHost: www.example.com\r\n"
	got := n.exchangeRaw(fmt.Sprintf(get+"\r\n", 1) + fmt.Sprintf(get+"\r\n", 2) + fmt.Sprintf(get+"X: a\n\r\n", 3) + fmt.Sprintf(get+"\r\n", 4))
	if len(got) != 3 || got[0].status != 200 || got[1].status != 200 || got[2].status != 400 {
		t.Errorf("got %+v, want 200, 200, 400", got)
	}
	if reached := o.take(); len(reached) != 2 {
		t.Errorf("the origin got %+v", reached)
	}
}

func TestHostOfAbsoluteForm(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address()))
	for _, tc := range []struct {
		target, host string
		status       int
	}{
		{"http://www.example.com/x", "www.example.com", 200},
		{"http://WWW.Example.com.:80/x", "www.example.com", 200},
		{"http://www.example.com/x", "Www.Example.Com:80", 200},
		{"http://www.example.com", "www.example.com", 200},
		{"http://www.example.com/x", "evil.example", 421},
		{"http://evil.example/x", "www.example.com", 421},
		{"http://www.example.com/x", "", 421},
		{"http://u@www.example.com/x", "www.example.com", 421},
		{"http:///x", "www.example.com", 200}, // an empty authority is none: Host decides
		{"HTTP://www.example.com/x", "www.example.com", 200},
		{"https://www.example.com/x", "www.example.com", 421},
		{"HTTPS://www.example.com:443/x", "www.example.com", 421},
		{"https:///x", "www.example.com", 421},
		{"ftp://www.example.com/x", "www.example.com", 400},
		{"ws://www.example.com/x", "www.example.com", 400},
		{"ftp:/x", "www.example.com", 400},
		{"http:/x", "www.example.com", 400},
		{"http:x", "www.example.com", 400},
		{"ftp:x", "www.example.com", 400},
	} {
		t.Run(tc.target+" "+tc.host, func(t *testing.T) {
			plain := "GET /plain HTTP/1.1\r\nHost: www.example.com\r\n"
			got := n.exchangeRaw(plain + "\r\nGET " + tc.target + " HTTP/1.1\r\nHost: " + tc.host + "\r\n\r\n" +
				plain + "Connection: close\r\n\r\n")
			if len(got) != 3 || got[0].status != 200 || got[1].status != tc.status || got[2].status != 200 {
				t.Fatalf("got %+v, want %d between two 200", got, tc.status)
			}
			for _, r := range o.take() {
				if r.host != "www.example.com" || strings.Contains(r.uri, "example") {
					t.Errorf("the origin got %+v", r)
				}
			}
		})
	}
}
