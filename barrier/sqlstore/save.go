package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
)

// saveHead writes next over what was loaded, if it has another Revision, which is how a transition says that it changed
// the head.
func (t *Tx) saveHead(ctx context.Context, st *state, next barrier.Head) error {
	if next.Revision == st.Revision {
		return nil
	}
	if err := t.saveRollout(ctx, st, next); err != nil {
		return err
	}
	var generation, version sql.Null[int64]
	var digest sql.Null[string]
	if c := next.Committed; !c.IsZero() {
		generation, version = sql.Null[int64]{V: number(c.Generation), Valid: true}, sql.Null[int64]{V: number(c.Version), Valid: true}
		digest = sql.Null[string]{V: string(c.Digest), Valid: true}
	}
	var rollout, previous sql.Null[int64]
	if r := next.Rollout; r != nil {
		rollout = sql.Null[int64]{V: number(r.Generation), Valid: true}
	}
	if p := next.Previous; p != nil {
		previous = sql.Null[int64]{V: number(p.Generation), Valid: true}
	}
	args := []any{
		t.s.cohort, number(next.Revision), number(next.Generation), rollout, previous, number(next.Claim),
		generation, digest, version, number(st.roster.Revision),
	}
	statement := `INSERT INTO barrier.head (cohort, revision, generation, rollout_generation, previous_generation, claim,
			committed_generation, committed_digest, committed_version, roster_revision)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	if st.stored {
		statement = `UPDATE barrier.head SET revision = $2, generation = $3, rollout_generation = $4, previous_generation = $5, claim = $6,
				committed_generation = $7, committed_digest = $8, committed_version = $9, roster_revision = $10
			WHERE cohort = $1 AND revision = $11`
		args = append(args, number(st.Revision))
	}
	if err := t.one(ctx, statement, args...); err != nil {
		return err
	}
	if t.s.hook != nil {
		if err := t.s.hook(ctx, t.tx, st.Head, next); err != nil {
			return fmt.Errorf("the hook of the change: %w", err)
		}
	}
	return t.notify(ctx, true, false)
}

// saveRollout writes the newest rollout if it is another than that which was loaded, or has come further.
func (t *Tx) saveRollout(ctx context.Context, st *state, next barrier.Head) error {
	instant := t.s.dialect.instant
	ro, old := next.Rollout, st.Rollout
	switch {
	case ro == nil || old != nil && *ro == *old:
		return nil
	case old == nil || old.Generation != ro.Generation:
		err := t.one(ctx, `INSERT INTO barrier.rollout (cohort, generation, id, state, digest, version, proposer, roster_revision, epoch_size,
				window_ms, soak_ms, grace_ms, evidence_ttl_ms, proposed_at, deadline, decided_by, reason)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
			t.s.cohort, number(ro.Generation), string(ro.ID), string(ro.State), string(ro.Digest), number(ro.Version), ro.Proposer,
			number(ro.RosterRevision), ro.EpochSize, ro.Window.Milliseconds(), ro.Soak.Milliseconds(), ro.Grace.Milliseconds(),
			ro.EvidenceTTL.Milliseconds(), instant(ro.ProposedAt), instant(ro.Deadline), ro.DecidedBy, ro.Reason)
		if err != nil {
			return err
		}
		n, err := t.exec(ctx, `INSERT INTO barrier.ballot (cohort, generation, member, revision, boot, vote, build_digest, reason, detail, withdrawn)
			SELECT cohort, $2, member, 0, '', '', '', '', '', '' FROM barrier.roster WHERE cohort = $1`, t.s.cohort, number(ro.Generation))
		if err == nil && n != int64(ro.EpochSize) {
			return errLost
		}
		return err
	default:
		return t.one(ctx, `UPDATE barrier.rollout SET state = $3, committed_at = $4, confirm_deadline = $5, decided_at = $6, decided_by = $7, reason = $8
			WHERE cohort = $1 AND generation = $2 AND state = $9`,
			t.s.cohort, number(ro.Generation), string(ro.State), instant(ro.CommittedAt), instant(ro.ConfirmDeadline), instant(ro.DecidedAt),
			ro.DecidedBy, ro.Reason, string(old.State))
	}
}

// saveRoster writes next over what was loaded; the head, with the roster's revision, is written after it.
func (t *Tx) saveRoster(ctx context.Context, st *state, next barrier.Roster) error {
	missing := func(of, in []barrier.MemberID) (string, bool, error) {
		gone := slices.DeleteFunc(slices.Clone(of), func(m barrier.MemberID) bool {
			_, found := slices.BinarySearch(in, m)
			return found
		})
		text, err := json.Marshal(gone)
		return string(text), len(gone) > 0, err
	}
	names := `SELECT value FROM json_each($2)`
	if t.s.dialect == Postgres {
		names = `SELECT value FROM json_array_elements_text($2::json) AS value`
	}
	for _, change := range []struct {
		of, in    []barrier.MemberID
		statement string
	}{
		{st.roster.Members, next.Members, `DELETE FROM barrier.roster WHERE cohort = $1 AND member IN (` + names + `)`},
		{next.Members, st.roster.Members, `INSERT INTO barrier.roster (cohort, member) SELECT $1, value FROM (` + names + `) AS names`},
	} {
		text, some, err := missing(change.of, change.in)
		if err == nil && some {
			_, err = t.exec(ctx, change.statement, t.s.cohort, text)
		}
		if err != nil {
			return err
		}
	}
	st.roster = next
	return nil
}

// saveBallot writes b over the asked-for member's ballot, and tells those who watch the votes when loud.
func (t *Tx) saveBallot(ctx context.Context, st *state, b barrier.Ballot, loud bool) error {
	if b == st.own.Ballot {
		return nil
	}
	instant := t.s.dialect.instant
	err := t.one(ctx, `UPDATE barrier.ballot SET revision = revision + 1, boot = $4, vote = $5, build_digest = $6, reason = $7,
			voted_at = $8, converged_since = $9, renewed_at = $10, detail = $11, withdrawn = $12, withdrawn_at = $13
		WHERE cohort = $1 AND generation = $2 AND member = $3 AND revision = $14`,
		t.s.cohort, number(st.Rollout.Generation), string(st.own.Member), string(b.Boot), string(b.Vote), b.BuildDigest, b.Reason,
		instant(b.VotedAt), instant(b.ConvergedSince), instant(b.RenewedAt), b.Detail, b.Withdrawn, instant(b.WithdrawnAt), st.ballotRev)
	if err != nil {
		return err
	}
	return t.notify(ctx, false, loud)
}

// saveRegistration writes reg over the asked-for member's registration.
func (t *Tx) saveRegistration(ctx context.Context, st *state, reg barrier.Registration) error {
	old := st.own.Registration
	if reg == old {
		return nil
	}
	args := []any{t.s.cohort, string(st.own.Member), string(reg.Boot), number(reg.Incarnation), number(reg.Joined)}
	statement := `INSERT INTO barrier.member (cohort, member, boot, incarnation, joined) VALUES ($1, $2, $3, $4, $5)`
	if old.Incarnation > 0 {
		statement = `UPDATE barrier.member SET boot = $3, incarnation = $4, joined = $5 WHERE cohort = $1 AND member = $2 AND incarnation = $6`
		args = append(args, number(old.Incarnation))
	}
	if err := t.one(ctx, statement, args...); err != nil {
		return err
	}
	return t.notify(ctx, false, true)
}
