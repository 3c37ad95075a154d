package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// load is what a generator saw.
type load struct {
	answered  float64
	perSecond float64
	p99       time.Duration
}

// sample is one round of one server.
type sample struct {
	load
	cpu float64 // microseconds of processor per request
}

// measure runs a load and what it costs the server.
func measure(s server, generate func(server) (load, error)) (sample, error) {
	before, err := s.cpu()
	if err != nil {
		return sample{}, err
	}
	l, err := generate(s)
	if err != nil {
		return sample{}, err
	}
	after, err := s.cpu()
	if err != nil {
		return sample{}, err
	}
	return sample{load: l, cpu: float64((after - before).Microseconds()) / l.answered}, nil
}

// generate runs a generator and returns what it printed.
func generate(program string, args ...string) (string, error) {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return string(out), nil
}

// wrk loads a server over HTTP/1.1 on 64 connections that stay open.
func (b *bench) wrk(s server) (load, error) {
	out, err := generate("wrk", "-t2", "-c64", "-d"+b.length.String(), "--latency", "-H", "Host: "+s.host, "http://"+s.addr+"/")
	if err != nil {
		return load{}, err
	}
	return parseWrk(out)
}

var (
	wrkDone  = regexp.MustCompile(`(\d+) requests in`)
	wrkRate  = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	wrkP99   = regexp.MustCompile(`\s99%\s+([\d.]+(?:us|ms|s|m))`)
	wrkWrong = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
	wrkLost  = regexp.MustCompile(`Socket errors: (.*)`)
)

func parseWrk(out string) (l load, err error) {
	if m := wrkWrong.FindStringSubmatch(out); m != nil {
		return l, fmt.Errorf("%s requests failed", m[1])
	}
	if m := wrkLost.FindStringSubmatch(out); m != nil {
		return l, fmt.Errorf("errors of connections: %s", m[1])
	}
	if l.answered, l.perSecond, err = counts(out, wrkDone, wrkRate); err != nil {
		return l, fmt.Errorf("wrk: %w", err)
	}
	m := wrkP99.FindStringSubmatch(out)
	if m == nil {
		return l, errors.New("wrk tells no 99th percentile")
	}
	l.p99, err = time.ParseDuration(m[1])
	return l, err
}

// h2load loads a server over HTTP/1.1 in TLS on 64 connections that stay open. (wrk cannot ask one address for the name of another.)
func (b *bench) h2load(s server) (load, error) {
	log := filepath.Join(b.dir, "h2load.log")
	defer os.Remove(log)
	out, err := generate("h2load", "--h1", "-t2", "-c64", "-D", strconv.Itoa(int(b.length.Seconds())), "--connect-to="+s.addr,
		"--log-file="+log, "https://"+s.host+"/")
	if err != nil {
		return load{}, err
	}
	l, err := parseH2load(out)
	if err != nil {
		return l, err
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		return l, err
	}
	l.p99, err = parseH2loadLog(string(raw))
	return l, err
}

var (
	h2loadDone   = regexp.MustCompile(`requests: .*?(\d+) succeeded`)
	h2loadFailed = regexp.MustCompile(`requests: .*?(\d+) failed`)
	h2loadRate   = regexp.MustCompile(`finished in [^,]*, ([\d.]+) req/s`)
	h2loadWrong  = regexp.MustCompile(`status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx`)
)

func parseH2load(out string) (l load, err error) {
	if m := h2loadFailed.FindStringSubmatch(out); m != nil && m[1] != "0" {
		return l, fmt.Errorf("%s requests failed", m[1])
	}
	if m := h2loadWrong.FindStringSubmatch(out); m == nil || m[3] != "0" || m[4] != "0" {
		return l, errors.New("answers with an error, or none at all")
	}
	if l.answered, l.perSecond, err = counts(out, h2loadDone, h2loadRate); err != nil {
		return l, fmt.Errorf("h2load: %w", err)
	}
	return l, nil
}

