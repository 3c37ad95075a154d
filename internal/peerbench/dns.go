package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// dnsRow asks for the A records of 1,000 names.
func (b *bench) dnsRow() (row, error) {
	r := row{title: fmt.Sprintf("DNS, A of %d names", names), load: b.dnsperf}
	r.servers = append(r.servers, server{name: "this node", addr: b.dns, process: b.node})
	peers := []peer{
		{"Knot", "knotd", []string{"-c"}, b.knotConfig},
		{"NSD", "nsd", []string{"-d", "-c"}, b.nsdConfig},
		{"BIND", "named", []string{"-f", "-n", workers, "-c"}, b.bindConfig},
		{"CoreDNS", "coredns", []string{"-conf"}, b.corednsConfig},
	}
	err := b.startPeers(&r, peers, func(s server) error { return answersDNS(s.addr) })
	if err != nil {
		return row{}, err
	}
	return r, sameDNS(r.servers)
}

// workers is how many threads or processes a peer gets: as many as there are processors.
var workers = fmt.Sprint(runtime.NumCPU())

const addrArgument = "{address}"

// peer is a server in this node's place: its program, the arguments before the name of its configuration, and what writes that.
type peer struct {
	name, program string
	args          []string
	config        func(host, port string) string
}

// startPeers adds to a row the peers that are installed.
// Within the arguments of a program addrArgument stands for the address that it is to listen on.
func (b *bench) startPeers(r *row, peers []peer, ready func(server) error) error {
	for _, p := range peers {
		program, err := b.find(p.program)
		if err != nil {
			r.missing = append(r.missing, fmt.Sprintf("%s: %s is %v", p.name, p.program, err))
			continue
		}
		addr, err := freeAddr()
		if err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		file := filepath.Join(b.dir, p.program+port+".conf")
		if err := os.WriteFile(file, []byte(p.config(host, port)), 0o644); err != nil {
			return err
		}
		args := slices.Clone(p.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], addrArgument, addr)
		}
		// Caddy and CoreDNS keep their state below the home directory.
		proc, err := b.launch(p.name, []string{"HOME=" + b.dir, "XDG_DATA_HOME=" + b.dir, "XDG_CONFIG_HOME=" + b.dir}, program,
			append(args, file)...)
		if err != nil {
			return err
		}
		s := server{name: p.name, addr: addr, host: r.servers[0].host, process: proc}
		if err := proc.await(func() error { return ready(s) }); err != nil {
			return err
		}
		r.servers = append(r.servers, s)
	}
	return nil
}

func (b *bench) knotConfig(host, port string) string {
	return fmt.Sprintf(`server:
    rundir: "%[1]s"
    listen: %[2]s@%[3]s
    udp-workers: %[4]s
    tcp-workers: %[4]s
database:
    storage: "%[1]s"
zone:
  - domain: %[5]s
    file: "%[6]s"
    zonefile-sync: -1
    journal-content: none
log:
  - target: stderr
    any: warning
`, b.dir, host, port, workers, apex, b.zoneFile)
}

func (b *bench) nsdConfig(host, port string) string {
	return fmt.Sprintf(`server:
    ip-address: %[2]s
    port: %[3]s
    server-count: %[4]s
    reuseport: yes
    username: ""
    chroot: ""
    zonesdir: "%[1]s"
    database: ""
    pidfile: ""
    xfrdfile: "%[1]s/xfrd.state"
    xfrdir: "%[1]s"
    zonelistfile: "%[1]s/zone.list"
    minimal-responses: yes
    rrl-ratelimit: 0
remote-control:
    control-enable: no
zone:
    name: %[5]s
    zonefile: "%[6]s"
`, b.dir, host, port, workers, apex, b.zoneFile)
}

func (b *bench) bindConfig(host, port string) string {
	return fmt.Sprintf(`options {
    directory "%[1]s";
    pid-file none;
    session-keyfile none;
    managed-keys-directory "%[1]s";
    listen-on port %[3]s { %[2]s; };
    listen-on-v6 { none; };
    recursion no;
    dnssec-validation no;
    minimal-responses yes;
};
controls {};
zone "%[4]s" { type primary; file "%[5]s"; };
`, b.dir, host, port, apex, b.zoneFile)
}

func (b *bench) corednsConfig(host, port string) string {
	return fmt.Sprintf("%s:%s {\n\tbind %s\n\tmultisocket %s\n\tfile %s\n}\n", plainZone, port, host, workers, b.zoneFile)
}

// answersDNS is nil once a server answers for the zone.
func answersDNS(addr string) error {
	m, err := dns.Exchange(new(dns.Msg).SetQuestion("host1."+apex, dns.TypeA), addr)
	if err != nil {
		return err
	}
	if m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 {
		return errors.New(dns.RcodeToString[m.Rcode])
	}
	return nil
}

// sameDNS is an error unless all servers answer each name alike: response code, authority and the answer section.
func sameDNS(servers []server) error {
	for i := range names {
		q := new(dns.Msg).SetQuestion(fmt.Sprintf("host%d.%s", i, apex), dns.TypeA)
		var want string
		for n, s := range servers {
			m, err := dns.Exchange(q, s.addr)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			got := fmt.Sprintf("%s aa=%t %v", dns.RcodeToString[m.Rcode], m.Authoritative, m.Answer)
			if n == 0 {
				want = got
			}
			if got != want {
				return fmt.Errorf("%s answers %q, %s %q", servers[0].name, want, s.name, got)
			}
		}
	}
	return nil
}
