package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/store"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the control plane's database into a file",
		Long: `Copy the control plane's database into a file, which must not exist, while the control plane runs.

It holds all rows, snapshots, generations and the audit log. It does not hold the signing key, which is in no
database: keep that by itself.

` + envDatabaseURL + ` names the database: sqlite:PATH or postgres://… (default ` + host.DefaultDatabaseURL + `). For PostgreSQL
pg_dump is run, of the Debian package ` + store.PostgresTools + `.`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := store.Backup(cmd.Context(), a.setting("", envDatabaseURL, host.DefaultDatabaseURL), args[0])
			switch {
			case errors.Is(err, fs.ErrExist):
				return hint(fmt.Errorf("%s exists; nothing was written", args[0]), "name a new file: a backup overwrites none")
			case err != nil:
				return databaseError(err)
			}
			info, err := os.Stat(args[0])
			if err != nil {
				return err
			}
			a.printf("%s: %d bytes\n", args[0], info.Size())
			return nil
		},
	}
}

func (a *app) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Fill an empty database from a backup",
		Long: `Fill an empty database from a backup; one that holds anything is refused. With an error nothing was restored.

` + envDatabaseURL + ` names the database, of the kind that the backup is of; a SQLite file is made. The schema is brought to
this build's version. What was published after the backup is unknown to the restored database: when nodes serve
it, gdn recover --bump-epoch is next.`,
		Args: args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			url := a.setting("", envDatabaseURL, host.DefaultDatabaseURL)
			err := store.Restore(cmd.Context(), url, args[0])
			switch {
			case errors.Is(err, store.ErrNotEmpty):
				return hint(fmt.Errorf("%w; nothing was restored", err),
					"restore into a new database: set %s, or move the old one away first", envDatabaseURL)
			case err != nil:
				return databaseError(err)
			}
			if err := host.Migrate(cmd.Context(), url); err != nil {
				return err
			}
			a.printf("restored %s\n", filepath.Base(args[0]))
			a.notef("start gdn serve with the same signing key; gdn plan tells when a node proves to be ahead of the backup\n")
			return nil
		},
	}
}

// databaseError gives what databases say a hint.
func databaseError(err error) error {
	var schema *store.SchemaError
	var missing *store.MissingToolError
	switch {
	case errors.As(err, &missing):
		return hint(err, "apt-get install %s", store.PostgresTools)
	case errors.As(err, &schema):
		return err
	case strings.Contains(err.Error(), "server version mismatch"):
		return hint(err, "install the Debian package %s of the server's version or a newer one", store.PostgresTools)
	}
	return err
}
