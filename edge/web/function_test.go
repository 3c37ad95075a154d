package web

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/internal/wat"
	"github.com/guardyn-edge/guardyn/zone"
)

// with makes a zone have a function of that module, which answers every request whose path begins with its name.
func with(t testing.TB, name string, module func() ([]byte, error), change ...func(*zone.Function)) func(*zone.Zone) {
	t.Helper()
	code, err := module()
	if err != nil {
		t.Fatal(err)
	}
	f := zone.Function{Module: code}
	for _, c := range change {
		c(&f)
	}
	return func(z *zone.Zone) {
		if z.Functions == nil {
			z.Functions = make(map[string]zone.Function)
		}
		z.Functions[name] = f
		rule(zone.PhaseFunction, `http.path.startsWith("/`+name+`")`, zone.ActionFunction, zone.Parameters{Function: name})(z)
	}
}

func answers(text string) func() ([]byte, error) {
	return func() ([]byte, error) { return wat.Answer(text, 0) }
}

func wagi(fields string) func() ([]byte, error) {
	return func() ([]byte, error) { return wat.WAGI(fields) }
}

// environment reads what wat.Echo answers.
func environment(t *testing.T, answer string) (variables []string, body string) {
	t.Helper()
	head, body, ok := strings.Cut(answer, "\x00\x00")
	if !ok {
		t.Fatalf("the echo is %q", answer)
	}
	return strings.Split(head, "\x00"), body
}

