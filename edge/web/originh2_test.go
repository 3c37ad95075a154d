package web

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/guardyn-edge/guardyn/zone"
)

// http2Origin answers by f over HTTP/2, with TLS or without.
func http2Origin(t testing.TB, secure bool, f http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	o := httptest.NewUnstartedServer(f)
	o.Config.ErrorLog = (&Config{}).stdLogger()
	roots := x509.NewCertPool()
	if secure {
		o.EnableHTTP2 = true
		o.StartTLS()
		roots.AddCert(o.Certificate())
	} else {
		o.Config.Protocols = new(http.Protocols)
		o.Config.Protocols.SetUnencryptedHTTP2(true)
		o.Start()
	}
	t.Cleanup(o.Close)
	return o, roots
}

// scheme makes the one origin of site speak it.
func scheme(s zone.Scheme) func(*zone.Zone) {
	return func(z *zone.Zone) { z.Pools["main"].Origins[0].Scheme = s }
}

// echoCall is a call of gRPC's shape: it sends each message back as it comes, and its status in trailers.
func echoCall(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" || r.Header.Get("X-Guardyn-Zone") != "example.com" {
		http.Error(w, fmt.Sprint(r.Proto, r.Header), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.(http.Flusher).Flush()
	buf := make([]byte, 1024)
	for {
		n, err := r.Body.Read(buf)
		w.Write(buf[:n])
		w.(http.Flusher).Flush()
		if err != nil {
			break
		}
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	w.Header().Set(http.TrailerPrefix+"X-Guardyn-Zone", "other.example")
}

func TestCallsOverHTTP2(t *testing.T) {
	for _, tc := range []struct {
		name   string
		secure bool
		scheme zone.Scheme
	}{{"agreed in TLS", true, zone.SchemeHTTPS}, {"without TLS", false, zone.SchemeH2C}} {
		t.Run(tc.name, func(t *testing.T) {
			o, roots := http2Origin(t, tc.secure, echoCall)
			a := newAuthority(t)
			n := startNode(t, withTLS, func(c *Config) { c.OriginRoots = roots })
			n.publish(site(o.Listener.Addr().String(), scheme(tc.scheme), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
			client := n.client(a, true)
			for range 2 { // the second call over the same connection
				out, in := io.Pipe()
				r, err := http.NewRequestWithContext(t.Context(), "POST", "https://www.example.com/echo.Echo/Chat", out)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/grpc+proto")
				r.Header.Set("TE", "trailers")
				answered := make(chan *http.Response, 1)
				go func() {
					res, err := client.Do(r)
					if err != nil {
						t.Error(err)
					}
					answered <- res
				}()
				res := <-answered // before any message was sent
				if res == nil || res.StatusCode != 200 || res.ProtoMajor != 2 {
					t.Fatalf("got %+v", res)
				}
				for i := range 3 {
					want := fmt.Sprintf("message %d", i)
					io.WriteString(in, want)
					got := make([]byte, len(want))
					if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
						t.Fatalf("got %q, %v", got, err)
					}
				}
				in.Close()
				if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
					t.Errorf("got %q, %v", rest, err)
				}
				if res.Trailer.Get("Grpc-Status") != "0" || len(res.Trailer["X-Guardyn-Zone"]) > 0 {
					t.Errorf("got trailers %v", res.Trailer)
				}
				res.Body.Close()
			}
			if n.origins.http2.n != 1 {
				t.Errorf("%d connections, want one for both calls", n.origins.http2.n)
			}
		})
	}
}

func TestCallFromAClientOfHTTP1(t *testing.T) {
	o, _ := http2Origin(t, false, echoCall)
	n := startNode(t)
	n.publish(site(o.Listener.Addr().String(), scheme(zone.SchemeH2C)))
	c := n.dial()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\nContent-Type: application/grpc\r\nTE: trailers\r\nContent-Length: 2\r\n\r\nhi")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != "hi" || res.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("got %q, %v, trailers %v", body, err, res.Trailer)
	}
}

func TestPlainRequestsOverHTTP2(t *testing.T) {
	o, _ := http2Origin(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hints" {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.RequestURI, r.Host, body)
	})
	n := startNode(t)
	n.publish(site(o.Listener.Addr().String(), scheme(zone.SchemeH2C)))
	for _, tc := range []struct{ request, want string }{
		{"GET /a?b=1 HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n", "GET /a?b=1 www.example.com "},
		{"PUT / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody", "PUT / www.example.com body"},
		{"PUT / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", "PUT / www.example.com body"},
		{"GET /hints HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n", "GET /hints www.example.com "},
	} {
		got := n.exchangeRaw(tc.request)
		if strings.Contains(tc.request, "hints") {
			if len(got) != 2 || got[0].status != 103 || got[0].header.Get("Link") != "</a>" || got[1].header.Get("Link") != "" {
				t.Fatalf("got %+v", got)
			}
			got = got[1:]
		}
		if len(got) != 1 || got[0].status != 200 || got[0].body != tc.want {
			t.Errorf("got %+v, want %s", got, tc.want)
		}
	}
}

