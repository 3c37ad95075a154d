package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// body is what the origin answers with.
var body = strings.Repeat("0123456789abcdef", 64)

// startOrigin runs nginx, which takes less of the processors than what is measured.
func (b *bench) startOrigin() error {
	program, err := b.find("nginx")
	if err != nil {
		return fmt.Errorf("the origin: nginx is %w", err)
	}
	if b.origin, err = freeAddr(); err != nil {
		return err
	}
	file := b.dir + "/origin.conf"
	text := b.nginxMain("origin") + fmt.Sprintf(`    server {
        listen %s;
        keepalive_requests 1000000000;
        default_type text/plain;
        location / { return 200 "%s"; }
    }
%s}
`, b.origin, body, cachedOrigin(b.origin))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	b.nginx, err = b.launch("origin", nil, program, "-e", "stderr", "-c", file)
	if err != nil {
		return err
	}
	return b.nginx.await(func() error { return statusOK("http://" + b.origin) })
}

// proxyRow fetches 1 KiB through a proxy, keep-alive on both sides.
func (b *bench) proxyRow() (row, error) {
	r := row{title: "proxied 1 KiB, HTTP/1.1", load: b.wrk}
	r.servers = append(r.servers, server{name: "this node", addr: b.http, host: plainHost, process: b.node})
	if err := b.startPeers(&r, b.proxies(false), func(s server) error { return answersHTTP("http", s) }); err != nil {
		return row{}, err
	}
	return r, sameHTTP("http", r.servers)
}

// tlsRow does the same in TLS.
func (b *bench) tlsRow() (row, error) {
	r := row{title: "proxied 1 KiB, HTTP/1.1 in TLS", load: b.h2load}
	if b.https == "" {
		r.missing = append(r.missing, "this node: TLS is not served by this build")
		return r, nil
	}
	r.servers = append(r.servers, server{name: "this node", addr: b.https, host: plainHost, process: b.node})
	if err := b.startPeers(&r, b.proxies(true), func(s server) error { return answersHTTP("https", s) }); err != nil {
		return row{}, err
	}
	return r, sameHTTP("https", r.servers)
}

// rulesRow compares the node with itself: 100 rules and a list of 100,000 in the way, and neither.
func (b *bench) rulesRow() (row, error) {
	r := row{title: "proxied 1 KiB, 100 rules and list", load: b.wrk, servers: []server{
		{name: "with rules", addr: b.http, host: rulesHost, process: b.node},
		{name: "without", addr: b.http, host: plainHost, process: b.node},
	}}
	return r, sameHTTP("http", r.servers)
}

// functionRow compares a function that answers with the page with the origin that does, which is nginx and so hard to beat: the
// processor time of both is that of what it takes to answer.
func (b *bench) functionRow() (row, error) {
	r := row{title: "1 KiB by a function", load: b.wrk, servers: []server{
		{name: "function", addr: b.http, host: calledHost, process: b.node},
		{name: "origin behind it", addr: b.http, host: plainHost, process: b.node, behind: b.nginx},
	}}
	return r, sameHTTP("http", r.servers)
}

// proxies are the peers that forward to the origin.
func (b *bench) proxies(inTLS bool) []peer {
	return []peer{
		{"nginx", "nginx", []string{"-e", "stderr", "-c"}, func(host, port string) string { return b.nginxConfig(host, port, inTLS) }},
		{"HAProxy", "haproxy", []string{"-db", "-f"}, func(host, port string) string { return b.haproxyConfig(host, port, inTLS) }},
		{"Caddy", "caddy", []string{"run", "--adapter", "caddyfile", "--config"}, func(host, port string) string { return b.caddyConfig(host, port, inTLS) }},
	}
}

// nginxMain is the part that the origin has too, with a name for its files. It ends inside the block of http.
func (b *bench) nginxMain(name string) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n"
	}
	return user + fmt.Sprintf(`daemon off;
pid %[1]s/%[3]s.pid;
worker_processes %[2]s;
events { worker_connections 4096; }
http {
    access_log off;
    client_body_temp_path %[1]s/body;
    proxy_temp_path %[1]s/proxy;
    fastcgi_temp_path %[1]s/fastcgi;
    uwsgi_temp_path %[1]s/uwsgi;
    scgi_temp_path %[1]s/scgi;
`, b.dir, workers, name)
}

func (b *bench) nginxConfig(host, port string, inTLS bool) string {
	listen := fmt.Sprintf("listen %s:%s reuseport;", host, port)
	if inTLS {
		listen = fmt.Sprintf("listen %s:%s ssl reuseport; ssl_certificate %s; ssl_certificate_key %s; ssl_protocols TLSv1.2 TLSv1.3;",
			host, port, b.certFile(), b.keyFile())
	}
	return b.nginxMain("nginx"+port) + fmt.Sprintf(`    upstream origin {
        server %s;
        keepalive 128;
        keepalive_requests 1000000000;
    }
    server {
        %s
        keepalive_requests 1000000000;
        location / {
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
        }
    }
}
`, b.origin, listen)
}

func (b *bench) haproxyConfig(host, port string, inTLS bool) string {
	bind := fmt.Sprintf("bind %s:%s", host, port)
	if inTLS {
		bind += " ssl crt " + b.pemFile() + " alpn http/1.1"
	}
	return fmt.Sprintf(`global
    nbthread %s
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout http-request 10s
    option forwardfor
    http-reuse always
frontend front
    %s
    default_backend origin
backend origin
    server origin %s
`, workers, bind, b.origin)
}

func (b *bench) caddyConfig(host, port string, inTLS bool) string {
	site, cert := "http://"+plainHost+":"+port, ""
	if inTLS {
		site, cert = "https://"+plainHost+":"+port, fmt.Sprintf("\ttls %s %s\n", b.certFile(), b.keyFile())
	}
	return fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n}\n%s {\n\tbind %s\n%s\treverse_proxy %s {\n\t\ttransport http {\n"+
		"\t\t\tkeepalive_idle_conns_per_host 128\n\t\t}\n\t}\n}\n", site, host, cert, b.origin)
}

func (b *bench) certFile() string { return b.dir + "/cert.pem" }
func (b *bench) keyFile() string  { return b.dir + "/key.pem" }

// pemFile is the certificate and its key in one.
func (b *bench) pemFile() string { return b.dir + "/both.pem" }

// fetch asks a server for the page as the generators do.
func fetch(scheme string, s server) (*http.Response, []byte, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.addr)
		},
		// The certificate was made for this run.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}, //nolint:gosec // on loopback
	}}
	resp, err := client.Get(scheme + "://" + s.host + "/")
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp, got, err
}

// answersHTTP is nil once a server answers with the origin's page.
func answersHTTP(scheme string, s server) error {
	resp, got, err := fetch(scheme, s)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return errors.New(resp.Status)
	case string(got) != body:
		return fmt.Errorf("%d bytes that are not the origin's", len(got))
	case resp.Header.Get("Content-Type") != "text/plain" || resp.ContentLength != int64(len(body)):
		return fmt.Errorf("another head than the origin's: %v", resp.Header)
	}
	return nil
}

// sameHTTP is an error unless all servers answer with the origin's page, its type and its length.
func sameHTTP(scheme string, servers []server) error {
	for _, s := range servers {
		if err := answersHTTP(scheme, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}
