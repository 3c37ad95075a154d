package control

import (
	"context"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
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
// that long for something newer, or until ctx is done or Run ends; both give the 204 answer. With q.Purged a purge that the node
// has not done ends the waiting too. At most Config.MaxLongPolls wait at one time, others are answered at once. The artefact is shared and must not be
// changed; of what q.Held names it comes without its payload. With q.Dictionary it comes with Answer.Coding, beside its
// payload, when the two have enough in common and this process has had what the node holds.
//
// With q.Trial, and to a node of that rollout's epoch alone, what is on trial counts as live: it is offered the provisional
// activation, and is current with it. Once it was confirmed such a node is offered the confirmed activation of the same
// generation.
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
	t, err := s.trialOf(ctx, &q, l)
	if err != nil {
		return PollAnswer{}, err
	}
	s.roster.saw(&p, q.TrustedKeys, s.stored.at(s.now()))
	place, o := l.place(t, &p, &q)
	if place == nodeAhead && !s.roster.wasAhead(&p, q.Epoch, q.Generation) {
		// Another process may have published what this one reads only within a second.
		if l, t, err = s.refreshBoth(ctx); err != nil {
			return PollAnswer{}, err
		}
		if place, o = l.place(t, &p, &q); place == nodeAhead {
			s.foundAhead(&p, l, q.Epoch, q.Generation)
		}
	}
	if place == nodeAhead {
		s.count.ahead.Add(1)
		return PollAnswer{Answer: nodeproto.Answer{Version: l.version}, Generation: l.generation},
			fmt.Errorf("node %s shows epoch %d, generation %d, version %d: %w", p.NodeName, q.Epoch, q.Generation, q.Have, ErrNodeAhead)
	}
	purges := s.purgesFor(ctx, &q)
	if place == nodeCurrent && q.Wait > 0 {
		place, o, purges = s.wait(ctx, l, t, purges, &p, &q)
	}
	a := PollAnswer{Answer: nodeproto.Answer{Version: o.version}, Generation: o.generation}
	if purges != nil {
		a.Purges = purges.text
	}
	if place == nodeBehind {
		s.count.answered.Add(1)
		a.Artefact, a.Held = o.artefact.without(q.Held)
		if !a.Held {
			a.Coding = s.coded(o, q.Dictionary)
		}
	}
	if q.Nonce != "" {
		if a.Freshness, err = s.freshness(o, q.Nonce); err != nil {
			return PollAnswer{}, err
		}
		if a.Freshness != "" {
			s.roster.proved(&p, s.stored.at(s.now()))
		}
	}
	return a, nil
}

// coded returns o's artefact coded with what the node holds, nil when all of it is to be sent.
func (s *Service) coded(o offer, held seal.DictionaryID) *seal.Coding {
	c := o.codings.get(held)
	if c != nil {
		s.count.coded.Add(1)
		s.count.codedSaved.Add(uint64(len(o.artefact.Payload) - len(c.Body)))
	}
	return c
}

