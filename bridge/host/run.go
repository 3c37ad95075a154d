package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/guardyn-edge/guardyn/bridge/document"
)

// Phase is what the process is at.
type Phase string

// The phases.
const (
	Idle     Phase = "idle"     // runs nothing; the control surface answers
	Starting Phase = "starting" // takes part in its cohort, and runs nothing yet
	Active   Phase = "active"
	Stopping Phase = "stopping" // intake is stopped
)

// prepareTimeout bounds building a document on a rung that has no deadline for it; swapTimeout bounds, beside the drain timeout, the
// exchange.
const (
	prepareTimeout = time.Minute
	swapTimeout    = 30 * time.Second
	// leastStop is how long stopping may take at least, however long draining took.
	leastStop = time.Second
)

// start runs d, or what its cohort has committed; d is nil when the source has none that is valid. What it returns is why nothing
// runs yet; then it is tried again.
func (h *Host) start(ctx context.Context, d *document.Document) (reason string, err error) {
	if RungOf(d).cohort() || h.remembers(ctx) {
		if err := h.join(ctx, d); err != nil {
			return err.Error(), nil
		}
		return "", nil
	}
	return h.install(ctx, d), nil
}

// reload takes a change over on the rung of a standalone bridge.
func (h *Host) reload(ctx context.Context, d *document.Document) string {
	return h.install(ctx, d)
}

// install builds d and swaps to it; what it returns is why d does not run.
func (h *Host) install(ctx context.Context, d *document.Document) string {
	h.work.Lock()
	defer h.work.Unlock()
	building, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	p, err := h.cfg.Runner.Prepare(building, d)
	if err != nil {
		return fmt.Sprintf("it cannot be built: %v", err)
	}
	if err := h.swap(ctx, p, d); err != nil {
		return fmt.Sprintf("it cannot be taken over: %v", err)
	}
	return ""
}

// swapper is a bridge.Prepared, or one with more around it.
type swapper interface {
	Swap(ctx context.Context) error
}

// swap makes d what runs. work is held.
func (h *Host) swap(ctx context.Context, p swapper, d *document.Document) error {
	h.mu.Lock()
	drain := d.Bridge.DrainTimeout
	if h.running != nil {
		drain = h.running.Bridge.DrainTimeout // of what is stopped
	}
	h.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, drain+swapTimeout)
	defer cancel()
	if err := p.Swap(limited); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running, h.phase, h.ran, h.problem = d, Active, true, ""
	if h.rung == NoRung || h.rung.cohort() {
		h.rung = RungOf(d)
	}
	if h.cfg.LogLevel != nil {
		var level slog.Level
		if level.UnmarshalText([]byte(d.Bridge.LogLevel)) == nil {
			h.cfg.LogLevel.Set(level)
		}
	}
	return nil
}

// quiesce stops intake, drains and stops, and leaves an idle process behind. The error, an ErrReplace, is of one that may not be.
func (h *Host) quiesce(ctx context.Context, why string) error {
	if err := h.stopRunning(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrReplace, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase, h.running, h.rung, h.problem = Idle, nil, NoRung, why
	return nil
}

// stopRunning stops what runs, within its document's timeouts. The error is of what may not have stopped.
func (h *Host) stopRunning(ctx context.Context) error {
	h.mu.Lock()
	d := h.running
	if d != nil {
		h.phase = Stopping
	}
	h.mu.Unlock()
	h.work.Lock()
	defer h.work.Unlock()
	if d == nil {
		return h.stopRunner(ctx, leastStop)
	}
	end := time.Now().Add(d.Bridge.ShutdownTimeout)
	draining, cancel := context.WithTimeout(ctx, d.Bridge.DrainTimeout)
	defer cancel()
	if err := h.cfg.Runner.Drain(draining); err != nil {
		// At least once: who sent it sends it again.
		h.cfg.Logger.Warn("not everything was delivered; its sources will send it again", "error", err)
	}
	return h.stopRunner(ctx, time.Until(end))
}

func (h *Host) stopRunner(ctx context.Context, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, max(limit, leastStop))
	defer cancel()
	if err := h.cfg.Runner.Stop(limited); err != nil {
		return fmt.Errorf("it is not sure that everything has stopped: %w", err)
	}
	return nil
}

// shutDown ends everything that Run began; its context is over.
func (h *Host) shutDown() error {
	ctx := context.Background()
	err := h.leaveCohort()
	err = errors.Join(err, h.stopRunning(ctx))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase, h.problem = Stopping, "the process ends"
	h.running = nil
	return err
}

// abandon gives up taking part before anything ran.
func (h *Host) abandon(why string) {
	if err := h.leaveCohort(); err != nil {
		h.cfg.Logger.Warn("leave the cohort", "error", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		h.phase, h.rung, h.problem = Idle, NoRung, why
	}
}
