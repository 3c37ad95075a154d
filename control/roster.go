package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// Bounds of what is held of nodes between writes.
const (
	// maxHeard bounds nodes that are remembered. Beyond it a poll leaves no trace and an ack is ErrBusy.
	maxHeard = 100_000
	// maxNodeAudits bounds audit entries about nodes that wait to be written; more are logged only.
	maxNodeAudits = 10_000
	// forgetAfter is how long a node that is silent is remembered.
	forgetAfter = 10 * time.Minute
	// repeatAfter is how long the same complaint of a node is audited once.
	repeatAfter = 10 * time.Minute
	// recordTimeout bounds one write.
	recordTimeout = 10 * time.Second
)

// heard is what one node said. Guarded by roster.mu.
type heard struct {
	id          string
	address     string
	seenAt      time.Time
	ack         *nodeproto.Ack        // not yet written
	trusted     []seal.KeyID          // as it last said, in order
	keysAudit   AuditEntry            // of trusted, when that is not yet written
	freshAt     time.Time             // not yet written
	believed    seal.SignedActivation // that it proved to be ahead with
	dirty       bool                  // is in roster.dirty
	complaint   string                // last one that was audited
	complaintAt time.Time
	aheadEpoch  uint64 // what it showed when it was found ahead
	aheadGen    uint64
}

// roster gathers what nodes say, so that many are written in one transaction. The zero value is ready but
// for writing.
type roster struct {
	mu     sync.Mutex
	nodes  map[string]*heard
	dirty  []*heard
	audits []AuditEntry
	batch  *batch // of the acks that are not taken yet; nil when there are none

	writing chan struct{} // holds one: who writes
}

// batch is the acks that one write makes durable.
type batch struct {
	done chan struct{} // closed when the write is over
	err  error         // of the write, once it is over
}

// node finds or makes an entry; nil when there are too many. r.mu is held.
func (r *roster) node(id string) *heard {
	h := r.nodes[id]
	if h == nil && len(r.nodes) < maxHeard {
		if r.nodes == nil {
			r.nodes = make(map[string]*heard)
		}
		h = &heard{id: id}
		r.nodes[id] = h
	}
	return h
}

// touch notes that a node was seen. r.mu is held.
func (r *roster) touch(h *heard, from string, at time.Time) {
	h.address, h.seenAt = from, at
	if !h.dirty {
		h.dirty = true
		r.dirty = append(r.dirty, h)
	}
}

// saw notes a poll.
func (r *roster) saw(p *Principal, trusted []seal.KeyID, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.node(p.NodeID)
	if h == nil {
		return
	}
	r.touch(h, p.From, at)
	h.trusts(p, trusted, at)
}

// proved notes that a node got a proof of what is live.
func (r *roster) proved(p *Principal, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.node(p.NodeID); h != nil {
		r.touch(h, p.From, at)
		h.freshAt = at
	}
}

// trusts notes the keys that a node says it trusts; none means that it did not say. r.mu is held.
func (h *heard) trusts(p *Principal, ids []seal.KeyID, at time.Time) {
	if len(ids) == 0 || sameKeys(h.trusted, ids) {
		return
	}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	h.trusted = slices.Compact(ids)
	h.keysAudit = AuditEntry{
		ID: newID(), At: at.UTC(), Actor: p.actor(), From: p.From, Action: actionNodeKeys, Target: p.NodeName, Outcome: outcome(nil),
		Detail: detail(map[string]any{"trusted_keys": h.trusted}),
	}
}

// sameKeys tells whether ids, in any order, are those of sorted.
func sameKeys(sorted, ids []seal.KeyID) bool {
	for _, id := range ids {
		if _, found := slices.BinarySearch(sorted, id); !found {
			return false
		}
	}
	return len(sorted) == len(ids)
}

// acked notes an ack; its batch tells when it is durable.
func (r *roster) acked(p *Principal, a *nodeproto.Ack, at time.Time) (*batch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.node(p.NodeID)
	if h == nil {
		return nil, fmt.Errorf("node %s: %w", p.NodeName, ErrBusy)
	}
	r.touch(h, p.From, at)
	if h.ack == nil || h.ack.Boot != a.Boot || h.ack.Sequence <= a.Sequence {
		h.ack = a // else it was overtaken on its way
	}
	h.trusts(p, a.TrustedKeys, at)
	h.aheadEpoch, h.aheadGen, h.believed = 0, 0, "" // it serves what is known
	if r.batch == nil {
		r.batch = &batch{done: make(chan struct{})}
	}
	return r.batch, nil
}

// complain queues an audit entry about a node unless it is the same complaint again. It reports whether
// the complaint is new. All of the roster's times are the database's.
func (r *roster) complain(p *Principal, complaint string, at time.Time, a AuditEntry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.node(p.NodeID)
	if h == nil || h.complaint == complaint && at.Sub(h.complaintAt) < repeatAfter {
		return false
	}
	h.complaint, h.complaintAt = complaint, at
	r.touch(h, p.From, at)
	if len(r.audits) < maxNodeAudits {
		r.audits = append(r.audits, a)
	}
	return true
}

