package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// purgePause is the least time between two looks at the log of purges: of a platform that purges all the time, a node takes
// once in a second what came together.
const purgePause = time.Second

// Purger is what drops what is cached: the data plane's cache. Calls come one at a time, in order, beside whatever else goes on.
type Purger interface {
	// Purge drops what ps, in order of their numbers, name. When it returns nil nothing of that is served any more, nor stored out
	// of an exchange that began before.
	Purge(ctx context.Context, ps []zone.Purge) error
	// Floor does so with everything; the next purge that is heard of follows sequence.
	Floor(sequence uint64)
}

// PurgeSource is where a node hears of purges; api.NodeClient is the HTTP one.
type PurgeSource interface {
	// Purges returns the statement of what follows a place in the log, nil: the node knows none. It is unverified, and at most
	// seal.MaxPurgeStatement+1 bytes long.
	Purges(ctx context.Context, after *seal.PurgeMark) (string, error)
}

// purges is what a node knows of the log. The agent's lock guards it; it is gone with the process, and so is what it speaks of.
type purges struct {
	at       *seal.PurgeMark // up to where all are done; nil: nothing was heard yet
	end      string          // of the log, as the last poll was told; empty: not told
	failures int             // since the last success
	retry    time.Time       // until then the log is not asked for
}

// askPurges is what a poll says of purges, and until when it may wait.
func (a *Agent) askPurges(ask *nodeproto.Poll) {
	if a.cfg.Purger == nil {
		return
	}
	p := &a.purges
	if left := p.retry.Sub(a.cfg.Now()); p.failures > 0 && left > 0 {
		// Else every poll would be answered at once while the log cannot be followed.
		ask.Wait = min(ask.Wait, left.Truncate(time.Second)+time.Second)
		return
	}
	ask.Purged = nodeproto.NoPurges
	if p.at != nil {
		ask.Purged = p.at.String()
	}
}

// purged is how an acknowledgement puts it.
func (a *Agent) purged() *seal.PurgeMark {
	switch {
	case a.cfg.Purger == nil:
		return nil
	case a.purges.at == nil:
		return &seal.PurgeMark{}
	}
	m := *a.purges.at
	return &m
}

// followPurges does the purges that the last poll told of, and reports whether there were any.
func (a *Agent) followPurges(ctx context.Context) bool {
	a.work.Lock()
	p := &a.purges
	due := a.cfg.Purger != nil && p.end != "" && (p.at == nil || p.at.String() != p.end) &&
		(p.failures == 0 || !a.cfg.Now().Before(p.retry))
	p.end = ""
	a.work.Unlock()
	if !due {
		return false
	}
	did := false
	for more := true; more; {
		var moved bool
		var err error
		moved, more, err = a.purgeOnce(ctx)
		did = did || moved
		if ctx.Err() != nil {
			return did
		}
		a.work.Lock()
		if err != nil {
			p.failures++
			pause := a.backoff(p.failures)
			p.retry = a.cfg.Now().Add(pause)
			a.log.Error("purges not done; what they name may be served until they are", "error", err, "again_in", pause.Round(time.Second))
			more = false
		} else {
			p.failures = 0
		}
		failures := p.failures
		a.update(func(s *Status) { s.PurgeFailures = failures })
		if did && !more {
			a.reportAgain()
		}
		a.work.Unlock()
	}
	return did
}

// purgeOnce asks for what follows and does it. moved tells whether the node is at another place now, more that there is more.
func (a *Agent) purgeOnce(ctx context.Context) (moved, more bool, err error) {
	a.work.Lock()
	after, served := a.purges.at, a.served
	a.work.Unlock()
	text, err := a.cfg.Purges.Purges(ctx, after)
	if err != nil {
		return false, false, err
	}
	st, err := seal.VerifyPurges(text, a.cfg.Keys, after)
	if err != nil {
		return false, false, err
	}
	if served != nil {
		// Another fleet may have the same key. What an epoch before says is of a control plane that was left behind.
		if act := served.Activation(); st.Platform != act.Platform || st.Epoch < act.Epoch {
			return false, false, fmt.Errorf("the statement of purges is of epoch %d of platform %s, this node serves epoch %d of %s",
				st.Epoch, st.Platform, act.Epoch, act.Platform)
		}
	}
	switch {
	case st.Floor:
		a.cfg.Purger.Floor(st.To.Sequence)
		if after != nil {
			a.log.Warn("this node missed purges; it dropped everything that it had cached", "at", after.String(), "goes_on_at", st.To.String())
		}
	case len(st.Purges) > 0:
		if err := a.cfg.Purger.Purge(ctx, knownPurges(st.Purges)); err != nil {
			return false, false, fmt.Errorf("purges %d to %d: %w", st.Purges[0].Sequence, st.To.Sequence, err)
		}
	}
	if len(st.Purges) == 0 && !st.Floor {
		return false, false, nil
	}
	a.work.Lock()
	defer a.work.Unlock()
	a.purges.at = &st.To
	a.update(func(s *Status) {
		s.PurgesFollowed, s.PurgeSequence = true, st.To.Sequence
		s.Purges += uint64(len(st.Purges))
		if st.Floor {
			s.PurgeFloors++
		}
	})
	return true, st.More, nil
}

// knownPurges turns what a later control plane purges by, and this node knows nothing of, into all of the zone.
func knownPurges(ps []zone.Purge) []zone.Purge {
	for i := range ps {
		switch ps[i].Kind {
		case zone.PurgeURL, zone.PurgePrefix, zone.PurgeTag, zone.PurgeAll:
		default:
			ps[i].Kind, ps[i].Values = zone.PurgeAll, nil
		}
	}
	return ps
}

// checkPurges judges a configuration.
func (c *Config) checkPurges() error {
	if (c.Purger == nil) != (c.Purges == nil) {
		return errors.New("node: a purger needs a source of purges, and the other way round")
	}
	return nil
}
