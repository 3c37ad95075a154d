package control

import (
	"context"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// PollAnswer is nodeproto.Answer with the live generation, which a 204 tells too.
type PollAnswer struct {
	nodeproto.Answer
	Generation uint64
}

// Poll answers a node from memory (node). Answer.Artefact is nil when the node is current (204);
// Answer.Version is 0 when nothing was published. With Generation and Epoch 0 it compares versions for
// equality, else (epoch, generation) by order: ErrNodeAhead for a node that is ahead. With q.Wait it waits
// that long for something newer, or until ctx is done or Run ends; both give the 204 answer. At most
// Config.MaxLongPolls wait at one time, others are answered at once. The artefact is shared and must not be
// changed.
func (s *Service) Poll(ctx context.Context, p Principal, q nodeproto.Poll) (PollAnswer, error) {
	if err := p.isNode(); err != nil {
		return PollAnswer{}, err
	}
	if err := checkPoll(&q); err != nil {
		return PollAnswer{}, err
	}
	s.count.polls.Add(1)
	l, err := s.currentLive(ctx)
	if err != nil {
		return PollAnswer{}, err
	}
	s.roster.saw(&p, q.TrustedKeys, s.now())
	place := l.place(&q)
	if place == nodeAhead && !s.roster.wasAhead(&p, q.Epoch, q.Generation) {
		// Another process may have published what this one reads only within a second.
		if l, err = s.refreshLive(ctx); err != nil {
			return PollAnswer{}, err
		}
		if place = l.place(&q); place == nodeAhead {
			s.foundAhead(&p, l, q.Epoch, q.Generation)
		}
	}
	if place == nodeAhead {
		s.count.ahead.Add(1)
		return PollAnswer{Answer: nodeproto.Answer{Version: l.version}, Generation: l.generation},
			fmt.Errorf("node %s shows epoch %d, generation %d, version %d: %w", p.NodeName, q.Epoch, q.Generation, q.Have, ErrNodeAhead)
	}
	if place == nodeCurrent && q.Wait > 0 {
		l, place = s.wait(ctx, l, &q)
	}
	a := PollAnswer{Answer: nodeproto.Answer{Version: l.version}, Generation: l.generation}
	if place == nodeBehind {
		s.count.answered.Add(1)
		a.Artefact = l.artefact
	}
	if q.Nonce != "" {
		if a.Freshness, err = s.freshness(l, q.Nonce); err != nil {
			return PollAnswer{}, err
		}
		if a.Freshness != "" {
			s.roster.proved(&p, s.now())
		}
	}
	return a, nil
}

func checkPoll(q *nodeproto.Poll) error {
	if q.Wait < 0 || q.Wait > nodeproto.MaxWait {
		return malformed("", "wait", "poll_malformed", "wait is 0 to %d seconds", nodeproto.MaxWait/time.Second)
	}
	if q.Nonce != "" && !seal.ValidNonce(q.Nonce) {
		return malformed("", "nonce", "poll_malformed", "a nonce is 16 to 64 lower-case hex digits")
	}
	if len(q.TrustedKeys) > maxAckKeys {
		return malformed("", "trusted_keys", "poll_malformed", "at most %d keys", maxAckKeys)
	}
	return nil
}

// nodePlace is where a node stands against what is live.
type nodePlace int

const (
	nodeCurrent nodePlace = iota
	nodeBehind
	nodeAhead
)

func (l *live) place(q *nodeproto.Poll) nodePlace {
	if q.Epoch != 0 || q.Generation != 0 {
		switch {
		case newer(q.Epoch, q.Generation, l.epoch, l.generation):
			return nodeAhead
		case newer(l.epoch, l.generation, q.Epoch, q.Generation) && l.artefact != nil:
			return nodeBehind
		}
	}
	switch {
	case q.Have == l.version:
		return nodeCurrent
	case l.artefact == nil:
		return nodeAhead
	}
	// Of the same generation it may have kept the mark and lost the artefact.
	return nodeBehind
}

// wait waits for something newer than what q has.
func (s *Service) wait(ctx context.Context, l *live, q *nodeproto.Poll) (*live, nodePlace) {
	if s.count.waiting.Add(1) > s.maxLongPolls {
		s.count.waiting.Add(-1)
		return l, nodeCurrent
	}
	defer s.count.waiting.Add(-1)
	timer := time.NewTimer(q.Wait)
	defer timer.Stop()
	for {
		select {
		case <-l.superseded:
			l = s.live.load()
			if place := l.place(q); place != nodeCurrent {
				return l, place
			}
		case <-timer.C:
			return l, nodeCurrent
		case <-ctx.Done():
			return l, nodeCurrent
		case <-s.stopping:
			return l, nodeCurrent
		}
	}
}

// freshness proves to the node that asked with nonce what is live now; there is nothing to prove before
// anything is.
func (s *Service) freshness(l *live, nonce string) (string, error) {
	if l.artefact == nil {
		return "", nil
	}
	return seal.SignFreshness(s.key, seal.FreshnessStatement{
		Nonce: nonce, Epoch: l.epoch, Generation: l.generation, ContentHash: l.hash, IssuedAt: s.now(),
	})
}