// ahead notes that a node shows (epoch, generation); it reports whether it was found ahead with them before.
func (r *roster) wasAhead(p *Principal, epoch, generation uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.nodes[p.NodeID]
	return h != nil && h.aheadEpoch == epoch && h.aheadGen == generation && generation != 0
}

// shows returns what a node was found ahead with, nil when it was not, or acknowledged something else since.
func (r *roster) shows(id string) *NodeAhead {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.nodes[id]
	if h == nil || h.aheadGen == 0 {
		return nil
	}
	return &NodeAhead{Epoch: h.aheadEpoch, Generation: h.aheadGen, Proven: h.believed != ""}
}

func (r *roster) setAhead(p *Principal, epoch, generation uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.node(p.NodeID); h != nil {
		h.aheadEpoch, h.aheadGen = epoch, generation
	}
}

// wasBelieved tells whether what a node proves is known already.
func (r *roster) wasBelieved(p *Principal, signed seal.SignedActivation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.nodes[p.NodeID]
	return h != nil && h.believed == signed
}

func (r *roster) setBelieved(p *Principal, signed seal.SignedActivation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.node(p.NodeID); h != nil {
		h.believed = signed
	}
}

// take returns what waits to be written and forgets it. Without all, nodes that only polled are left for the next
// time: a fleet that acknowledges polls again at once, and who waits for an ack need not wait for that.
func (r *roster) take(now time.Time, all bool) (reports []NodeReport, audits []AuditEntry, acks *batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.dirty[:0]
	reports = make([]NodeReport, 0, len(r.dirty))
	for _, h := range r.dirty {
		if !all && h.ack == nil {
			left = append(left, h)
			continue
		}
		rep := NodeReport{NodeID: h.id, Address: h.address, SeenAt: h.seenAt, Ack: h.ack, FreshAt: h.freshAt, Now: now}
		if h.keysAudit.ID != "" {
			rep.TrustedKeys, rep.KeysAudit = h.trusted, h.keysAudit
		}
		reports = append(reports, rep)
		h.ack, h.keysAudit, h.freshAt, h.dirty = nil, AuditEntry{}, time.Time{}, false
	}
	clear(r.dirty[len(left):])
	audits, acks = r.audits, r.batch
	r.dirty, r.audits, r.batch = left, nil, nil
	if !all {
		return reports, audits, acks
	}
	for id, h := range r.nodes {
		if !h.dirty && now.Sub(h.seenAt) > forgetAfter {
			delete(r.nodes, id)
		}
	}
	return reports, audits, acks
}

// putBack undoes take after a write that failed; what was said since is newer and stays.
func (r *roster) putBack(reports []NodeReport, audits []AuditEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rep := range reports {
		h := r.node(rep.NodeID)
		if h == nil {
			continue
		}
		if h.ack == nil {
			h.ack = rep.Ack
		}
		if h.freshAt.IsZero() {
			h.freshAt = rep.FreshAt
		}
		if h.keysAudit.ID == "" && rep.KeysAudit.ID != "" && slices.Equal(h.trusted, rep.TrustedKeys) {
			h.keysAudit = rep.KeysAudit
			h.keysAudit.ID = newID() // see below
		}
		if !h.dirty {
			r.touch(h, rep.Address, rep.SeenAt)
		}
	}
	for _, a := range audits {
		if len(r.audits) == maxNodeAudits {
			break
		}
		// The write may have taken place and only its answer be lost: an id is used once.
		a.ID = newID()
		r.audits = append(r.audits, a)
	}
}

// flushNodes writes everything that waits.
func (s *Service) flushNodes(ctx context.Context) error { return s.flushAck(ctx, nil) }

// flushAck returns when b is durable (nil: when everything that waits now is), or its write failed. Who comes while
// a write goes on shares the one that follows it: one of them does it, and all of them are told at once.
func (s *Service) flushAck(ctx context.Context, b *batch) error {
	r := &s.roster
	var done chan struct{} // nil is never over
	if b != nil {
		done = b.done
	}
	select {
	case r.writing <- struct{}{}:
		defer func() { <-r.writing }()
	case <-done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return b.err
	default:
	}
	reports, audits, acks := r.take(s.stored.at(s.now()), b == nil)
	var err error
	if len(reports) > 0 || len(audits) > 0 {
		err = s.recordNodes(ctx, reports, audits)
	}
	if acks != nil {
		acks.err = err
		close(acks.done)
	}
	return err
}

func (s *Service) recordNodes(ctx context.Context, reports []NodeReport, audits []AuditEntry) error {
	// Others wait for this write too: that the one who happens to do it goes away must not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := s.store.RecordNodes(ctx, reports, audits); err != nil {
		s.roster.putBack(reports, audits)
		return fmt.Errorf("recording nodes: %w", err)
	}
	return nil
}
