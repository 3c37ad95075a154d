package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// spreadRounds is how often BenchmarkCoordinated publishes each way.
const spreadRounds = 15

// BenchmarkCoordinated publishes a small change to five nodes by gdn apply, in turns directly and to the cohort, and asks every node by DNS
// each millisecond until it answers by the change: how long that took since the command was begun, until all do, and from the first node
// to the last. All processes share the machine. The command alone is the time until it ends, which for the cohort is before anything is
// decided.
func BenchmarkCoordinated(b *testing.B) {
	c := newCohortFleet(b)
	// Who coordinates waits before its first decision.
	c.next()
	r := c.propose()
	c.ends(r.ID, exitGood)
	c.settled()
	ways := []string{"direct", "coordinated"}
	served, spreads, commands := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	var steps [4][]float64
	for range spreadRounds {
		for _, way := range ways {
			c.next()
			c.settled()
			watch := c.watchMark(strconv.Itoa(c.mark))
			began := time.Now()
			c.f.gdn("apply", "--"+way, "--accept-disruption", "-m", way)
			command := time.Since(began)
			at, err := watch()
			if err != nil {
				b.Fatal(err)
			}
			c.live = c.mark
			served[way] = append(served[way], milliseconds(slices.MaxFunc(at, time.Time.Compare).Sub(began)))
			spreads[way] = append(spreads[way], milliseconds(slices.MaxFunc(at, time.Time.Compare).Sub(slices.MinFunc(at, time.Time.Compare))))
			commands[way] = append(commands[way], milliseconds(command))
			if way == "coordinated" {
				var proposed, voted, committed time.Time
				if err := c.db.QueryRow(b.Context(), `
					SELECT r.proposed_at, (SELECT max(voted_at) FROM barrier.ballot v WHERE v.generation = r.generation), r.committed_at
					FROM barrier.rollout r ORDER BY r.generation DESC LIMIT 1`).Scan(&proposed, &voted, &committed); err != nil {
					b.Fatal(err)
				}
				last := slices.MaxFunc(at, time.Time.Compare)
				for i, d := range []time.Duration{proposed.Sub(began), voted.Sub(proposed), committed.Sub(voted), last.Sub(committed)} {
					steps[i] = append(steps[i], milliseconds(d))
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op") // of no meaning here
	ratio := func(of map[string][]float64) float64 { return median(of["coordinated"]) / median(of["direct"]) }
	for _, way := range ways {
		b.ReportMetric(median(served[way]), way+"-ms-to-all-five")
		b.ReportMetric(slices.Max(served[way]), way+"-ms-to-all-five-worst")
		b.ReportMetric(median(spreads[way]), way+"-ms-first-to-last")
		b.ReportMetric(slices.Max(spreads[way]), way+"-ms-first-to-last-worst")
		b.ReportMetric(median(commands[way]), way+"-ms-command")
	}
	for i, what := range []string{"begun-to-proposed", "proposed-to-voted", "voted-to-committed", "committed-to-all-five"} {
		b.ReportMetric(median(steps[i]), "ms-"+what)
	}
	b.ReportMetric(ratio(served), "×direct-to-all-five")
	b.ReportMetric(ratio(spreads), "×direct-first-to-last")
}

// watchMark begins to ask every node; what it returns waits until all answer with mark, and tells when each did first.
func (c *cohortFleet) watchMark(mark string) func() ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	at, errs := make([]time.Time, len(c.members)), make([]error, len(c.members))
	var asking, begun sync.WaitGroup
	begun.Add(len(c.members))
	for i, n := range c.members {
		asking.Go(func() {
			first := sync.OnceFunc(begun.Done)
			defer first()
			at[i], errs[i] = firstAnswer(ctx, n.dns, mark, first)
		})
	}
	begun.Wait()
	return func() ([]time.Time, error) {
		defer cancel()
		asking.Wait()
		return at, errors.Join(errs...)
	}
}

// firstAnswer asks each millisecond until the answer bears mark; asked is called after the first answer.
func firstAnswer(ctx context.Context, server, mark string, asked func()) (time.Time, error) {
	conn, err := net.Dial("udp", server)
	if err != nil {
		return time.Time{}, err
	}
	defer conn.Close()
	question, err := new(dns.Msg).SetQuestion("one.test.", dns.TypeTXT).Pack()
	if err != nil {
		return time.Time{}, err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	want := []byte("mark=" + mark + " ")
	buf := make([]byte, 1500)
	for {
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return time.Time{}, err
		}
		if _, err := conn.Write(question); err != nil {
			return time.Time{}, err
		}
		n, err := conn.Read(buf)
		if err != nil {
			return time.Time{}, fmt.Errorf("ask %s: %w", server, err)
		}
		// The text stands in the answer as it is.
		if bytes.Contains(buf[:n], want) {
			return time.Now(), nil
		}
		asked()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%s does not answer with mark %s: %w", server, mark, ctx.Err())
		}
	}
}
