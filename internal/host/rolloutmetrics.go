package host

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
)

// rolloutCollector tells of the newest rollout, and of those that this process has ended.
type rolloutCollector struct {
	svc    *control.Service
	cohort barrier.Reader
	now    func() time.Time

	mu   sync.Mutex
	at   time.Time // of row
	row  barrier.Row
	read bool
}

// rolloutAge is how old the row may be, and rolloutTimeout how long reading it may take: /metrics needs no token, and must not be
// a way to make the database work.
const (
	rolloutAge     = time.Second
	rolloutTimeout = 2 * time.Second
)

var (
	descState    = rolloutDesc("state", "1 for the state that the newest rollout is in, 0 for the others.", "state")
	descAcks     = rolloutDesc("acks", "Acknowledgements of the newest rollout that count: of members that have not been restarted since.")
	descEpoch    = rolloutDesc("epoch_size", "Members whose acknowledgement the newest rollout takes.")
	descRoster   = rolloutDesc("roster_size", "Nodes in the cohort.")
	descResolved = rolloutDesc("resolved_total", "Rollouts that this process ended, or its database in a call of its, by outcome and kind of reason.", "outcome", "reason")
)

var rolloutStates = []barrier.State{
	barrier.Proposed, barrier.Staging, barrier.Committed, barrier.Aborted, barrier.Confirmed, barrier.Reverted,
}

// Describe sends nothing: before the first rollout there is nothing to tell of one.
func (*rolloutCollector) Describe(chan<- *prometheus.Desc) {}

func (c *rolloutCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for r, n := range c.svc.Stats().Resolved {
		out <- prometheus.MustNewConstMetric(descResolved, prometheus.CounterValue, float64(n), string(r.Outcome), r.Reason)
	}
	row, ok := c.current()
	if !ok {
		return
	}
	gauge(descRoster, float64(len(row.Roster.Members)))
	ro := row.Rollout
	if ro == nil {
		return
	}
	for _, s := range rolloutStates {
		is := 0.0
		if s == ro.State {
			is = 1
		}
		gauge(descState, is, string(s))
	}
	acks := 0
	for _, seat := range row.Seats {
		if seat.Counts() && seat.Ballot.Vote == barrier.Acked {
			acks++
		}
	}
	gauge(descAcks, float64(acks))
	gauge(descEpoch, float64(ro.EpochSize))
}

// current reads the row, unless it was read a moment ago; of several scrapes at once one does.
func (c *rolloutCollector) current() (barrier.Row, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.read && now.Sub(c.at) < rolloutAge && !now.Before(c.at) {
		return c.row, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), rolloutTimeout)
	defer cancel()
	row, err := c.cohort.Current(ctx)
	if c.read = err == nil; c.read {
		c.row, c.at = row, now
	}
	return row, c.read
}
