package control_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

// BenchmarkApplyOneRecord edits one record and publishes it on a platform of so many zones of 10 records, on SQLite.
func BenchmarkApplyOneRecord(b *testing.B) {
	for _, zones := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("zones=%d", zones), func(b *testing.B) {
			w := newWorld(b)
			ctx := context.Background()
			for i := range zones {
				z := w.zone(b, w.editor, fmt.Sprintf("z%d.example", i))
				var ch control.RecordChange
				for j := range 10 {
					r, err := zone.ParseRecord(z.Name, fmt.Sprintf("h%d", j), "A", fmt.Sprintf("192.0.2.%d", j+1), 0, false)
					if err != nil {
						b.Fatal(err)
					}
					ch.Insert = append(ch.Insert, control.RecordRow{ID: fmt.Sprintf("0198c5a0-0000-7000-8000-%06d%06d", i, j), Record: r})
				}
				if err := w.store.ChangeRecords(ctx, z.Workspace, z.ID, ch, 0, control.AuditEntry{ID: fmt.Sprintf("a%d", i), At: w.clock.now()}); err != nil {
					b.Fatal(err)
				}
			}
			w.apply(b, control.ApplyRequest{AcceptDisruption: true})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.record(b, w.editor, "z0.example", fmt.Sprintf("n%d", i), "TXT", `"x"`)
				if res := w.apply(b, control.ApplyRequest{}); !res.Applied {
					b.Fatal(res)
				}
			}
		})
	}
}
