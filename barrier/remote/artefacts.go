package remote

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/guardyn-edge/guardyn/barrier"
)

func (x *exchange) put() error {
	if x.b.Artefacts == nil {
		return errNotServed
	}
	q, err := x.query("digest")
	if err != nil {
		return err
	}
	raw, err := x.read("application/octet-stream", barrier.MaxArtefactBytes)
	if err != nil {
		return err
	}
	if err := x.b.Artefacts.Put(x.ctx, barrier.Digest(q.Get("digest")), raw); err != nil {
		return err
	}
	return x.answer(doneAnswer{})
}

func (x *exchange) get() error {
	if x.b.Artefacts == nil {
		return errNotServed
	}
	q, err := x.query("digest")
	if err != nil {
		return err
	}
	d := barrier.Digest(q.Get("digest"))
	if !x.p.Coordinator {
		if err := x.named(d); err != nil {
			return err
		}
	}
	c := x.copies.of(d)
	defer x.copies.done(d, c)
	raw, err := c.load(x.ctx, x.b.Artefacts, d)
	if err != nil {
		return err
	}
	write(x.w, http.StatusOK, "application/octet-stream", raw)
	return nil
}

// named refuses a member an artefact that the row does not name, in the words of one that is not there.
func (x *exchange) named(d barrier.Digest) error {
	v, err := x.b.Store.Look(x.ctx, x.p.Member)
	if err != nil {
		return err
	}
	switch {
	case d == "":
	case d == v.Committed.Digest, v.Rollout != nil && d == v.Rollout.Digest, v.Previous != nil && d == v.Previous.Digest:
		return nil
	}
	return fmt.Errorf("%w: %.80q", barrier.ErrNoArtefact, d)
}

// copies lets the requests for one artefact that are answered at the same time share its bytes: a whole cohort
// fetches a candidate at once, and each byte of it is in memory once.
type copies struct {
	mu   sync.Mutex
	live map[barrier.Digest]*shared
}

type shared struct {
	users int // guarded by copies.mu

	slot chan struct{} // holds one value: whoever takes it may load
	raw  []byte
	here bool
}

// of returns the copy of d that is in use, or an empty one. done gives it back.
func (c *copies) of(d barrier.Digest) *shared {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.live[d]
	if s == nil {
		if c.live == nil {
			c.live = map[barrier.Digest]*shared{}
		}
		s = &shared{slot: make(chan struct{}, 1)}
		s.slot <- struct{}{}
		c.live[d] = s
	}
	s.users++
	return s
}

func (c *copies) done(d barrier.Digest, s *shared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(c.live, d)
	}
}

// load returns the bytes, which nobody changes. One caller fetches them at a time; when it fails the next one
// tries, since what failed may have been its own request.
func (s *shared) load(ctx context.Context, from barrier.Artefacts, d barrier.Digest) ([]byte, error) {
	select {
	case <-s.slot:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.slot <- struct{}{} }()
	if s.here {
		return s.raw, nil
	}
	raw, err := from.Get(ctx, d)
	if err != nil {
		return nil, err
	}
	s.raw, s.here = raw, true
	return raw, nil
}
