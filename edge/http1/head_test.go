package http1

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const (
	get  = "GET /p HTTP/1.1\r\nHost: a.example\r\n"
	post = "POST /p HTTP/1.1\r\nHost: a.example\r\n"
	last = "GET /last HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"
	done = " | 200 GET a.example /last."
)

// requests are what a client sends before a last request, and what it is answered in all.
var requests = []struct{ name, sent, want string }{
	// RFC 9112 §2.2.
	{"a request", get + "\r\n", "200 GET a.example /p" + done},
	{"an empty line before", "\r\n" + get + "\r\n", "200 GET a.example /p" + done},
	{"an empty line behind a body", post + "Content-Length: 1\r\n\r\na\r\n", "200 POST a.example /p a" + done},
	{"two empty lines", "\r\n\r\n" + get + "\r\n", "400 400 Bad Request."},
	{"LF for an empty line before", "\n" + get + "\r\n", "400 400 Bad Request."},
	{"LF alone", "GET /p HTTP/1.1\nHost: a.example\n\n", "400 400 Bad Request."},
	{"CR within a line", get + "A: b\rc\r\n\r\n", "400 400 Bad Request."},
	{"white space before the first field", "GET /p HTTP/1.1\r\n Host: a.example\r\n\r\n", "400 400 Bad Request."},
	{"nothing but an end", "GET /p HTTP/1.1\r\n\r\n", "400 400 Bad Request."},
	// §2.3, §3.
	{"version 1.0", "GET /p HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n", "200 GET a.example /p" + done},
	{"a minor version to come", "GET /p HTTP/1.9\r\nHost: a.example\r\n\r\n", "200 GET a.example /p" + done},
	{"another major version", "GET /p HTTP/2.0\r\nHost: a.example\r\n\r\n", "505 505 HTTP Version Not Supported."},
	{"no version", "GET /p\r\nHost: a.example\r\n\r\n", "400 400 Bad Request."},
	{"two spaces", "GET  /p HTTP/1.1\r\nHost: a.example\r\n\r\n", "400 400 Bad Request."},
	{"a tab", "GET\t/p HTTP/1.1\r\nHost: a.example\r\n\r\n", "400 400 Bad Request."},
	{"a space in the target", "GET /p q HTTP/1.1\r\nHost: a.example\r\n\r\n", "400 400 Bad Request."},
	{"a control character in the target", "GET /\x01 HTTP/1.1\r\nHost: a.example\r\n\r\n", "400 400 Bad Request."},
	{"no target", "GET  HTTP/1.1\r\nHost: a.example\r\n\r\n", "400 400 Bad Request."},
	{"a method that is none", "G@T /p HTTP/1.1\r\nHost: a.example\r\n\r\n", "400 400 Bad Request."},
	{"a method of one's own", "PURGE /p HTTP/1.1\r\nHost: a.example\r\n\r\n", "200 PURGE a.example /p" + done},
	// §3.2.
	{"absolute form", "GET http://b.example/q HTTP/1.1\r\nHost: a.example\r\n\r\n", "200 GET b.example http://b.example/q" + done},
	{"asterisk form", "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", "200 OPTIONS a.example *" + done},
	{"authority form", "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example\r\n\r\n", "200 CONNECT a.example a.example:80" + done},
	{"a target that is none", "GET p HTTP/1.1\r\nHost: a.example\r\n\r\n", "400 400 Bad Request."},
	{"an empty Host", "GET /p HTTP/1.1\r\nHost:\r\n\r\n", "200 GET  /p" + done},
	{"no Host", "GET /p HTTP/1.1\r\nA: b\r\n\r\n", "400 400 Bad Request."},
	{"no Host below 1.1", "GET /p HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200 GET  /p" + done},
	{"two Hosts", get + "Host: a.example\r\n\r\n", "400 400 Bad Request."},
	{"a Host that is none", "GET /p HTTP/1.1\r\nHost: a/b\r\n\r\n", "400 400 Bad Request."},
	// §5.
	{"white space around a value", get + "A: \t b \t\r\n\r\n", "200 GET a.example /p" + done},
	{"no white space", get + "A:b\r\n\r\n", "200 GET a.example /p" + done},
	{"white space before the colon", get + "A : b\r\n\r\n", "400 400 Bad Request."},
	{"a continued line", get + "A: b\r\n c\r\n\r\n", "400 400 Bad Request."},
	{"no name", get + ": b\r\n\r\n", "400 400 Bad Request."},
	{"no colon", get + "A\r\n\r\n", "400 400 Bad Request."},
	{"a name that is none", get + "A(: b\r\n\r\n", "400 400 Bad Request."},
	{"NUL in a value", get + "A: b\x00\r\n\r\n", "400 400 Bad Request."},
	{"octets above ASCII in a value", get + "A: \xff\r\n\r\n", "200 GET a.example /p" + done},
	{"a head of the most", get + "A: " + strings.Repeat("a", MaxHead-len(get)-len("A: \r\n\r\n")) + "\r\n\r\n", "200 GET a.example /p" + done},
	{"a head of one octet more", get + "A: " + strings.Repeat("a", 1+MaxHead-len(get)-len("A: \r\n\r\n")) + "\r\n\r\n", "431 431 Request Header Fields Too Large."},
	{"the most fields", get + strings.Repeat("A: b\r\n", MaxFields-1) + "\r\n", "200 GET a.example /p" + done},
	{"one field more", get + strings.Repeat("A: b\r\n", MaxFields) + "\r\n", "431 431 Request Header Fields Too Large."},
	// §6.
	{"a length", post + "Content-Length: 3\r\n\r\nabc", "200 POST a.example /p abc" + done},
	{"no octets", post + "Content-Length: 0\r\n\r\n", "200 POST a.example /p" + done},
	{"a body of a method without one", get + "Content-Length: 3\r\n\r\nabc", "200 GET a.example /p abc" + done},
	{"a length that is none", post + "Content-Length: +3\r\n\r\nabc", "400 400 Bad Request."},
	{"a list of lengths", post + "Content-Length: 3, 3\r\n\r\nabc", "400 400 Bad Request."},
	{"two lengths", post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "400 400 Bad Request."},
	{"a length beside chunks", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 400 Bad Request."},
	{"another coding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400 400 Bad Request."},
	{"chunks below 1.1", "POST /p HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 400 Bad Request."},
	{"a K that folds to k", post + "Transfer-Encoding: chun\u212aed\r\n\r\n0\r\n\r\n", "400 400 Bad Request."},
	// §7.1.
	{"chunks", post + "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0a;x=y\r\n0123456789\r\n0\r\n\r\n", "200 POST a.example /p abc0123456789" + done},
	{"a trailer section", post + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\n", "200 POST a.example /p a" + done},
	{"white space before an extension", post + "Transfer-Encoding: chunked\r\n\r\n1 ;x\r\na\r\n0\r\n\r\n", "200 POST a.example /p a" + done},
	{"white space behind a size", post + "Transfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n", "400."},
	{"NUL in an extension", post + "Transfer-Encoding: chunked\r\n\r\n1;a\x00\r\na\r\n0\r\n\r\n", "400."},
	{"a size that is none", post + "Transfer-Encoding: chunked\r\n\r\nx\r\na\r\n0\r\n\r\n", "400."},
	{"a size of 17 digits", post + "Transfer-Encoding: chunked\r\n\r\n00000000000000001\r\na\r\n0\r\n\r\n", "400."},
	{"a chunk that is longer", post + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", "400."},
	{"LF behind a chunk", post + "Transfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n", "400."},
	{"the longest line before a chunk", post + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", MaxChunkLine-4) + "\r\na\r\n0\r\n\r\n", "200 POST a.example /p a" + done},
	{"a longer one", post + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", MaxChunkLine-3) + "\r\na\r\n0\r\n\r\n", "400."},
	{"more framing than content", post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 200)+"\r\na\r\n", 200) + "0\r\n\r\n", "400."},
	{"chunks of one octet", post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\na\r\n", 9000) + "0\r\n\r\n", "200 POST a.example /p " + strings.Repeat("a", 9000) + done},
	{"the longest trailer section", post + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + strings.Repeat("a", maxTrailer-5) + "\r\n\r\n", "200 POST a.example /p" + done},
	{"a longer one", post + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + strings.Repeat("a", maxTrailer-4) + "\r\n\r\n", "400."},
	{"a trailer that frames", post + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\n\r\n", "400 400 Bad Request."},
	{"a continued trailer", post + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n", "400."},
	// §9.3.
	{"close", get + "Connection: a, Close\r\n\r\n", "200 GET a.example /p."},
	{"keep-alive beside close", get + "Connection: keep-alive\r\nConnection: close\r\n\r\n", "200 GET a.example /p."},
	{"1.0 without a word", "GET /p HTTP/1.0\r\nHost: a.example\r\n\r\n", "200 GET a.example /p."},
	// RFC 9110 §10.1.1.
	{"another expectation", post + "Expect: more\r\nContent-Length: 1\r\n\r\na", "417 417 Expectation Failed."},
	{"a body that came unasked", post + "Expect: 100-continue\r\nContent-Length: 1\r\n\r\na", "200 POST a.example /p a" + done},
	{"the expectation of 1.0", "POST /p HTTP/1.0\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\na", "200 POST a.example /p a" + done},
}

func TestRequests(t *testing.T) {
	_, address := start(t, echo)
	for _, tc := range requests {
		// However the octets arrive: at once, and in pieces that the network does not join.
		for _, size := range []int{1 << 20, 1000, 3} {
			if size == 3 && len(tc.sent) > 600 {
				continue
			}
			t.Run(tc.name, func(t *testing.T) {
				c := dial(t, address)
				if err := c.SetNoDelay(true); err != nil {
					t.Fatal(err)
				}
				go func() {
					for s := tc.sent + last; s != ""; {
						n := min(size, len(s))
						if _, err := io.WriteString(c, s[:n]); err != nil {
							return
						}
						s = s[n:]
					}
					c.CloseWrite()
				}()
				got := answers(t, c)
				for i := range got {
					if got[i].status == 100 {
						got = slices.Delete(got, i, i+1) // to a body that came after its head
						break
					}
				}
				if s := told(got); s != tc.want {
					t.Errorf("in pieces of %d: got %q, want %q", size, s, tc.want)
				}
			})
		}
	}
}

// What is taken for a request is one to net/http, too, and the same one.
func FuzzRequest(f *testing.F) {
	for _, tc := range requests {
		f.Add([]byte(tc.sent))
	}
	s := NewServer(f.Context(), Config{})
	f.Fuzz(func(t *testing.T, sent []byte) {
		var scan headScan
		n, status := scan.scan(sent)
		if status != 0 || n == 0 {
			return
		}
		c := &Conn{server: s, header: make(http.Header)}
		c.body.conn = c
		r := &c.request
		if c.parse(string(sent[scan.skip:n])) != 0 || r.Method == http.MethodConnect { // whose target names no host here: it is not served
			return
		}
		if _, err := url.ParseRequestURI(r.RequestURI); err != nil {
			return // escapes are for who makes something of the path
		}
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(sent[scan.skip:]))))
		if err != nil {
			t.Fatalf("net/http refuses %q: %v", sent, err)
		}
		delete(want.Header, "Trailer")
		delete(r.Header, "Trailer")
		if cc := want.Header["Cache-Control"]; len(cc) > 0 && len(r.Header["Cache-Control"]) == 0 {
			delete(want.Header, "Cache-Control") // which it makes of Pragma
		}
		if r.Method != want.Method || r.RequestURI != want.RequestURI || r.Host != want.Host || r.ContentLength != want.ContentLength ||
			r.Close != want.Close || !maps.EqualFunc(r.Header, want.Header, slices.Equal) {
			t.Errorf("%q:\n%+v, net/http\n%+v", sent, r, want)
		}
	})
}
