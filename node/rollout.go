package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// RolloutConfig is what a node needs to take part in rollouts. Store and Source must be set.
type RolloutConfig struct {
	// Store is the cohort's, with the node's own credentials.
	Store  barrier.Voter
	Source RolloutSource
	// Prober judges a trial; nil takes what was swapped in for good at once, which is for tests alone.
	Prober Prober
	Timing barrier.Timing // zero fields take barrier.DefaultTiming's
	// Clock is a monotonic clock; nil: the process's.
	Clock func() time.Duration
}

// RunRollouts takes part in rollouts while the node belongs to the cohort, until ctx ends; it returns nil then. What is
// served goes on being served. Boot comes before it, and Run goes on beside it.
//
// The control plane is asked whether the node belongs to the cohort at the start, as often as the agent polls, and when the agent
// has installed something. A node that has left the cohort takes part until the trial that it remembers has ended.
func (a *Agent) RunRollouts(ctx context.Context, cfg RolloutConfig) error {
	if cfg.Store == nil || cfg.Source == nil {
		return errors.New("node: rollouts need a store and a source")
	}
	cfg.Timing.CallTimeout = cmp.Or(cfg.Timing.CallTimeout, barrier.DefaultTiming.CallTimeout)
	failures := 0
	for ctx.Err() == nil {
		pause := a.askAgain()
		self, err := cfg.Source.Self(ctx)
		if err == nil && (self.Cohort || a.remembersTrial()) {
			if err = a.takePart(ctx, cfg, self); err == nil {
				failures = 0
				continue
			}
			a.log.Error("cannot take part in rollouts", "error", err)
		}
		if err != nil {
			failures++
			pause = a.backoff(failures)
			a.log.Debug("the control plane does not say whether this node belongs to the cohort", "error", err)
		} else {
			failures = 0
		}
		a.waitForNews(ctx, pause)
	}
	return nil
}

// askAgain is how long after an answer a node that is not in the cohort asks again: it was in it and was drained, or it
// is one of thousands that never are.
func (a *Agent) askAgain() time.Duration {
	a.work.Lock()
	defer a.work.Unlock()
	if a.state.tookPart() {
		return a.cfg.Interval
	}
	return max(a.cfg.Interval, a.cfg.Wait)
}

func (a *Agent) remembersTrial() bool {
	a.work.Lock()
	defer a.work.Unlock()
	return a.state.Rollout.Trial != nil
}

// waitForNews returns when pause is over, something was installed, or ctx ended.
func (a *Agent) waitForNews(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-a.news:
	case <-timer.C:
	}
}

// takePart is a member of the cohort until the node has left it or ctx ends. When another process of the node has taken its place it
// waits for ctx: of two, one takes part.
func (a *Agent) takePart(ctx context.Context, cfg RolloutConfig, self nodeproto.Self) error {
	c := &cohort{a: a, cfg: cfg}
	a.work.Lock()
	running := a.running()
	a.work.Unlock()
	m, err := barrier.NewMember(ctx, barrier.MemberOptions{
		ID: barrier.MemberID(self.ID), Store: look{cfg.Store, c}, Artefacts: c, Host: c, Slots: c, Running: running,
		Timing: cfg.Timing, Logger: a.log, Boot: barrier.BootID(a.boot), Clock: cfg.Clock,
	})
	if err != nil {
		return fmt.Errorf("rollouts: %w", err)
	}
	a.log.Info("takes part in rollouts", "member", self.ID)
	a.joined(m)
	defer a.joined(nil)
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(run) }()
	for {
		timer := time.NewTimer(a.cfg.Interval)
		select {
		case err := <-ended:
			timer.Stop()
			if err == nil {
				return nil
			}
			a.log.Error("takes part in rollouts no more: another process with this node's token does", "error", err)
			<-ctx.Done()
			return nil
		case <-timer.C:
		}
		if now, err := cfg.Source.Self(ctx); err != nil || now.Cohort && now.ID == self.ID || a.remembersTrial() {
			continue
		}
		stop()
		<-ended
		a.log.Info("has left the cohort", "member", self.ID)
		return nil
	}
}

func (a *Agent) joined(m *barrier.Member) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.member = m
}
