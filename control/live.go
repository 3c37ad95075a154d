package control

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// live is what nodes are told, immutable. version 0 means that nothing was published.
type live struct {
	// epoch and generation of the activation that nodes get; epochNow is the platform's, which is greater
	// between a recovery and the activation that follows it.
	epoch      uint64
	epochNow   uint64
	generation uint64
	version    uint64
	newest     uint64 // greatest version that was ever stored
	hash       string
	artefact   *seal.Artefact // nil when version is 0
	row        *SnapshotRow   // nil when version is 0
	codings    *codings       // of the artefact; nil when version is 0
	superseded chan struct{}  // closed when another takes its place
}

// newer orders by (epoch, generation).
func newer(epoch, generation, thanEpoch, thanGeneration uint64) bool {
	return epoch > thanEpoch || epoch == thanEpoch && generation > thanGeneration
}

// liveState holds the present live value, which only moves forward.
type liveState struct {
	p         atomic.Pointer[live]
	mu        sync.Mutex // held while moving
	refreshMu sync.Mutex // held while reading from the store
}

func (st *liveState) load() *live { return st.p.Load() }

// moveLive makes l the present value unless it is not newer, and wakes who waits. It returns the present value.
func (s *Service) moveLive(l *live) *live {
	st := &s.live
	st.mu.Lock()
	defer st.mu.Unlock()
	old := st.p.Load()
	if old != nil && !newer(l.epochNow, l.generation, old.epochNow, old.generation) {
		return old
	}
	if l.artefact != nil {
		var before *codings
		if old != nil {
			before = old.codings
		}
		l.codings = newCodings(s.key, l.artefact.Sealed, before)
	}
	l.superseded = make(chan struct{})
	st.p.Store(l)
	if old != nil {
		close(old.superseded)
	}
	return l
}

// currentLive returns what memory has, reading the store only when it has nothing yet.
func (s *Service) currentLive(ctx context.Context) (*live, error) {
	if l := s.live.load(); l != nil {
		return l, nil
	}
	return s.refreshLive(ctx)
}

// refreshLive reads what is live from the store; one reading at a time. It returns the present value, which is not
// older than the call.
func (s *Service) refreshLive(ctx context.Context) (*live, error) {
	s.live.refreshMu.Lock()
	defer s.live.refreshMu.Unlock()
	platform, row, err := s.readLive(ctx)
	if err != nil {
		return nil, err
	}
	if l := s.live.load(); l != nil && !newer(platform.Epoch, platform.Generation, l.epochNow, l.generation) {
		return l, nil
	}
	l := &live{epoch: platform.Epoch, epochNow: platform.Epoch, generation: platform.Generation}
	if row != nil {
		sealed, err := s.sealedLive(ctx, row)
		if err != nil {
			return nil, fmt.Errorf("reading live version %d: %w", row.Version, err)
		}
		l.epoch, l.version, l.hash, l.row = row.Epoch, row.Version, row.ContentHash, row
		l.artefact = &seal.Artefact{Sealed: sealed, Activation: row.Activation}
	}
	if l.newest, err = s.newestVersion(ctx); err != nil {
		return nil, err
	}
	return s.moveLive(l), nil
}

// sealedLive returns the artefact of row, out of memory when it was a candidate or is what was live already.
func (s *Service) sealedLive(ctx context.Context, row *SnapshotRow) (seal.Sealed, error) {
	is := func(sealed *seal.Sealed) bool {
		return sealed.Version == row.Version && sealed.ContentHash == row.ContentHash && sealed.KeyID == row.KeyID
	}
	if t := s.trial.p.Load(); t != nil && t.sealed != nil && is(t.sealed) {
		return *t.sealed, nil
	}
	if l := s.live.load(); l != nil && l.artefact != nil && is(&l.artefact.Sealed) {
		return l.artefact.Sealed, nil
	}
	return s.store.Sealed(ctx, row.Version)
}

// liveAttempts bounds how often readLive meets somebody who publishes between its two reads.
const liveAttempts = 5

