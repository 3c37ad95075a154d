package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
)

// want is what a load brings beside the head and one member's seat.
type want int

const (
	wantRoster want = 1 << iota
	wantSeats
)

// state is what the database holds, read at one instant.
type state struct {
	barrier.Head
	stored    bool // whether the head has a row
	roster    barrier.Roster
	seats     []barrier.Seat
	own       barrier.Seat // of the member that was asked for
	inEpoch   bool
	ballotRev int64 // of own's ballot
	now       time.Time
}

// seat returns the asked-for member's seat, nil when it has none.
func (s *state) seat() *barrier.Seat {
	if !s.inEpoch {
		return nil
	}
	return &s.own
}

// statement builds the one that loads. One statement is one snapshot in both databases at every isolation level, and
// one round trip.
func (d Dialect) statement(w want) string {
	roster, seats := "'[]'", "'[]'"
	if w&wantRoster != 0 {
		roster = `(SELECT ` + d.jsonObjects("'member'", "o.member") + ` FROM barrier.roster o WHERE o.cohort = $1)`
	}
	if w&wantSeats != 0 {
		seats = `(SELECT ` + d.jsonObjects("'member'", "s.member", "'boot'", "n.boot", "'incarnation'", "n.incarnation", "'joined'", "n.joined",
			"'by'", "s.boot", "'vote'", "s.vote", "'build_digest'", "s.build_digest", "'reason'", "s.reason",
			"'voted_at'", d.micros("s.voted_at"), "'since'", d.micros("s.converged_since"), "'renewed_at'", d.micros("s.renewed_at"),
			"'detail'", "s.detail", "'withdrawn'", "s.withdrawn", "'withdrawn_at'", d.micros("s.withdrawn_at")) + `
			FROM barrier.ballot s ` + d.lookUp("barrier.member", "n", "n.cohort = s.cohort AND n.member = s.member") + `
			WHERE s.cohort = $1 AND s.generation = h.rollout_generation)`
	}
	return d.rewrite(`SELECT h.revision, h.generation, h.claim,
			h.committed_generation, h.committed_digest, h.committed_version, h.roster_revision,
			` + rolloutColumns + `,
			p.id, p.generation, p.digest, p.version, p.state, p.reason,
			m.boot, m.incarnation, m.joined,
			b.revision, ` + ballotColumns + `,
			` + roster + `, ` + seats + `, ` + d.clock() + `
		FROM (SELECT 1) AS one
		` + d.lookUp("barrier.head", "h", "h.cohort = $1") + `
		` + d.lookUp("barrier.rollout", "r", "r.cohort = $1 AND r.generation = h.rollout_generation") + `
		` + d.lookUp("barrier.rollout", "p", "p.cohort = $1 AND p.generation = h.previous_generation") + `
		` + d.lookUp("barrier.member", "m", "m.cohort = $1 AND m.member = $2") + `
		` + d.lookUp("barrier.ballot", "b", "b.cohort = $1 AND b.generation = h.rollout_generation AND b.member = $2"))
}

const rolloutColumns = `r.id, r.generation, r.digest, r.version, r.proposer, r.roster_revision, r.epoch_size,
	r.window_ms, r.soak_ms, r.grace_ms, r.evidence_ttl_ms, r.proposed_at, r.deadline, r.state,
	r.committed_at, r.confirm_deadline, r.decided_at, r.decided_by, r.reason`

// rolloutInto returns where rolloutColumns go.
func rolloutInto(r *barrier.Rollout) []any {
	return []any{
		column[barrier.RolloutID]{&r.ID},
		column[uint64]{&r.Generation},
		column[barrier.Digest]{&r.Digest},
		column[uint64]{&r.Version},
		column[string]{&r.Proposer},
		column[uint64]{&r.RosterRevision},
		column[int]{&r.EpochSize},
		milliseconds{&r.Window},
		milliseconds{&r.Soak},
		milliseconds{&r.Grace},
		milliseconds{&r.EvidenceTTL},
		instantColumn{&r.ProposedAt},
		instantColumn{&r.Deadline},
		column[barrier.State]{&r.State},
		instantColumn{&r.CommittedAt},
		instantColumn{&r.ConfirmDeadline},
		instantColumn{&r.DecidedAt},
		column[string]{&r.DecidedBy},
		column[string]{&r.Reason},
	}
}

const ballotColumns = `b.boot, b.vote, b.build_digest, b.reason, b.voted_at, b.converged_since, b.renewed_at,
	b.detail, b.withdrawn, b.withdrawn_at`

