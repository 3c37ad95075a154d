package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// epoch is the store's time at the start of a schedule.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// store is the cohort's row, its lease and its artefacts: one linearizable home. Every call is one instant.
type store struct {
	w       *world
	down    bool
	step    time.Duration // its clock is off by
	stepped time.Duration // back, in all

	rows
	backup *rows
}

// rows is what it holds.
type rows struct {
	head          barrier.Head
	roster        barrier.Roster
	epoch         []barrier.MemberID
	registrations map[barrier.MemberID]barrier.Registration
	ballots       map[barrier.MemberID]barrier.Ballot
	artefacts     map[barrier.Digest]bool

	holder string
	token  barrier.Token
	until  time.Time
}

func (r rows) clone() rows {
	r.registrations, r.ballots, r.artefacts = maps.Clone(r.registrations), maps.Clone(r.ballots), maps.Clone(r.artefacts)
	return r
}

func newStore(w *world) *store {
	return &store{w: w, rows: rows{
		registrations: map[barrier.MemberID]barrier.Registration{}, ballots: map[barrier.MemberID]barrier.Ballot{},
		artefacts: map[barrier.Digest]bool{},
	}}
}

// begin is the deployment: a roster, and most often a baseline.
func (s *store) begin(members []barrier.MemberID) {
	_, err := s.setRoster(0, members)
	s.w.check.must(err)
	if s.w.cfg.baseline {
		d := s.w.newArtefact(healthy).digest
		s.artefacts[d] = true
		p := barrier.Pointer{Digest: d}
		next, _, err := s.head.AdoptBaseline(p)
		s.w.check.must(err)
		s.head = next
		s.w.check.final(p)
	}
}

func (s *store) now() time.Time { return epoch.Add(s.w.now + s.step) }

// seat returns m's seat in the epoch, or nil.
func (s *store) seat(m barrier.MemberID) *barrier.Seat {
	if _, ok := slices.BinarySearch(s.epoch, m); !ok {
		return nil
	}
	return &barrier.Seat{Member: m, Registration: s.registrations[m], Ballot: s.ballots[m]}
}

func (s *store) seats() []barrier.Seat {
	seats := make([]barrier.Seat, len(s.epoch))
	for i, m := range s.epoch {
		seats[i] = barrier.Seat{Member: m, Registration: s.registrations[m], Ballot: s.ballots[m]}
	}
	return seats
}

// set is the end of every write: of whom, with which token, if it is a coordinator's.
func (s *store) set(next barrier.Head, token barrier.Token) {
	if next.Revision == s.head.Revision {
		return
	}
	old := s.head
	s.head = next
	s.w.check.head(old, next, token)
	s.w.hint()
}

// hint tells some of the sleepers that something has changed.
func (w *world) hint() {
	for _, p := range w.processes {
		if p.alive && p.sleeping && w.chance(w.cfg.hint) {
			w.at(w.now+time.Duration(w.rng.Int64N(int64(20*time.Millisecond))), p.hint)
		}
	}
}

func (s *store) row() (*barrier.Row, error) {
	row := &barrier.Row{Head: s.head, Roster: s.roster, Seats: s.seats(), Now: s.now()}
	if s.w.opt.Ablation == AnyBootsEvidence || s.w.opt.Ablation == AnyBootsVotes {
		row.Seats = anyBoot(row.Seats)
	}
	return row, nil
}

// look is what a member is told, with the truth about what is committed.
func (s *store) look(m barrier.MemberID) (*sight, error) {
	v := barrier.View{Head: s.head, Registration: s.registrations[m], Now: s.now()}
	if seat := s.seat(m); seat != nil {
		v.InEpoch, v.Ballot = true, seat.Ballot
	}
	truth := v.Committed
	if s.w.opt.Ablation == NewestOnly {
		v.Committed = newestOnly(s.head)
	}
	return &sight{v, truth}, nil
}

// sight is a View and the committed pointer that stood when it was taken.
type sight struct {
	view      barrier.View
	committed barrier.Pointer
}

