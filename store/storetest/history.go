package storetest

import (
	"strconv"

	"github.com/guardyn-edge/guardyn/control"
)

var historyClauses = []clause{
	{name: "newest version first, in pages, each with its generations", alone: true, run: func(f *fixture) {
		want := map[uint64][]uint64{}
		for range 5 {
			pub := f.apply()
			want[pub.Activation.Version] = append(want[pub.Activation.Version], pub.Activation.Generation)
		}
		for _, version := range []uint64{2, 4, 2} {
			pub := f.rollback(version)
			want[version] = append(want[version], pub.Activation.Generation)
		}
		for _, limit := range []int{1, 2, 5, 1000} {
			rows := pages(f, limit, func(s control.SnapshotRow) string { return strconv.FormatUint(s.Version, 10) },
				func(p control.Page) ([]control.SnapshotRow, error) { return f.store.History(f.ctx, p) })
			var versions []uint64
			for _, row := range rows {
				versions = append(versions, row.Version)
				f.same("generations", row.Generations, want[row.Version])
				if active := !row.ActivatedAt.IsZero(); active != (row.Version == 2) {
					f.Errorf("version %d is active: %t", row.Version, active)
				}
			}
			f.same("versions", versions, []uint64{5, 4, 3, 2, 1})
		}
		refusesLimits(f, func(p control.Page) ([]control.SnapshotRow, error) { return f.store.History(f.ctx, p) })
	}},
	{name: "a page key that is no version is ErrNotFound", alone: true, run: func(f *fixture) {
		f.apply()
		for _, key := range []string{"x", "1x", "-", "99999999999999999999"} {
			_, err := f.store.History(f.ctx, control.Page{After: key, Limit: 5})
			f.fails(err, control.ErrNotFound)
		}
	}},
}
