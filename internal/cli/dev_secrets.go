package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/store"
)

const (
	secretsFile  = "secrets.json"
	maxSecrets   = 1 << 20
	databaseFile = "guardyn.db"
	// unfinishedDatabase is the database until the token that its first operator got is kept.
	unfinishedDatabase = "first-start.db"

	devOperator  = "you@example.com"
	devWorkspace = "Amthal Group"
)

// devSecrets is what gdn dev makes on its first start and keeps.
type devSecrets struct {
	SigningKey     string            `json:"signing_key"`
	OperatorToken  string            `json:"operator_token"`
	SecretIdentity string            `json:"secret_identity,omitempty"` // age; empty in what earlier builds made
	Nodes          map[string]string `json:"nodes"`                     // tokens by node name
}

func (s *devSecrets) save(dir *durable.Dir) error {
	text, err := json.Marshal(s, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return err
	}
	return dir.Write(secretsFile, text, []byte("\n"))
}

func databaseURL(dir *durable.Dir, name string) string {
	return "sqlite:" + filepath.Join(dir.Path(), name)
}

// firstStart returns the secrets of a directory, and makes them with the database when there are none. A
// crash at any point leaves what the next start completes: secrets are kept before the database has its name.
func firstStart(ctx context.Context, dir *durable.Dir) (devSecrets, error) {
	var s devSecrets
	text, err := dir.Read(secretsFile, maxSecrets)
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &s, json.RejectUnknownMembers(true)); err != nil {
			return s, fmt.Errorf("%s: %w", filepath.Join(dir.Path(), secretsFile), err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return s, err
	case exists(dir, databaseFile):
		return s, hint(fmt.Errorf("%s has a database, but not the %s that goes with it", dir.Path(), secretsFile),
			"put the file back, or remove the directory to start afresh")
	default:
		if s, err = makeSecrets(ctx, dir); err != nil {
			return s, fmt.Errorf("first start: %w", err)
		}
	}
	if s.Nodes == nil {
		s.Nodes = map[string]string{}
	}
	if s.SecretIdentity == "" {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			return s, fmt.Errorf("make a sealing identity: %w", err)
		}
		s.SecretIdentity = id.String()
		if err := s.save(dir); err != nil {
			return s, err
		}
	}
	if exists(dir, unfinishedDatabase) && !exists(dir, databaseFile) {
		path := filepath.Join(dir.Path(), unfinishedDatabase)
		if err := os.Rename(path, filepath.Join(dir.Path(), databaseFile)); err != nil {
			return s, err
		}
	}
	return s, host.Migrate(ctx, databaseURL(dir, databaseFile))
}

func exists(dir *durable.Dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir.Path(), name))
	return err == nil
}

func makeSecrets(ctx context.Context, dir *durable.Dir) (s devSecrets, err error) {
	key, err := seal.GenerateSigningKey()
	if err != nil {
		return s, err
	}
	// What a start that did not come to its end left has nothing that anybody relies on.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := dir.Remove(unfinishedDatabase + suffix); err != nil {
			return s, err
		}
	}
	url := databaseURL(dir, unfinishedDatabase)
	if err := host.Migrate(ctx, url); err != nil {
		return s, err
	}
	db, err := store.Open(ctx, url)
	if err != nil {
		return s, err
	}
	made, err := control.Bootstrap(ctx, db, time.Now(), devOperator, devWorkspace)
	if err := errors.Join(err, db.Close()); err != nil {
		return s, err
	}
	s = devSecrets{SigningKey: key.SecretHex(), OperatorToken: made.Token.Secret, Nodes: map[string]string{}}
	return s, s.save(dir)
}

// registerNodes makes the nodes that have no token yet. One whose token was lost to a crash is made again.
func (s *devSecrets) registerNodes(ctx context.Context, dir *durable.Dir, apiURL string, n int) error {
	c, err := api.NewClient(apiURL, s.OperatorToken, nil)
	if err != nil {
		return err
	}
	for i := range n {
		name := devNodeName(i)
		if s.Nodes[name] != "" {
			continue
		}
		var problem *api.Error
		if err := c.DeleteNode(ctx, name); err != nil && (!errors.As(err, &problem) || problem.Status != http.StatusNotFound) {
			return fmt.Errorf("register %s: %w", name, err)
		}
		made, err := c.CreateNode(ctx, api.NewNode{Name: name, Cohort: true})
		if err != nil {
			return fmt.Errorf("register %s: %w", name, err)
		}
		s.Nodes[name] = made.Secret
		if err := s.save(dir); err != nil {
			return err
		}
	}
	return nil
}