// refreshBoth reads what is live and the newest rollout.
func (s *Service) refreshBoth(ctx context.Context) (*live, *trial, error) {
	// The rollout first: when it is confirmed between the two, it is seen as what is live.
	if err := s.refreshTrial(ctx); err != nil {
		return nil, nil, err
	}
	l, err := s.refreshLive(ctx)
	return l, s.trial.p.Load(), err
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
	if q.Held != "" && !isHex(q.Held, 64) {
		return malformed("", "held", "poll_malformed", "held is the hash of a payload, 64 lower-case hex digits")
	}
	if len(q.Trial) > barrier.MaxIDBytes {
		return malformed("", "trial", "poll_malformed", "trial is the id of a rollout, at most %d bytes", barrier.MaxIDBytes)
	}
	if q.Purged != "" && q.Purged != nodeproto.NoPurges {
		if _, err := seal.ParsePurgeMark(q.Purged); err != nil {
			return malformed("", "purged", "poll_malformed", "%v", err)
		}
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

// offer is what counts as live for one node.
type offer struct {
	epoch, generation, version uint64
	hash                       string
	artefact                   *payload // nil when nothing is published
	codings                    *codings // nil: none, as on trial, when nodes hold the payload
}

// payload is an artefact that may be sent with its payload or without.
type payload seal.Artefact

// without returns the artefact, and without its payload when that is held.
func (p *payload) without(held string) (a *seal.Artefact, isHeld bool) {
	if held == "" || held != p.PayloadBLAKE3 {
		return (*seal.Artefact)(p), false
	}
	bare := seal.Artefact(*p)
	bare.Payload = nil
	return &bare, true
}

func (l *live) offer() offer {
	return offer{l.epoch, l.generation, l.version, l.hash, (*payload)(l.artefact), l.codings}
}

// place tells where a node stands against what counts as live for it.
func (l *live) place(t *trial, p *Principal, q *nodeproto.Poll) (nodePlace, offer) {
	if t.concerns(p.NodeID) && t.row.Epoch == l.epochNow && newer(t.row.Epoch, t.row.Generation, l.epoch, l.generation) {
		tried := offer{t.row.Epoch, t.row.Generation, t.row.Version, t.row.ContentHash, (*payload)(t.artefact()), nil}
		switch {
		case t.issued(q.Epoch, q.Generation) && q.Have == t.row.Version:
			// On trial, or taken back and not yet back: nothing alarming either way.
			return nodeCurrent, tried
		case q.Trial == string(t.rollout.ID) && tried.artefact != nil && newer(tried.epoch, tried.generation, q.Epoch, q.Generation):
			return nodeBehind, tried
		}
	}
	if l.confirms(q) {
		return nodeBehind, l.offer()
	}
	return l.placeLive(q), l.offer()
}

// confirms tells whether l is the confirmation of what the node has on trial.
func (l *live) confirms(q *nodeproto.Poll) bool {
	return q.Trial != "" && l.row != nil && l.row.Kind == seal.KindConfirmed &&
		q.Epoch == l.epoch && q.Generation == l.generation
}

func (l *live) placeLive(q *nodeproto.Poll) nodePlace {
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

// wait waits for something newer than what q has, purges included.
func (s *Service) wait(ctx context.Context, l *live, t *trial, h *purgeHead, p *Principal, q *nodeproto.Poll) (nodePlace, offer, *purgeHead) {
	place, o := l.place(t, p, q)
	if s.count.waiting.Add(1) > s.maxLongPolls {
		s.count.waiting.Add(-1)
		return place, o, h
	}
	defer s.count.waiting.Add(-1)
	timer := time.NewTimer(q.Wait)
	defer timer.Stop()
	for place == nodeCurrent && (h == nil || h.text == q.Purged) {
		var purged <-chan struct{}
		if h != nil {
			purged = h.superseded
		}
		// What is on trial wakes those alone whom it concerns and who ask for it.
		var tried <-chan struct{}
		if q.Trial != "" {
			tried = t.over()
		}
		select {
		case <-l.superseded:
		case <-tried:
		case <-purged:
			h = s.purges.head.Load()
		case <-timer.C:
			return place, o, h
		case <-ctx.Done():
			return place, o, h
		case <-s.stopping:
			return place, o, h
		}
		l, t = s.live.load(), s.trial.p.Load()
		place, o = l.place(t, p, q)
	}
	return place, o, h
}

// freshness proves to the node that asked with nonce what is live now; there is nothing to prove before
// anything is.
func (s *Service) freshness(o offer, nonce string) (string, error) {
	if o.artefact == nil {
		return "", nil
	}
	return seal.SignFreshness(s.key, seal.FreshnessStatement{
		Nonce: nonce, Epoch: o.epoch, Generation: o.generation, ContentHash: o.hash, IssuedAt: s.now(),
	})
}
