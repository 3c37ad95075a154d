package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/store"
)

// readiness holds the checks of /readyz beside the store's answering.
type readiness struct {
	db      *store.DB
	schema  schemas // when the process started, which are the ones that it was built for
	own     seal.PublicKey
	trusted seal.TrustedKeys

	mu sync.Mutex
	// The last judgement, which stands until another version is live: opening a large artefact takes time,
	// and /readyz needs no token.
	version uint64
	refused string
}

// schemas are the versions of the control plane's tables and of its cohort's.
type schemas struct{ control, cohort int64 }

func (s schemas) String() string { return fmt.Sprintf("%d.%d", s.control, s.cohort) }

func schemasOf(ctx context.Context, db *store.DB) (s schemas, err error) {
	if s.control, err = db.SchemaVersion(ctx); err != nil {
		return s, err
	}
	_, reader := db.Pools()
	s.cohort, err = sqlstore.SchemaVersion(ctx, reader, sqlstore.Dialect(db.Kind()))
	return s, err
}

func (r *readiness) problems(ctx context.Context) []api.Problem {
	have, err := schemasOf(ctx, r.db)
	switch {
	case err != nil:
		return []api.Problem{{Object: "database", Code: "database_unavailable", Message: "the database does not answer"}}
	case have != r.schema:
		return []api.Problem{{
			Object: "database", Code: "schema_changed",
			Message: fmt.Sprintf("the schema is version %s and this process works with %s; restart it, or upgrade gdn", have, r.schema),
		}}
	}
	refused, err := r.artefact(ctx)
	if err != nil {
		return []api.Problem{{Object: "database", Code: "database_unavailable", Message: "the database does not answer"}}
	}
	if refused != "" {
		return []api.Problem{{
			Object: "live artefact", Code: "signing_key_mismatch",
			Message: refused + "; check GUARDYN_CONFIG_SIGNING_KEY, name the old key in GUARDYN_CONFIG_PUBLIC_KEYS, or apply with --reseal",
		}}
	}
	return nil
}

// artefact tells why what is live does not open with this process's key or the ones that it was told to trust.
func (r *readiness) artefact(ctx context.Context) (refused string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	live, err := r.db.Live(ctx)
	if errors.Is(err, control.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	// A version can be sealed anew, but only by an apply, which gives it another number.
	if live.Version == r.version {
		return r.refused, nil
	}
	sealed, err := r.db.Sealed(ctx, live.Version)
	if err != nil {
		return "", err
	}
	trust := r.trusted
	if len(trust.IDs()) == 0 {
		if trust, err = seal.Trust(r.own); err != nil {
			return "", err
		}
	}
	r.version, r.refused = live.Version, ""
	if _, err := seal.OpenSealed(sealed, trust); err != nil {
		r.refused = err.Error()
	}
	return r.refused, nil
}
