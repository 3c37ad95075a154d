package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	samplePace = 25 * time.Millisecond
	// catchUp is how long after a decision a node that is not cut off may still serve what was served before it. Nothing
	// safe rests on it; it is generous since all of the fleet and its clients share two cores.
	catchUp = 8 * time.Second
)

// sample is one look at everything: the database, every node at once, the database again. Whatever a node serves in it was decided
// before the second look.
type sample struct {
	Before liveState    `json:"before"`
	Nodes  []nodeSample `json:"nodes"`
	After  liveState    `json:"after"`
}

type nodeSample struct {
	Name       string `json:"name"`
	Generation uint64 `json:"generation,omitempty"` // 0: no answer, or nothing served
	Version    uint64 `json:"version,omitempty"`
	Downs      int64  `json:"downs,omitempty"` // how often it went down or came back; odd: it is down
	Away       bool   `json:"away,omitempty"`
	TakenBack  string `json:"taken_back,omitempty"`
	Pending    bool   `json:"pending,omitempty"`
	Error      string `json:"error,omitempty"`
}

// sampler writes samples to a log, line by line, as JSON, from begin to end.
type sampler struct {
	c      *cohortFleet
	client *http.Client
	stop   func()
	log    string
	number int
	looks  atomic.Int64 // that were written
}

func startSampler(t testing.TB, c *cohortFleet) *sampler {
	t.Helper()
	s := &sampler{c: c, client: &http.Client{Timeout: time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 2}}}
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// begin starts a log of its own.
func (s *sampler) begin(t testing.TB) {
	t.Helper()
	s.number++
	s.log = filepath.Join(s.c.f.dir, fmt.Sprintf("samples-%d.jsonl", s.number))
	file, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.write(ctx, file) }()
	var once sync.Once
	s.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("sampler: %v", err)
			}
		})
	}
}

func (s *sampler) write(ctx context.Context, file *os.File) error {
	defer file.Close()
	w := bufio.NewWriter(file)
	out := json.NewEncoder(w)
	tick := time.NewTicker(samplePace)
	defer tick.Stop()
	for {
		look, err := s.look(ctx)
		if ctx.Err() != nil {
			return w.Flush()
		}
		if err != nil {
			return err
		}
		if err := out.Encode(look); err != nil {
			return err
		}
		s.looks.Add(1)
		select {
		case <-ctx.Done():
			return w.Flush()
		case <-tick.C:
		}
	}
}

// another waits for a sample that is begun after the call: what is so now is in the log then, if it lasts.
func (s *sampler) another() {
	s.c.t.Helper()
	from := s.looks.Load()
	s.c.f.await("another sample", func() error {
		if n := s.looks.Load() - from; n < 2 { // the first may have been under way
			return fmt.Errorf("%d were written", n)
		}
		return nil
	})
}

func (s *sampler) look(ctx context.Context) (look sample, err error) {
	if look.Before, err = s.c.row(ctx); err != nil {
		return look, err
	}
	look.Nodes = make([]nodeSample, len(s.c.members))
	var asked sync.WaitGroup
	for i, n := range s.c.members {
		asked.Go(func() {
			o := nodeSample{Name: n.name, Downs: n.downs.Load(), Away: n.away.Load()}
			if o.Downs%2 == 0 {
				if h, err := n.health(s.client); err != nil {
					o.Error = err.Error()
				} else {
					o.Generation, o.Version, o.TakenBack, o.Pending = h.Generation, h.Version, h.Rollout.TakenBack, h.Rollout.ConfirmPending
				}
			}
			look.Nodes[i] = o
		})
	}
	asked.Wait()
	look.After, err = s.c.row(ctx)
	return look, err
}

// end closes the log with a sample of what is so in the end, checks it, and returns what is in it.
func (s *sampler) end(t testing.TB) []sample {
	t.Helper()
	s.another()
	s.stop()
	samples := readSamples(t, s.log)
	found, worst := checkSamples(samples)
	for i, what := range found {
		if i == 5 {
			t.Errorf("… %d in all", len(found))
			break
		}
		t.Error(what)
	}
	if len(samples) < 10 {
		t.Errorf("only %d samples: this proves little", len(samples))
	}
	t.Logf("%d samples; the last node was %s behind a decision at most", len(samples), worst.Round(time.Millisecond))
	return samples
}