func TestOriginThatDoesNotAgreeToHTTP2(t *testing.T) {
	o := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	o.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	o.StartTLS()
	t.Cleanup(o.Close)
	roots := x509.NewCertPool()
	roots.AddCert(o.Certificate())
	n := startNode(t, func(c *Config) { c.OriginRoots = roots })
	n.publish(site(o.Listener.Addr().String(), scheme(zone.SchemeHTTPS)))
	if got := n.get("/", "Content-Type: application/grpc"); got.body != "HTTP/1.1" {
		t.Errorf("got %+v", got)
	}
}

func TestOriginErrorsOverHTTP2(t *testing.T) {
	release := make(chan struct{})
	o, _ := http2Origin(t, false, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/broken":
			io.WriteString(w, "some")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	t.Cleanup(func() { close(release) })
	garbage := rawOrigin(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	for _, tc := range []struct {
		name, address, path string
		status              int
	}{
		{"refused", dead.Addr().String(), "/", 502},
		{"speaks HTTP/1.1", garbage, "/", 502},
		{"slow", o.Listener.Addr().String(), "/slow", 504},
		{"breaks off", o.Listener.Addr().String(), "/broken", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t, func(c *Config) { c.OriginHeaderTimeout = 100 * time.Millisecond })
			n.publish(site(tc.address, scheme(zone.SchemeH2C)))
			c := n.dial()
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n", tc.path)
			raw, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(raw), fmt.Sprintf("HTTP/1.1 %d ", tc.status)) || strings.HasSuffix(string(raw), "\r\n0\r\n\r\n") {
				t.Errorf("got %.200q, %v", raw, err)
			}
			if n.Metrics().OriginErrors != 1 {
				t.Errorf("got %+v", n.Metrics())
			}
		})
	}
}

// An origin that takes no more streams is not ejected for it: it says so to a client that has brought it there, too.
func TestOriginThatRefusesStreamsIsNotEjected(t *testing.T) {
	refuses := scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(b, preface); err != nil || string(preface) != http2.ClientPreface {
			return
		}
		frames := http2.NewFramer(c, b)
		if frames.WriteSettings() != nil {
			return
		}
		for {
			f, err := frames.ReadFrame()
			if err != nil {
				return
			}
			if f.Header().Type == http2.FrameHeaders && frames.WriteRSTStream(f.Header().StreamID, http2.ErrCodeRefusedStream) != nil {
				return
			}
		}
	})
	n := startNode(t)
	view := n.publish(site(refuses, scheme(zone.SchemeH2C), func(z *zone.Zone) {
		p := z.Pools["main"]
		p.OutlierDetection = &zone.OutlierDetection{ConsecutiveFailures: 1, MaxEjectionPercent: 100}
		p.Origins = append(p.Origins, zone.Origin{Name: "b", Address: refuses, HostHeader: "b", Scheme: zone.SchemeH2C})
		z.Pools["main"] = p
	}))
	if got := n.get("/"); got.status != 502 {
		t.Errorf("got %+v, want 502", got)
	}
	n.end()
	for _, o := range view.Host("www.example.com").Pools.Pool("main") {
		if !o.Usable() {
			t.Errorf("origin %s is ejected", o.Name)
		}
	}
	if m := n.Metrics(); m.OriginErrors != 1 {
		t.Errorf("%d errors of origins are counted", m.OriginErrors)
	}
}
