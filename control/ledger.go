package control

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// rollout is r with what the cohort says of it.
func (r RolloutRow) rollout(ro barrier.Rollout) Rollout {
	return Rollout{Rollout: ro, Kind: r.Kind, ContentHash: r.ContentHash, Message: r.Message, By: r.By, Margin: r.Margin}
}

// Rollouts lists the ledger, newest first, without members (operator). The page key is the generation in decimal.
func (s *Service) Rollouts(ctx context.Context, p Principal, page Page) (Listing[Rollout], error) {
	if err := p.operates(); err != nil {
		return Listing[Rollout]{}, err
	}
	page, err := bounded(page)
	if err != nil {
		return Listing[Rollout]{}, err
	}
	var before uint64
	if page.After != "" {
		if before, err = strconv.ParseUint(page.After, 10, 63); err != nil {
			return Listing[Rollout]{}, fmt.Errorf("rollouts before generation %q: %w", page.After, ErrNotFound)
		}
	}
	if s.cohort == nil {
		return Listing[Rollout]{}, nil
	}
	found, err := s.cohort.Rollouts(ctx, page.Limit, before)
	if err != nil {
		return Listing[Rollout]{}, fmt.Errorf("reading the rollouts: %w", err)
	}
	ids := make([]barrier.RolloutID, len(found))
	for i, ro := range found {
		ids[i] = ro.ID
	}
	kept, err := s.store.RolloutRows(ctx, ids)
	if err != nil {
		return Listing[Rollout]{}, err
	}
	rows := make(map[barrier.RolloutID]RolloutRow, len(kept))
	for _, r := range kept {
		rows[r.ID] = r
	}
	names, err := s.nodeNames(ctx)
	if err != nil {
		return Listing[Rollout]{}, err
	}
	all := make([]Rollout, len(found))
	for i, ro := range found {
		all[i] = rows[ro.ID].rollout(names.in(ro))
	}
	return listing(all, page, func(r Rollout) string { return strconv.FormatUint(r.Generation, 10) }), nil
}

// CurrentRollout names the newest rollout where an id is asked for.
const CurrentRollout = "current"

// Rollout returns one rollout with its members (operator). ErrNotFound.
func (s *Service) Rollout(ctx context.Context, p Principal, id string) (Rollout, error) {
	if err := p.operates(); err != nil {
		return Rollout{}, err
	}
	return s.rollout(ctx, barrier.RolloutID(id))
}

func (s *Service) rollout(ctx context.Context, id barrier.RolloutID) (Rollout, error) {
	none := fmt.Errorf("rollout %.80q: %w", string(id), ErrNotFound)
	if s.cohort == nil {
		return Rollout{}, none
	}
	row, err := s.cohort.Current(ctx)
	if err != nil {
		return Rollout{}, fmt.Errorf("reading the cohort: %w", err)
	}
	var (
		ro    barrier.Rollout
		seats []barrier.Seat
	)
	switch newest := row.Rollout; {
	case newest != nil && (id == CurrentRollout || id == newest.ID):
		ro, seats = *newest, row.Seats
	case id == CurrentRollout:
		return Rollout{}, none
	default:
		ro, seats, err = s.cohort.Rollout(ctx, id)
		if errors.Is(err, barrier.ErrUnknown) {
			return Rollout{}, none
		}
		if err != nil {
			return Rollout{}, fmt.Errorf("reading rollout %s: %w", id, err)
		}
	}
	kept, err := s.store.RolloutRows(ctx, []barrier.RolloutID{ro.ID})
	if err != nil {
		return Rollout{}, err
	}
	if len(kept) == 0 {
		return Rollout{}, none
	}
	names, err := s.nodeNames(ctx)
	if err != nil {
		return Rollout{}, err
	}
	out := kept[0].rollout(names.in(ro))
	out.Now = row.Now
	for _, seat := range seats {
		seat.Ballot.Reason, seat.Ballot.Withdrawn = names.text(seat.Ballot.Reason), names.text(seat.Ballot.Withdrawn)
		out.Members = append(out.Members, RolloutMember{
			Seat: seat, Name: names.of(seat.Member), Restarted: restarted(ro, seat),
		})
	}
	for _, m := range waitingFor(ro, seats, row) {
		out.WaitingFor = append(out.WaitingFor, names.of(m))
	}
	out.Seen, err = out.seen()
	return out, err
}

