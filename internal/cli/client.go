package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/guardyn-edge/guardyn/api"
)

// maxToken bounds a token file in bytes.
const maxToken = 4 << 10

// client returns a client of the configured control plane.
func (a *app) client() (*api.Client, error) {
	token := a.Getenv(envToken)
	if a.tokenFile != "" {
		var err error
		if token, err = a.fileToken(); err != nil {
			return nil, err
		}
	}
	return api.NewClient(a.setting(a.apiURL, envAPIURL, defaultAPIURL), token, nil)
}

// fileToken reads the token that --token-file names.
func (a *app) fileToken() (string, error) {
	data, _, err := a.readFile(a.tokenFile, maxToken)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// collect reads a listing to its end, or its first limit items when limit is above zero.
func collect[T any](ctx context.Context, limit int, list func(context.Context, api.PageOptions) (*api.Page[T], error)) ([]T, error) {
	items := []T{}
	for item, err := range api.All(ctx, list) {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if limit > 0 && len(items) == limit {
			break
		}
	}
	return items, nil
}

// explainAPI finds what to do next after an answer of the control plane.
func explainAPI(err error) (message, next string) {
	var e *api.Error
	if !errors.As(err, &e) {
		return "", ""
	}
	switch {
	case e.Code == "unexpected_answer":
		return "", "check GUARDYN_API_URL (or --api-url): its host and port, and https:// where the control plane has a certificate"
	case e.Code == "plan_changed":
		return "", "somebody edited meanwhile; gdn plan prints what would be published now"
	case e.Code == "conflict":
		return "", "somebody else published meanwhile; gdn history shows what, gdn plan what is left"
	case e.Rollout != nil && e.Rollout.Open:
		return "", fmt.Sprintf("gdn rollout wait %s waits for its end, %s", e.Rollout.ID, endVerb(e.Rollout))
	case e.Code == "rollout_state":
		return "", "gdn rollout history lists how rollouts ended; gdn rollback goes back from what is live"
	case e.Code == "no_rollout":
		return "", "gdn apply --coordinated proposes one"
	case e.Code == "no_parent", e.Code == "version_unknown", e.Code == "version_live":
		return "", "gdn history lists the versions; * marks what is live"
	case e.Code == "ahead_node":
		return "", "if the database was restored from a backup, gdn recover --bump-epoch and then gdn apply; if not, look for a second control plane that has the same key"
	case e.Code == "disruptive":
		return "", "review the lines marked !, then run it with --accept-disruption"
	case e.Status == http.StatusUnauthorized:
		return "", "set GUARDYN_TOKEN (or --token-file) to a token of this control plane; gdn dev writes one to dev.env"
	case e.Status == http.StatusForbidden:
		return "", "the token's role in the workspace does not allow this; ask an admin of the workspace"
	case e.NothingHere():
		return "this token may not do that", "gdn status tells its workspace; publishing, nodes, users and workspaces need an operator's token"
	case e.Status == http.StatusNotFound:
		return "", "check the name and that the token is of the right workspace (gdn status tells); some commands need an operator's token"
	case e.Status == http.StatusPreconditionFailed:
		return "", "it changed since it was read; read it again and decide anew"
	case e.Status >= http.StatusInternalServerError:
		return "", "the control plane's log says more"
	}
	return "", ""
}

// nextApply is what every edit says: editing publishes nothing.
const nextApply = "not live yet: gdn plan shows what the next apply publishes"
