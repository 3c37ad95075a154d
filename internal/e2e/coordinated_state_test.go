package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guardyn-edge/guardyn/api"
)

// nodeHealth is what a node says of itself.
type nodeHealth struct {
	Version    uint64 `json:"version"`
	Generation uint64 `json:"generation"`
	Rollout    struct {
		Cohort         bool      `json:"cohort"`
		Generation     uint64    `json:"generation"`
		State          string    `json:"state"`
		Acked          bool      `json:"acked"`
		Applied        bool      `json:"applied"`
		ConfirmPending bool      `json:"confirm_pending"`
		ObservedAt     time.Time `json:"observed_at"`
		Stale          bool      `json:"stale"`
		TakenBack      string    `json:"taken_back"`
		Flaps          uint64    `json:"flaps"`
		Waiting        string    `json:"waiting"`
		Diverged       string    `json:"diverged"`
	} `json:"rollout"`
}

func (n *cohortNode) health(client *http.Client) (h nodeHealth, err error) {
	resp, err := client.Get("http://" + n.admin + "/deephealth")
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		return h, fmt.Errorf("%s: %w", n.name, err)
	}
	return h, nil
}

// metric reads one of the node's counters.
func (n *cohortNode) metric(t testing.TB, name string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + n.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := find(text, `(?m)^`+name+` (\S+)`)
	if !ok {
		t.Fatalf("%s has no metric %s", n.name, name)
	}
	return v
}

// live is what the database says.
type liveState struct {
	At         time.Time      `json:"at"`
	Generation uint64         `json:"live"`
	Version    uint64         `json:"version"`
	Committed  uint64         `json:"committed"`
	Rollouts   []rolloutState `json:"rollouts"` // the newest two, newest first
}

type rolloutState struct {
	ID         string     `json:"id"`
	Generation uint64     `json:"generation"`
	Version    uint64     `json:"version"`
	State      string     `json:"state"`
	Window     int64      `json:"window_ms"`
	Due        *time.Time `json:"due,omitempty"` // D + grace
	Reason     string     `json:"reason,omitempty"`
}

func (r rolloutState) open() bool {
	return r.State == "proposed" || r.State == "staging" || r.onTrial()
}

func (r rolloutState) onTrial() bool { return r.State == "committed" && r.Window > 0 }

// row reads, in one statement: what is live, what is committed, and the newest rollouts.
func (c *cohortFleet) row(ctx context.Context) (s liveState, err error) {
	var rollouts []byte
	err = c.db.QueryRow(ctx, `
		SELECT clock_timestamp(), p.generation, coalesce((SELECT version FROM edge.snapshot WHERE activated_at IS NOT NULL), 0),
			coalesce(h.committed_generation, 0),
			coalesce((SELECT json_agg(r) FROM (
				SELECT id, generation, version, state, window_ms, confirm_deadline + grace_ms * interval '1 ms' AS due, reason
				FROM barrier.rollout ORDER BY generation DESC LIMIT 2) r), '[]')
		FROM edge.platform p LEFT JOIN barrier.head h ON true`).Scan(&s.At, &s.Generation, &s.Version, &s.Committed, &rollouts)
	if err == nil {
		err = json.Unmarshal(rollouts, &s.Rollouts)
	}
	return s, err
}

// settled waits until every node that is up serves what is live, has joined the cohort if it belongs to it, and no rollout is open.
func (c *cohortFleet) settled() {
	c.t.Helper()
	c.f.await("the fleet agrees", func() error {
		s, err := c.row(c.t.Context())
		if err != nil {
			return err
		}
		if len(s.Rollouts) > 0 && s.Rollouts[0].open() {
			return fmt.Errorf("%+v is open", s.Rollouts[0])
		}
		members, err := c.roster()
		if err != nil {
			return err
		}
		for _, n := range c.members {
			if n.downs.Load()%2 == 1 {
				continue
			}
			h, err := n.health(http.DefaultClient)
			if err != nil {
				return err
			}
			r := h.Rollout
			in := slices.Contains(members, n.id)
			if h.Generation != s.Generation || h.Version != s.Version || r.Cohort != in ||
				in && (r.ObservedAt.IsZero() || r.Stale || !r.Applied || r.ConfirmPending || r.TakenBack != "") {
				return fmt.Errorf("%s, in the cohort %t, with %d (version %d) live: %+v", n.name, in, s.Generation, s.Version, h)
			}
		}
		return nil
	})
}

func (c *cohortFleet) roster() ([]string, error) {
	rows, err := c.db.Query(c.t.Context(), `SELECT member FROM barrier.roster ORDER BY member`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// reaches waits until the database has the rollout in that state.
func (c *cohortFleet) reaches(r *api.Rollout, state string) liveState {
	c.t.Helper()
	var s liveState
	c.f.await(fmt.Sprintf("generation %d %s", r.Generation, state), func() (err error) {
		if s, err = c.row(c.t.Context()); err != nil {
			return err
		}
		if len(s.Rollouts) == 0 || s.Rollouts[0].ID != r.ID || s.Rollouts[0].State != state {
			return fmt.Errorf("it is %+v", s.Rollouts)
		}
		return nil
	})
	return s
}

// serve waits until these nodes serve the generation.
func (c *cohortFleet) serve(generation uint64, nodes ...*cohortNode) {
	c.t.Helper()
	c.f.await(fmt.Sprintf("generation %d served", generation), func() error {
		for _, n := range nodes {
			if h, err := n.health(http.DefaultClient); err != nil || h.Generation != generation {
				return fmt.Errorf("%s serves generation %d (%w)", n.name, h.Generation, err)
			}
		}
		return nil
	})
}

// coordinator is the index of the control plane that holds the lease.
func (c *cohortFleet) coordinator() int {
	c.t.Helper()
	at := -1
	c.f.await("a coordinator", func() error {
		var holder string
		if err := c.db.QueryRow(c.t.Context(), `SELECT holder FROM barrier.lease WHERE until > clock_timestamp()`).Scan(&holder); err != nil {
			return err
		}
		at = slices.IndexFunc(c.planes, func(p *plainControl) bool { return strings.Contains(holder, p.apiAddr) })
		if at < 0 {
			return fmt.Errorf("%q is none of the control planes", holder)
		}
		return nil
	})
	return at
}
