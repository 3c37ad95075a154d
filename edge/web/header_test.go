package web

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// nodeFields are what the node sets on a plain request from loopback.
func nodeFields() map[string]string {
	return map[string]string{
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "www.example.com", "X-Forwarded-Proto": "http",
		"Forwarded": "for=127.0.0.1;host=www.example.com;proto=http", "X-Real-Ip": "127.0.0.1",
		"X-Guardyn-Zone": "example.com", "Cdn-Loop": "guardyn",
	}
}

func TestRequestHeader(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address()))
	for _, tc := range []struct {
		name   string
		lines  []string
		passes map[string]string // beside what the node sets
	}{
		{"nothing", nil, nil},
		{"ordinary fields", []string{"X-App: 1", "accept: */*", "X_Custom: y"}, map[string]string{"X-App": "1", "Accept": "*/*", "X_custom": "y"}},
		{"hop-by-hop fields", []string{
			"Keep-Alive: timeout=5", "TE: gzip", "Trailer: X", "Proxy-Authorization: x", "Proxy-Connection: keep-alive",
			"Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
		}, nil},
		{"what Connection lists", []string{"Connection: X-App, x-other ,,", "Connection: X-Third", "X-App: 1", "X-Other: 2", "X-Third: 3", "X-Stays: 4"}, map[string]string{"X-Stays": "4"}},
		{"Connection lists what the node sets", []string{
			"Connection: X-Guardyn-Zone, X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto, Forwarded, X-Real-IP, CDN-Loop, Host",
		}, nil},
		{"trailers are announced to the origin", []string{"TE: gzip, trailers"}, map[string]string{"Te": "trailers", "Connection": "TE"}},
		{"trailers that Connection lists", []string{"Connection: TE", "TE: trailers"}, map[string]string{"Te": "trailers", "Connection": "TE"}},
		{
			"trailers of what becomes a WebSocket",
			[]string{"Connection: Upgrade", "Upgrade: websocket", "TE: trailers"},
			map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"},
		},
		{"cookies in their one form", []string{"Cookie: a = 1;b\t=2", "Cookie: c=3 ;; flag"}, map[string]string{"Cookie": "a=1; b=2; c=3; flag"}},
		{"names of the node", []string{"X-Guardyn-Zone: other.example", "x-guardyn-version: 9", "X-GUARDYN-Anything: 1"}, nil},
		{"aliases of the node's names", []string{
			"X_Guardyn_Zone: other.example", "X-Guardyn_Zone: a", "x_guardyn-zone: b", "X.Guardyn.Zone: c", "X_Forwarded_For: 203.0.113.1",
			"X-Forwarded_For: 203.0.113.1", "X_Real_IP: 203.0.113.1", "X_FORWARDED_HOST: evil", "Content_Length: 5", "Transfer_Encoding: chunked",
			"Cookie_: ok",
		}, map[string]string{"Cookie_": "ok"}},
		{"forwarding fields", []string{
			"X-Forwarded-For: 203.0.113.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example", "X-Forwarded-Port: 443",
			"X-Forwarded-Server: evil", "Forwarded: for=203.0.113.1", "X-Real-IP: 203.0.113.1", "X-Forwarded: 1",
		}, nil},
		{"the address of a proxy to use", []string{"Proxy: http://evil.example:8080", "PROXY: b", "Proxy-Status: x"}, map[string]string{"Proxy-Status": "x"}},
		{"the client's address under other names", []string{
			"True-Client-IP: 203.0.113.1", "CF-Connecting-IP: 203.0.113.1", "Fastly-Client-IP: 203.0.113.1", "X-Client-IP: 203.0.113.1",
			"X-Cluster-Client-IP: 203.0.113.1", "client-ip: 203.0.113.1", "X-Original-Forwarded-For: 203.0.113.1", "X-Azure-ClientIP: 203.0.113.1",
			"Remote_Addr: 203.0.113.1", "True_Client_IP: 203.0.113.1", "cf_connecting-ip: 203.0.113.1", "X.Client.IP: 203.0.113.1", "CF-Ray: 1",
		}, map[string]string{"Cf-Ray": "1"}},
		{"an upgrade that is not WebSocket", []string{"Connection: Upgrade", "Upgrade: h2c"}, nil},
		{"nor beside others", []string{"Connection: Upgrade", "Upgrade: h2c, websocket2, x-websocket"}, nil},
		{
			"WebSocket before another",
			[]string{"Connection: keep-alive, upgrade", "Upgrade: websocket, foo"},
			map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"},
		},
		{
			"WebSocket behind another, in any case",
			[]string{"Connection: Upgrade", "Upgrade: foo/2 ,\tWebSocket"},
			map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"},
		},
		{
			"WebSocket on a line of its own",
			[]string{"Connection: Upgrade", "Upgrade: foo", "Upgrade: websocket"},
			map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"},
		},
		{"WebSocket that Connection does not list", []string{"Connection: keep-alive", "Upgrade: websocket"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := n.get("/", tc.lines...); got.status != 200 {
				t.Fatalf("got %+v", got)
			}
			got := o.take()
			if len(got) != 1 {
				t.Fatalf("the origin got %d requests", len(got))
			}
			want := nodeFields()
			for k, v := range tc.passes {
				want[k] = v
			}
			for name, values := range got[0].header {
				if strings.Join(values, "|") != want[name] {
					t.Errorf("the origin got %s: %v, want %q", name, values, want[name])
				}
				delete(want, name)
			}
			if len(want) > 0 {
				t.Errorf("the origin lacks %v", want)
			}
		})
	}
}