// readLive returns the platform and the row that its generation made live (nil: none), as one consistent pair.
func (s *Service) readLive(ctx context.Context) (Platform, *SnapshotRow, error) {
	for range liveAttempts {
		platform, err := s.store.Platform(ctx)
		if err != nil {
			return Platform{}, nil, fmt.Errorf("reading the platform: %w", err)
		}
		row, err := s.store.Live(ctx)
		switch {
		case errors.Is(err, ErrNotFound):
			if platform.Generation == 0 {
				return platform, nil, nil
			}
		case err != nil:
			return Platform{}, nil, fmt.Errorf("reading the live row: %w", err)
		case len(row.Generations) > 0 && row.Generations[len(row.Generations)-1] == platform.Generation:
			return platform, &row, nil
		}
	}
	return Platform{}, nil, fmt.Errorf("reading what is live: %w %d times", ErrConflict, liveAttempts)
}

// newestVersion is the greatest version that ever was live, 0 when there is none: candidates of rollouts that came to
// nothing are behind nobody.
func (s *Service) newestVersion(ctx context.Context) (uint64, error) {
	for p := (Page{Limit: 10}); ; {
		rows, err := s.store.History(ctx, p)
		if err != nil {
			return 0, fmt.Errorf("reading the newest version: %w", err)
		}
		for _, r := range rows {
			if len(r.Generations) > 0 {
				return r.Version, nil
			}
		}
		if len(rows) < p.Limit {
			return 0, nil
		}
		p.After = versionKey(rows[len(rows)-1])
	}
}

// versionKey is the page key of a history.
func versionKey(r SnapshotRow) string { return strconv.FormatUint(r.Version, 10) }

// openedSnapshot keeps the one snapshot that plans compare with, so that it is opened once and not for
// each plan.
type openedSnapshot struct {
	mu   sync.Mutex // held while opening: one at a time
	snap *snapshot.Snapshot
}

func (o *openedSnapshot) set(snap *snapshot.Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.snap = snap
}

// openLive returns the snapshot of row, nil for a nil row.
func (s *Service) openLive(ctx context.Context, row *SnapshotRow) (*snapshot.Snapshot, error) {
	if row == nil {
		return nil, nil
	}
	s.opened.mu.Lock()
	defer s.opened.mu.Unlock()
	if o := s.opened.snap; o != nil && o.Meta().Version == row.Version && o.ContentHash() == row.ContentHash {
		return o, nil
	}
	var sealed seal.Sealed
	if l := s.live.load(); l != nil && l.artefact != nil && l.version == row.Version && l.hash == row.ContentHash {
		sealed = l.artefact.Sealed
	} else {
		var err error
		if sealed, err = s.store.Sealed(ctx, row.Version); err != nil {
			return nil, fmt.Errorf("reading version %d: %w", row.Version, err)
		}
	}
	snap, err := s.openStored(sealed)
	if err != nil {
		return nil, fmt.Errorf("opening version %d as it is stored: %w", row.Version, err)
	}
	s.opened.snap = snap
	return snap, nil
}

// openStored reads a snapshot out of the control plane's own store, which what it holds is compared with and
// nothing is served from. One that was sealed with a key that is not known here any more is read too: after a change
// of keys it is what is live, until it is sealed anew.
func (s *Service) openStored(sealed seal.Sealed) (*snapshot.Snapshot, error) {
	snap, err := seal.OpenSealed(sealed, s.trusted)
	var refusal *seal.Refusal
	if errors.As(err, &refusal) && refusal.Code == seal.CodeKeyUntrusted {
		return readPayload(sealed)
	}
	return snap, err
}

// readPayload reads a payload whose signature cannot be checked; its content must still have the hash.
func readPayload(sealed seal.Sealed) (*snapshot.Snapshot, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(seal.MaxDocument))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	doc, err := dec.DecodeAll(sealed.Payload, nil)
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	snap, err := snapshot.Parse(doc, nil)
	if err != nil {
		return nil, err
	}
	if snap.ContentHash() != sealed.ContentHash || snap.Meta().Version != sealed.Version {
		return nil, fmt.Errorf("it holds version %d with content %s", snap.Meta().Version, snap.ContentHash())
	}
	return snap, nil
}
