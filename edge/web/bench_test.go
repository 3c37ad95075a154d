package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// BenchmarkProxy compares a node with ten rules to the library's reverse proxy as it comes, over loopback,
// client and origin in the same process. Compare the two figures of one run.
func BenchmarkProxy(b *testing.B) {
	body := strings.Repeat("x", 1024)
	o := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }))
	b.Cleanup(o.Close)
	target, err := url.Parse(o.URL)
	if err != nil {
		b.Fatal(err)
	}
	plain := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		BufferPool: new(bufferPool),
	})
	b.Cleanup(plain.Close)
	n := startNode(b)
	rules := make([]func(*zone.Zone), 0, 10)
	for range 10 {
		rules = append(rules, rule(zone.PhaseCustom, `http.path.startsWith("/wp-") && in_list(ip.src, "office")`, zone.ActionBlock, zone.Parameters{}))
	}
	n.publish(site(o.Listener.Addr().String(), append(rules, func(z *zone.Zone) {
		z.Lists = map[string]zone.List{"office": {Kind: zone.ListIP, Items: []string{"192.0.2.0/24"}}}
	})...))
	for _, server := range []struct{ name, url string }{{"library", plain.URL}, {"node", "http://" + n.Addr().String()}} {
		b.Run(server.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				transport := &http.Transport{DisableCompression: true}
				defer transport.CloseIdleConnections()
				r, err := http.NewRequest("GET", server.url+"/index.html?a=1", nil)
				if err != nil {
					b.Error(err)
					return
				}
				r.Host = "www.example.com"
				for pb.Next() {
					res, err := transport.RoundTrip(r)
					if err != nil || res.StatusCode != 200 {
						b.Errorf("%v, %v", res, err)
						return
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			})
		})
	}
}
