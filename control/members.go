package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// actionCohort names a node's joining or leaving the cohort in the audit log.
const actionCohort = "cohort.change"

// CreateMember is CreateNode of a node that takes part in rollouts from the start (operator). *RolloutOpenError while one is
// on trial; one that is voted on is aborted.
func (s *Service) CreateMember(ctx context.Context, p Principal, name string) (NewNode, error) {
	return s.createNode(ctx, p, name, true)
}

// DrainNode takes a node, by id or name, out of the cohort (operator); one that is out already stays. A rollout that is
// voted on is aborted; *RolloutOpenError while one is on trial.
func (s *Service) DrainNode(ctx context.Context, p Principal, ref string) (Node, error) {
	return s.setCohort(ctx, p, ref, false)
}

// UndrainNode puts a node into the cohort (operator); else as DrainNode.
func (s *Service) UndrainNode(ctx context.Context, p Principal, ref string) (Node, error) {
	return s.setCohort(ctx, p, ref, true)
}

func (s *Service) setCohort(ctx context.Context, p Principal, ref string, member bool) (Node, error) {
	if err := p.operates(); err != nil {
		return Node{}, err
	}
	if s.cohort == nil {
		return Node{}, malformed("", "cohort", "rollout_unavailable", "%s", noCohort)
	}
	n, err := s.findNode(ctx, ref)
	if err != nil {
		return Node{}, err
	}
	a := s.entry(p, "", actionCohort, n.Name)
	a.Detail = detail(map[string]any{"joined": member, "left": !member})
	if _, err := s.store.SetCohort(ctx, n.ID, member, a); err != nil {
		s.auditRefusal(ctx, p, actionCohort, n.Name, err)
		return Node{}, fmt.Errorf("node %q: %w", ref, rosterRefused(err))
	}
	n.Cohort = member
	return n, nil
}

// rosterRefused says in words for people what the cohort has against a roster.
func rosterRefused(err error) error {
	if errors.Is(err, barrier.ErrInvalid) {
		return malformed("", "cohort", "cohort_full", "at most %d nodes belong to the cohort", barrier.MaxMembers)
	}
	return err
}

// readRoster returns who belongs to the cohort now; who asks at one time shares one reading.
func (s *Service) readRoster(ctx context.Context) (barrier.Roster, error) {
	if s.cohort == nil {
		return barrier.Roster{}, nil
	}
	return s.rosters.do(ctx, func(ctx context.Context) (barrier.Roster, error) {
		row, err := s.cohort.Current(ctx)
		if err != nil {
			return barrier.Roster{}, fmt.Errorf("reading the cohort: %w", err)
		}
		return row.Roster, nil
	})
}

// NodeSelf tells a node who it is (node).
func (s *Service) NodeSelf(ctx context.Context, p Principal) (nodeproto.Self, error) {
	if err := p.isNode(); err != nil {
		return nodeproto.Self{}, err
	}
	roster, err := s.readRoster(ctx)
	if err != nil {
		return nodeproto.Self{}, err
	}
	return nodeproto.Self{ID: p.NodeID, Name: p.NodeName, Cohort: roster.Contains(barrier.MemberID(p.NodeID))}, nil
}