func TestTrustedProxies(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	trust := func(z *zone.Zone) {
		z.Settings.TrustedProxies = []string{"127.0.0.0/8", "198.51.100.0/24", "2001:db8::/32"}
	}
	n.publish(site(o.address(), trust,
		rule(zone.PhaseCustom, `http.headers["x-ask"] != string(ip.src) || http.headers["x-scheme"] != http.scheme`, zone.ActionBlock, zone.Parameters{})))
	for _, tc := range []struct {
		name, client, scheme, chain, forwarded string
		lines                                  []string
	}{
		{"nothing said", "127.0.0.1", "http", "127.0.0.1", "for=127.0.0.1;host=www.example.com;proto=http", nil},
		{
			"a client", "203.0.113.1", "https", "203.0.113.1, 127.0.0.1", "for=203.0.113.1, for=127.0.0.1;host=www.example.com;proto=https",
			[]string{"X-Forwarded-For: 203.0.113.1", "X-Forwarded-Proto: https"},
		},
		{"a client that lies", "203.0.113.1", "http", "203.0.113.1, 127.0.0.1", "", []string{"X-Forwarded-For: 10.9.9.9, 203.0.113.1"}},
		{"through two proxies", "203.0.113.1", "http", "203.0.113.1, 198.51.100.4, 127.0.0.1", "", []string{"X-Forwarded-For: 10.9.9.9", "X-Forwarded-For: 203.0.113.1,198.51.100.4"}},
		{"rubbish ends belief", "198.51.100.4", "http", "198.51.100.4, 127.0.0.1", "", []string{"X-Forwarded-For: 203.0.113.1, unknown, 198.51.100.4"}},
		{
			"IPv6 with a port", "2001:db9::1", "http", "2001:db9::1, 127.0.0.1", `for="[2001:db9::1]", for=127.0.0.1;host=www.example.com;proto=http`,
			[]string{"X-Forwarded-For: [2001:db9::1]:443"},
		},
		{"empty elements", "203.0.113.1", "http", "203.0.113.1, 198.51.100.4, 127.0.0.1", "", []string{"X-Forwarded-For: , ,203.0.113.1,, 198.51.100.4", "X-Forwarded-For:", "X-Forwarded-For: ,"}},
		{"nothing but empty elements", "127.0.0.1", "http", "127.0.0.1", "", []string{"X-Forwarded-For: ,, ,"}},
		{"a mapped address", "203.0.113.1", "http", "203.0.113.1, 127.0.0.1", "", []string{"X-Forwarded-For: ::ffff:203.0.113.1"}},
		{
			"a scheme that the client made up before the proxy's", "203.0.113.1", "http", "203.0.113.1, 127.0.0.1", "",
			[]string{"X-Forwarded-For: 203.0.113.1", "X-Forwarded-Proto: https", "X-Forwarded-Proto: http"},
		},
		{
			"a scheme of each proxy", "203.0.113.1", "https", "203.0.113.1, 198.51.100.4, 127.0.0.1", "",
			[]string{"X-Forwarded-For: 203.0.113.1, 198.51.100.4", "X-Forwarded-Proto: HTTPS, http"},
		},
		{
			"a scheme of each proxy, and one that the client made up", "203.0.113.1", "http", "203.0.113.1, 198.51.100.4, 127.0.0.1", "",
			[]string{"X-Forwarded-For: 203.0.113.1, 198.51.100.4", "X-Forwarded-Proto: https, http, https"},
		},
		{"a scheme among empty elements", "127.0.0.1", "https", "127.0.0.1", "", []string{"X-Forwarded-Proto: , https ,"}},
		{"a scheme that is none", "127.0.0.1", "http", "127.0.0.1", "", []string{"X-Forwarded-Proto: gopher"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := n.get("/", append(tc.lines, "X-Ask: "+tc.client, "X-Scheme: "+tc.scheme)...); got.status != 200 {
				t.Fatalf("rules saw another client or scheme: %+v", got)
			}
			got := o.take()[0].header
			if got.Get("X-Forwarded-For") != tc.chain || got.Get("X-Forwarded-Proto") != tc.scheme || got.Get("X-Real-Ip") != tc.client {
				t.Errorf("the origin got %v", got)
			}
			if tc.forwarded != "" && got.Get("Forwarded") != tc.forwarded {
				t.Errorf("the origin got Forwarded: %s", got.Get("Forwarded"))
			}
		})
	}
}