func (s *store) join(m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	old := s.registrations[m]
	next, reg, err := s.head.Join(old, s.seat(m) != nil, boot, incarnation)
	if err != nil {
		s.w.cov.add(SupersededCall)
		return reg, err
	}
	if reg != old {
		if ro := s.head.Rollout; ro != nil && s.ballots[m].Vote != barrier.NoVote {
			switch {
			case ro.Voting():
				s.w.cov.add(VoidVote)
			case ro.OnTrial():
				s.w.cov.add(RestartInWindow)
			}
		}
		s.registrations[m] = reg
	}
	s.set(next, 0)
	return reg, nil
}

// vote is every write of a member's ballot.
func (s *store) vote(m barrier.MemberID, boot barrier.BootID, next barrier.Head, b barrier.Ballot, err error) error {
	if err != nil {
		if barrier.Code(err) == "superseded" {
			s.w.cov.add(SupersededCall)
		}
		return err
	}
	if old := s.ballots[m]; b != old {
		s.w.check.ballot(s.head, m, boot, old, b)
		s.ballots[m] = b
		s.w.hint()
	}
	s.set(next, 0)
	return nil
}

func (s *store) ack(r barrier.Ref, m barrier.MemberID, boot barrier.BootID, digest string) error {
	b, err := s.head.Ack(r, s.seat(m), boot, digest, s.now())
	return s.vote(m, boot, s.head, b, err)
}

func (s *store) nack(r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	b, err := s.head.Nack(r, s.seat(m), boot, reason, s.now())
	return s.vote(m, boot, s.head, b, err)
}

func (s *store) converge(r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	b, err := s.head.Converge(r, s.seat(m), boot, detail, s.now())
	return s.vote(m, boot, s.head, b, err)
}

func (s *store) withdraw(r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	next, b, err := s.head.Withdraw(r, s.seat(m), boot, reason, s.now())
	return s.vote(m, boot, next, b, err)
}

func (s *store) claim(t barrier.Token) error {
	next, err := s.head.WithClaim(t)
	if err != nil {
		s.w.cov.add(FencedClaim)
		return err
	}
	s.w.check.claim(t)
	s.set(next, t)
	return nil
}

// decision is every write of a coordinator that decides.
func (s *store) decision(r barrier.Ref, t barrier.Token, to barrier.State, next barrier.Head, err error) error {
	s.w.check.repeated(r, t, to, s.head, next, err)
	if err != nil {
		switch barrier.Code(err) {
		case "fenced":
			s.w.cov.add(FencedDecision)
		case "late":
			s.w.cov.add(LateDecision)
		case "decided":
			s.w.cov.add(DecidedOtherwise)
		}
		return err
	}
	if s.w.opt.Ablation == PointerLater {
		next.Committed = s.head.Committed
	}
	s.set(next, t)
	return nil
}

// fence is the token that a decision is tested with.
func (s *store) fence(t barrier.Token) barrier.Token {
	if s.w.opt.Ablation == NoClaim {
		return s.head.Claim
	}
	return t
}

func (s *store) commit(r barrier.Ref, t barrier.Token) error {
	seats := s.seats()
	if s.w.opt.Ablation == AnyBootsVotes {
		seats = anyBoot(seats)
	}
	next, err := s.head.Commit(r, s.fence(t), seats, s.roster.Revision, s.now(), 0)
	return s.decision(r, t, barrier.Committed, next, err)
}

// confirm gets the coordinator's clock when it was sent, which only an ablation looks at.
func (s *store) confirm(r barrier.Ref, t barrier.Token, clock time.Time) error {
	seats, now := s.seats(), s.now()
	switch s.w.opt.Ablation {
	case AnyBootsEvidence:
		seats = anyBoot(seats)
	case ClockAtSending:
		now = clock
	}
	next, err := s.head.Confirm(r, s.fence(t), seats, now, 0)
	return s.decision(r, t, barrier.Confirmed, next, err)
}

func (s *store) abort(r barrier.Ref, t barrier.Token, reason string) error {
	next, err := s.head.Abort(r, barrier.ByClaim(s.fence(t)), reason, s.now())
	return s.decision(r, t, barrier.Aborted, next, err)
}

func (s *store) revert(r barrier.Ref, t barrier.Token, reason string) error {
	next, err := s.head.Revert(r, barrier.ByClaim(s.fence(t)), nil, reason, s.now())
	return s.decision(r, t, barrier.Reverted, next, err)
}

