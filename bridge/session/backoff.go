package session

import (
	"context"
	"math/rand/v2"
	"time"
)

// Logger is how sessions tell of what they do: slog.Logger has it.
type Logger interface {
	Info(msg string, args ...any)
	Warn(msg string, args ...any)
}

// Backoff is how long is waited between attempts: from Min, doubled each time up to Max, of it a random half to whole.
type Backoff struct{ Min, Max time.Duration }

// DefaultBackoff is what a zero Backoff stands for.
var DefaultBackoff = Backoff{100 * time.Millisecond, 10 * time.Second}

// Delay is the wait after attempt, from 1.
func (b Backoff) Delay(attempt int) time.Duration {
	b = b.orDefault()
	d := b.Max
	if attempt < 32 && b.Min<<(attempt-1) > 0 {
		d = min(d, b.Min<<(attempt-1))
	}
	return d/2 + rand.N(d/2+1)
}

func (b Backoff) orDefault() Backoff {
	if b.Min <= 0 || b.Max < b.Min {
		return DefaultBackoff
	}
	return b
}

// Held tells whether a connection of this length counts as one that works, so that waits begin anew: it was longer than the longest wait.
// One that is ended as soon as it is made, over and over, is waited for longer each time.
func (b Backoff) Held(connected time.Duration) bool { return connected > b.orDefault().Max }

// Wait waits after attempt; false when ctx ended before.
func (b Backoff) Wait(ctx context.Context, attempt int) bool {
	t := time.NewTimer(b.Delay(attempt))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