func readSamples(t testing.TB, path string) (samples []sample) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for d := json.NewDecoder(file); d.More(); {
		var one sample
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		samples = append(samples, one)
	}
	return samples
}

// checkSamples tells where a node served what the rules do not allow, and by how much a node that was not cut off was behind a decision
// at most.
//
//   - What is live is allowed to everybody.
//   - A rollout's generation is allowed once it is committed, never before, and never after it was aborted.
//   - After a decision what was served before it is allowed for catchUp, to nodes that are cut off for as long as they are; but a
//     trial that was not confirmed, to nobody longer than catchUp after D and the grace.
//   - A generation has one version, wherever it is served. No node goes back, unless from a trial to what is live or was before it, or
//     as a new process.
func checkSamples(samples []sample) (found []string, worst time.Duration) {
	var (
		wasLive  = map[uint64]time.Time{} // generations that were live, and when that was last seen
		reverted = map[uint64]time.Time{} // generations that were on trial, and when they were last seen to be
		versions = map[uint64]uint64{}    // of generations
		last     = map[string]nodeSample{}
		trials   = map[uint64]bool{}
	)
	report := func(i int, format string, a ...any) {
		line, _ := json.Marshal(samples[i])
		var before []byte
		if i > 0 {
			before, _ = json.Marshal(samples[i-1])
		}
		found = append(found, fmt.Sprintf("sample %d: %s\nbefore it %s\nit is     %s", i, fmt.Sprintf(format, a...), before, line))
	}
	for i, s := range samples {
		wasLive[s.Before.Generation] = s.Before.At
		wasLive[s.After.Generation] = s.After.At
		states := map[uint64]rolloutState{} // as the second look has them
		for _, r := range s.After.Rollouts {
			states[r.Generation] = r
			if r.onTrial() || r.State == "committed" {
				trials[r.Generation] = true
			}
		}
		for _, row := range []liveState{s.Before, s.After} {
			for _, r := range row.Rollouts {
				if r.onTrial() {
					reverted[r.Generation] = row.At
				}
			}
		}
		for _, n := range s.Nodes {
			if n.Generation == 0 {
				continue
			}
			g := n.Generation
			if v, known := versions[g]; known && v != n.Version {
				report(i, "%s serves generation %d as version %d, and it was version %d elsewhere", n.Name, g, n.Version, v)
			}
			versions[g] = n.Version
			r, proposed := states[g]
			age := func(since map[uint64]time.Time) time.Duration { return s.Before.At.Sub(since[g]) }
			_, live := wasLive[g]
			_, tried := reverted[g]
			switch {
			case proposed && (r.State == "proposed" || r.State == "staging" || r.State == "aborted"):
				report(i, "%s serves generation %d, which is %s", n.Name, g, r.State)
			case g == s.Before.Generation || g == s.After.Generation:
			case proposed && r.onTrial() && r.Due != nil && s.Before.At.After(r.Due.Add(catchUp)):
				report(i, "%s serves generation %d on trial, whose time was over at %s", n.Name, g, r.Due.Format(time.RFC3339Nano))
			case proposed && r.State != "reverted": // committed or confirmed between the two looks, or on trial
			case live:
				if !n.Away {
					worst = max(worst, age(wasLive))
					if age(wasLive) > catchUp {
						report(i, "%s serves generation %d, which was live %s ago", n.Name, g, age(wasLive))
					}
				}
			case tried:
				if !n.Away {
					worst = max(worst, age(reverted))
				}
				if age(reverted) > catchUp && (!n.Away || r.Due == nil || s.Before.At.After(r.Due.Add(catchUp))) {
					report(i, "%s serves generation %d, which was on trial until %s ago", n.Name, g, age(reverted))
				}
			default:
				report(i, "%s serves generation %d, which never was live or on trial", n.Name, g)
			}
			if before, ok := last[n.Name]; ok && before.Downs == n.Downs && g < before.Generation && !(trials[before.Generation] && live) {
				report(i, "%s went back from generation %d to %d", n.Name, before.Generation, g)
			}
			last[n.Name] = n
		}
	}
	return found, worst
}