// ballotInto returns where ballotColumns go.
func ballotInto(b *barrier.Ballot) []any {
	return []any{
		column[barrier.BootID]{&b.Boot},
		column[barrier.Vote]{&b.Vote},
		column[string]{&b.BuildDigest},
		column[string]{&b.Reason},
		instantColumn{&b.VotedAt},
		instantColumn{&b.ConvergedSince},
		instantColumn{&b.RenewedAt},
		column[string]{&b.Detail},
		column[string]{&b.Withdrawn},
		instantColumn{&b.WithdrawnAt},
	}
}

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// load reads the head, m's seat and what w says.
func (s *Store) load(ctx context.Context, q querier, m barrier.MemberID, w want) (state, error) {
	var (
		st            state
		revision      sql.Null[int64]
		rollout       barrier.Rollout
		previous      barrier.Outcome
		ballot        sql.Null[int64]
		roster, seats []byte
	)
	st.own.Member = m
	into := []any{
		&revision,
		column[uint64]{&st.Generation},
		column[barrier.Token]{&st.Claim},
		column[uint64]{&st.Committed.Generation},
		column[barrier.Digest]{&st.Committed.Digest},
		column[uint64]{&st.Committed.Version},
		column[uint64]{&st.roster.Revision},
	}
	into = append(into, rolloutInto(&rollout)...)
	into = append(into,
		column[barrier.RolloutID]{&previous.ID}, column[uint64]{&previous.Generation}, column[barrier.Digest]{&previous.Digest},
		column[uint64]{&previous.Version}, column[barrier.State]{&previous.State}, column[string]{&previous.Reason},
		column[barrier.BootID]{&st.own.Registration.Boot}, column[uint64]{&st.own.Registration.Incarnation},
		column[uint64]{&st.own.Registration.Joined},
		&ballot)
	into = append(into, ballotInto(&st.own.Ballot)...)
	into = append(into, &roster, &seats, instantColumn{&st.now})
	if err := q.QueryRowContext(ctx, s.loads[w], s.cohort, clean(m)).Scan(into...); err != nil {
		return state{}, err
	}
	st.Revision, st.stored = uint64(revision.V), revision.Valid
	st.ballotRev, st.inEpoch = ballot.V, ballot.Valid
	if rollout.ID != "" {
		st.Rollout = &rollout
	}
	if previous.ID != "" {
		st.Previous = &previous
	}
	if s.dialect == SQLite {
		st.now = s.now()
	}
	return st, errors.Join(st.unpackRoster(roster), st.unpackSeats(seats))
}

func (s *state) unpackRoster(text []byte) error {
	var rows []struct {
		Member barrier.MemberID `json:"member"`
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return fmt.Errorf("read the roster: %w", err)
	}
	for _, r := range rows {
		s.roster.Members = append(s.roster.Members, r.Member)
	}
	slices.Sort(s.roster.Members)
	return nil
}

// packedSeat is a seat as the statement packs it.
type packedSeat struct {
	Member      barrier.MemberID `json:"member"`
	Boot        barrier.BootID   `json:"boot"`
	Incarnation uint64           `json:"incarnation"`
	Joined      uint64           `json:"joined"`
	By          barrier.BootID   `json:"by"`
	Vote        barrier.Vote     `json:"vote"`
	BuildDigest string           `json:"build_digest"`
	Reason      string           `json:"reason"`
	VotedAt     *int64           `json:"voted_at"`
	Since       *int64           `json:"since"`
	RenewedAt   *int64           `json:"renewed_at"`
	Detail      string           `json:"detail"`
	Withdrawn   string           `json:"withdrawn"`
	WithdrawnAt *int64           `json:"withdrawn_at"`
}

func (s *state) unpackSeats(text []byte) error {
	var rows []packedSeat
	if err := json.Unmarshal(text, &rows); err != nil {
		return fmt.Errorf("read the seats: %w", err)
	}
	at := func(micros *int64) time.Time {
		if micros == nil {
			return time.Time{}
		}
		return time.UnixMicro(*micros).UTC()
	}
	s.seats = make([]barrier.Seat, len(rows))
	for i, r := range rows {
		s.seats[i] = barrier.Seat{
			Member:       r.Member,
			Registration: barrier.Registration{Boot: r.Boot, Incarnation: r.Incarnation, Joined: r.Joined},
			Ballot: barrier.Ballot{
				Boot: r.By, Vote: r.Vote, BuildDigest: r.BuildDigest, Reason: r.Reason, VotedAt: at(r.VotedAt),
				ConvergedSince: at(r.Since), RenewedAt: at(r.RenewedAt), Detail: r.Detail,
				Withdrawn: r.Withdrawn, WithdrawnAt: at(r.WithdrawnAt),
			},
		}
	}
	slices.SortFunc(s.seats, func(a, b barrier.Seat) int { return cmp.Compare(a.Member, b.Member) })
	return nil
}

// Current implements barrier.Reader.
func (s *Store) Current(ctx context.Context) (barrier.Row, error) {
	st, err := s.load(ctx, s.reader, "", wantRoster|wantSeats)
	if err != nil {
		return barrier.Row{}, fmt.Errorf("read cohort %s: %w", s.cohort, err)
	}
	return st.row(), nil
}

func (s *state) row() barrier.Row {
	return barrier.Row{Head: s.Head, Roster: s.roster, Seats: s.seats, Now: s.now}
}

// Look implements barrier.Reader.
func (s *Store) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	st, err := s.load(ctx, s.reader, m, 0)
	if err != nil {
		return barrier.View{}, fmt.Errorf("read cohort %s: %w", s.cohort, err)
	}
	return barrier.View{Head: st.Head, Registration: st.own.Registration, InEpoch: st.inEpoch, Ballot: st.own.Ballot, Now: st.now}, nil
}
