package main

import (
	"fmt"
	"net"
	"strings"
)

// The zone whose answers its origin lets caches keep.
const (
	cachedZone = "cached.test"
	cachedHost = "www." + cachedZone
)

// cacheRow fetches 1 KiB that is cached, keep-alive.
func (b *bench) cacheRow() (row, error) {
	r := row{title: "cached 1 KiB, HTTP/1.1", load: b.wrk}
	r.servers = append(r.servers, server{name: "this node", addr: b.http, host: cachedHost, process: b.node})
	if err := b.startPeers(&r, b.caches(), func(s server) error { return answersHTTP("http", s) }); err != nil {
		return row{}, err
	}
	if err := sameHTTP("http", r.servers); err != nil {
		return row{}, err
	}
	for _, s := range r.servers {
		if err := cached(s); err != nil {
			return row{}, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return r, nil
}

// cached is an error unless a server answers from its cache: with the origin's time of an answer before, which nginx and HAProxy keep as
// the others do.
func cached(s server) error {
	first, _, err := fetch("http", s)
	if err != nil {
		return err
	}
	second, _, err := fetch("http", s)
	if err != nil {
		return err
	}
	if at := first.Header.Get("X-At"); at == "" || second.Header.Get("X-At") != at {
		return fmt.Errorf("it does not cache: %v, then %v", first.Header, second.Header)
	}
	return nil
}

// caches are the peers that cache what the origin answers.
func (b *bench) caches() []peer {
	return []peer{
		{"nginx proxy_cache", "nginx", []string{"-e", "stderr", "-c"}, b.nginxCache},
		{"HAProxy cache", "haproxy", []string{"-db", "-f"}, b.haproxyCache},
		{"Varnish", "varnishd", []string{"-F", "-j", "none", "-n", b.dir + "/varnish", "-s", "malloc,64m", "-a", addrArgument, "-f"}, b.varnishConfig},
	}
}

// cachedOrigin is the part of the origin that says how long its answers may be kept, and tells them apart.
func cachedOrigin(listen string) string {
	return fmt.Sprintf(`    server {
        listen %s;
        server_name %s;
        keepalive_requests 1000000000;
        default_type text/plain;
        location / { add_header Cache-Control "max-age=3600"; add_header X-At "$msec $request_id"; return 200 "%s"; }
    }
`, listen, cachedHost, body)
}

func (b *bench) nginxCache(host, port string) string {
	plain := b.nginxConfig(host, port, false)
	plain = strings.Replace(plain, "    upstream origin {", fmt.Sprintf("    proxy_cache_path %s/nginx-cache keys_zone=c:10m;\n    upstream origin {", b.dir), 1)
	return strings.Replace(plain, "            proxy_pass http://origin;", "            proxy_cache c;\n            proxy_pass http://origin;", 1)
}

func (b *bench) haproxyCache(host, port string) string {
	plain := b.haproxyConfig(host, port, false)
	plain = strings.Replace(plain, "frontend front\n", "cache c\n    total-max-size 64\n    max-age 3600\nfrontend front\n", 1)
	return strings.Replace(plain, "    default_backend origin\n", "    http-request cache-use c\n    http-response cache-store c\n    default_backend origin\n", 1)
}

func (b *bench) varnishConfig(string, string) string {
	host, port, _ := net.SplitHostPort(b.origin)
	return fmt.Sprintf("vcl 4.1;\nbackend default { .host = %q; .port = %q; }\n", host, port)
}
