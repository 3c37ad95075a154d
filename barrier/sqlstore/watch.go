package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Bounds of listening on Postgres: how long after a lost connection it is tried anew, doubling, how long one attempt may take,
// and how long a silent connection is trusted before it is asked.
const (
	listenBackoff    = 100 * time.Millisecond
	listenMaxBackoff = 10 * time.Second
	listenTimeout    = 10 * time.Second
	listenSilence    = 30 * time.Second
)

// hintTimeout bounds how long telling other processes of votes may take, also while the Store closes.
const hintTimeout = 2 * time.Second

// watches fans hints out to those who watch in this process. Whatever their number, one goroutine learns what other processes
// write, on one connection; another tells them of votes that were cast here. Each begins when it is first needed and ends
// with the Store.
type watches struct {
	store   *Store
	poll    time.Duration
	silence time.Duration

	mu       sync.Mutex
	channels map[barrier.Topic]map[chan struct{}]struct{}
	running  bool          // the goroutine that learns
	telling  bool          // the one that tells
	votes    chan struct{} // what it is to tell, merged
	ended    bool
	ctx      context.Context // of both
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

func (w *watches) start(s *Store, poll time.Duration) {
	w.store, w.poll, w.silence = s, poll, listenSilence
	w.channels = map[barrier.Topic]map[chan struct{}]struct{}{barrier.TopicHead: {}, barrier.TopicVotes: {}}
	w.votes = make(chan struct{}, 1)
	w.ctx, w.cancel = context.WithCancel(context.Background())
}

func (w *watches) stop() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.cancel()
	w.done.Wait()
}

// Watch implements barrier.Reader. What happens while the connection that listens is lost is not told; when it is back all
// are woken. A process that dies right after its vote may have told nobody. On SQLite another process's write is seen within
// the poll interval.
func (s *Store) Watch(ctx context.Context, t barrier.Topic) <-chan struct{} {
	c := make(chan struct{}, 1)
	w := &s.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.channels[t] == nil {
		w.channels[t] = map[chan struct{}]struct{}{}
	}
	w.channels[t][c] = struct{}{}
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.channels[t], c)
		close(c)
	})
	if !w.running && !w.ended {
		w.running = true
		w.done.Go(w.run)
	}
	return c
}

// tell wakes those who watch in this process. It never waits: who was told and has not looked yet is told nothing more.
func (s *Store) tell(head, votes bool) {
	w := &s.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	for topic, told := range map[barrier.Topic]bool{barrier.TopicHead: head, barrier.TopicVotes: votes} {
		if !told {
			continue
		}
		for c := range w.channels[topic] {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}

// hintVotes has other processes told of votes on Postgres. It never waits.
func (w *watches) hintVotes() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	select {
	case w.votes <- struct{}{}:
	default: // one hint tells of all
	}
	if !w.telling {
		w.telling = true
		w.done.Go(w.tellVotes)
	}
}

func (w *watches) tellVotes() {
	// Nothing rests on a hint that is lost in a crash of the server, so this commit waits for no disk.
	send := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), hintTimeout)
		defer cancel()
		_, _ = w.store.writer.ExecContext(ctx, `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '')`,
			w.store.channel(barrier.TopicVotes)) // who is not told finds out at its next poll
	}
	for {
		select {
		case <-w.votes:
			send()
		case <-w.ctx.Done():
			select {
			case <-w.votes: // the last ones before Close
				send()
			default:
			}
			return
		}
	}
}

func (w *watches) run() {
	if w.store.dialect == SQLite {
		w.pollFile()
		return
	}
	for wait := listenBackoff; w.ctx.Err() == nil; wait = min(2*wait, listenMaxBackoff) {
		if w.listen() {
			wait = listenBackoff
		}
		_ = pause(w.ctx, wait) // the loop looks at the context
	}
}

// pollFile looks at two counters.
func (w *watches) pollFile() {
	type counters struct{ head, votes sql.Null[int64] }
	var last counters
	for first := true; ; {
		var now counters
		err := w.store.reader.QueryRowContext(w.ctx, `SELECT max(revision), max(votes) FROM barrier_head WHERE cohort = ?`, w.store.cohort).
			Scan(&now.head, &now.votes)
		if err == nil {
			w.store.tell(first || now.head != last.head, first || now.votes != last.votes)
			last, first = now, false
		}
		if pause(w.ctx, w.poll) != nil {
			return
		}
	}
}

// channel is the Postgres channel of a topic: a name may have 63 bytes, and a cohort 64.
func (s *Store) channel(t barrier.Topic) string {
	sum := sha256.Sum256([]byte(s.cohort))
	return fmt.Sprintf("barrier_%s_%s", t, hex.EncodeToString(sum[:8]))
}

// listen listens until the connection is lost or the Store ends; it reports whether it ever listened.
func (w *watches) listen() (listened bool) {
	s := w.store
	cfg, err := s.listenConfig(w.ctx)
	if err != nil {
		return false
	}
	connecting, cancel := context.WithTimeout(w.ctx, listenTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, cfg)
	if err != nil {
		return false
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // nothing is lost with it
	}()
	head, votes := s.channel(barrier.TopicHead), s.channel(barrier.TopicVotes)
	for _, channel := range []string{head, votes} {
		if _, err := conn.Exec(connecting, "LISTEN "+channel); err != nil {
			return false
		}
	}
	s.tell(true, true) // what happened before is unknown
	for {
		waiting, cancel := context.WithTimeout(w.ctx, w.silence)
		n, err := conn.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			s.tell(n.Channel == head, n.Channel == votes)
		case w.ctx.Err() != nil || conn.IsClosed():
			return true
		default:
			asking, cancel := context.WithTimeout(w.ctx, listenTimeout)
			err := conn.Ping(asking)
			cancel()
			if err != nil {
				return true
			}
		}
	}
}

// listenConfig is how the pool connects.
func (s *Store) listenConfig(ctx context.Context) (cfg *pgx.ConnConfig, err error) {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	conn, err := s.reader.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	err = conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the driver is %T and not pgx", driver)
		}
		cfg = c.Conn().Config()
		cfg.OnNotification = nil // the pool's connection keeps those in itself
		return nil
	})
	return cfg, err
}
