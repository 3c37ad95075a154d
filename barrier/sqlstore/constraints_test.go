package sqlstore_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
)

// refused are statements that someone with the database's own password types, and what must refuse each. The cohort has
// an aborted generation 2, an open 3 that is staging, claim 4 and lease token 5.
var refused = []struct {
	name string
	on   sqlstore.Dialect
	do   string
	by   string
}{
	{"head deleted", "", `DELETE FROM barrier.head`, "never deleted"},
	{"head truncated", sqlstore.Postgres, `TRUNCATE barrier.head`, "never deleted"},
	{"head replaced", sqlstore.SQLite, `REPLACE INTO barrier_head (cohort, revision, generation, claim, roster_revision) VALUES ('c', 99, 99, 99, 99)`, "there already"},
	{"head renamed", "", `UPDATE barrier.head SET cohort = 'd'`, "goes down"},
	{"revision down", "", `UPDATE barrier.head SET revision = revision - 1`, "goes down"},
	{"generation down", "", `UPDATE barrier.head SET generation = generation - 1`, "goes down"},
	{"claim down", "", `UPDATE barrier.head SET claim = claim - 1`, "goes down"},
	{"claim replaced", sqlstore.SQLite, `UPDATE OR REPLACE barrier_head SET claim = 0`, "goes down"},
	{"roster down", "", `UPDATE barrier.head SET roster_revision = 0`, "goes down"},
	{"newest rollout forgotten", "", `UPDATE barrier.head SET rollout_generation = NULL, previous_generation = NULL`, "goes down"},
	{"newest rollout down", "", `UPDATE barrier.head SET rollout_generation = 2, previous_generation = 1`, "goes down"},
	{"committed rewound", "", `UPDATE barrier.head SET committed_generation = 0`, "goes down"},
	{"committed forgotten", "", `UPDATE barrier.head SET committed_generation = NULL, committed_digest = NULL, committed_version = NULL`, "goes down"},
	{"committed torn", "", `UPDATE barrier.head SET committed_digest = NULL`, "check"},
	{"committed ahead", "", `UPDATE barrier.head SET committed_generation = generation + 1`, "check"},

	{"lease deleted", "", `DELETE FROM barrier.lease`, "never deleted"},
	{"lease truncated", sqlstore.Postgres, `TRUNCATE barrier.lease`, "never deleted"},
	{"lease replaced", sqlstore.SQLite, `REPLACE INTO barrier_lease VALUES ('c', 1, 'me', 0)`, "there already"},
	{"token down", "", `UPDATE barrier.lease SET token = token - 1`, "never goes down"},
	{"one token for two", "", `UPDATE barrier.lease SET holder = 'me'`, "grows with each holder"},

	{"member deleted", "", `DELETE FROM barrier.member`, "never deleted"},
	{"member truncated", sqlstore.Postgres, `TRUNCATE barrier.member`, "never deleted"},
	{"member replaced", sqlstore.SQLite, `REPLACE INTO barrier_member VALUES ('c', 'm0000', 'old', 1, 0)`, "there already"},
	{"incarnation down", "", `UPDATE barrier.member SET incarnation = incarnation - 1`, ""},
	{"another process of the same incarnation", "", `UPDATE barrier.member SET boot = 'other'`, "higher incarnation"},

	{"aborted is committed", "", `UPDATE barrier.rollout SET state = 'committed' WHERE generation = 2`, "goes from proposed"},
	{"committed is aborted", "", `UPDATE barrier.rollout SET state = 'aborted' WHERE generation = 1`, "goes from proposed"},
	{"a final reason reworded", "", `UPDATE barrier.rollout SET reason = 'none' WHERE generation = 2`, "goes from proposed"},
	{"staging is confirmed", "", `UPDATE barrier.rollout SET state = 'confirmed' WHERE generation = 3`, ""},
	{"staging is proposed again", "", `UPDATE barrier.rollout SET state = 'proposed' WHERE generation = 3`, ""},
	{"no state", "", `UPDATE barrier.rollout SET state = 'wish' WHERE generation = 3`, ""},
	{"a longer deadline", "", `UPDATE barrier.rollout SET state = 'aborted', deadline = proposed_at WHERE generation = 3`, "goes from proposed"},
	{"another digest", "", `UPDATE barrier.rollout SET state = 'aborted', digest = 'a:b' WHERE generation = 3`, "goes from proposed"},
	{"rollout deleted", "", `DELETE FROM barrier.rollout WHERE generation = 2`, "kept"},
	{"rollouts truncated", sqlstore.Postgres, `TRUNCATE barrier.rollout CASCADE`, "kept"},
	{"a second open rollout", "", fmt.Sprintf(insertRollout, "9", "'nine'"), "open"},
	{"an id twice", "", strings.Replace(fmt.Sprintf(insertRollout, "9", "id"), "'staging'", "'aborted'", 1), ""},
	{"rollout replaced", sqlstore.SQLite, strings.Replace(fmt.Sprintf(insertRollout, "3", "'nine'"), "INSERT", "REPLACE", 1), "there already"},

	{"ballot deleted", "", `DELETE FROM barrier.ballot`, "kept"},
	{"ballots truncated", sqlstore.Postgres, `TRUNCATE barrier.ballot`, "kept"},
	{"ballot replaced", sqlstore.SQLite, `REPLACE INTO barrier_ballot SELECT * FROM barrier_ballot`, "there already"},
	{"a ballot of no rollout", "", `INSERT INTO barrier.ballot SELECT cohort, 99, member, 0, '', '', '', '', NULL, NULL, NULL, '', '', NULL FROM barrier.ballot WHERE generation = 3`, "foreign key"},
	{"no vote", "", `UPDATE barrier.ballot SET vote = 'perhaps'`, "check"},

	{"other bytes", "", `UPDATE barrier.artefact SET bytes = 'x'`, ""},
}

