package control_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

func TestConfigStatus(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		check := func(what string, p control.Principal, version uint64, changed bool) {
			t.Helper()
			st, err := w.svc.ConfigStatus(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			message := control.MessagePublished
			if changed {
				message = control.MessageUnpublished
			}
			if st.HasUnpublishedChanges != changed || st.Message != message || st.Workspace != p.WorkspaceName ||
				(st.Live == nil) != (version == 0) || st.Live != nil && st.Live.Version != version {
				t.Errorf("%s: %+v", what, st)
			}
		}
		check("nothing anywhere", w.viewer, 0, false)
		w.zone(t, w.editor, "example.com")
		check("a zone, nothing published", w.viewer, 0, true)
		w.zone(t, w.stranger, "example.net")
		w.apply(t, control.ApplyRequest{AcceptDisruption: true})
		check("published", w.viewer, 1, false)
		check("published, the stranger", w.stranger, 1, false)

		r := w.record(t, w.editor, "example.com", "www", "A", "192.0.2.1")
		check("edited", w.viewer, 1, true)
		check("another's edit is not told", w.stranger, 1, false)
		if err := w.svc.DeleteRecord(ctx, w.editor, "example.com", r.ID); err != nil {
			t.Fatal(err)
		}
		check("edited back", w.viewer, 1, false)

		// Somebody else's broken configuration hides nothing; one's own differs from what is served.
		if _, err := w.svc.Rulesets().Put(ctx, w.stranger, "example.net", "custom", []zone.Rule{{Expression: `in_list(ip.src, "none")`, Action: zone.ActionBlock}}, control.Any); err != nil {
			t.Fatal(err)
		}
		check("another's does not build", w.viewer, 1, false)
		check("one's own does not build", w.stranger, 1, true)
		if err := w.svc.Rulesets().Delete(ctx, w.stranger, "example.net", "custom", control.Any); err != nil {
			t.Fatal(err)
		}

		if err := w.svc.DeleteZone(ctx, w.editor, "example.com"); err != nil {
			t.Fatal(err)
		}
		check("a live zone deleted", w.viewer, 1, true)
		check("another's deletion is not told", w.stranger, 1, false)
		w.apply(t, control.ApplyRequest{AcceptDisruption: true})
		check("the deletion applied", w.viewer, 2, false)
	})
}

// countingReads counts readings of the whole configuration.
type countingReads struct {
	control.Store
	n atomic.Int64
}

func (c *countingReads) ReadConfiguration(ctx context.Context) ([]snapshot.ZoneInput, error) {
	c.n.Add(1)
	return c.Store.ReadConfiguration(ctx)
}

func TestThousandConfigStatusesShareReadings(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	st := &countingReads{Store: w.store}
	svc := w.service(t, st, nil)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 1000 {
		p := w.viewer
		if i%2 == 0 {
			p = w.stranger
		}
		wg.Go(func() {
			<-start
			if s, err := svc.ConfigStatus(t.Context(), p); err != nil || s.HasUnpublishedChanges {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	close(start)
	wg.Wait()
	t.Logf("%d readings and %d builds for 1,000 calls", st.n.Load(), svc.Stats().Builds)
	if n := st.n.Load(); n > 100 {
		t.Errorf("%d readings", n)
	}
}
