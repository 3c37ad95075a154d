package control

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// Bounds of an ack.
const (
	maxAckKeys    = 64
	maxAckMessage = 2000 // bytes; a longer one is cut
	maxAckProof   = 4 << 10
)

// actionRejected and actionAhead name what nodes do in the audit log.
const (
	actionRejected = "config.node_rejected"
	actionAhead    = "config.node_ahead"
	// actionAheadProven is the one that stops all signing.
	actionAheadProven = "config.signing_stopped"
	actionNodeKeys    = "node.keys_change"
)

// Ack records what a node says that it serves (node, for itself alone); it is durable when Ack returns
// nil. ErrNodeAhead for an epoch, generation or version that was never issued. An error in a is logged and
// audited as config.node_rejected. ErrBusy when too many nodes are heard at one time.
func (s *Service) Ack(ctx context.Context, p Principal, a nodeproto.Ack) error {
	if err := p.isNode(); err != nil {
		return err
	}
	a, err := cleanAck(a)
	if err != nil {
		return err
	}
	if err := s.wasIssued(ctx, &p, a); err != nil {
		return err
	}
	if a.Error != nil {
		s.rejected(&p, a)
	}
	a.Activation = "" // what it proves is known
	b, err := s.roster.acked(&p, &a, s.stored.at(s.now()))
	if err != nil {
		return err
	}
	s.count.acks.Add(1)
	return s.flushAck(ctx, b)
}

var errorCode = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// cleanAck checks what is malformed and returns a copy of its own.
func cleanAck(a nodeproto.Ack) (nodeproto.Ack, error) {
	var problems []Problem
	refuse := func(member, format string, args ...any) {
		problems = append(problems, Problem{Object: member, Code: "ack_malformed", Message: fmt.Sprintf(format, args...)})
	}
	if a.Version == 0 != (a.Generation == 0) || a.Version == 0 != (a.Epoch == 0) {
		refuse("version", "version, generation and epoch are all zero, when nothing is served, or none of them")
	}
	if a.Version == 0 && a.ContentHash != "" || a.Version != 0 && !isHex(a.ContentHash, 64) {
		refuse("content_hash", "the hash of what is served is 64 lower-case hex digits, empty when nothing is")
	}
	if !isHex(a.Boot, 32) {
		refuse("boot", "the id of the process is 32 lower-case hex digits")
	}
	if a.Sequence > math.MaxInt64 {
		refuse("sequence", "the number of an acknowledgement is at most %d", int64(math.MaxInt64))
	}
	if len(a.TrustedKeys) > maxAckKeys {
		refuse("trusted_keys", "at most %d keys", maxAckKeys)
	}
	for _, id := range a.TrustedKeys {
		if !isHex(string(id), 16) {
			refuse("trusted_keys", "a key id is 16 lower-case hex digits")
			break
		}
	}
	if len(a.Activation) > maxAckProof {
		refuse("activation", "an activation is at most %d bytes long", maxAckProof)
	}
	if !slices.Contains([]string{"", "fresh", "stale"}, a.Freshness) {
		refuse("freshness", "freshness is fresh, stale or absent")
	}
	if a.Purged != nil {
		m := *a.Purged
		if err := m.Validate(); err != nil {
			refuse("purged", "%v", err)
		}
		a.Purged = &m
	}
	if a.Error != nil {
		e := *a.Error
		if !errorCode.MatchString(e.Code) {
			refuse("error", "a code is a word in snake_case of at most 64 letters")
		}
		e.Message = strings.ToValidUTF8(e.Message[:min(len(e.Message), maxAckMessage)], "\uFFFD")
		a.Error = &e
	}
	if problems != nil {
		return a, &ProblemsError{Problems: problems}
	}
	a.TrustedKeys, a.Pools = slices.Clone(a.TrustedKeys), cleanPools(a.Pools)
	return a, nil
}

// wasIssued refuses an ack of what this control plane never gave out.
func (s *Service) wasIssued(ctx context.Context, p *Principal, a nodeproto.Ack) error {
	l, err := s.currentLive(ctx)
	if err != nil {
		return err
	}
	t := s.trial.p.Load()
	tried := func() bool { return t.issued(a.Epoch, a.Generation) && t.concerns(p.NodeID) }
	never := func() bool {
		// What an epoch before a recovery issued is not known wholly.
		return !tried() && (newer(a.Epoch, a.Generation, l.epochNow, l.generation) || a.Version > l.newest && a.Epoch == l.epochNow)
	}
	if never() {
		// Another process may have published what this one reads only within a second.
		if !s.roster.wasAhead(p, a.Epoch, a.Generation) {
			if l, t, err = s.refreshBoth(ctx); err != nil {
				return err
			}
		}
		if never() {
			s.foundAhead(p, l, a.Epoch, a.Generation)
			if err := s.believe(ctx, p, l, t, a.Activation); err != nil {
				return err
			}
			return fmt.Errorf("node %s acknowledges epoch %d, generation %d, version %d: %w",
				p.NodeName, a.Epoch, a.Generation, a.Version, ErrNodeAhead)
		}
	}
	if a.Generation == 0 {
		return nil
	}
	was := issued{l.version, l.hash}
	switch {
	case tried():
		was = issued{t.row.Version, t.row.ContentHash}
	case a.Epoch != l.epoch || a.Generation != l.generation:
		if was, err = s.issuedAs(ctx, a.Epoch, a.Generation); err != nil {
			return err
		}
	}
	switch {
	case was == issued{a.Version, a.ContentHash}:
		return nil
	case was.version != 0:
		return malformed("", "content_hash", "ack_mismatch",
			"generation %d is version %d, content %s, not what was acknowledged", a.Generation, was.version, was.hash)
	case a.Epoch == l.epochNow:
		return malformed("", "generation", "ack_mismatch", "generation %d of epoch %d was never issued", a.Generation, a.Epoch)
	}
	return nil // of an epoch that a recovery ended, which is not known wholly
}

// rejected tells that a node could not install what it was offered: the platform serves two configurations.
func (s *Service) rejected(p *Principal, a nodeproto.Ack) {
	s.count.rejections.Add(1)
	s.log.Error("a node refused a configuration and keeps serving what it has", "node", p.NodeName,
		"serves_version", a.Version, "serves_generation", a.Generation,
		"refused_version", a.Error.Version, "code", a.Error.Code, "message", a.Error.Message)
	e := s.entry(*p, "", actionRejected, fmt.Sprintf("version %d", a.Error.Version))
	e.Outcome = a.Error.Code
	e.Detail = detail(map[string]any{
		"message": a.Error.Message, "serves_version": a.Version, "serves_generation": a.Generation,
	})
	s.roster.complain(p, fmt.Sprintf("%s %s %s", actionRejected, e.Target, e.Outcome), s.stored.at(s.now()), e)
}

// foundAhead tells that a node has seen more than this control plane issued: the database was restored
// from an older backup, or the node belongs to another platform.
func (s *Service) foundAhead(p *Principal, l *live, epoch, generation uint64) {
	s.roster.setAhead(p, epoch, generation)
	e := s.entry(*p, "", actionAhead, fmt.Sprintf("epoch %d generation %d", epoch, generation))
	e.Outcome = "node_ahead"
	if s.roster.complain(p, actionAhead+" "+e.Target, s.stored.at(s.now()), e) {
		s.log.Error("a node is ahead of this control plane", "node", p.NodeName, "node_epoch", epoch,
			"node_generation", generation, "epoch", l.epochNow, "generation", l.generation)
	}
}