const insertRollout = `INSERT INTO barrier.rollout (cohort, generation, id, state, digest, version, proposer, roster_revision, epoch_size,
	window_ms, soak_ms, grace_ms, evidence_ttl_ms, proposed_at, deadline, decided_by, reason)
	SELECT cohort, %s, %s, 'staging', digest, version, proposer, roster_revision, epoch_size,
		window_ms, soak_ms, grace_ms, evidence_ttl_ms, proposed_at, deadline, '', '' FROM barrier.rollout WHERE generation = 2`

func TestDatabaseRefuses(t *testing.T) {
	onBoth(t, func(t *testing.T, d sqlstore.Dialect, url string, raw *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 2)
		c.commit(0)
		ro := c.propose(0)
		c.ok(c.s.Abort(c.ctx, ro.Ref, barrier.ByClaim(c.token), "no"))
		ro = c.propose(0)
		c.ackAll(ro)
		_, err := c.s.Acquire(c.ctx, "holder", barrier.MaxLease)
		c.ok(err)
		c.ok(c.s.Put(c.ctx, ro.Digest, []byte("bytes")))
		rewrite := func(s string) string {
			if d == sqlstore.SQLite {
				return strings.ReplaceAll(s, "barrier.", "barrier_")
			}
			return s
		}
		for _, r := range refused {
			if r.on != "" && r.on != d {
				continue
			}
			t.Run(r.name, func(t *testing.T) {
				before := c.row()
				_, err := raw.ExecContext(t.Context(), rewrite(r.do))
				if err == nil {
					t.Fatal("the database took it")
				}
				if !strings.Contains(strings.ToLower(err.Error()), r.by) {
					t.Errorf("refused by %v, not by %q", err, r.by)
				}
				after := c.row()
				after.Now = before.Now
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("changed all the same (-before +after):\n%s", diff)
				}
			})
		}
		// All of it is still of use.
		c.ok(c.s.Commit(c.ctx, ro.Ref, c.token))
	})
}

// Artefacts go when nothing names them and they were not put for long; a second Put keeps them.
func TestArtefactRetention(t *testing.T) {
	onBoth(t, func(t *testing.T, d sqlstore.Dialect, url string, raw *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 1)
		put := func(d barrier.Digest) {
			t.Helper()
			c.ok(c.s.Put(c.ctx, d, []byte(d)))
		}
		first := c.commit(0)
		second := c.commit(0)
		open := c.propose(0)
		for _, d := range []barrier.Digest{first.Digest, second.Digest, open.Digest, "old:unnamed", "old:again", "new:unnamed"} {
			put(d)
		}
		// Time passes for all but one.
		age := `UPDATE barrier.artefact SET put_at = put_at - interval '25 hours' WHERE digest <> 'new:unnamed'`
		if d == sqlstore.SQLite {
			age = fmt.Sprintf(`UPDATE barrier_artefact SET put_at = put_at - %d WHERE digest <> 'new:unnamed'`, (25 * time.Hour).Microseconds())
		}
		if _, err := raw.ExecContext(c.ctx, age); err != nil {
			t.Fatal(err)
		}
		put("old:again")
		for d, kept := range map[barrier.Digest]bool{
			"old:unnamed": false, "old:again": true, "new:unnamed": true, first.Digest: false, second.Digest: true, open.Digest: true,
		} {
			got, err := c.s.Get(c.ctx, d)
			if kept && (err != nil || string(got) != string(d)) {
				t.Errorf("%s: %q, %v", d, got, err)
			} else if !kept {
				c.is(err, barrier.ErrNoArtefact)
			}
		}
	})
}