func TestTrustedPeerTellsTheClientUnderOtherNames(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address(), func(z *zone.Zone) { z.Settings.TrustedProxies = []string{"127.0.0.1"} }))
	n.get("/", "True-Client-IP: 203.0.113.1", "Cf-Connecting-IP: 203.0.113.2", "Proxy: http://evil.example")
	got := o.take()[0].header
	if got.Get("True-Client-Ip") != "203.0.113.1" || got.Get("Cf-Connecting-Ip") != "203.0.113.2" {
		t.Errorf("what a trusted peer told is gone: %v", got)
	}
	if _, ok := got["Proxy"]; ok {
		t.Errorf("Proxy passes: %v", got)
	}
}

func TestRuleSetsTheClientsAddressUnderAnotherName(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address(), rule(zone.PhaseTransformRequest, `true`, zone.ActionSetHeader, zone.Parameters{Name: "X-Client-IP", Value: "192.0.2.9"})))
	n.get("/", "X-Client-IP: 203.0.113.1")
	if got := o.take()[0].header["X-Client-Ip"]; len(got) != 1 || got[0] != "192.0.2.9" {
		t.Errorf("the origin got %v", got)
	}
}

func TestPeerThatIsNotTrustedIsNotBelieved(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address(), func(z *zone.Zone) { z.Settings.TrustedProxies = []string{"198.51.100.0/24"} }))
	n.get("/", "X-Forwarded-For: 203.0.113.1", "X-Forwarded-Proto: https")
	if got := o.take()[0].header; got.Get("X-Forwarded-For") != "127.0.0.1" || got.Get("X-Forwarded-Proto") != "http" || got.Get("X-Real-Ip") != "127.0.0.1" {
		t.Errorf("the origin got %v", got)
	}
}

func TestOriginSeesTheFormThatRulesSee(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address(), rule(zone.PhaseCustom, `http.uri != http.headers["x-uri"] || http.host != "www.example.com"`, zone.ActionBlock, zone.Parameters{})))
	for _, tc := range []struct{ target, host, want string }{
		{"/a//b/../c?x=1;y=2", "www.example.com", "/a/c?x=1%3By=2"},
		{"/%61dmin/%2e%2e/x", "WWW.Example.COM.:80", "/x"},
		{"/a%2fb?%61=%2B+", "www.example.com:8080", "/a%2Fb?a=%2B+"},
		{"/?", "www.example.com", "/"},
		{"//x", "www.example.com", "/x"},
		{"http://www.example.com/a/./b", "www.example.com", "/a/b"},
		{"/\xc3\xbc", "www.example.com", "/%C3%BC"},
		{"/a:b@c,d;e=f", "www.example.com", "/a:b@c,d;e=f"},
	} {
		t.Run(tc.target, func(t *testing.T) {
			if got := n.ask("GET", tc.host, tc.target, "X-URI: "+tc.want); got.status != 200 {
				t.Fatalf("rules saw another form: %+v", got)
			}
			if got := o.take(); got[0].uri != tc.want || got[0].host != "www.example.com" {
				t.Errorf("the origin got %s of %s, want %s", got[0].uri, got[0].host, tc.want)
			}
		})
	}
	for _, target := range []string{"/%zz", "/?%zz", "/%00", "/a#b", "/..;/x", "*"} {
		if got := n.ask("GET", "www.example.com", target); got.status != 400 {
			t.Errorf("%s: got %+v, want 400", target, got)
		}
	}
	for _, host := range []string{"*.wild.example.com", "www.example.com:x", "www.example.com:99999", "www.example.com:65536", "[::1]:65536", "www..example.com", "u@www.example.com"} {
		if got := n.ask("GET", host, "/"); got.status != 400 {
			t.Errorf("Host %s: got %+v, want 400", host, got)
		}
	}
	if got := o.take(); len(got) != 0 {
		t.Errorf("the origin got %+v", got)
	}
}

