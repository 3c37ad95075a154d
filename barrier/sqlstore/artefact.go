package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Put implements barrier.Artefacts. Afterwards it deletes what no row names and nobody put for ArtefactRetention.
func (s *Store) Put(ctx context.Context, d barrier.Digest, artefact []byte) error {
	if err := barrier.CheckArtefact(d, artefact); err != nil {
		return err
	}
	if artefact == nil {
		artefact = []byte{} // nil would be NULL
	}
	// No lock: nothing is decided by artefacts, and 4 MiB may be long under way.
	err := s.write(ctx, "put an artefact", func(t *Tx) error {
		if err := t.begin(ctx, lockNone); err != nil {
			return err
		}
		now, at := "clock_timestamp()", []any{}
		if s.dialect == SQLite {
			now, at = "$3", []any{s.dialect.instant(s.now())}
		}
		n, err := t.exec(ctx, `UPDATE barrier.artefact SET put_at = `+now+` WHERE cohort = $1 AND digest = $2`,
			append([]any{s.cohort, string(d)}, at...)...)
		if err != nil || n == 1 {
			return err
		}
		if s.dialect == SQLite {
			now = "$4"
		}
		_, err = t.exec(ctx, `INSERT INTO barrier.artefact (cohort, digest, bytes, put_at) VALUES ($1, $2, $3, `+now+`)
			ON CONFLICT (cohort, digest) DO UPDATE SET put_at = excluded.put_at`,
			append([]any{s.cohort, string(d), artefact}, at...)...)
		return err
	})
	if err != nil {
		return err
	}
	return s.deleteOld(ctx)
}

// deleteOld deletes artefacts that may go. While it does, no proposal can name one.
func (s *Store) deleteOld(ctx context.Context) error {
	old := `cohort = $1 AND put_at < clock_timestamp() - make_interval(secs => $2)`
	args := []any{s.cohort, barrier.ArtefactRetention.Seconds()}
	if s.dialect == SQLite {
		old = `cohort = $1 AND put_at < $2`
		args[1] = s.dialect.instant(s.now().Add(-barrier.ArtefactRetention))
	}
	const named = `SELECT committed_digest FROM barrier.head WHERE cohort = $1 AND committed_digest IS NOT NULL
		UNION SELECT r.digest FROM barrier.rollout r JOIN barrier.head h ON h.cohort = r.cohort
			WHERE h.cohort = $1 AND r.generation IN (h.rollout_generation, h.previous_generation)`
	old += ` AND digest NOT IN (` + named + `)`
	var some bool
	err := s.reader.QueryRowContext(ctx, s.dialect.rewrite(`SELECT EXISTS (SELECT 1 FROM barrier.artefact WHERE `+old+`)`), args...).Scan(&some)
	if err == nil && some {
		err = s.write(ctx, "delete old artefacts", func(t *Tx) error {
			if err := t.begin(ctx, lockShared); err != nil {
				return err
			}
			_, err := t.exec(ctx, `DELETE FROM barrier.artefact WHERE `+old, args...)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("look for old artefacts of cohort %s: %w", s.cohort, err)
	}
	return nil
}

// Get implements barrier.Artefacts.
func (s *Store) Get(ctx context.Context, d barrier.Digest) ([]byte, error) {
	if err := barrier.CheckDigest(d); err != nil {
		return nil, fmt.Errorf("%w: %w", barrier.ErrNoArtefact, err)
	}
	var artefact []byte
	err := s.reader.QueryRowContext(ctx, s.dialect.rewrite(`SELECT bytes FROM barrier.artefact WHERE cohort = $1 AND digest = $2`),
		s.cohort, string(d)).Scan(&artefact)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %s", barrier.ErrNoArtefact, d)
	}
	if err != nil {
		return nil, fmt.Errorf("get artefact %s: %w", d, err)
	}
	return artefact, nil
}
