package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/miekg/dns"
)

// A peer is the least that Go's own libraries need to give the same answer: what the benchmarks are compared
// with, in the same run on the same machine. It is this test binary, started again as a process of its own.
const (
	envPeer       = "GUARDYN_TEST_PEER" // which
	envPeerAddr   = "GUARDYN_TEST_PEER_ADDR"
	envPeerOrigin = "GUARDYN_TEST_PEER_ORIGIN"
)

// servePeer is the process; it ends by its parent's hand.
func servePeer(which string) error {
	addr := os.Getenv(envPeerAddr)
	switch which {
	case "204": // net/http
		return http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}))
	case "proxy": // httputil.ReverseProxy
		origin, err := url.Parse("http://" + os.Getenv(envPeerOrigin))
		if err != nil {
			return err
		}
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 256
		return http.ListenAndServe(addr, &httputil.ReverseProxy{
			Transport: t, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(origin) },
		})
	case "dns": // miekg/dns
		return dns.ListenAndServe(addr, "udp", dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
			a := new(dns.Msg)
			a.SetReply(q)
			a.Authoritative = true
			a.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}, A: []byte{192, 0, 2, 1},
			}}
			_ = w.WriteMsg(a)
		}))
	}
	return fmt.Errorf("no such peer: %s", which)
}

// startPeer starts one and waits until ready says that it answers.
func startPeer(b *testing.B, f *fleet, which, addr string, ready func() error) *process {
	b.Helper()
	p := &process{t: b, name: "peer " + which, output: &lines{}, ended: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(cleanEnviron(), envPeer+"="+which, envPeerAddr+"="+addr, envPeerOrigin+"="+f.origin)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	go func() { defer close(p.ended); _ = p.cmd.Wait() }()
	b.Cleanup(p.kill)
	f.await(p.name+" ready", ready)
	return p
}
