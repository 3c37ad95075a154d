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
		if n.Cohort {
			if _, err := q.changeRoster(ctx, n.ID, true); err != nil {
				return err
			}
		}
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
		if q.cohort != nil {
			if _, err := q.changeRoster(ctx, id, false); err != nil {
				return err
			}
		}
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
// of two processes that heard the same node, the one that heard it later prevails, whichever writes first. Of acknowledgements
// that one process of the node has numbered, the numbers alone say which is newer.
func (db *DB) RecordNodes(ctx context.Context, seen []control.NodeReport, a []control.AuditEntry) error {
	if len(seen) == 0 && len(a) == 0 {
		return nil
	}
	// Every process locks the rows in one order. Pointers are sorted: a report is large.
	sorted := make([]*control.NodeReport, len(seen))
	for i := range seen {
		sorted[i] = &seen[i]
	}
	slices.SortStableFunc(sorted, func(x, y *control.NodeReport) int {
		return cmp.Or(cmp.Compare(x.NodeID, y.NodeID), x.SeenAt.Compare(y.SeenAt))
	})
	err := db.write(ctx, func(q querier) error {
		for from, to := 0, 0; from < len(sorted); from = to {
			// One statement changes a row once: what a node said twice is two chunks.
			for to = from + 1; to < len(sorted) && to-from < chunkRows && sorted[to].NodeID != sorted[to-1].NodeID; {
				to++
			}
			if err := q.recordNodes(ctx, sorted[from:to]); err != nil {
				return err
			}
		}
		return nil
	}, a...)
	if err != nil {
		return fmt.Errorf("record nodes: %w", err)
	}
	return nil
}

// recordNodes takes at most chunkRows reports, each of another node.
func (q querier) recordNodes(ctx context.Context, chunk []*control.NodeReport) error {
	// VALUES name their columns column1, column2, … in both databases. That a parameter is a time is said in
	// the first row; to SQLite it is the number that it is.
	const columns = 9
	args := make([]any, 0, len(chunk)*columns)
	var keyed []*control.NodeReport
	for _, r := range chunk {
		acked, lastError, err := ackArgs(r.Ack)
		if err != nil {
			return fmt.Errorf("node %s: %w", r.NodeID, err)
		}
		boot, sequence := "", uint64(0)
		if r.Ack != nil {
			boot, sequence = r.Ack.Boot, r.Ack.Sequence
		}
		args = append(args, r.NodeID, r.Address, timeArg(r.SeenAt), acked, lastError, timeArg(r.FreshAt), timeArg(r.Now), boot, int64(sequence))
		if len(r.TrustedKeys) > 0 {
			keyed = append(keyed, r)
		}
	}
	const (
		// What is stored of a time that is yet to come is from a clock that was wrong, and orders nothing.
		seen  = `(last_seen IS NULL OR last_seen <= column3 OR last_seen > column7)`
		acked = `(column4 IS NOT NULL AND CASE WHEN acked_boot = column8 AND acked_sequence > 0 AND column9 > 0
				THEN acked_sequence < column9
				ELSE acked_at IS NULL OR acked_at <= column3 OR acked_at > column7 END)`
		fresh = `(column6 IS NOT NULL AND (fresh_at IS NULL OR fresh_at < column6 OR fresh_at > column7))`
	)
	_, err := q.exec(ctx, `
		UPDATE edge.node SET
			address = CASE WHEN `+seen+` THEN column2 ELSE address END,
			last_seen = CASE WHEN `+seen+` THEN column3 ELSE last_seen END,
			acked = CASE WHEN `+acked+` THEN column4 ELSE acked END,
			acked_at = CASE WHEN `+acked+` THEN column3 ELSE acked_at END,
			last_error = CASE WHEN `+acked+` THEN column5 ELSE last_error END,
			acked_boot = CASE WHEN `+acked+` THEN column8 ELSE acked_boot END,
			acked_sequence = CASE WHEN `+acked+` THEN column9 ELSE acked_sequence END,
			fresh_at = CASE WHEN `+fresh+` THEN column6 ELSE fresh_at END
		FROM (VALUES (CAST($1 AS text), CAST($2 AS text), CAST($3 AS timestamptz), CAST($4 AS text), CAST($5 AS text), CAST($6 AS timestamptz),
			CAST($7 AS timestamptz), CAST($8 AS text), CAST($9 AS bigint))`+
		moreTuples(len(chunk), columns)+`) AS news
		WHERE id = column1`, args...)
	if err != nil || len(keyed) == 0 {
		return err
	}
	return q.recordKeys(ctx, keyed)
}

// ackArgs are an acknowledgement and its error as arguments, NULL when there is none.
func ackArgs(a *nodeproto.Ack) (acked, lastError any, err error) {
	if a == nil {
		return nil, nil, nil
	}
	b, err := json.Marshal(a)
	if err != nil {
		return nil, nil, err
	}
	if a.Error == nil {
		return string(b), nil, nil
	}
	e, err := json.Marshal(a.Error)
	return string(b), string(e), err
}

// recordKeys keeps the ids of the keys that nodes trust. That they take the place of others is logged.
func (q querier) recordKeys(ctx context.Context, chunk []*control.NodeReport) error {
	const columns = 4
	args := make([]any, 0, len(chunk)*columns)
	entries := make(map[string]control.AuditEntry, len(chunk))
	for _, r := range chunk {
		ids := make([]string, len(r.TrustedKeys))
		for i, id := range r.TrustedKeys {
			ids[i] = string(id)
		}
		args = append(args, r.NodeID, strings.Join(ids, ","), timeArg(r.SeenAt), timeArg(r.Now))
		entries[r.NodeID] = r.KeysAudit
	}
	update := `
		UPDATE edge.node SET keys = column2, keys_at = column3
		FROM (VALUES (CAST($1 AS text), CAST($2 AS text), CAST($3 AS timestamptz), CAST($4 AS timestamptz))` +
		moreTuples(len(chunk), columns) + `) AS news
		WHERE id = column1 AND `
	const later = `(keys_at <= column3 OR keys_at > column4)`
	var changed []string
	err := q.each(ctx, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		changed = append(changed, id)
		return err
	}, update+`keys <> column2 AND `+later+` RETURNING id`, args...)
	if err != nil {
		return err
	}
	slices.Sort(changed)
	for _, id := range changed {
		if err := q.appendAudit(ctx, entries[id]); err != nil {
			return fmt.Errorf("node %s: %w", id, err)
		}
	}
	_, err = q.exec(ctx, update+`(keys IS NULL OR keys = column2 AND `+later+`)`, args...)
	return err
}

// moreTuples returns ",($10,…),…": the rows of tuples but the first.
func moreTuples(rows, columns int) string {
	_, more, ok := strings.Cut(tuples(rows, columns), ")")
	if !ok {
		return ""
	}
	return more
}
