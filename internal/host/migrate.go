package host

import (
	"context"

	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/store"
)

// Migrate brings the tables of the control plane and those of its cohort, in the one database that rawURL names, to this
// build's version. It can be repeated, and several processes may call it at once.
func Migrate(ctx context.Context, rawURL string) error {
	if err := store.Migrate(ctx, rawURL); err != nil {
		return err
	}
	return sqlstore.MigrateURL(ctx, rawURL)
}