// restarted tells whether the process that voted was gone before the decision. What became of it later nobody asks, so of a rollout
// that is over the decision's reason tells.
func restarted(ro barrier.Rollout, seat barrier.Seat) bool {
	if ro.Open() {
		return seat.Ballot.Boot != "" && !seat.Counts()
	}
	return strings.Contains(ro.Reason, string(seat.Member)+barrier.RestartedInWindow)
}

// waitingFor is whose vote or evidence is missing, as a coordinator would judge now.
func waitingFor(ro barrier.Rollout, seats []barrier.Seat, row barrier.Row) []barrier.MemberID {
	if !ro.Open() {
		return nil
	}
	if ro.State == barrier.Proposed {
		ro.State = barrier.Staging // as soon as one has taken it up
	}
	row.Rollout, row.Seats, row.Claim = &ro, seats, 1
	return barrier.Decide(row, barrier.Term{Token: 1}).Waiting
}

// seen hashes what a person could see change.
func (r *Rollout) seen() (string, error) {
	type member struct {
		Boot, Current     barrier.BootID
		Vote              barrier.Vote
		Build, Reason     string
		Converged         int64
		Detail, Withdrawn string
		MemberID          barrier.MemberID
	}
	what := struct {
		State     barrier.State
		DecidedAt int64
		Members   []member
		Waiting   []string
	}{State: r.State, DecidedAt: r.DecidedAt.UnixMicro(), Waiting: r.WaitingFor}
	for _, m := range r.Members {
		b := m.Ballot
		what.Members = append(what.Members, member{
			b.Boot, m.Registration.Boot, b.Vote, b.BuildDigest, b.Reason, b.ConvergedSince.UnixMicro(), b.Detail, b.Withdrawn, m.Member,
		})
	}
	body, err := json.Marshal(what, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("hashing rollout %s: %w", r.ID, err)
	}
	sum := blake3.Sum256(body)
	return fmt.Sprintf("%x", sum[:12]), nil
}

// awaitPoll is how often AwaitRollout looks when nothing hints at a change.
const awaitPoll = time.Second

