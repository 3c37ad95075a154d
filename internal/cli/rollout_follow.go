package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/guardyn-edge/guardyn/api"
)

// How a rollout is followed.
const (
	followWait  = time.Second            // of one long poll: what nodes acknowledge is seen so soon, at the latest
	followPace  = 100 * time.Millisecond // between two questions at least
	followSlack = 30 * time.Second       // beyond the time that a rollout may take
)

// rolloutView shows a rollout as it goes. now is shown each time that it was asked for, changed or not.
type rolloutView interface {
	show(now *api.Rollout)
	// lost tells that the control plane did not answer.
	lost(err error)
	// end leaves the screen to others.
	end()
}

// follow shows a rollout until it is over. After timeout, or for 0 as soon as it must be over, it is an *endedError. A control
// plane that does not answer is asked again: what is under way goes on without it, or ends by itself.
func (a *app) follow(ctx context.Context, c *api.Client, id string, timeout time.Duration, view rolloutView) (*api.Rollout, error) {
	defer view.end()
	began := time.Now()
	until := began.Add(followSlack)
	if timeout > 0 {
		until = began.Add(timeout)
	}
	var last *api.Rollout
	var lastErr error
	seen := ""
	for {
		asked := time.Now()
		ask, cancel := context.WithDeadline(ctx, until)
		r, err := c.AwaitRollout(ask, id, seen, followWait)
		cancel()
		var problem *api.Error
		switch {
		case err == nil:
			last, lastErr, id, seen = r, nil, r.ID, r.Seen
			view.show(r)
			if !r.Open {
				return r, nil
			}
			if timeout == 0 {
				until = time.Now().Add(timeLeft(r) + followSlack)
			}
		case ctx.Err() != nil:
			return last, interrupted(ctx.Err(), last)
		case errors.As(err, &problem) && problem.Status < http.StatusInternalServerError:
			return last, err
		case !errors.Is(err, context.DeadlineExceeded):
			view.lost(err)
			lastErr = err
		}
		if !time.Now().Before(until) {
			if last == nil && lastErr != nil {
				return nil, lastErr
			}
			if last == nil {
				return nil, fmt.Errorf("the control plane did not answer in %s", waited(time.Since(began)))
			}
			return last, &endedError{rollout: last, exit: exitOpen, after: waited(time.Since(began))}
		}
		if !pause(ctx, min(followPace-time.Since(asked), time.Until(until))) {
			return last, interrupted(ctx.Err(), last)
		}
	}
}

// waited is a time span that somebody waited, as it is told.
func waited(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// timeLeft is how long a rollout that is open may still take.
func timeLeft(r *api.Rollout) time.Duration {
	if r.OnTrial {
		return r.ConfirmDeadline.Sub(r.Now)
	}
	return r.Deadline.Sub(r.Now) + time.Duration(r.ConfirmWindow)
}

// pause waits for d; false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func interrupted(err error, r *api.Rollout) error {
	if r == nil {
		return err
	}
	return hint(fmt.Errorf("interrupted; rollout %s goes on", r.ID), "gdn rollout wait %s waits for its end, %s", r.ID, endVerb(r))
}

// endVerb tells how a rollout that is open is ended.
func endVerb(r *api.Rollout) string {
	if r.OnTrial {
		return fmt.Sprintf("gdn rollout revert %s takes it back", r.ID)
	}
	return fmt.Sprintf("gdn rollout abort %s ends it", r.ID)
}

// Exit codes of what waits for a rollout.
const (
	exitAborted  = 3
	exitReverted = 4
	exitOpen     = 5
)

// endedError is a rollout that did not come to what it was proposed for, or not in time.
type endedError struct {
	rollout *api.Rollout
	exit    int
	after   time.Duration // of exitOpen
}

// wentLive tells whether a rollout is over and what it carried is what the fleet serves.
func wentLive(r *api.Rollout) bool {
	return r.State == "confirmed" || r.State == "committed" && !r.OnTrial
}

// outcome is nil for a rollout that came to its good end.
func outcome(r *api.Rollout) error {
	switch r.State {
	case "aborted":
		return &endedError{rollout: r, exit: exitAborted}
	case "reverted":
		return &endedError{rollout: r, exit: exitReverted}
	}
	return nil
}

func (e *endedError) Error() string {
	r := e.rollout
	what := fmt.Sprintf("rollout %s of version %d", r.ID, r.Version)
	switch e.exit {
	case exitAborted:
		return fmt.Sprintf("%s was aborted: %s", what, r.Reason)
	case exitReverted:
		return fmt.Sprintf("%s was reverted: %s", what, r.Reason)
	}
	return fmt.Sprintf("%s is still %s after %s", what, stateWord(r), e.after)
}

func (e *endedError) hint() string {
	r := e.rollout
	switch e.exit {
	case exitAborted:
		return fmt.Sprintf("nothing changed on any node; gdn rollout status %s shows what each of them said", r.ID)
	case exitReverted:
		return fmt.Sprintf("every node goes back to what is live; gdn rollout status %s shows what each of them saw", r.ID)
	}
	return fmt.Sprintf("gdn rollout wait %s waits on, %s", r.ID, endVerb(r))
}

// code names the outcome in JSON.
func (e *endedError) code() string {
	if e.exit == exitOpen {
		return "rollout_unfinished"
	}
	return "rollout_" + e.rollout.State
}
