package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// CreateNode implements control.DirectoryStore: ErrExists when the name is taken. The token is the node's,
// whatever it says of whom it speaks for.
func (db *DB) CreateNode(ctx context.Context, n control.Node, t control.Token, a control.AuditEntry) error {
	t.NodeID, t.UserID, t.Workspace = n.ID, "", ""
	err := db.write(ctx, func(q querier) error {
		_, err := q.exec(ctx, `INSERT INTO edge.node (id, name, address, created_at) VALUES ($1, $2, $3, $4)`,
			n.ID, n.Name, n.Address, timeArg(n.CreatedAt))
		if err != nil {
			return q.identity(err)
		}
		if err := q.insertToken(ctx, t); err != nil {
			return fmt.Errorf("its token: %w", err)
		}
		return q.touchDirectory(ctx)
	}, a)
	if err != nil {
		return fmt.Errorf("create node %q: %w", n.Name, err)
	}
	return nil
}

// ListNodes implements control.DirectoryStore.
func (db *DB) ListNodes(ctx context.Context) ([]control.Node, error) {
	var nodes []control.Node
	err := db.single().each(ctx, func(rows *sql.Rows) error {
		var (
			n                control.Node
			acked, lastError []byte
			keys             sql.Null[string]
		)
		err := rows.Scan(&n.ID, &n.Name, &n.Address, timeColumn{&n.CreatedAt}, timeColumn{&n.LastSeen},
			&acked, timeColumn{&n.AckedAt}, &lastError, &keys, timeColumn{&n.KeysAt}, timeColumn{&n.FreshAt})
		if err != nil {
			return err
		}
		if acked != nil {
			n.Acked = new(nodeproto.Ack)
			if err := json.Unmarshal(acked, n.Acked); err != nil {
				return fmt.Errorf("stored acknowledgement of node %q: %w", n.Name, err)
			}
		}
		if lastError != nil {
			n.LastError = new(nodeproto.AckError)
			if err := json.Unmarshal(lastError, n.LastError); err != nil {
				return fmt.Errorf("stored error of node %q: %w", n.Name, err)
			}
		}
		if keys.Valid {
			n.TrustedKeys = []seal.KeyID{}
			for id := range strings.SplitSeq(keys.V, ",") {
				n.TrustedKeys = append(n.TrustedKeys, seal.KeyID(id))
			}
		}
		nodes = append(nodes, n)
		return nil
	}, `SELECT id, name, address, created_at, last_seen, acked, acked_at, last_error, keys, keys_at, fresh_at
		FROM edge.node ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return nodes, nil
}

// DeleteNode implements control.DirectoryStore.
func (db *DB) DeleteNode(ctx context.Context, id string, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		n, err := q.exec(ctx, `DELETE FROM edge.node WHERE id = $1`, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return control.ErrNotFound
		}
		return q.touchDirectory(ctx)
	}, a)
	if err != nil {
		return fmt.Errorf("delete node %s: %w", id, err)
	}
	return nil
}

// RecordNodes implements control.DirectoryStore. News that is older than what is stored changes nothing:
// of two processes that heard the same node, the one that heard it later prevails, whichever writes first.
func (db *DB) RecordNodes(ctx context.Context, seen []control.NodeReport, a []control.AuditEntry) error {
	if len(seen) == 0 && len(a) == 0 {
		return nil
	}
	// Every process locks the rows in one order.
	seen = slices.Clone(seen)
	slices.SortStableFunc(seen, func(x, y control.NodeReport) int {
		return cmp.Or(cmp.Compare(x.NodeID, y.NodeID), x.SeenAt.Compare(y.SeenAt))
	})
	err := db.write(ctx, func(q querier) error {
		for _, r := range seen {
			if err := q.recordNode(ctx, r); err != nil {
				return fmt.Errorf("node %s: %w", r.NodeID, err)
			}
		}
		return nil
	}, a...)
	if err != nil {
		return fmt.Errorf("record nodes: %w", err)
	}
	return nil
}

func (q querier) recordNode(ctx context.Context, r control.NodeReport) error {
	_, err := q.exec(ctx, `
		UPDATE edge.node SET address = $2, last_seen = $3 WHERE id = $1 AND (last_seen IS NULL OR last_seen <= $3)`,
		r.NodeID, r.Address, timeArg(r.SeenAt))
	if err == nil && len(r.TrustedKeys) > 0 {
		err = q.recordKeys(ctx, r)
	}
	if err == nil && !r.FreshAt.IsZero() {
		_, err = q.exec(ctx, `UPDATE edge.node SET fresh_at = $2 WHERE id = $1 AND (fresh_at IS NULL OR fresh_at < $2)`,
			r.NodeID, timeArg(r.FreshAt))
	}
	if err != nil || r.Ack == nil {
		return err
	}
	ack, err := json.Marshal(r.Ack)
	if err != nil {
		return err
	}
	var lastError any
	if r.Ack.Error != nil {
		b, err := json.Marshal(r.Ack.Error)
		if err != nil {
			return err
		}
		lastError = string(b)
	}
	_, err = q.exec(ctx, `
		UPDATE edge.node SET acked = $2, acked_at = $3, last_error = $4
		WHERE id = $1 AND (acked_at IS NULL OR acked_at <= $3)`,
		r.NodeID, string(ack), timeArg(r.SeenAt), lastError)
	return err
}

// recordKeys keeps the ids of the keys that a node trusts. That they take the place of others is logged.
func (q querier) recordKeys(ctx context.Context, r control.NodeReport) error {
	ids := make([]string, len(r.TrustedKeys))
	for i, id := range r.TrustedKeys {
		ids[i] = string(id)
	}
	keys := strings.Join(ids, ",")
	n, err := q.exec(ctx, `UPDATE edge.node SET keys = $2, keys_at = $3 WHERE id = $1 AND keys <> $2 AND keys_at <= $3`,
		r.NodeID, keys, timeArg(r.SeenAt))
	if err != nil {
		return err
	}
	if n > 0 {
		return q.appendAudit(ctx, r.KeysAudit)
	}
	_, err = q.exec(ctx, `UPDATE edge.node SET keys = $2, keys_at = $3 WHERE id = $1 AND (keys IS NULL OR keys = $2 AND keys_at <= $3)`,
		r.NodeID, keys, timeArg(r.SeenAt))
	return err
}
