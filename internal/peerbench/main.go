// Command peerbench measures a node beside the servers that people run in its place, in turns on one machine, and prints one table.
// hack/bench-peers.sh installs what it needs and runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options are what the command line tells.
type options struct {
	gdn, bin string // the node's program, and the directory of peers that are built here
	rounds   int
	length   time.Duration
	only     string
}

// row is one comparison: servers that answer the same, in the order of the table, this node first.
type row struct {
	title   string
	servers []server
	missing []string // peers that could not be measured, with the reason
	load    func(server) (load, error)
}

// server is something that answers, and the processes whose time it takes.
type server struct {
	name string
	addr string // host:port
	host string // that is asked for over HTTP
	*process
	behind *process // what it cannot answer without, nil for nothing
}

// cpu is the processor time of all of it.
func (s server) cpu() (time.Duration, error) {
	own, err := s.process.cpu()
	if err != nil || s.behind == nil {
		return own, err
	}
	more, err := s.behind.cpu()
	return own + more, err
}

func main() {
	var o options
	flag.StringVar(&o.gdn, "gdn", "bin/gdn", "the node's program")
	flag.StringVar(&o.bin, "bin", "bin", "directory of peers that are built here")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds, of which the median counts")
	flag.DurationVar(&o.length, "length", 3*time.Second, "how long each server is loaded in a round")
	flag.StringVar(&o.only, "only", "", "one row: "+strings.Join(rowNames, ", "))
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// rowNames are the values of -only, in the order of the table.
var rowNames = []string{"dns", "proxy", "tls", "rules", "function", "cache", "bridge"}

func run(o options) (err error) {
	if o.only != "" && !slices.Contains(rowNames, o.only) {
		return fmt.Errorf("only %q: want %s", o.only, strings.Join(rowNames, ", "))
	}
	if o.rounds < 1 || o.length < time.Second {
		return errors.New("at least one round of one second")
	}
	if o.gdn, err = filepath.Abs(o.gdn); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "guardyn-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir}
	defer b.stop()
	if o.only != "bridge" { // which needs no node
		if err := b.start(); err != nil {
			return err
		}
	}
	fmt.Printf("%d processors, load %s before, median of %d rounds of %s\n\n", runtime.NumCPU(), loadAverage(), o.rounds, o.length)
	rows := map[string]func() (row, error){"dns": b.dnsRow, "proxy": b.proxyRow, "tls": b.tlsRow, "rules": b.rulesRow, "function": b.functionRow, "cache": b.cacheRow, "bridge": b.bridgeRow}
	for _, name := range rowNames {
		if o.only != "" && o.only != name {
			continue
		}
		r, err := rows[name]()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := b.measure(r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fmt.Printf("load %s after\n", loadAverage())
	return nil
}

// measure loads the servers of a row in turns and prints what came of it.
func (b *bench) measure(r row) error {
	samples := make([][]sample, len(r.servers))
	for range b.rounds {
		for i, s := range r.servers {
			sample, err := measure(s, r.load)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			samples[i] = append(samples[i], sample)
		}
	}
	fmt.Print(table(r, samples))
	return nil
}

// loadAverage is the machine's over one minute, "unknown" where there is none.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(raw), " ")
	return first
}

// freeAddr is an address of loopback that nothing listens on, for UDP and TCP.
func freeAddr() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		addr := l.Addr().String()
		u, err := net.ListenPacket("udp", addr)
		_ = l.Close()
		if err == nil {
			return addr, u.Close()
		}
	}
	return "", errors.New("no port is free for both UDP and TCP")
}
