package control

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// maxStatements bounds the statements that are kept for nodes at the same place; nodes that follow are at one or two.
const maxStatements = 16

// purgeHead is the end of the log as this process knows it, immutable.
type purgeHead struct {
	mark       seal.PurgeMark
	text       string        // mark in one word
	superseded chan struct{} // closed when another takes its place
}

// purgeLog is what a process keeps of the log of purges.
type purgeLog struct {
	head atomic.Pointer[purgeHead]
	mu   sync.Mutex // held while the head is read and moved

	reads sharedCall[purgeReading]

	stMu       sync.Mutex // held while a statement is made
	of         purgeReading
	statements map[string]string // by the place that they answer; those of the reading of
}

// purgeReading is what statements are made of beside the rows.
type purgeReading struct {
	platform string
	epoch    uint64
	head     seal.PurgeMark
}

// followPurges makes memory agree with the end of the log, and wakes the polls that wait for it.
func (s *Service) followPurges(ctx context.Context, end seal.PurgeMark) error {
	if h := s.purges.head.Load(); h != nil && h.mark == end {
		return nil
	}
	_, err := s.refreshPurges(ctx)
	return err
}

// refreshPurges reads the end of the log; what it returns is not older than the call.
func (s *Service) refreshPurges(ctx context.Context) (*purgeHead, error) {
	s.purges.mu.Lock()
	defer s.purges.mu.Unlock()
	rev, err := s.revisions(ctx)
	if err != nil {
		return nil, err
	}
	old := s.purges.head.Load()
	if old != nil && old.mark == rev.Purges {
		return old, nil
	}
	h := &purgeHead{mark: rev.Purges, text: rev.Purges.String(), superseded: make(chan struct{})}
	s.purges.head.Store(h)
	if old != nil {
		close(old.superseded)
	}
	return h, nil
}

// purgesFor returns the end of the log that a node which has done purges up to q.Purged is told of; nil: it is told of none. A store
// that does not answer keeps no node from its configuration.
func (s *Service) purgesFor(ctx context.Context, q *nodeproto.Poll) *purgeHead {
	if q.Purged == "" {
		return nil
	}
	h := s.purges.head.Load()
	if h != nil {
		m, err := seal.ParsePurgeMark(q.Purged)
		if err != nil || m.Sequence <= h.mark.Sequence {
			return h
		}
	}
	// It was told by another process what this one reads only within a second.
	if now, err := s.refreshPurges(ctx); err == nil {
		return now
	}
	return h
}

// Purges answers a node that has done the purges up to after (nil: it knows no place in the log) with what follows, as a signed
// statement (node).
func (s *Service) Purges(ctx context.Context, p Principal, after *seal.PurgeMark) (string, error) {
	if err := p.isNode(); err != nil {
		return "", err
	}
	if after != nil {
		if err := after.Validate(); err != nil {
			return "", malformed("", "after", "purges_malformed", "%v", err)
		}
	}
	now, err := s.purges.reads.do(ctx, s.readPurges)
	if err != nil {
		return "", err
	}
	statement, err := s.purgeStatement(ctx, now, after)
	if err != nil {
		return "", fmt.Errorf("purges for node %s: %w", p.NodeName, err)
	}
	s.count.purgeAnswers.Add(1)
	return statement, nil
}

func (s *Service) readPurges(ctx context.Context) (purgeReading, error) {
	platform, err := s.store.Platform(ctx)
	if err != nil {
		return purgeReading{}, fmt.Errorf("reading the platform: %w", err)
	}
	h, err := s.refreshPurges(ctx)
	if err != nil {
		return purgeReading{}, err
	}
	return purgeReading{platform.ID, platform.Epoch, h.mark}, nil
}

// purgeStatement is made once for all nodes at one place. What was made of a later reading is as good as what would be
// made now.
func (s *Service) purgeStatement(ctx context.Context, now purgeReading, after *seal.PurgeMark) (string, error) {
	l := &s.purges
	l.stMu.Lock()
	defer l.stMu.Unlock()
	if l.of != now && (now.epoch != l.of.epoch || now.head.Sequence >= l.of.head.Sequence) {
		l.of, l.statements = now, nil
	}
	place := nodeproto.NoPurges
	if after != nil {
		place = after.String()
	}
	if st, ok := l.statements[place]; ok {
		return st, nil
	}
	st := seal.PurgeStatement{Platform: now.platform, Epoch: now.epoch, After: after, IssuedAt: s.now()}
	from := now.head
	if after != nil {
		from = *after
	}
	b, err := s.store.PurgesAfter(ctx, from, seal.MaxPurges, seal.MaxPurgesBytes)
	if err != nil {
		return "", err
	}
	if after == nil || !b.Known {
		st.Floor, st.To = true, b.Head
	} else {
		st.To = *after
		st.Purges = make([]zone.Purge, len(b.Rows))
		for i, r := range b.Rows {
			st.Purges[i], st.To = r.Purge, r.Mark()
		}
		st.More = st.To != b.Head
	}
	signed, err := seal.SignPurges(s.key, st)
	if err != nil {
		return "", err
	}
	if b.Head == l.of.head { // else more was written meanwhile, and who asks next is told of it
		if l.statements == nil || len(l.statements) >= maxStatements {
			l.statements = make(map[string]string)
		}
		l.statements[place] = signed
	}
	return signed, nil
}
