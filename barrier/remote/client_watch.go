package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
)

const (
	// A poll that was answered at once is followed by the next one after minGap with a hint, and after idleGap
	// without: hints that come faster are merged, and a handler that does not wait is not flooded.
	minGap  = 50 * time.Millisecond
	idleGap = time.Second

	// After a failure the next poll comes after 0 to firstBackoff, doubled with each to maxBackoff, and when the handler
	// said how long to stay away, that (maxBackoff at most) later still.
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
)

// watches are a Client's watchers by topic, and for each topic that has some, one goroutine that polls.
type watches struct {
	wg     sync.WaitGroup
	mu     sync.Mutex
	closed bool
	topics map[barrier.Topic]*watch
}

type watch struct {
	cancel   context.CancelFunc
	watchers map[chan struct{}]func() bool // with what stops waiting for the watcher's context
}

// Watch implements barrier.Reader by long polls: one at a time for each topic, however many watch it. Hints that
// a lost connection withheld come after it is made again.
func (c *Client) Watch(ctx context.Context, t barrier.Topic) <-chan struct{} {
	ch := make(chan struct{}, 1)
	w := &c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || ctx.Err() != nil {
		close(ch)
		return ch
	}
	if w.topics[t] == nil {
		if w.topics == nil {
			w.topics = map[barrier.Topic]*watch{}
		}
		poll, cancel := context.WithCancel(context.Background())
		tw := &watch{cancel: cancel, watchers: map[chan struct{}]func() bool{}}
		w.topics[t] = tw
		w.wg.Go(func() { c.poll(poll, t, func() { w.notify(tw) }) })
	}
	tw := w.topics[t]
	tw.watchers[ch] = context.AfterFunc(ctx, func() { w.leave(t, tw, ch) })
	return ch
}

// leave closes ch, and ends the polls of t with its last watcher.
func (w *watches) leave(t barrier.Topic, tw *watch, ch chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := tw.watchers[ch]; !ok {
		return
	}
	delete(tw.watchers, ch)
	close(ch)
	if len(tw.watchers) == 0 {
		tw.cancel()
		delete(w.topics, t)
	}
}

func (w *watches) notify(tw *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range tw.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	for t, tw := range w.topics {
		for ch, stop := range tw.watchers {
			stop()
			close(ch)
		}
		clear(tw.watchers)
		tw.cancel()
		delete(w.topics, t)
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// poll calls hint when the handler says that something changed, until ctx ends.
func (c *Client) poll(ctx context.Context, t barrier.Topic, hint func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	seen, backoff := "", firstBackoff
	for {
		began := time.Now()
		next, err := c.longPoll(ctx, t, seen)
		if ctx.Err() != nil {
			return
		}
		var pause time.Duration
		switch {
		case err != nil:
			pause = rand.N(backoff)
			if e := (*Error)(nil); errors.As(err, &e) {
				pause += min(e.RetryAfter, maxBackoff)
			}
			backoff = min(2*backoff, maxBackoff)
		case next != "":
			hint()
			seen, backoff = next, firstBackoff
			pause = minGap - time.Since(began)
		default:
			backoff = firstBackoff
			pause = idleGap - time.Since(began)
		}
		timer.Reset(max(pause, 0))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// longPoll returns what to have seen next, "" when nothing happened for a while.
func (c *Client) longPoll(ctx context.Context, t barrier.Topic, seen string) (string, error) {
	q := url.Values{"topic": {string(t)}}
	if seen != "" {
		q.Set("seen", seen)
	}
	status, raw, err := c.do(ctx, call{
		method: http.MethodGet, path: "/watch", query: q,
		timeout: maxWait + c.timeout, want: "application/json", limit: maxAnswer,
	})
	if err != nil || status == http.StatusNoContent {
		return "", err
	}
	var a watchAnswer
	if err := json.Unmarshal(raw, &a, lenient); err != nil {
		return "", err
	}
	if a.Seen == "" || len(a.Seen) > maxSeen {
		return "", c.suspect("/watch")
	}
	return a.Seen, nil
}
