package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/dynamo"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/source"
	"github.com/guardyn-edge/guardyn/bridge/source/dynamosource"
	"github.com/guardyn-edge/guardyn/bridge/source/filesource"
	"github.com/guardyn-edge/guardyn/bridge/source/sqlsource"
	"github.com/guardyn-edge/guardyn/internal/dynamoconn"
)

// scheme is what a URL begins with. URLs are not told in errors: they may hold passwords.
func scheme(url string) string {
	s, _, _ := strings.Cut(url, ":")
	return s
}

func openSource(ctx context.Context, url, name string) (source.Source, error) {
	switch scheme(url) {
	case "file":
		path := strings.TrimPrefix(url, "file:")
		if path == "" {
			return nil, errors.New("source: write file:PATH")
		}
		return filesource.New(path, 0), nil
	case "postgres", "postgresql":
		return sqlsource.Open(ctx, url, name)
	case "dynamodb":
		client, table, err := dynamoconn.Open(ctx, url)
		if err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
		return dynamosource.Open(ctx, client, table, name)
	}
	return nil, errors.New("source: it is none of file:PATH, postgres://USER@HOST/DATABASE and dynamodb:TABLE")
}

// cohortStore is one cohort in a rollout store, or one lease.
type cohortStore struct {
	barrier.Store
	barrier.Leases
	barrier.Artefacts
	evidenceTTL time.Duration // that proposals need; 0: the barrier's default
	close       func() error
}

// dynamoEvidenceTTL outlives the margin of a store without a clock of its own, and two polls.
const dynamoEvidenceTTL = dynamo.DefaultClockSkew + dynamo.DefaultRequestTimeout + 3*time.Second

func openCohortStore(ctx context.Context, url, cohort string) (*cohortStore, error) {
	switch scheme(url) {
	case "sqlite", "postgres", "postgresql":
		s, err := sqlstore.Open(ctx, url, cohort, sqlstore.MaxConns(bridgeConns))
		if schema := (*sqlstore.SchemaError)(nil); errors.As(err, &schema) && schema.Have < schema.Want {
			return nil, fmt.Errorf("%w: gdn bridge migrate does", err)
		}
		if err != nil {
			return nil, err
		}
		return &cohortStore{s, s, s, 0, s.Close}, nil
	case "dynamodb":
		client, table, err := dynamoconn.Open(ctx, url)
		if err != nil {
			return nil, err
		}
		s, err := dynamo.Open(ctx, client, dynamo.Options{Table: table, Cohort: cohort})
		if err != nil {
			return nil, err
		}
		return &cohortStore{s, s, s, dynamoEvidenceTTL, func() error { return nil }}, nil
	case "memory":
		s := memory.New(memory.Options{})
		return &cohortStore{s, s, s, 0, func() error { return nil }}, nil
	}
	return nil, errors.New("it is none of memory:, sqlite:PATH, postgres://USER@HOST/DATABASE and dynamodb:TABLE")
}

// bridgeConns bounds the connections of one store of a bridge's member to Postgres: it speaks for one member alone.
const bridgeConns = 4

// MigrateBridge makes, or brings to this build's version, what a bridge's source and stores keep their rows in. What is empty is
// left out, and files and memory need nothing.
func MigrateBridge(ctx context.Context, sourceURL string, stores ...string) error {
	var errs []error
	switch scheme(sourceURL) {
	case "postgres", "postgresql":
		errs = append(errs, sqlsource.Migrate(ctx, sourceURL))
	case "dynamodb":
		errs = append(errs, createTable(ctx, sourceURL))
	}
	for _, url := range stores {
		switch scheme(url) {
		case "sqlite", "postgres", "postgresql":
			errs = append(errs, sqlstore.MigrateURL(ctx, url))
		case "dynamodb":
			errs = append(errs, createTable(ctx, url))
		}
	}
	return errors.Join(errs...)
}

func createTable(ctx context.Context, url string) error {
	client, table, err := dynamoconn.Open(ctx, url)
	if err != nil {
		return err
	}
	return dynamo.CreateTable(ctx, client, table)
}

// sessionLeases are the leases of exclusive sessions: each is a cohort of its own in the store, of which nothing but the lease is
// used. They outlive rollout cohorts: what is replaced and what replaces it never hold a session together.
type sessionLeases struct {
	url  string
	name string // of the bridge

	mu   sync.Mutex
	open map[string]*cohortStore
}

var _ bridge.Leases = (*sessionLeases)(nil)

// openTimeout bounds how long opening a lease's store may take.
const openTimeout = 10 * time.Second

// Session implements bridge.Leases.
func (l *sessionLeases) Session(id string) (barrier.Leases, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.open[id]; s != nil {
		return s.Leases, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	sum := sha256.Sum256([]byte(l.name + "\x00" + id)) // both together may be longer than a cohort's name
	s, err := openCohortStore(ctx, l.url, "lease-"+hex.EncodeToString(sum[:16]))
	if err != nil {
		return nil, fmt.Errorf("lease store: %w", err)
	}
	l.open[id] = s
	return s.Leases, nil
}

func (l *sessionLeases) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, s := range l.open {
		err = errors.Join(err, s.close())
	}
	clear(l.open)
	return err
}