// served tells what nodes served over the samples: generations, each with the nodes that did.
func served(samples []sample) map[uint64][]string {
	all := map[uint64]map[string]bool{}
	for _, s := range samples {
		for _, n := range s.Nodes {
			if n.Generation != 0 {
				if all[n.Generation] == nil {
					all[n.Generation] = map[string]bool{}
				}
				all[n.Generation][n.Name] = true
			}
		}
	}
	out := map[uint64][]string{}
	for g, names := range all {
		out[g] = slices.Sorted(maps.Keys(names))
	}
	return out
}

// A check that finds nothing proves nothing: each of these logs is wrong in one way, or right.
func TestSamplesCheckFindsFaults(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(1_000_000 + int64(ms)) }
	row := func(ms int, live uint64, rollouts ...rolloutState) liveState {
		return liveState{At: at(ms), Generation: live, Rollouts: rollouts}
	}
	due := at(5000)
	trial := func(state string) rolloutState {
		return rolloutState{Generation: 2, State: state, Window: 1000, Due: &due}
	}
	one := func(ms int, row liveState, nodes ...nodeSample) sample {
		row.At = at(ms)
		return sample{Before: row, After: row, Nodes: nodes}
	}
	n := func(generation uint64) nodeSample {
		return nodeSample{Name: "a", Generation: generation, Version: generation}
	}
	away := func(generation uint64) nodeSample { o := n(generation); o.Away = true; return o }
	on, old := row(0, 1, trial("committed")), row(0, 1)
	for _, tt := range []struct {
		name string
		log  []sample
		want string // empty: nothing is found
	}{
		{"live", []sample{one(0, old, n(1)), one(1, old, n(1))}, ""},
		{"a trial, confirmed", []sample{one(0, old, n(1)), one(1, on, n(1)), one(2, on, n(2)), one(3, row(0, 2, trial("confirmed")), n(2))}, ""},
		{"a trial, reverted", []sample{one(0, on, n(2)), one(1, row(0, 3, trial("reverted")), n(2)), one(2, row(0, 3, trial("reverted")), n(1)), one(3, row(0, 3, trial("reverted")), n(3))}, ""},
		{"taken back by guess", []sample{one(0, on, n(1)), one(1, on, n(2)), one(6000, on, n(1))}, ""},
		{"before the vote", []sample{one(0, row(0, 1, trial("staging")), n(2))}, "which is staging"},
		{"of an aborted rollout", []sample{one(0, row(0, 1, trial("aborted")), n(2))}, "which is aborted"},
		{"unheard of", []sample{one(0, old, n(7))}, "never was live"},
		{"a trial kept after the revert", []sample{one(0, on, n(2)), one(9000, row(0, 3, trial("reverted")), n(2))}, "on trial until"},
		{"a trial kept beyond its time", []sample{one(0, on, n(2)), one(20_000, on, n(2))}, "time was over"},
		{"a trial kept beyond its time, cut off", []sample{one(0, on, n(2)), one(20_000, row(0, 3, trial("reverted")), away(2))}, "on trial until"},
		{"left behind", []sample{one(0, old, n(1)), one(9000, row(0, 3), n(1))}, "was live"},
		{"left behind, cut off", []sample{one(0, old, n(1)), one(9000, row(0, 3), away(1))}, ""},
		{"back", []sample{one(0, old, n(1)), one(1, row(0, 3), n(3)), one(2, row(0, 3), n(1))}, "went back"},
		{"another version", []sample{one(0, old, n(1), nodeSample{Name: "b", Generation: 1, Version: 9})}, "elsewhere"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, _ := checkSamples(tt.log)
			text := strings.Join(found, "\n")
			if (tt.want == "") != (text == "") || !strings.Contains(text, tt.want) {
				t.Errorf("found %q, want %q", text, tt.want)
			}
		})
	}
}
