package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/seal"
)

// Platform implements control.PublishStore.
func (db *DB) Platform(ctx context.Context) (control.Platform, error) {
	var p control.Platform
	var (
		a                          control.AheadNode
		epoch, generation, version sql.Null[int64]
	)
	err := db.single().row(ctx, `
		SELECT p.id, p.epoch, p.generation, a.epoch, a.generation, a.version, a.node, a.signed, a.seen_at
		FROM edge.platform p LEFT JOIN edge.ahead a ON a.one = p.one`).
		Scan(&p.ID, &p.Epoch, &p.Generation, &epoch, &generation, &version,
			textColumn{&a.Node}, textColumn{(*string)(&a.Activation)}, timeColumn{&a.SeenAt})
	if err != nil {
		return p, fmt.Errorf("read platform: %w", err)
	}
	if epoch.Valid {
		a.Epoch, a.Generation, a.Version = uint64(epoch.V), uint64(generation.V), uint64(version.V)
		p.Ahead = &a
	}
	return p, nil
}

// Revisions implements control.PublishStore.
func (db *DB) Revisions(ctx context.Context) (control.Revisions, error) {
	var r control.Revisions
	err := db.single().row(ctx, `
		SELECT p.epoch, p.generation, p.directory, p.rollouts, l.head, l.head_id, `+db.dialect.clock()+`
		FROM edge.platform p JOIN edge.purge_log l ON l.one = p.one`).
		Scan(&r.Epoch, &r.Generation, &r.Directory, &r.Rollouts, &r.Purges.Sequence, &r.Purges.ID, timeColumn{&r.Now})
	if err != nil {
		return r, fmt.Errorf("read revisions: %w", err)
	}
	return r, nil
}

// NextVersion implements control.PublishStore. It is a transaction of its own: what becomes of the caller
// does not give the version back.
func (db *DB) NextVersion(ctx context.Context) (uint64, error) {
	var version uint64
	err := db.write(ctx, func(q querier) error {
		if err := q.row(ctx, q.dialect.nextVersion()).Scan(&version); err != nil {
			return err
		}
		return failpoint.Hit(failpoint.VersionTaken)
	})
	if err == nil {
		err = failpoint.Hit(failpoint.VersionCommitted)
	}
	if err != nil {
		return 0, fmt.Errorf("take a version: %w", err)
	}
	return version, nil
}

// Publish implements control.PublishStore. A version to insert that stands already is ErrExists, one to
// activate that does not is ErrNotFound; an activation of another epoch than the platform's is
// ErrConflict.
func (db *DB) Publish(ctx context.Context, p control.Publication) error {
	if err := checkPublication(p); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	act := p.Activation
	err := db.write(ctx, func(q querier) error {
		if err := failpoint.Hit(failpoint.PublishBegin); err != nil {
			return err
		}
		// First of all, because they are the locks that every publisher waits for.
		if err := q.advance(ctx, p); err != nil {
			return err
		}
		return q.publish(ctx, p)
	})
	if err == nil {
		err = failpoint.Hit(failpoint.PublishCommitted)
	}
	if err != nil {
		return fmt.Errorf("publish version %d as generation %d: %w", act.Version, act.Generation, err)
	}
	return nil
}

// publish moves the live pointer and all that goes with it.
func (q querier) publish(ctx context.Context, p control.Publication) error {
	act := p.Activation
	n, err := q.exec(ctx, `UPDATE edge.platform SET generation = $1 WHERE id = $2 AND epoch = $3 AND generation = $4`,
		int64(act.Generation), act.Platform, int64(act.Epoch), int64(p.SeenGeneration))
	if err != nil {
		return err
	}
	if n == 0 {
		return q.publishConflict(ctx, p)
	}
	q.touch()
	if err := failpoint.Hit(failpoint.PublishGeneration); err != nil {
		return err
	}
	// A statement of its own: whoever recorded it while the lock was waited for is seen.
	if err := q.nobodyAhead(ctx); err != nil {
		return err
	}
	if p.Insert != nil {
		if err := q.insertSnapshot(ctx, p.Insert); err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.PublishInserted); err != nil {
			return err
		}
	}
	if p.Reseal != nil {
		if err := q.reseal(ctx, p.Reseal); err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.PublishResealed); err != nil {
			return err
		}
	}
	if p.Replay != nil {
		if err := q.insertReplay(ctx, *p.Replay); err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.PublishReplay); err != nil {
			return err
		}
	}
	if err := q.moveLive(ctx, p); err != nil {
		return err
	}
	for _, a := range append([]control.AuditEntry{p.Audit}, p.Also...) {
		if err := q.appendAudit(ctx, a); err != nil {
			return err
		}
	}
	return failpoint.Hit(failpoint.PublishAudited)
}