// AwaitRollout is Rollout as soon as its Seen is not seen, at once when it is over, and after wait (0 to nodeproto.MaxWait) at
// the latest (operator).
func (s *Service) AwaitRollout(ctx context.Context, p Principal, id, seen string, wait time.Duration) (Rollout, error) {
	if err := p.operates(); err != nil {
		return Rollout{}, err
	}
	if wait < 0 || wait > nodeproto.MaxWait {
		return Rollout{}, malformed("", "wait", "wait_invalid", "wait is 0 to %d seconds", nodeproto.MaxWait/time.Second)
	}
	if s.cohort == nil {
		return Rollout{}, fmt.Errorf("rollout %.80q: %w", id, ErrNotFound)
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	// They come before the first look: what happens after it is hinted at.
	head, votes := s.cohort.Watch(watching, barrier.TopicHead), s.cohort.Watch(watching, barrier.TopicVotes)
	r, err := s.rollout(ctx, barrier.RolloutID(id))
	if err != nil || seen == "" || wait == 0 {
		return r, err
	}
	if s.count.waiting.Add(1) > s.maxLongPolls {
		s.count.waiting.Add(-1)
		return r, nil
	}
	defer s.count.waiting.Add(-1)
	end := time.NewTimer(wait)
	defer end.Stop()
	tick := time.NewTicker(awaitPoll)
	defer tick.Stop()
	for r.Open() && r.Seen == seen {
		select {
		case _, ok := <-head:
			if !ok {
				head = nil
			}
		case _, ok := <-votes:
			if !ok {
				votes = nil
			}
		case <-tick.C:
		case <-end.C:
			return r, nil
		case <-ctx.Done():
			return r, nil
		case <-s.stopping:
			return r, nil
		}
		// What was asked for as the newest stays that one.
		if r, err = s.rollout(ctx, r.ID); err != nil {
			return r, err
		}
	}
	return r, nil
}

// AbortRollout ends a rollout that is voted on (operator). *RolloutStateError when it is decided otherwise; of one that is
// aborted already it is a success.
func (s *Service) AbortRollout(ctx context.Context, p Principal, id, reason string) (Rollout, error) {
	return s.end(ctx, p, "abort", actionAbort, id, reason)
}

// RevertRollout ends a trial (operator). Errors as AbortRollout.
func (s *Service) RevertRollout(ctx context.Context, p Principal, id, reason string) (Rollout, error) {
	return s.end(ctx, p, "revert", actionRevert, id, reason)
}

func (s *Service) end(ctx context.Context, p Principal, verb, action, id, reason string) (Rollout, error) {
	if err := p.operates(); err != nil {
		return Rollout{}, err
	}
	if err := joinProblems(checkMessage(reason)); err != nil {
		return Rollout{}, err
	}
	before, err := s.rollout(ctx, barrier.RolloutID(id))
	if err != nil {
		return Rollout{}, err
	}
	if reason == "" {
		reason = "no reason given"
	}
	deciding := context.WithValue(ctx, deciderKey{}, p)
	if verb == "abort" {
		err = s.cohort.Abort(deciding, before.Ref, barrier.ByOperator(p.actor()), reason)
	} else {
		err = s.cohort.Revert(deciding, before.Ref, barrier.ByOperator(p.actor()), reason)
	}
	after, readErr := s.rollout(ctx, before.ID)
	switch {
	case errors.Is(err, barrier.ErrDecided), errors.Is(err, barrier.ErrNoWindow), errors.Is(err, barrier.ErrUnknown):
		if readErr == nil {
			before = after
		}
		if want := map[string]barrier.State{"abort": barrier.Aborted, "revert": barrier.Reverted}[verb]; before.State == want {
			return before, nil // long ago
		}
		err = &RolloutStateError{Verb: verb, Rollout: before.Rollout}
	case err != nil:
		err = fmt.Errorf("rollout %s: %w", before.ID, err)
	default:
		err = readErr
	}
	if err != nil {
		s.auditRefusal(ctx, p, action, fmt.Sprintf("rollout %s", before.ID), err)
		return Rollout{}, err
	}
	s.log.Info("a rollout was ended by an operator", "verb", verb, "rollout", string(after.ID), "generation", after.Generation, "by", p.actor(), "reason", reason)
	if err := s.follow(ctx); err != nil {
		s.log.Warn("the rollout could not be read after it was ended", "error", err) // Run asks again
	}
	return after, nil
}

// nodeNames are the names of nodes by id.
type nodeNames struct {
	byID     map[barrier.MemberID]string
	replacer *strings.Replacer
}

func (s *Service) nodeNames(ctx context.Context) (*nodeNames, error) {
	nodes, err := s.store.ListNodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	n := &nodeNames{byID: make(map[barrier.MemberID]string, len(nodes))}
	pairs := make([]string, 0, 2*len(nodes))
	for _, node := range nodes {
		n.byID[barrier.MemberID(node.ID)] = node.Name
		pairs = append(pairs, node.ID, node.Name)
	}
	n.replacer = strings.NewReplacer(pairs...)
	return n, nil
}

// of is a member's name, its id when it is gone.
func (n *nodeNames) of(m barrier.MemberID) string {
	if name, ok := n.byID[m]; ok {
		return name
	}
	return string(m)
}

// text is text with names for ids.
func (n *nodeNames) text(s string) string {
	if s == "" {
		return s
	}
	return n.replacer.Replace(s)
}

// in is ro with names for ids in what people read.
func (n *nodeNames) in(ro barrier.Rollout) barrier.Rollout {
	ro.DecidedBy, ro.Reason = n.text(ro.DecidedBy), n.text(ro.Reason)
	return ro
}
