package http1

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestAnswers(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 64<<10/16)
	const http10 = "GET /p HTTP/1.0\r\nHost: a.example\r\n"
	for _, tc := range []struct {
		name, sent string
		handler    func(w *Response, r *http.Request)
		want       string
		fields     string // of the first final answer: those it has; "-" before those it has not
	}{
		{"nothing", get, func(*Response, *http.Request) {}, "200" + done, "Content-Length: 0, Date"},
		{"a length", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "abc")
		}, "200 abc" + done, "Content-Length: 3, -Transfer-Encoding, -Content-Type"},
		{"no length", get, func(w *Response, _ *http.Request) { io.WriteString(w, "abc") }, "200 abc" + done, "-Content-Length"},
		{"no length for 1.0", http10 + "Connection: keep-alive\r\n", func(w *Response, _ *http.Request) { io.WriteString(w, "abc") }, "200 abc.", "-Content-Length"},
		{"a length for 1.0", http10 + "Connection: keep-alive\r\n", func(w *Response, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "abc")
		}, "200 abc" + done, "Connection: keep-alive"},
		{"large, with a length", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			io.WriteString(w, large)
		}, "200 " + large + done, ""},
		{"large, in chunks", get, func(w *Response, _ *http.Request) {
			for i := 0; i < len(large); i += 1000 {
				io.WriteString(w, large[i:min(i+1000, len(large))])
			}
		}, "200 " + large + done, ""},
		{"large pieces, in chunks", get, func(w *Response, _ *http.Request) {
			io.WriteString(w, large)
			w.Flush()
			io.WriteString(w, large)
		}, "200 " + large + large + done, ""},
		{"HEAD", "HEAD /p HTTP/1.1\r\nHost: a.example\r\n", func(w *Response, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "abc")
		}, "200" + done, "Content-Length: 3"},
		{"HEAD without a length", "HEAD /p HTTP/1.1\r\nHost: a.example\r\n", func(w *Response, _ *http.Request) { io.WriteString(w, "abc") }, "200" + done, "-Content-Length"},
		{"204", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "abc"); err == nil {
				t.Error("a body of 204 is taken")
			}
		}, "204" + done, "-Content-Length"},
		{"304", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			w.WriteHeader(304)
		}, "304" + done, "Content-Length: 3"},
		{"more than its length", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "abc")
			if _, err := io.WriteString(w, "d"); err == nil {
				t.Error("more than the length is taken")
			}
		}, "200 abc" + done, ""},
		{"less than its length", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "ab")
		}, "200 ab broken", ""},
		{"a length that is none", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Content-Length", "x")
			io.WriteString(w, "abc")
		}, "200 abc" + done, "-Content-Length"},
		{"closes", get, func(w *Response, _ *http.Request) { w.Header().Set("Connection", "close") }, "200.", ""},
		{"framing of the handler's", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Transfer-Encoding", "gzip")
			w.Header().Set("Connection", "upgrade")
			io.WriteString(w, "abc")
		}, "200 abc" + done, ""},
		{"ends of lines in a field", get, func(w *Response, _ *http.Request) {
			w.Header()["A"] = []string{"b\r\nC: d", "e\n"}
			w.Header()["F\r\nG"] = []string{"h"}
		}, "200" + done, "A: b  C: d, -C, -F, -G"},
		{"two of a field, an empty one and none", get, func(w *Response, _ *http.Request) {
			w.Header()["A"], w.Header()["B"], w.Header()["C"] = []string{"1", "2"}, []string{""}, nil
		}, "200" + done, "A: 1, B: , -C"},
		{"a Date of the origin", get, func(w *Response, _ *http.Request) { w.Header().Set("Date", "then") }, "200" + done, "Date: then"},
		{"interim", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(103)
			w.Header().Del("Link")
			w.WriteHeader(404)
		}, "103 | 404" + done, "-Link"},
		{"interim for 1.0", http10, func(w *Response, _ *http.Request) { w.WriteHeader(103) }, "200.", ""},
		{"the first status counts", get, func(w *Response, _ *http.Request) {
			w.WriteHeader(404)
			w.WriteHeader(500)
		}, "404" + done, ""},
		{"trailers", get, func(w *Response, _ *http.Request) {
			w.Header().Set("Trailer", "A")
			io.WriteString(w, "abc")
			w.Header().Set("A", "b")
			w.Header().Set(http.TrailerPrefix+"C", "d")
			w.Header().Set(http.TrailerPrefix+"E\n", "f")
		}, "200 abc" + done, "Trailer A: b, Trailer C: d"},
		{"a panic", get, func(w *Response, _ *http.Request) { panic("at the disco") }, "", ""},
		{"an abort behind a part", get, func(w *Response, _ *http.Request) {
			io.WriteString(w, "abc")
			w.Flush()
			panic(http.ErrAbortHandler)
		}, "200 abc broken", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, address := start(t, func(w *Response, r *http.Request) {
				if r.RequestURI == "/last" {
					echo(w, r)
					return
				}
				tc.handler(w, r)
			})
			c := dial(t, address)
			if _, err := io.WriteString(c, tc.sent+"\r\n"+last); err != nil {
				t.Fatal(err)
			}
			method, _, _ := strings.Cut(tc.sent, " ")
			got := answers(t, c, method)
			if s := told(got); s != tc.want {
				t.Fatalf("got %.200q, want %.200q", s, tc.want)
			}
			if tc.fields == "" {
				return
			}
			first := got[0]
			if first.status < 200 {
				first = got[1]
			}
			for f := range strings.SplitSeq(tc.fields, ", ") {
				name, value, valued := strings.Cut(f, ": ")
				absent := strings.TrimPrefix(name, "-") != name
				values, has := first.header[strings.TrimPrefix(name, "-")]
				if has == absent || valued && values[0] != value {
					t.Errorf("want %s, got %v", f, first.header)
				}
			}
		})
	}
}

// BenchmarkServe is a request of a client that keeps its connection, and an answer of 1 KiB, over loopback.
func BenchmarkServe(b *testing.B) {
	body := make([]byte, 1024)
	length := []string{"1024"}
	_, address := start(b, func(w *Response, _ *http.Request) {
		w.Header()["Content-Length"] = length
		w.Write(body)
	})
	c := dial(b, address)
	request := []byte("GET /index.html?a=1 HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n" +
		"Accept: text/html,application/xhtml+xml\r\nAccept-Language: en\r\nAccept-Encoding: gzip, deflate, br\r\nCookie: sid=0123456789abcdef\r\n\r\n")
	buf := make([]byte, 8<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		for n := 0; n < 1024; {
			m, err := c.Read(buf)
			if n += m; err != nil {
				b.Fatal(err)
			}
		}
	}
}