// parseH2loadLog takes the 99th percentile from a log: lines of start, status and microseconds.
func parseH2loadLog(log string) (time.Duration, error) {
	var took []time.Duration
	for line := range strings.Lines(log) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return 0, fmt.Errorf("h2load's log has a line of %d columns", len(fields))
		}
		n, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("h2load's log: %w", err)
		}
		took = append(took, time.Duration(n)*time.Microsecond)
	}
	return percentile(took, 99)
}

// dnsperf asks for 1,000 names over UDP, from 16 ports with up to 200 queries under way. It tells no percentiles, so
// a client beside it that waits for each of its answers does.
func (b *bench) dnsperf(s server) (load, error) {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return load{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type probed struct {
		took []time.Duration
		err  error
	}
	probing := make(chan probed, 1)
	go func() {
		took, err := probeDNS(ctx, s.addr)
		probing <- probed{took, err}
	}()
	out, err := generate("dnsperf", "-s", host, "-p", port, "-T", "1", "-c", "16", "-q", "200",
		"-l", strconv.Itoa(int(b.length.Seconds())), "-d", b.queries)
	cancel()
	p := <-probing
	if err := errors.Join(err, p.err); err != nil {
		return load{}, err
	}
	l, err := parseDNSPerf(out)
	if err != nil {
		return l, err
	}
	l.answered += float64(len(p.took))
	l.p99, err = percentile(p.took, 99)
	return l, err
}

var (
	dnsDone = regexp.MustCompile(`Queries completed:\s+(\d+)`)
	dnsRate = regexp.MustCompile(`Queries per second:\s+([\d.]+)`)
	dnsLost = regexp.MustCompile(`Queries lost:\s+(\d+)`)
	dnsCode = regexp.MustCompile(`Response codes:\s+NOERROR \d+ \(100\.00%\)`)
)

// maxLost is the share of queries that may be lost: UDP sheds load that way, and a server that sheds more was not measured.
const maxLost = 0.001

func parseDNSPerf(out string) (l load, err error) {
	if l.answered, l.perSecond, err = counts(out, dnsDone, dnsRate); err != nil {
		return l, fmt.Errorf("dnsperf: %w", err)
	}
	if !dnsCode.MatchString(out) {
		return l, errors.New("answers other than NOERROR")
	}
	if m := dnsLost.FindStringSubmatch(out); m != nil {
		if lost, err := strconv.ParseFloat(m[1], 64); err != nil || lost > maxLost*l.answered {
			return l, fmt.Errorf("%s of %.0f queries lost", m[1], l.answered)
		}
	}
	return l, nil
}

// probeDNS asks one query at a time until ctx ends. A query that is lost counts as its timeout.
func probeDNS(ctx context.Context, addr string) ([]time.Duration, error) {
	client := dns.Client{Timeout: time.Second}
	conn, err := client.Dial(addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	q := new(dns.Msg).SetQuestion("host7."+apex, dns.TypeA)
	var took []time.Duration
	for ctx.Err() == nil {
		q.Id = dns.Id()
		_, rtt, err := client.ExchangeWithConn(q, conn)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			rtt = client.Timeout
		case err != nil:
			return nil, err
		}
		took = append(took, rtt)
	}
	return took, nil
}

// counts takes two numbers from a generator's report; none answered is an error.
func counts(out string, done, rate *regexp.Regexp) (answered, perSecond float64, err error) {
	for _, n := range []struct {
		to *float64
		re *regexp.Regexp
	}{{&answered, done}, {&perSecond, rate}} {
		m := n.re.FindStringSubmatch(out)
		if m == nil {
			return 0, 0, fmt.Errorf("the report has nothing like %q:\n%s", n.re, out)
		}
		if *n.to, err = strconv.ParseFloat(m[1], 64); err != nil {
			return 0, 0, err
		}
	}
	if answered == 0 {
		return 0, 0, fmt.Errorf("nothing was answered:\n%s", out)
	}
	return answered, perSecond, nil
}

// percentile is the nearest-rank one of at least one value.
func percentile(took []time.Duration, percent int) (time.Duration, error) {
	if len(took) == 0 {
		return 0, errors.New("no latency was measured")
	}
	slices.Sort(took)
	return took[(len(took)*percent+99)/100-1], nil
}