func TestRequestTrailersEndHere(t *testing.T) {
	trailers := make(chan http.Header, 2)
	o := startOrigin(t, func(_ http.ResponseWriter, r *http.Request) { trailers <- r.Trailer })
	n := startNode(t)
	n.publish(site(o.address()))
	got := n.exchangeRaw("POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n" +
		"Trailer: X-Forwarded-For, X-Guardyn-Zone\r\nTrailer: X-App\r\n\r\n" +
		"1\r\na\r\n0\r\nX-Forwarded-For: 203.0.113.1\r\nX-Guardyn-Zone: other.example\r\nX-App: 1\r\nX-Unannounced: 1\r\n\r\n")
	if len(got) != 1 || got[0].status != 200 {
		t.Fatalf("got %+v", got)
	}
	if h := <-trailers; len(h) != 0 {
		t.Errorf("the origin got trailers %v", h)
	}
	if r := o.take()[0]; r.body != "a" || r.header["Trailer"] != nil {
		t.Errorf("the origin got %+v", r)
	}
}

func TestResponseTrailers(t *testing.T) {
	for _, tc := range []struct {
		name, announced, sent string
		want                  string // what is announced, then the trailers, sorted
	}{
		{"announced", "X-Sum", "X-Sum: 1", "X-Sum | X-Sum: 1"},
		{"not announced", "", "X-Sum: 1", " | X-Sum: 1"},
		{"the node's own, announced", "X-Guardyn-Version, X-Sum, X_Guardyn_Zone", "X-Guardyn-Version: 9\r\nX-Sum: 1\r\nX_Guardyn_Zone: a", "X-Sum | X-Sum: 1"},
		{"the node's own alone", "X-Guardyn-Version", "X-Guardyn-Version: 9", " | "},
		{"the node's own, not announced", "X-Sum", "X-Guardyn-Version: 9\r\nX-Sum: 1", "X-Sum | X-Sum: 1"},
		{"announced and never sent", "X-Guardyn-Version, X-Sum", "X-Guardyn-Version: 9", "X-Sum | "},
		{"framing", "Connection, Host, X-Sum", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nUpgrade: x\r\nX-Sum: 1", "X-Sum | X-Sum: 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			head := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
			if tc.announced != "" {
				head += "Trailer: " + tc.announced + "\r\n"
			}
			n := startNode(t)
			n.publish(site(rawOrigin(t, head+"\r\n1\r\na\r\n0\r\n"+tc.sent+"\r\n\r\n")))
			c := n.dial()
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n")
			raw, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			answer, tail, found := strings.Cut(string(raw), "\r\n1\r\na\r\n0\r\n")
			if !found {
				t.Fatalf("got %q", raw)
			}
			announced := ""
			for line := range strings.SplitSeq(answer, "\r\n") {
				if v, ok := strings.CutPrefix(line, "Trailer: "); ok {
					announced = v
				}
			}
			if got := announced + " | " + strings.ReplaceAll(strings.TrimSpace(tail), "\r\n", ", "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestVersionHeader(t *testing.T) {
	o := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Guardyn-Version"] = []string{"999"}
		w.Header()["x-guardyn-other"] = []string{"x"}
		w.Header().Set("X-App", "1")
	})
	n := startNode(t)
	for _, on := range []bool{false, true} {
		n.publish(site(o.address(), func(z *zone.Zone) { z.Settings.VersionHeader = on }))
		want := ""
		if on {
			want = "2"
		}
		for _, path := range []string{"/", "/%zz"} {
			got := n.get(path)
			if path == "/%zz" {
				want = "" // the zone is not known before the request is well-formed
			}
			if strings.Join(got.header["X-Guardyn-Version"], "|") != want || got.header.Get("X-Guardyn-Other") != "" {
				t.Errorf("version_header %v, %s: got %v, want %q", on, path, got.header, want)
			}
			if path == "/" && got.header.Get("X-App") != "1" {
				t.Errorf("the origin's own field is gone: %v", got.header)
			}
		}
	}
}

func TestLoopsEnd(t *testing.T) {
	n := startNode(t)
	n.publish(site(n.Addr().String()))
	if got := n.get("/"); got.status != http.StatusLoopDetected {
		t.Errorf("got %+v, want 508", got)
	}
	if m := n.Metrics(); m.Requests[5] != maxLoops+1 {
		t.Errorf("%d requests, want %d", m.Requests[5], maxLoops+1)
	}
}
