package api

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"sync"
	"time"
)

// Bounds of what is remembered for repeated requests: maxReplays answers, each for replayAge. What falls
// out early costs little: the repetition of an apply is then judged anew, and finds nothing to do.
const (
	maxReplays        = 256
	replayAge         = time.Hour
	maxIdempotencyKey = 128
)

// replays gives the repetition of a request with an Idempotency-Key the first answer. It is this process's
// memory: behind several processes a repetition that reaches another one is judged anew.
type replays struct {
	mu   sync.Mutex
	kept map[replayKey]*replay
	age  []replayKey // oldest first
}

type replayKey struct{ user, key string }

// replay is an answer that is kept, or still being made until done is closed.
type replay struct {
	body   [sha256.Size]byte
	at     time.Time
	done   chan struct{}
	status int // 0: the first request ended without an answer
	header http.Header
	answer []byte
}

func newReplays() *replays { return &replays{kept: map[replayKey]*replay{}} }

// guard wraps what serves a route with a JSON body.
func (t *replays) guard(serve func(*call) error) func(*call) error {
	return func(c *call) error {
		keys := c.r.Header["Idempotency-Key"]
		if len(keys) == 0 {
			return serve(c)
		}
		if len(keys) > 1 || !validIdempotencyKey(keys[0]) {
			return &Error{
				Type: "about:blank", Status: http.StatusBadRequest, Code: "bad_idempotency_key",
				Detail: "Send one Idempotency-Key of 1 to 128 printable ASCII characters.",
			}
		}
		body, err := c.body(MaxBody, "application/json")
		if err != nil {
			return err
		}
		raw, err := io.ReadAll(body)
		if err != nil {
			return bodyError(err)
		}
		c.r.Body = io.NopCloser(bytes.NewReader(raw))
		return t.once(c, replayKey{c.principal.UserID, keys[0]}, sha256.Sum256(raw), serve)
	}
}

func validIdempotencyKey(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return 1 <= len(s) && len(s) <= maxIdempotencyKey
}

// once serves c, or waits for the answer of the request that it repeats and gives that.
func (t *replays) once(c *call, key replayKey, body [sha256.Size]byte, serve func(*call) error) error {
	now := c.h.now()
	t.mu.Lock()
	first := t.kept[key]
	if first != nil && now.Sub(first.at) > replayAge {
		first = nil
	}
	if first == nil {
		mine := &replay{body: body, at: now, done: make(chan struct{})}
		t.keep(key, mine)
		t.mu.Unlock()
		return t.record(c, key, mine, serve)
	}
	t.mu.Unlock()

	if first.body != body {
		return &Error{
			Type: "about:blank", Status: http.StatusUnprocessableEntity, Code: "idempotency_key_reused",
			Detail: "This Idempotency-Key was sent with another body; nothing was changed.",
		}
	}
	select {
	case <-first.done:
	case <-c.r.Context().Done():
		return c.r.Context().Err()
	}
	if first.status == 0 {
		return serve(c)
	}
	hd := c.w.Header()
	for k, v := range first.header {
		hd[k] = v
	}
	hd.Set("Idempotent-Replayed", "true")
	c.answer(first.status, first.header.Get("Content-Type"), first.answer)
	return nil
}

// keep must be called with mu held.
func (t *replays) keep(key replayKey, r *replay) {
	if _, again := t.kept[key]; !again {
		t.age = append(t.age, key)
	}
	t.kept[key] = r
	for len(t.age) > maxReplays {
		delete(t.kept, t.age[0])
		t.age = t.age[1:]
	}
}

// record serves the first request through a writer that keeps what it answers. Faults of the control plane
// (5xx) are not kept: a repetition is there to try again.
func (t *replays) record(c *call, key replayKey, r *replay, serve func(*call) error) error {
	under := c.w
	rec := &recorder{ResponseWriter: under}
	c.w = rec
	defer func() {
		c.w = under
		if rec.status == 0 || rec.status >= http.StatusInternalServerError {
			t.mu.Lock()
			if t.kept[key] == r {
				// Left in age, where it is overtaken in its turn.
				delete(t.kept, key)
			}
			t.mu.Unlock()
		} else {
			r.status, r.answer = rec.status, rec.body
			r.header = http.Header{"Content-Type": under.Header()["Content-Type"]}
		}
		close(r.done)
	}()
	if err := serve(c); err != nil {
		c.fail(err)
	}
	return nil
}

// recorder keeps a copy of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (w *recorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	w.body = append(w.body, p...)
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
