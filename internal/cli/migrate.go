package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/store"
)

func (a *app) migrateCommand() *cobra.Command {
	var email, workspace string
	cmd := a.jsonFlag(&cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema to this build's version",
		Long: `Bring the database's schema to this build's version. It can be repeated.

The first time, --bootstrap-operator EMAIL --workspace NAME also makes the first operator with a workspace, and
prints the operator's token once.

` + envDatabaseURL + ` names the database: sqlite:PATH or postgres://… (default ` + host.DefaultDatabaseURL + `).`,
		Args: args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (email == "") != (workspace == "") {
				return usagef(cmd, "--bootstrap-operator and --workspace go together")
			}
			url := a.setting("", envDatabaseURL, host.DefaultDatabaseURL)
			if err := host.Migrate(cmd.Context(), url); err != nil {
				return err
			}
			a.notef("the database's schema is up to date\n")
			if err := failpoint.Hit(failpoint.Migrated); err != nil {
				return err
			}
			if email == "" {
				return nil
			}
			return a.bootstrap(cmd, url, email, workspace)
		},
	})
	cmd.Flags().StringVar(&email, "bootstrap-operator", "", "make the first operator, with this `EMAIL`")
	cmd.Flags().StringVar(&workspace, "workspace", "", "the first workspace's `NAME`")
	return cmd
}

func (a *app) bootstrap(cmd *cobra.Command, url, email, workspace string) (err error) {
	db, err := store.Open(cmd.Context(), url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	made, err := control.Bootstrap(cmd.Context(), db, time.Now(), email, workspace)
	switch {
	case errors.Is(err, control.ErrExists):
		return hint(err, "there is an operator already; ask one for gdn token create NAME --user EMAIL")
	case err != nil:
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Email       string `json:"email"`
			Workspace   string `json:"workspace"`
			WorkspaceID string `json:"workspace_id"`
			Token       string `json:"token"`
		}{made.User.Email, made.Workspace.Name, made.Workspace.ID, made.Token.Secret})
	}
	a.printf("operator %s in workspace %s\n\n  %s=%s\n\nThe token is shown once and is not stored.\n",
		made.User.Email, made.Workspace.Name, envToken, made.Token.Secret)
	return nil
}
