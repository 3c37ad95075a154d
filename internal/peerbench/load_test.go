package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

const wrkReport = `Running 3s test @ http://127.0.0.1:41231/
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.01ms  501.20us   9.02ms   77.12%
    Req/Sec    31.90k     1.20k   34.00k    70.00%
  Latency Distribution
     50%    0.95ms
     75%    1.20ms
     90%    1.60ms
     99%    2.31ms
  190400 requests in 3.00s, 220.10MB read
Requests/sec:  63412.55
Transfer/sec:     73.30MB
`

const h2loadReport = `finished in 3.02s, 12033.33 req/s, 14.01MB/s
requests: 36120 total, 36164 started, 36100 done, 36100 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 36100 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 42.03MB (44070912) total, 4.02MB (4215012) headers (space savings 0.00%), 35.25MB (36966400) data
`

const dnsperfReport = `Statistics:

  Queries sent:         345123
  Queries completed:    345120 (100.00%)
  Queries lost:         3 (0.00%)

  Response codes:       NOERROR 345120 (100.00%)
  Average packet size:  request 38, response 54
  Run time (s):         2.000411
  Queries per second:   172524.546256
`

func TestReports(t *testing.T) {
	for _, test := range []struct {
		name    string
		parse   func(string) (load, error)
		report  string
		want    load
		failure string // part of the error; empty: none
	}{
		{"wrk", parseWrk, wrkReport, load{190400, 63412.55, 2310 * time.Microsecond}, ""},
		{
			"wrk tells microseconds", parseWrk, strings.Replace(wrkReport, "2.31ms", "812.00us", 1),
			load{190400, 63412.55, 812 * time.Microsecond},
			"",
		},
		{"wrk was answered with errors", parseWrk, wrkReport + "  Non-2xx or 3xx responses: 17\n", load{}, "17 requests failed"},
		{
			"wrk lost connections", parseWrk, wrkReport + "  Socket errors: connect 0, read 3, write 0, timeout 0\n",
			load{},
			"errors of connections",
		},
		{"wrk got nothing", parseWrk, strings.Replace(wrkReport, "190400 requests", "0 requests", 1), load{}, "nothing was answered"},
		{"wrk without a distribution", parseWrk, strings.Replace(wrkReport, "99%  ", "98%  ", 1), load{}, "no 99th percentile"},
		{"h2load", parseH2load, h2loadReport, load{answered: 36100, perSecond: 12033.33}, ""},
		{"h2load failed", parseH2load, strings.Replace(h2loadReport, "0 failed", "9 failed", 1), load{}, "9 requests failed"},
		{"h2load was answered with errors", parseH2load, strings.Replace(h2loadReport, "0 5xx", "8 5xx", 1), load{}, "answers with an error"},
		{"dnsperf", parseDNSPerf, dnsperfReport, load{answered: 345120, perSecond: 172524.546256}, ""},
		{"dnsperf lost too much", parseDNSPerf, strings.Replace(dnsperfReport, "lost:         3 ", "lost:         3000 ", 1), load{}, "3000 of 345120 queries lost"},
		{
			"dnsperf was refused", parseDNSPerf, strings.Replace(dnsperfReport, "NOERROR 345120 (100.00%)", "REFUSED 345120 (100.00%)", 1),
			load{},
			"other than NOERROR",
		},
		{"no report", parseDNSPerf, "", load{}, "the report has nothing like"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.parse(test.report)
			switch {
			case test.failure == "" && err != nil:
				t.Fatal(err)
			case test.failure != "" && (err == nil || !strings.Contains(err.Error(), test.failure)):
				t.Fatalf("error %v, want %q", err, test.failure)
			case test.failure == "" && got != test.want:
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestH2loadLog(t *testing.T) {
	var log strings.Builder
	for _, us := range []string{"900", "100", "300"} {
		log.WriteString("1700000000000000\t200\t" + us + "\n")
	}
	got, err := parseH2loadLog(log.String())
	if err != nil || got != 900*time.Microsecond {
		t.Errorf("got %v and %v, want 900µs", got, err)
	}
	for _, bad := range []string{"", "1 200\n", "1 200 x\n"} {
		if _, err := parseH2loadLog(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestPercentile(t *testing.T) {
	var took []time.Duration
	for i := range 200 {
		took = append(took, time.Duration(200-i))
	}
	if got, err := percentile(took, 99); err != nil || got != 198 {
		t.Errorf("99th of 1 to 200 is %d, want 198 (%v)", got, err)
	}
	if got, err := percentile(took[:1], 99); err != nil || got != 1 {
		t.Errorf("99th of one value is %d, want it (%v)", got, err)
	}
}

func TestParseStat(t *testing.T) {
	for _, test := range []struct {
		name, line string
		group      int
		used       time.Duration
		wrong      bool
	}{
		{"plain", "12 (nginx) S 1 12 12 0 -1 4194560 100 0 0 0 150 25 0 0 20 0 1 0 9 9 9", 12, 1750 * time.Millisecond, false},
		{"parentheses and spaces in the name", "13 (a) b (c) S 12 12 12 0 -1 0 0 0 0 0 1 2 0 0 20 0 1", 12, 30 * time.Millisecond, false},
		{"cut short", "13 (a) S 12 12", 0, 0, true},
		{"no name", "13 S 12", 0, 0, true},
		{"no number", "12 (a) S 1 12 12 0 -1 4194560 100 0 0 0 x 25 0 0", 0, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			group, used, err := parseStat(test.line)
			if (err != nil) != test.wrong || !test.wrong && (group != test.group || used != test.used) {
				t.Errorf("got group %d, %v, %v", group, used, err)
			}
		})
	}
}

// TestProcessTime holds that what a child of a server uses counts as the server's.
func TestProcessTime(t *testing.T) {
	b := &bench{dir: t.TempDir()}
	defer b.stop()
	p, err := b.launch("server", nil, "sh", "-c", "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; : >ready; exec sleep 60) & wait")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.await(func() error { return exists(b.dir + "/ready") }); err != nil {
		t.Fatal(err)
	}
	if used, err := p.cpu(); err != nil || used <= 0 {
		t.Errorf("the child's work is %v of processor (%v), want more than none", used, err)
	}
	p.stop()
	if _, err := p.cpu(); err == nil {
		t.Error("a group that ended has no error")
	}
}

func TestTable(t *testing.T) {
	r := row{title: "a row", servers: []server{{name: "this node"}, {name: "peer"}}, missing: []string{"other: not installed"}}
	at := func(cpu float64) sample { return sample{load{1, 1000, 2 * time.Millisecond}, cpu} }
	got := table(r, [][]sample{{at(10), at(12), at(30)}, {at(20), at(20), at(20)}})
	for _, want := range []string{"a row", "CPU µs", "this node", "12.0", "0.60", "20.0", "2.00", "other: not installed"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func exists(name string) error {
	_, err := os.Stat(name)
	return err
}
