package host

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// timedStore measures the calls by which a slow database shows: the regular read, the large ones, and each
// kind of write.
type timedStore struct {
	control.Store
	seconds *prometheus.HistogramVec
}

func timed(st control.Store, reg prometheus.Registerer) (*timedStore, error) {
	t := &timedStore{Store: st, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "guardyn_database_seconds", Help: "Time of a database call, by operation.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .05, .25, 1, 5, 30},
	}, []string{"operation"})}
	return t, reg.Register(t.seconds)
}

func (t *timedStore) since(operation string, start time.Time) {
	t.seconds.WithLabelValues(operation).Observe(time.Since(start).Seconds())
}

func (t *timedStore) Revisions(ctx context.Context) (control.Revisions, error) {
	defer t.since("revisions", time.Now())
	return t.Store.Revisions(ctx)
}

func (t *timedStore) ReadConfiguration(ctx context.Context) ([]snapshot.ZoneInput, error) {
	defer t.since("read_configuration", time.Now())
	return t.Store.ReadConfiguration(ctx)
}

func (t *timedStore) Sealed(ctx context.Context, version uint64) (seal.Sealed, error) {
	defer t.since("read_artefact", time.Now())
	return t.Store.Sealed(ctx, version)
}

func (t *timedStore) Publish(ctx context.Context, p control.Publication) error {
	defer t.since("publish", time.Now())
	return t.Store.Publish(ctx, p)
}

func (t *timedStore) ChangeRecords(ctx context.Context, ws string, id zone.ID, ch control.RecordChange, ifRevision int64, a control.AuditEntry) error {
	defer t.since("change_records", time.Now())
	return t.Store.ChangeRecords(ctx, ws, id, ch, ifRevision, a)
}

func (t *timedStore) PutObject(ctx context.Context, ws string, id zone.ID, o control.ObjectRow, ifRevision int64, a control.AuditEntry) (int64, error) {
	defer t.since("put_object", time.Now())
	return t.Store.PutObject(ctx, ws, id, o, ifRevision, a)
}

func (t *timedStore) RecordNodes(ctx context.Context, seen []control.NodeReport, a []control.AuditEntry) error {
	defer t.since("record_nodes", time.Now())
	return t.Store.RecordNodes(ctx, seen, a)
}
