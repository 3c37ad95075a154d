package web

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
	"testing"
)

// rawRequest is one request as its octets came to a recordingOrigin.
type rawRequest struct {
	head string // with the empty line
	line string // the first
	body string
}

// fields returns the values of a field by its exact name in any case.
func (r rawRequest) fields(name string) (values []string) {
	for line := range strings.SplitSeq(r.head, "\r\n") {
		if n, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}

// recordingOrigin keeps the octets of each request and answers 200 without a body.
type recordingOrigin struct {
	address string
	mu      sync.Mutex
	got     []rawRequest
	odd     []string // what no node may send
}

func startRecorder(t testing.TB) *recordingOrigin {
	o := new(recordingOrigin)
	o.address = scriptedOrigin(t, func(_ int, c net.Conn, _ *bufio.Reader) {
		var raw bytes.Buffer
		b := bufio.NewReader(io.TeeReader(c, &raw))
		for {
			r, err := http.ReadRequest(b)
			if err != nil {
				if raw.Len() > 0 {
					o.note(fmt.Sprintf("%v: %q", err, raw.String()))
				}
				return
			}
			body, err := io.ReadAll(r.Body)
			head, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
			if b.Buffered() > 0 {
				o.note(fmt.Sprintf("octets after a request: %q", raw.String()))
			}
			raw.Reset()
			if err != nil {
				return // the node broke it off: no request
			}
			line, _, _ := strings.Cut(head, "\r\n")
			o.mu.Lock()
			o.got = append(o.got, rawRequest{head + "\r\n\r\n", line, string(body)})
			o.mu.Unlock()
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
				return
			}
		}
	})
	return o
}

func (o *recordingOrigin) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.odd = append(o.odd, what)
}

// take returns what came since the last take, and fails t for all of it that can be read in two ways.
func (o *recordingOrigin) take(t testing.TB) []rawRequest {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, what := range o.odd {
		t.Errorf("the origin got %s", what)
	}
	for _, r := range o.got {
		if err := r.plain(); err != nil {
			t.Errorf("the origin got %q: %v", r.head, err)
		}
	}
	got := o.got
	o.got, o.odd = nil, nil
	return got
}

// plain is the error of a head that is not the one form that nodes send.
func (r rawRequest) plain() error {
	lines := strings.Split(strings.TrimSuffix(r.head, "\r\n\r\n"), "\r\n")
	if parts := strings.Split(lines[0], " "); len(parts) != 3 || parts[2] != "HTTP/1.1" || !strings.HasPrefix(parts[1], "/") {
		return fmt.Errorf("the request line is %q", lines[0])
	}
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") {
			return fmt.Errorf("a control character in %q", line)
		}
	}
	seen := make(map[string]int)
	for _, line := range lines[1:] {
		name, _, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") || textproto.TrimString(line) != line {
			return fmt.Errorf("the line %q", line)
		}
		seen[strings.ToLower(name)]++
	}
	for _, one := range []string{"host", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "x-real-ip", "x-guardyn-zone"} {
		if seen[one] != 1 {
			return fmt.Errorf("%d times %s", seen[one], one)
		}
	}
	if seen["content-length"]+seen["transfer-encoding"] > 1 {
		return fmt.Errorf("two framings")
	}
	if coding := r.fields("Transfer-Encoding"); len(coding) > 0 && coding[0] != "chunked" {
		return fmt.Errorf("transfer coding %s", coding[0])
	}
	for _, none := range []string{"keep-alive", "proxy-connection", "http2-settings", "trailer", "proxy-authorization"} {
		if seen[none] > 0 {
			return fmt.Errorf("%s passes", none)
		}
	}
	te := strings.Join(r.fields("TE"), "|")
	if c := strings.Join(r.fields("Connection"), "|"); te != "" || c == "TE" {
		if te != "trailers" || c != "TE" {
			return fmt.Errorf("TE %s, connection %s", te, c)
		}
	} else if c := r.fields("Connection"); len(c) > 0 && (len(c) > 1 || c[0] != "Upgrade" || strings.Join(r.fields("Upgrade"), "|") != "websocket") {
		return fmt.Errorf("connection %v, upgrade %v", c, r.fields("Upgrade"))
	}
	return nil
}