// moveLive makes the version of p's activation the one live row and writes the activation down.
func (q querier) moveLive(ctx context.Context, p control.Publication) error {
	act := p.Activation
	if _, err := q.exec(ctx, `UPDATE edge.snapshot SET activated_at = NULL WHERE activated_at IS NOT NULL`); err != nil {
		return err
	}
	if err := failpoint.Hit(failpoint.PublishCleared); err != nil {
		return err
	}
	n, err := q.exec(ctx, `UPDATE edge.snapshot SET activated_at = $1 WHERE version = $2`, timeArg(p.At), int64(act.Version))
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("version %d: %w", act.Version, control.ErrNotFound)
	}
	if err := failpoint.Hit(failpoint.PublishMoved); err != nil {
		return err
	}
	_, err = q.exec(ctx, `
		INSERT INTO edge.activation (epoch, generation, version, kind, signed, by, at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		int64(act.Epoch), int64(act.Generation), int64(act.Version), string(act.Kind), string(p.Signed), p.By, timeArg(p.At))
	if err != nil {
		return err
	}
	return failpoint.Hit(failpoint.PublishActivated)
}

// checkPublication refuses what no run of the transaction could make right.
func checkPublication(p control.Publication) error {
	if p.Activation.Generation <= p.SeenGeneration {
		return fmt.Errorf("generation %d does not follow %d", p.Activation.Generation, p.SeenGeneration)
	}
	if p.At.IsZero() {
		return errors.New("the activation has no time")
	}
	if r := p.Reseal; r != nil && (p.Insert != nil || r.Version != p.Activation.Version) {
		return fmt.Errorf("version %d is to be sealed anew while version %d is activated", r.Version, p.Activation.Version)
	}
	if p.Insert == nil {
		return nil
	}
	row, sealed, act := p.Insert.Row, p.Insert.Sealed, p.Activation
	if row.Version != act.Version || sealed.Version != act.Version {
		return fmt.Errorf("version %d is to be inserted, sealed as %d and activated as %d", row.Version, sealed.Version, act.Version)
	}
	if row.ContentHash != sealed.ContentHash {
		return fmt.Errorf("version %d has content hash %s and is sealed as %s", row.Version, row.ContentHash, sealed.ContentHash)
	}
	return nil
}

// publishConflict says what the platform's row has instead of what p saw.
func (q querier) publishConflict(ctx context.Context, p control.Publication) error {
	var now control.Platform
	err := q.row(ctx, `SELECT id, epoch, generation FROM edge.platform`).Scan(&now.ID, &now.Epoch, &now.Generation)
	switch {
	case err != nil:
		return err
	case now.ID != p.Activation.Platform:
		return fmt.Errorf("the activation is of platform %q, this is %s", p.Activation.Platform, now.ID)
	case now.Epoch != p.Activation.Epoch:
		return fmt.Errorf("%w: the platform is in epoch %d, not %d", control.ErrConflict, now.Epoch, p.Activation.Epoch)
	default:
		return fmt.Errorf("%w: generation %d is live, not %d", control.ErrConflict, now.Generation, p.SeenGeneration)
	}
}

// reseal replaces the seal of a stored version, whose content must be the same.
func (q querier) reseal(ctx context.Context, s *seal.Sealed) error {
	n, err := q.exec(ctx, `
		UPDATE edge.snapshot SET payload = $1, payload_blake3 = $2, signature = $3, key_id = $4, bytes = $5
		WHERE version = $6 AND content_hash = $7`,
		s.Payload, s.PayloadBLAKE3, s.Signature, string(s.KeyID), len(s.Payload), int64(s.Version), s.ContentHash)
	if err == nil && n == 0 {
		err = fmt.Errorf("version %d with content %s: %w", s.Version, s.ContentHash, control.ErrNotFound)
	}
	return err
}

func (q querier) insertSnapshot(ctx context.Context, s *control.NewSnapshot) error {
	row, sealed := s.Row, s.Sealed
	_, err := q.exec(ctx, `
		INSERT INTO edge.snapshot (version, parent_version, content_hash, created_by, message, created_at,
		                           zones, bytes, key_id, payload_blake3, signature, payload)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		int64(row.Version), int64(row.ParentVersion), row.ContentHash, row.CreatedBy, row.Message, timeArg(row.CreatedAt),
		row.Zones, len(sealed.Payload), string(sealed.KeyID), sealed.PayloadBLAKE3, sealed.Signature, sealed.Payload)
	return q.identity(err)
}

// Sealed implements control.PublishStore.
func (db *DB) Sealed(ctx context.Context, version uint64) (seal.Sealed, error) {
	var s seal.Sealed
	err := db.single().row(ctx, `
		SELECT version, content_hash, key_id, payload_blake3, signature, payload FROM edge.snapshot WHERE version = $1`, int64(version)).
		Scan(&s.Version, &s.ContentHash, &s.KeyID, &s.PayloadBLAKE3, &s.Signature, &s.Payload)
	if err != nil {
		return seal.Sealed{}, fmt.Errorf("snapshot version %d: %w", version, missing(err))
	}
	return s, nil
}
