package store

import (
	"context"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/control"
)

// Replay implements control.ReplayStore.
func (db *DB) Replay(ctx context.Context, userID, key string, now time.Time) (control.Replay, error) {
	r := control.Replay{UserID: userID, Key: key}
	var request []byte
	err := db.single().row(ctx, `SELECT request, answer, at FROM edge.replay WHERE user_id = $1 AND key = $2 AND at > $3`,
		userID, key, timeArg(now.Add(-control.ReplayAge))).Scan(&request, &r.Answer, timeColumn{&r.At})
	if err != nil {
		return control.Replay{}, fmt.Errorf("first answer under idempotency key %q: %w", key, missing(err))
	}
	copy(r.Request[:], request)
	return r, nil
}

// PutReplay implements control.ReplayStore.
func (db *DB) PutReplay(ctx context.Context, r control.Replay) error {
	return db.write(ctx, func(q querier) error { return q.insertReplay(ctx, r) })
}

// insertReplay keeps r and drops what is too old or too much.
func (q querier) insertReplay(ctx context.Context, r control.Replay) error {
	_, err := q.exec(ctx, `DELETE FROM edge.replay WHERE at <= $1`, timeArg(r.At.Add(-control.ReplayAge)))
	if err == nil {
		_, err = q.exec(ctx, `
			INSERT INTO edge.replay (user_id, key, request, answer, at) VALUES ($1, $2, $3, $4, $5)`,
			r.UserID, r.Key, r.Request[:], string(r.Answer), timeArg(r.At))
		err = q.identity(err)
	}
	if err == nil {
		_, err = q.exec(ctx, `DELETE FROM edge.replay WHERE at <= (SELECT at FROM edge.replay ORDER BY at DESC LIMIT 1 OFFSET $1)`,
			control.MaxReplays)
	}
	if err != nil {
		return fmt.Errorf("keep the answer under idempotency key %q: %w", r.Key, err)
	}
	return nil
}
