package web

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatReachesTheOrigin sends requests that proxies and servers have read in two ways, and looks at the octets that an origin
// gets. Each is followed by a request for /smuggled, which must come as a request of its own, or not at all.
func TestWhatReachesTheOrigin(t *testing.T) {
	o := startRecorder(t)
	n := startNode(t)
	n.publish(site(o.address))
	const (
		host  = "Host: www.example.com\r\n"
		post  = "POST /p HTTP/1.1\r\n" + host
		get   = "GET /p HTTP/1.1\r\n" + host
		chunk = post + "Transfer-Encoding: chunked\r\n\r\n"
		next  = "GET /smuggled HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n"
	)
	for _, tc := range []struct {
		name, bytes string
		want        string // statuses of the answers
		reached     string // request lines and bodies of what the origin got, but for the last
	}{
		// Two framings.
		{"length, then chunked in other case", post + "Content-Length: 6\r\ntransfer-ENCODING: CHUNKED\r\n\r\n0\r\n\r\nG", "400", ""},
		{"length, then an obfuscated coding", post + "Content-Length: 4\r\nTransfer-Encoding: xchunked\r\n\r\n5c\r\n", "400", ""},
		{"length, then a coding that ends in a comma", post + "Content-Length: 4\r\nTransfer-Encoding: chunked,\r\n\r\n5c\r\n", "400", ""},
		{"length under another name", post + "Content-Length: 4\r\nContent_Length: 0\r\n\r\nabcd", "200 200", "POST /p abcd"},
		{"coding under another name", post + "Content-Length: 4\r\nTransfer_Encoding: chunked\r\n\r\nabcd", "200 200", "POST /p abcd"},
		{"length of a GET", get + "Content-Length: 4\r\n\r\nabcd", "200 200", "GET /p abcd"},
		{"chunked GET", get + "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n", "200 200", "GET /p abcd"},
		{"two lengths on lines apart", post + "Content-Length: 4\r\nX-A: b\r\nCONTENT-LENGTH: 4\r\n\r\nabcd", "400", ""},
		{"a length of 19 digits", post + "Content-Length: 0000000000000000004\r\n\r\nabcd", "400", ""},
		{"a length with a space inside", post + "Content-Length: 4 4\r\n\r\nabcd", "400", ""},
		{"a length with a comma", post + "Content-Length: 4,\r\n\r\nabcd", "400", ""},
		{"a length after a vertical tab", post + "Content-Length:\x0b4\r\n\r\nabcd", "400", ""},

		// Codings that are not quite chunked.
		{"a coding with a parameter", post + "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", "400", ""},
		{"a coding before a comma", post + "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n", "400", ""},
		{"a coding in two lines, one empty", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n", "400", ""},
		{"a coding in two lines, identity last", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "400", ""},
		{"a coding after a tab", post + "Transfer-Encoding:\tchunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "200 200", "POST /p a"},
		{"a coding before a space", post + "Transfer-Encoding: chunked \r\n\r\n1\r\na\r\n0\r\n\r\n", "200 200", "POST /p a"},
		{"a coding before a form feed", post + "Transfer-Encoding: chunked\x0c\r\n\r\n0\r\n\r\n", "400", ""},
		{"a coding before a no-break space", post + "Transfer-Encoding: chunked\xa0\r\n\r\n0\r\n\r\n", "400", ""},
		{"a coding with a letter that folds to k", post + "Transfer-Encoding: chun\u212aed\r\n\r\n0\r\n\r\n", "400", ""},
		{"a coding before NUL", post + "Transfer-Encoding: chunked\x00\r\n\r\n0\r\n\r\n", "400", ""},
		{"a coding in a folded line of another field", post + "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400", ""},
		{"a coding after CR", post + "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400", ""},
		{"a name of the coding after a space", post + " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400", ""},
		{"a name of the coding with a dot", post + "Content-Length: 4\r\nTransfer.Encoding: chunked\r\n\r\nabcd", "200 200", "POST /p abcd"},

		// Chunks.
		{"a size with many zeros", chunk + "00000000000000000001\r\na\r\n0\r\n\r\n", "400", ""},
		{"chunks of one octet with long extensions", chunk + strings.Repeat("1;"+strings.Repeat("x", 200)+"\r\na\r\n", 200) + "0\r\n\r\n", "400", ""},
		{"a size below nothing", chunk + "-1\r\na\r\n0\r\n\r\n", "400", ""},
		{"a size of 16 digits", chunk + "ffffffffffffffff\r\na\r\n0\r\n\r\n", "400", ""},
		{"a size with an underscore", chunk + "1_0\r\n0123456789abcdef\r\n0\r\n\r\n", "400", ""},
		{"a size in full-width digits", chunk + "\uff11\r\na\r\n0\r\n\r\n", "400", ""},
		{"an extension with CR", chunk + "1;x\ry\r\na\r\n0\r\n\r\n", "400", ""},
		{"an extension with LF and another size", chunk + "1;\n2\r\nab\r\n0\r\n\r\n", "400", ""},
		{"an extension in quotes", chunk + "1;x=\"\r\na\r\n0\r\n\r\n", "200 200", "POST /p a"},
		{"a size before spaces", chunk + "1 \t\r\na\r\n0\r\n\r\n", "400", ""},
		{"a size and a word", chunk + "1 x\r\na\r\n0\r\n\r\n", "400", ""},
		{"a chunk that no line ends", chunk + "1\r\na0\r\n\r\n", "400", ""},
		{"a chunk ended by CR alone", chunk + "1\r\na\r0\r\n\r\n", "400", ""},
		{"the end by LF alone", chunk + "1\r\na\r\n0\r\n\n", "400", ""},
		{"the last size by LF alone", chunk + "1\r\na\r\n0\n\r\n", "400", ""},

		// Trailers that say how long a message is, or whose.
		{"a length in the trailer", chunk + "1\r\na\r\n0\r\nContent-Length: 60\r\n\r\n", "200 200", "POST /p a"},
		{"a coding in the trailer", chunk + "1\r\na\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", "200 200", "POST /p a"},
		{"a host in the trailer", chunk + "1\r\na\r\n0\r\nHost: evil.example\r\n\r\n", "200 200", "POST /p a"},
		{"a length announced as a trailer", post + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n1\r\na\r\n0\r\nContent-Length: 60\r\n\r\n", "400", ""},
		{"a trailer ended by LF", chunk + "1\r\na\r\n0\r\nX: y\n\r\n", "400", ""},
		{"a trailer without a colon", chunk + "1\r\na\r\n0\r\nGET /smuggled HTTP/1.1\r\n\r\n", "400", ""},
		{"a trailer with space in its name", chunk + "1\r\na\r\n0\r\nX Y: z\r\n\r\n", "400", ""},
		{"a trailer section of 8 KiB", chunk + "1\r\na\r\n0\r\nX: " + strings.Repeat("a", 8<<10) + "\r\n\r\n", "400", ""},

		// Hosts.
		{"user information in the authority", "GET http://www.example.com@evil.example/ HTTP/1.1\r\n" + host + "\r\n", "421 200", ""},
		{"a host as user information", "GET http://evil.example@www.example.com/ HTTP/1.1\r\n" + host + "\r\n", "421 200", ""},
		{"user information that is empty", "GET http://@www.example.com/ HTTP/1.1\r\n" + host + "\r\n", "421 200", ""},
		{"a fragment in the authority", "GET http://www.example.com#@evil.example/ HTTP/1.1\r\n" + host + "\r\n", "400", ""},
		{"a backslash in the authority", "GET http://www.example.com\\@evil.example/ HTTP/1.1\r\n" + host + "\r\n", "400", ""},
		{"two ports in the authority", "GET http://www.example.com:80:80/ HTTP/1.1\r\n" + host + "\r\n", "400", ""},
		{"a word for a port", "GET http://www.example.com:evil/ HTTP/1.1\r\n" + host + "\r\n", "400", ""},
		{"an authority in a path", "GET //evil.example/x HTTP/1.1\r\n" + host + "\r\n", "200 200", "GET /evil.example/x "},
		{"a target in a path", "GET /http://evil.example/x HTTP/1.1\r\n" + host + "\r\n", "200 200", "GET /http:/evil.example/x "},
		{"a target without a slash", "GET www.example.com/x HTTP/1.1\r\n" + host + "\r\n", "400", ""},
		{"a target that begins with @", "GET @evil.example/x HTTP/1.1\r\n" + host + "\r\n", "400", ""},
		{"a port and a dot", "GET /p HTTP/1.1\r\nHost: WWW.example.com.:8080\r\n\r\n", "200 200", "GET /p "},
		{"an empty port", "GET /p HTTP/1.1\r\nHost: www.example.com:\r\n\r\n", "200 200", "GET /p "},
		{"two dots", "GET /p HTTP/1.1\r\nHost: www.example.com..\r\n\r\n", "400 200", ""},
		{"a port that is none", "GET /p HTTP/1.1\r\nHost: www.example.com:80@evil.example\r\n\r\n", "400", ""},
		{"two hosts in one", "GET /p HTTP/1.1\r\nHost: www.example.com, evil.example\r\n\r\n", "400", ""},
		{"a path in the host", "GET /p HTTP/1.1\r\nHost: www.example.com/evil\r\n\r\n", "400", ""},
		{"a query in the host", "GET /p HTTP/1.1\r\nHost: www.example.com?x\r\n\r\n", "400", ""},
		{"a fragment in the host", "GET /p HTTP/1.1\r\nHost: www.example.com#x\r\n\r\n", "400", ""},
		{"a space in the host", "GET /p HTTP/1.1\r\nHost: www.example.com evil\r\n\r\n", "400", ""},
		{"NUL in the host", "GET /p HTTP/1.1\r\nHost: www.example.com\x00\r\n\r\n", "400", ""},
		{"a host before a folded line", "GET /p HTTP/1.1\r\nHost: www.example.com\r\n evil.example\r\n\r\n", "400", ""},
		{"a folded host", "GET /p HTTP/1.1\r\nHost:\r\n www.example.com\r\n\r\n", "400", ""},
		{"two equal hosts", "GET /p HTTP/1.1\r\n" + host + host + "\r\n", "400", ""},
		{"a second host after a space", "GET /p HTTP/1.1\r\n" + host + " Host: evil.example\r\n\r\n", "400", ""},
		{"a second host before a space", "GET /p HTTP/1.1\r\n" + host + "Host : evil.example\r\n\r\n", "400", ""},
		{"an empty host", "GET /p HTTP/1.1\r\nHost:\r\n\r\n", "400 200", ""},
		{"the host under other names", get + "X-Forwarded-Host: evil\r\nX-Host: evil\r\nForwarded: host=evil\r\nX_Forwarded_Host: evil\r\n\r\n", "200 200", "GET /p "},

		// What Connection lists goes; what frames a message or is the node's stays the node's.
		{"Connection lists the length", post + "Connection: Content-Length\r\nContent-Length: 4\r\n\r\nabcd", "200 200", "POST /p abcd"},
		{"Connection lists the coding", post + "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n", "200 200", "POST /p abcd"},
		{"Connection lists the host", get + "Connection: Host\r\n\r\n", "200 200", "GET /p "},
		{"Connection lists fields of the node", get + "Connection: X-Forwarded-For, X-Real-IP, Forwarded, X-Guardyn-Zone, X-Forwarded-Proto, X-Forwarded-Host, CDN-Loop\r\n\r\n", "200 200", "GET /p "},
		{"Connection lists itself", get + "Connection: Connection, keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n", "200 200", "GET /p "},

		// Upgrades.
		{"h2c", get + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", "200 200", "GET /p "},
		{"h2c in another case, after websocket", get + "Connection: Upgrade\r\nUpgrade: websocket, H2C\r\n\r\n", "200 200", "GET /p "},
		{"h2c beside websocket", get + "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n", "200 200", "GET /p "},
		{"an upgrade that Connection does not list", get + "Upgrade: websocket\r\n\r\n", "200 200", "GET /p "},
		{"an upgrade with a body", post + "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 4\r\n\r\nabcd", "200 200", "POST /p abcd"},
		{"an upgrade that the origin does not take", get + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "200 200", "GET /p "},
		{"HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505", ""},

		// First lines.
		{"an empty line before", "\r\n" + get + "\r\n", "200 200", "GET /p "},
		{"two empty lines before", "\r\n\r\n" + get + "\r\n", "400", ""},
		{"LF alone before", "\n" + get + "\r\n", "400", ""},
		{"a version to come", "GET /p HTTP/1.2\r\n" + host + "\r\n", "200 200", "GET /p "},
		{"another major version", "GET /p HTTP/3.0\r\n" + host + "\r\n", "505", ""},
		{"a version of two digits", "GET /p HTTP/1.10\r\n" + host + "\r\n", "400", ""},
		{"a version in small letters", "GET /p http/1.1\r\n" + host + "\r\n", "400", ""},
		{"a second request line in a method", "GET\x0b/p HTTP/1.1\r\n" + host + "\r\n", "400", ""},
		{"a method in brackets", "G[T /p HTTP/1.1\r\n" + host + "\r\n", "400", ""},
		{"DEL in a target", "GET /\x7f HTTP/1.1\r\n" + host + "\r\n", "400", ""},
		{"an escaped end of line in a path", "GET /a%0d%0aX:%20y HTTP/1.1\r\n" + host + "\r\n", "200 200", "GET /a%0D%0AX:%20y "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			answers := n.exchangeRaw(tc.bytes + next)
			for _, r := range answers {
				got = append(got, fmt.Sprint(r.status))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("answered %v, want %s", got, tc.want)
			}
			var reached []string
			for _, r := range o.take(t) {
				method, target, _ := strings.Cut(strings.TrimSuffix(r.line, " HTTP/1.1"), " ")
				if hosts := r.fields("Host"); hosts[0] != "www.example.com" {
					t.Errorf("the origin got host %s", hosts[0])
				}
				if xff := r.fields("X-Forwarded-For"); xff[0] != "127.0.0.1" {
					t.Errorf("the origin got X-Forwarded-For: %s", xff[0])
				}
				reached = append(reached, method+" "+target+" "+r.body)
			}
			var want []string
			if tc.reached != "" {
				want = append(want, tc.reached)
			}
			if strings.HasSuffix(tc.want, " 200") {
				want = append(want, "GET /smuggled ")
			}
			if strings.Join(reached, "|") != strings.Join(want, "|") {
				t.Errorf("the origin got %q, want %q", reached, want)
			}
			if last := len(answers) - 1; last >= 0 && !answers[last].closes {
				t.Error("the connection goes on")
			}
		})
	}
}