// movePointer is the second write of an ablated coordinator.
func (s *store) movePointer(p barrier.Pointer) error {
	if p.Generation <= s.head.Committed.Generation {
		return nil
	}
	next := s.head
	next.Committed = p
	next.Revision++
	s.set(next, 0)
	return nil
}

func (s *store) revertByDeadman(r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	before := s.head.Revision
	next, err := s.head.Revert(r, barrier.ByDeadman(m, boot), s.seat(m), reason, s.now())
	switch {
	case err == nil && next.Revision != before:
		s.w.cov.add(DeadmanWon)
	case err == nil:
		s.w.cov.add(DeadmanRepeated)
	case barrier.Code(err) == "early":
		s.w.cov.add(DeadmanEarly)
	case barrier.Code(err) == "decided":
		s.w.cov.add(DeadmanLost)
	}
	if err != nil {
		return err
	}
	s.set(next, 0)
	return nil
}

func (s *store) operate(r barrier.Ref, verb barrier.Verb) error {
	by := barrier.ByOperator("olga")
	next, err := s.head.Abort(r, by, "by hand", s.now())
	if verb == barrier.Revert {
		next, err = s.head.Revert(r, by, nil, "by hand", s.now())
	}
	if err != nil {
		return err
	}
	if next.Revision != s.head.Revision {
		s.w.cov.add(OperatorDecided)
	}
	s.set(next, 0)
	return nil
}

func (s *store) propose(p barrier.Proposal) (barrier.Rollout, error) {
	next, err := s.head.Propose(s.roster, p, s.now())
	if err != nil {
		switch barrier.Code(err) {
		case "open":
			s.w.cov.add(ProposalRefused)
		case "stale":
			s.w.cov.add(StaleProposal)
		}
		return barrier.Rollout{}, err
	}
	if next.Revision != s.head.Revision {
		s.epoch = s.roster.Members
		clear(s.ballots)
	}
	s.set(next, 0)
	return *next.Rollout, nil
}

func (s *store) setRoster(revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	open := s.head.Rollout != nil && s.head.Rollout.Voting()
	next, roster, err := s.head.ChangeRoster(s.roster, revision, members, s.now())
	if err != nil {
		if barrier.Code(err) == "open" {
			s.w.cov.add(RosterRefused)
		}
		return roster, err
	}
	if open && roster.Revision != s.roster.Revision {
		s.w.cov.add(RosterAbort)
	}
	s.roster = roster
	s.set(next, 0)
	return roster, nil
}

// acquire, renew and release are the lease.
func (s *store) acquire(holder string, ttl time.Duration) (barrier.Token, error) {
	now := s.now()
	if s.holder != "" && now.Before(s.until) {
		if s.holder != holder {
			return 0, &barrier.HeldError{Holder: s.holder}
		}
	} else {
		s.holder = holder
		s.token++
		s.w.check.token(s.token)
	}
	s.until = now.Add(ttl)
	return s.token, nil
}

func (s *store) renew(holder string, t barrier.Token, ttl time.Duration) error {
	if s.token != t || s.holder != holder {
		s.w.cov.add(LeaseLost)
		return barrier.ErrLost
	}
	s.until = s.now().Add(ttl)
	return nil
}

func (s *store) release(holder string, t barrier.Token) error {
	if s.token != t || s.holder != holder {
		return barrier.ErrLost
	}
	s.holder = ""
	return nil
}

func (s *store) put(d barrier.Digest) error {
	s.artefacts[d] = true
	return nil
}

// get returns the bytes, which here are their digest; now and then something happens to them on the way.
func (s *store) get(d barrier.Digest) (barrier.Digest, error) {
	if !s.artefacts[d] {
		s.w.check.bytesMissing(d)
		return "", barrier.ErrNoArtefact
	}
	if !s.w.healed && s.w.chance(s.w.cfg.prepareFails/4) {
		s.w.cov.add(WrongBytes)
		return "other bytes", nil
	}
	return d, nil
}

// save is a backup, restore makes it what the store holds.
func (s *store) save() {
	b := s.rows.clone()
	s.backup = &b
}

func (s *store) restore() bool {
	if s.backup == nil {
		return false
	}
	s.rows = s.backup.clone()
	s.w.check.restored(s.head)
	return true
}