func TestFunctionAnswers(t *testing.T) {
	tests := []struct {
		name, output string
		status       int
		header       http.Header // that the answer has; nil values: that it has not
		body         string
	}{
		{"a page", "Content-Type: text/html\n\n<p>", 200, http.Header{"Content-Type": {"text/html"}, "Content-Length": {"3"}}, "<p>"},
		{"lines that end in CRLF", "Content-Type: text/html\r\nX-A: 1\r\n\r\n<p>", 200, http.Header{"X-A": {"1"}}, "<p>"},
		{"a status", "Status: 418 I'm a teapot\nX-A: 1\n\nhi", 418, http.Header{"X-A": {"1"}, "Status": nil, "Content-Type": nil}, "hi"},
		{"a redirect", "Location: /there\n\n", 302, http.Header{"Location": {"/there"}, "Content-Length": {"0"}}, ""},
		{"a redirect with a status", "Status: 308\nLocation: https://example.net/\n\n", 308, http.Header{"Location": {"https://example.net/"}}, ""},
		{"no content", "Status: 204\n\nnothing", 204, http.Header{"Content-Length": nil}, ""},
		{"reset content", "Status: 205\nContent-Type: text/plain\n\nform", 205, http.Header{"Content-Length": {"0"}}, ""},
		{"not modified", "Status: 304\nETag: \"1\"\n\n", 304, http.Header{"Etag": {`"1"`}, "Content-Length": nil}, ""},
		{"several cookies", "Status: 200\nSet-Cookie: a=1\nSet-Cookie: b=2\n\n", 200, http.Header{"Set-Cookie": {"a=1", "b=2"}}, ""},
		{"a length that is not", "Status: 200\nContent-Length: 100\n\nfour", 200, http.Header{"Content-Length": {"4"}}, "four"},
		{
			"fields that end at this hop", "Status: 200\nConnection: close, x-b\nX-B: 1\nKeep-Alive: 1\nTransfer-Encoding: chunked\nUpgrade: h2c\nTrailer: X-C\n\nok", 200,
			http.Header{"X-B": nil, "Keep-Alive": nil, "Transfer-Encoding": nil, "Upgrade": nil, "Trailer": nil},
			"ok",
		},
		{"fields of the node", "Status: 200\nX-Guardyn-Version: 9\n\nok", 200, http.Header{"X-Guardyn-Version": nil}, "ok"},
		{"rules of the answer", "Status: 200\nX-Removed: 1\n\nok", 200, http.Header{"X-Removed": nil, "X-Set": {"by rule"}}, "ok"},
		{"an answer of a megabyte", "Content-Type: text/plain\n\n" + strings.Repeat("x", 1<<20), 200, http.Header{"Content-Length": {"1048576"}}, strings.Repeat("x", 1<<20)},
		{"no output", "", 502, nil, ""},
		{"no head", "hello", 502, nil, ""},
		{"a head without an end", "Content-Type: text/plain\n", 502, nil, ""},
		{"a head that says nothing", "X-A: 1\n\nhello", 502, nil, ""},
		{"a status that is none", "Status: 99\n\n", 502, nil, ""},
		{"an interim status", "Status: 101\n\n", 502, nil, ""},
		{"two statuses", "Status: 200\nStatus: 404\n\n", 502, nil, ""},
		{"two types", "Content-Type: a/b\nContent-Type: c/d\n\n", 502, nil, ""},
		{"a field that goes on", "Content-Type: a/b\n folded\n\n", 502, nil, ""},
		{"a name with a space", "Content-Type : a/b\n\n", 502, nil, ""},
		{"a value with a return", "Content-Type: a/b\rX-A: 1\n\n", 502, nil, ""},
		{"a value with a zero byte", "Content-Type: a\x00b\n\n", 502, nil, ""},
		{"a head of 70 KiB", "X-A: " + strings.Repeat("x", 70<<10) + "\nStatus: 200\n\n", 502, nil, ""},
		{"300 fields", "Status: 200\n" + strings.Repeat("X-A: 1\n", 300) + "\n", 502, nil, ""},
	}
	n := startNode(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n.publish(site("192.0.2.1:1", with(t, "f", answers(tt.output)),
				rule(zone.PhaseTransformResponse, "true", zone.ActionSetHeader, zone.Parameters{Name: "X-Set", Value: "by rule"}),
				rule(zone.PhaseTransformResponse, "true", zone.ActionRemoveHeader, zone.Parameters{Name: "X-Removed"})))
			got := n.get("/f")
			if got.status != tt.status {
				t.Fatalf("answered %d %q", got.status, got.body)
			}
			if tt.status == http.StatusBadGateway {
				return
			}
			if got.body != tt.body {
				t.Errorf("the body has %d bytes %.80q, want %d %.80q", len(got.body), got.body, len(tt.body), tt.body)
			}
			for name, want := range tt.header {
				if got := got.header[name]; !slices.Equal(got, want) {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			// HEAD has the same head.
			head := n.ask("HEAD", "www.example.com", "/f")
			if head.status != tt.status || head.body != "" || !slices.Equal(head.header["Content-Length"], got.header["Content-Length"]) {
				t.Errorf("HEAD: %d %v %q", head.status, head.header, head.body)
			}
		})
	}
}

func TestFunctionFailures(t *testing.T) {
	short := func(f *zone.Function) {
		f.Timeout, f.Memory, f.Output = zone.Duration(50*time.Millisecond), 1<<20, 1<<16
	}
	tests := []struct {
		name   string
		module func() ([]byte, error)
		status int
	}{
		{"a trap", wagi(`(memory 1) (func (export "_start") unreachable)`), 502},
		{"a status of its own that is not 0", func() ([]byte, error) { return wat.Answer("Status: 200\n\nok", 3) }, 502},
		{"a loop without end", wagi(`(memory 1) (func (export "_start") loop br 0 end)`), 503},
		{"an answer, and then a loop", wagi(`(memory 1) (data (i32.const 64) "Status: 200\n\nok") (func (export "_start") i32.const 64 i32.const 15 call $write loop br 0 end)`), 503},
		{"too much memory", wagi(`(memory 1) (func (export "_start") i32.const 17 memory.grow i32.const 0 i32.lt_s if unreachable end)`), 503},
		{"too much output", wagi(`(memory 2) (func (export "_start") i32.const 0 i32.const 65537 call $write)`), 503},
		{"recursion without end", wagi(`(memory 1) (func $f (export "_start") call $f nop)`), 503},
	}
	n := startNode(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n.publish(site("192.0.2.1:1", with(t, "f", tt.module, short)))
			if got := n.get("/f"); got.status != tt.status || got.header.Get("Cache-Control") != "no-store" {
				t.Errorf("answered %d %v %q, want %d", got.status, got.header, got.body, tt.status)
			}
		})
	}
}

