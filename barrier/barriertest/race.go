package barriertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Bounds of a race: as many rounds as the store does in raceTime, but minRounds at least and maxRounds at most.
const (
	raceTime  = 400 * time.Millisecond
	minRounds = 5
	maxRounds = 200
)

// rounds calls round again and again.
func (c *cohort) rounds(round func(i int)) {
	c.Helper()
	start := time.Now()
	for i := 0; i < maxRounds && (i < minRounds || time.Since(start) < raceTime) && !c.Failed(); i++ {
		round(i)
	}
}

// race has n processes make one call each at once, and returns what became of them. A call whose outcome is unknown is
// repeated, since a store may give up when others are in its way. Who is sent off last, and so runs first where there is one core to run on,
// is another each time.
func (c *cohort) race(n int, call func(h Handles, i int) error) []error {
	c.Helper()
	for len(c.racers) < n {
		h := retrying(c.open(c.TB))
		if c.mode == wrapped {
			h = retrying(Faulty(h, c.faults))
		}
		h.Store = &observed{h.Store, c}
		c.racers = append(c.racers, h)
	}
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	c.races++
	for k := range n {
		i := (k + c.races) % n
		wg.Go(func() {
			<-start
			errs[i] = call(c.racers[i], i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// only returns the index of the one call that succeeded, and reports it if there is not exactly one, or another failed with
// another error than want.
func (c *cohort) only(errs []error, want error) int {
	c.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err != nil:
			c.is(err, want)
		case winner >= 0:
			c.Errorf("calls %d and %d both succeeded: %v", winner, i, errs)
		default:
			winner = i
		}
	}
	if winner < 0 {
		c.Fatalf("no call succeeded: %v", errs)
	}
	return winner
}

// state reports it if the newest rollout is not ro in state s.
func (c *cohort) state(ro barrier.Rollout, s barrier.State) barrier.Row {
	c.Helper()
	row := c.row()
	if row.Rollout.Ref != ro.Ref || row.Rollout.State != s {
		c.Errorf("row: %s\nwant %v %s", show(row), ro.Ref, s)
	}
	return row
}

// staged returns a rollout that all of ms have acked, to be committed with the claim.
func (c *cohort) staged(ms []*member, changes ...func(*barrier.Proposal)) (barrier.Rollout, barrier.Token) {
	c.Helper()
	ro := c.propose(changes...)
	t := c.claim()
	c.ack(ro, ms...)
	return ro, t
}

// soaked returns a rollout on trial that can be confirmed.
func (c *cohort) soaked(ms []*member, changes ...func(*barrier.Proposal)) (barrier.Rollout, barrier.Token) {
	c.Helper()
	ro, t := c.commit(ms, append([]func(*barrier.Proposal){window}, changes...)...)
	c.converge(ro, ms...)
	row := c.row()
	c.past(row.Now.Add(ro.Soak + row.Margin))
	return ro, t
}

// end makes room for the next rollout.
func (c *cohort) end() {
	c.Helper()
	switch ro := c.row().Rollout; {
	case ro == nil || !ro.Open():
	case ro.OnTrial():
		c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByOperator("suite"), "next"))
	default:
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "next"))
	}
}

// outcome reports it if the two calls of a race did not agree with each other and with the row: the first succeeds exactly
// when the rollout is in state a, the second when it is in state b, and the loser is told so.
func (c *cohort) outcome(ro barrier.Rollout, errs []error, a, b barrier.State) {
	c.Helper()
	row := c.row()
	got := row.Rollout.State
	if row.Rollout.Ref != ro.Ref || got != a && got != b {
		c.Fatalf("row: %s\nwant %v %s or %s", show(row), ro.Ref, a, b)
	}
	for i, won := range []bool{got == a, got == b} {
		var decided *barrier.DecidedError
		switch err := errs[i]; {
		case won:
			if err != nil {
				c.Errorf("the rollout is %s, and who decided that was told %v", got, err)
			}
		case !errors.As(err, &decided) || decided.State != got || decided.Ref != ro.Ref:
			c.Errorf("the rollout is %s, and who decided otherwise was told %v", got, err)
		}
	}
}

func holder(i int) string { return fmt.Sprintf("process-%d", i) }
