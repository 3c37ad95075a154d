package store

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// hints wakes who listens in this process. The zero value is ready.
type hints struct {
	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
}

// tell never waits: a listener that was told and has not looked yet is told nothing more.
func (h *hints) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.listeners {
		hint(c)
	}
}

func hint(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (h *hints) join(c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = make(map[chan struct{}]struct{})
	}
	h.listeners[c] = struct{}{}
}

func (h *hints) leave(c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, c)
}

// notifyChannel is the Postgres channel that the platform row's trigger tells.
const notifyChannel = "guardyn_edge"

// Bounds of listening on Postgres: how long after a lost connection it is tried anew, doubling, and how long
// one attempt may take.
const (
	listenBackoff    = 100 * time.Millisecond
	listenMaxBackoff = 10 * time.Second
	listenTimeout    = 10 * time.Second
)

// Changes implements control.PublishStore. What this DB writes is hinted at once; on Postgres what other
// processes write is too, over one connection beside the pool.
func (db *DB) Changes(ctx context.Context) <-chan struct{} {
	c := make(chan struct{}, 1)
	db.hints.join(c)
	go func() {
		defer close(c)
		defer db.hints.leave(c) // before the close: nobody tells a closed channel
		if db.listen == nil {
			<-ctx.Done()
			return
		}
		for wait := listenBackoff; ctx.Err() == nil; wait = min(2*wait, listenMaxBackoff) {
			if db.listenOnce(ctx, c) {
				wait = listenBackoff
			}
			pause := time.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-pause.C:
			}
			pause.Stop()
		}
	}()
	return c
}

// listenOnce listens until the connection is lost or ctx is done; it reports whether it ever listened.
func (db *DB) listenOnce(ctx context.Context, c chan struct{}) (listened bool) {
	connecting, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, db.listen.Copy())
	if err != nil {
		return false
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // nothing is lost with it
	}()
	if _, err := conn.Exec(connecting, "LISTEN "+notifyChannel); err != nil {
		return false
	}
	hint(c) // what happened before is unknown
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return true
		}
		hint(c)
	}
}