func TestFunctionIsChosen(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address(), with(t, "one", answers("Status: 200\n\none")), with(t, "two", answers("Status: 200\n\ntwo")),
		rule(zone.PhaseFunction, `true`, zone.ActionSkip, zone.Parameters{}),
		rule(zone.PhaseFunction, `true`, zone.ActionFunction, zone.Parameters{Function: "two"})))
	for path, want := range map[string]string{"/one": "one", "/two/x": "two", "/three": "origin"} {
		if got := n.get(path); got.status != 200 || got.body != want {
			t.Errorf("%s is answered %d %q, want %q", path, got.status, got.body, want)
		}
	}
	// A name without an origin is a function's as well.
	if got := n.ask("GET", "elsewhere.example.com", "/one"); got.body != "one" {
		t.Errorf("answered %d %q", got.status, got.body)
	}
}

func TestFunctionSeesTheRequest(t *testing.T) {
	n := startNode(t)
	n.publish(site("192.0.2.1:1", with(t, "f", wat.Echo, func(f *zone.Function) {
		f.Environment = map[string]string{"GREETING": "hello", "REQUEST_METHOD": "forged", "HTTP_X_ADMIN": "1", "REMOTE_USER": "root"}
	})))
	raw := "POST /f/%7euser//a%20b?x=1;y=%zz HTTP/1.1\r\nHost: WWW.example.com:8080\r\n"
	got := n.exchangeRaw(raw + "Content-Length: 5\r\nConnection: close\r\n\r\nhello")
	if len(got) != 1 || got[0].status != 400 {
		t.Errorf("a bad escape is answered %v", got)
	}
	got = n.exchangeRaw("POST /f/%7euser//a%20b?x=1;y=2 HTTP/1.1\r\nHost: WWW.example.com:8080\r\nContent-Type: text/x\r\nContent-Length: 5\r\n" +
		"Cookie: a=1\r\nCookie: b=2\r\nAccept: a/b\r\nAccept: c/d\r\nProxy: http://evil.example/\r\nX_Under: 1\r\nX-Forwarded-For: 198.51.100.1\r\n" +
		"Authorization: Basic eA==\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\r\nhello")
	if len(got) != 1 || got[0].status != 200 {
		t.Fatalf("answered %v", got)
	}
	variables, body := environment(t, got[0].body)
	if body != "hello" {
		t.Errorf("the body is %q", body)
	}
	want := []string{
		"GATEWAY_INTERFACE=CGI/1.1", "SERVER_SOFTWARE=Guardyn", "SERVER_PROTOCOL=HTTP/1.1", "SERVER_NAME=www.example.com", "SERVER_PORT=80",
		"REQUEST_METHOD=POST", "REQUEST_SCHEME=http", "REQUEST_URI=/f/~user/a%20b?x=1%3By=2", "SCRIPT_NAME=", "PATH_INFO=/f/~user/a b",
		"QUERY_STRING=x=1%3By=2", "REMOTE_ADDR=127.0.0.1", "REMOTE_HOST=127.0.0.1", "CONTENT_LENGTH=5", "CONTENT_TYPE=text/x",
		"HTTP_HOST=www.example.com", "HTTP_COOKIE=a=1; b=2", "HTTP_ACCEPT=a/b, c/d", "HTTP_AUTHORIZATION=Basic eA==", "GREETING=hello",
	}
	slices.Sort(want)
	slices.Sort(variables)
	if !slices.Equal(variables, want) {
		t.Errorf("the environment is\n%s\nwant\n%s", strings.Join(variables, "\n"), strings.Join(want, "\n"))
	}
}

