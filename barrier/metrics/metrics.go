// Package metrics shows Prometheus what a cohort's row says, for any host.
package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/barrier"
)

// maxAge is how old a row that is told may be, and timeout how long reading it may take: metrics are often for anybody to read, and must not
// be a way to make the store work.
const (
	maxAge  = time.Second
	timeout = 2 * time.Second
)

var (
	descState  = desc("state", "1 for the state that the newest rollout is in, 0 for the others.", "state")
	descAcks   = desc("acks", "Acknowledgements of the newest rollout that count: of members that have not been restarted since.")
	descEpoch  = desc("epoch_size", "Members whose acknowledgement the newest rollout takes.")
	descRoster = desc("roster_size", "Members of the cohort.")
)

var states = []barrier.State{
	barrier.Proposed, barrier.Staging, barrier.Committed, barrier.Aborted, barrier.Confirmed, barrier.Reverted,
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("guardyn_rollout_"+name, help, labels, nil)
}

// Row collects guardyn_rollout_state, _acks and _epoch_size of the newest rollout, and guardyn_rollout_roster_size. Of a row that cannot be
// read it tells nothing. It may be used by several goroutines at once.
type Row struct {
	store barrier.Reader
	now   func() time.Time

	mu   sync.Mutex
	at   time.Time // of row
	row  barrier.Row
	read bool
}

// NewRow returns the collector of the row in store, which stays the caller's.
func NewRow(store barrier.Reader, now func() time.Time) *Row { return &Row{store: store, now: now} }

// Describe sends nothing: before the first rollout there is nothing to tell of one.
func (*Row) Describe(chan<- *prometheus.Desc) {}

// Collect reads the row, unless it was read a second ago at most.
func (r *Row) Collect(out chan<- prometheus.Metric) {
	row, ok := r.current()
	if !ok {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descRoster, float64(len(row.Roster.Members)))
	ro := row.Rollout
	if ro == nil {
		return
	}
	for _, s := range states {
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
func (r *Row) current() (barrier.Row, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.read && now.Sub(r.at) < maxAge && !now.Before(r.at) {
		return r.row, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	row, err := r.store.Current(ctx)
	if r.read = err == nil; r.read {
		r.row, r.at = row, now
	}
	return row, r.read
}