func TestFunctionBodies(t *testing.T) {
	n := startNode(t)
	n.publish(site("192.0.2.1:1", with(t, "f", wat.Echo), func(z *zone.Zone) { z.Ceilings.RequestBody = 2 << 20 }))
	for name, size := range map[string]int{"none": 0, "small": 10, "as much as is waited for": 64 << 10, "large": 1<<20 + 7} {
		t.Run(name, func(t *testing.T) {
			body := strings.Repeat("0123456789", size/10+1)[:size]
			for _, chunked := range []bool{false, true} {
				var r io.Reader = strings.NewReader(body)
				if chunked {
					r = io.MultiReader(r)
				}
				req, err := http.NewRequest("POST", "http://"+n.Addr().String()+"/f", r)
				if err != nil {
					t.Fatal(err)
				}
				req.Host = "www.example.com"
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 {
					t.Fatalf("answered %d: %v", resp.StatusCode, err)
				}
				if _, echo := environment(t, string(got)); echo != body {
					t.Errorf("of %d bytes %d came back, chunked: %v", len(body), len(echo), chunked)
				}
			}
		})
	}
	head := "POST /f HTTP/1.1\r\nHost: www.example.com\r\n"
	for name, tt := range map[string]struct {
		rest   string
		status int
	}{
		"too long":            {"Content-Length: 3000000\r\n\r\n", 413},
		"too long in chunks":  {"Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 3), 413},
		"malformed":           {"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"that does not come":  {"Content-Length: 10\r\n\r\n", 503},
		"that comes in part":  {"Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 70_000), 503},
		"and is waited for":   {"Expect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n", 100},
		"that nobody asks of": {"Content-Length: 0\r\nConnection: close\r\n\r\n", 200},
	} {
		t.Run(name, func(t *testing.T) {
			c := n.dial()
			go io.WriteString(c, head+tt.rest)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tt.status {
				t.Errorf("answered %s, want %d", resp.Status, tt.status)
			}
		})
	}
}

// TestFunctionConnections sees that a connection goes on after a function, whether or not it has read the body.
func TestFunctionConnections(t *testing.T) {
	n := startNode(t)
	n.publish(site("192.0.2.1:1", with(t, "f", answers("Status: 200\n\nok"))))
	c := n.dial()
	r := bufio.NewReader(c)
	for i := range 5 {
		io.WriteString(c, "POST /f HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 10\r\n\r\n0123456789GET /f HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
		for range 2 {
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
				t.Fatalf("round %d: %q %v", i, body, err)
			}
		}
	}
}

func TestFunctionEndsWithItsClient(t *testing.T) {
	n := startNode(t)
	v := n.publish(site("192.0.2.1:1", with(t, "f", wagi(`(memory 1) (func (export "_start") loop br 0 end)`), func(f *zone.Function) { f.Timeout = zone.Duration(time.Minute) }),
		func(z *zone.Zone) { z.Ceilings.FunctionTime = zone.Duration(time.Minute) }))
	c := n.dial()
	io.WriteString(c, "GET /f HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
	f := v.Host("www.example.com").Functions["f"]
	waitFor(t, "the call", func() bool { return f.Running() == 1 })
	c.Close()
	waitFor(t, "its end", func() bool { return f.Running() == 0 })
	if got := f.Counts(); got.Results[function.Left] != 1 {
		t.Errorf("it ended in %v", got.Results)
	}
}

func TestFunctionOverHTTP2(t *testing.T) {
	a := newAuthority(t)
	n := startNode(t, withTLS)
	n.publish(site("192.0.2.1:1", balanced("www.example.com"), tlsHost("www.example.com", a.issue(false, "www.example.com")), with(t, "f", wat.Echo),
		with(t, "late", wagi(`(memory 1) (func (export "_start") loop br 0 end)`), func(f *zone.Function) { f.Timeout = zone.Duration(50 * time.Millisecond) })))
	client := n.client(a, true)
	body := strings.Repeat("abc", 100_000)
	for _, method := range []string{"POST", "HEAD", "GET"} {
		var in io.Reader
		if method == "POST" {
			in = strings.NewReader(body)
		}
		req, err := http.NewRequest(method, "https://www.example.com/f?q=1", in)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 2 {
			t.Fatalf("%s: %s %s %v", method, resp.Proto, resp.Status, err)
		}
		if method == "HEAD" {
			if len(got) > 0 || resp.ContentLength <= 0 {
				t.Errorf("HEAD: %d bytes, length %d", len(got), resp.ContentLength)
			}
			continue
		}
		variables, echo := environment(t, string(got))
		for _, want := range []string{"SERVER_PROTOCOL=HTTP/1.1", "REQUEST_SCHEME=https", "HTTPS=on", "SERVER_PORT=443", "REQUEST_METHOD=" + method} {
			if !slices.Contains(variables, want) {
				t.Errorf("%s: %s is not in the environment", method, want)
			}
		}
		if method == "POST" && echo != body {
			t.Errorf("of %d bytes %d came back", len(body), len(echo))
		}
	}
	if resp, _ := n.fetch(client, "https://www.example.com/late", ""); resp.StatusCode != 503 {
		t.Errorf("a function without end is answered %s", resp.Status)
	}
}

// TestFunctionOutlivesViews sees that a swap leaves calls under way, machine code and counts where they are.
func TestFunctionOutlivesViews(t *testing.T) {
	n := startNode(t)
	first := n.publish(site("192.0.2.1:1", with(t, "f", answers("Status: 200\n\nok")))).Host("www.example.com").Functions["f"]
	n.get("/f")
	same := n.publish(site("192.0.2.1:1", with(t, "f", answers("Status: 200\n\nok")), func(z *zone.Zone) { z.Settings.VersionHeader = true })).Host("www.example.com").Functions["f"]
	if same != first {
		t.Error("a function that did not change was compiled again")
	}
	other := n.publish(site("192.0.2.1:1", with(t, "f", answers("Status: 200\n\nnew")))).Host("www.example.com").Functions["f"]
	if got := n.get("/f"); got.body != "new" {
		t.Errorf("answered %q", got.body)
	}
	if got := other.Counts(); got.Results[function.Answered] != 2 {
		t.Errorf("of two calls %v were counted", got.Results)
	}
}

// TestFunctionBehindTheCache sees that an answer that may be kept is, and that requests at once share one call.
func TestFunctionBehindTheCache(t *testing.T) {
	n := startNode(t, withCache(0)...)
	v := n.publish(site("192.0.2.1:1", with(t, "kept", answers("Content-Type: text/plain\nCache-Control: max-age=60\nETag: \"1\"\n\nkept")),
		with(t, "fresh", answers("Content-Type: text/plain\nCache-Control: no-store\n\nfresh"))))
	functions := v.Host("www.example.com").Functions
	for range 3 {
		if got := n.get("/kept"); got.status != 200 || got.body != "kept" {
			t.Errorf("answered %d %q", got.status, got.body)
		}
		if got := n.get("/fresh"); got.body != "fresh" {
			t.Errorf("answered %d %q", got.status, got.body)
		}
	}
	if got := n.get("/kept", `If-None-Match: "1"`); got.status != http.StatusNotModified {
		t.Errorf("what the client has is answered %d", got.status)
	}
	for name, want := range map[string]uint64{"kept": 1, "fresh": 3} {
		if got := functions[name].Counts().Results[function.Answered]; got != want {
			t.Errorf("%s was called %d times, want %d", name, got, want)
		}
	}
}
