package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// MaxFreshnessAge is for how long a node may go without proof of what is live: three of its intervals.
const MaxFreshnessAge = 3 * time.Hour

// NodeStatus is a node with how far it is from what is published.
type NodeStatus struct {
	Node
	// VersionsBehind is the newest snapshot version less the one last acknowledged, GenerationsBehind the
	// live generation less the node's; nil when it never acknowledged a version. Never negative.
	VersionsBehind    *uint64
	GenerationsBehind *uint64
	Freshness         string // "", "fresh", "stale"
	// FreshnessStale is the alarm: the node says so, or has not proven for MaxFreshnessAge what is live.
	FreshnessStale bool
	TrustedKeys    []seal.KeyID
	// Ahead is what the node shows that is newer than all that the database knows; nil for any other.
	Ahead *NodeAhead
}

// NodeAhead is an activation that this database never issued. Proven: the control plane's own key signed it, and
// nothing is signed until the epoch is raised. What is not proven, only the process that the node asked knows.
type NodeAhead struct {
	Epoch, Generation uint64
	Proven            bool
}

// NewNode is a node with its token's secret, which is shown this once.
type NewNode struct {
	Node
	Secret string
}

// ListNodes lists by name (operator), what this process heard until now included.
func (s *Service) ListNodes(ctx context.Context, p Principal) ([]NodeStatus, error) {
	if err := p.operates(); err != nil {
		return nil, err
	}
	if err := s.flushNodes(ctx); err != nil {
		return nil, err
	}
	l, err := s.refreshLive(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := s.store.ListNodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	platform, err := s.store.Platform(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the platform: %w", err)
	}
	roster, err := s.readRoster(ctx)
	if err != nil {
		return nil, err
	}
	now := s.stored.at(s.now())
	out := make([]NodeStatus, len(nodes))
	for i, n := range nodes {
		n.Cohort = roster.Contains(barrier.MemberID(n.ID))
		st := NodeStatus{Node: n, TrustedKeys: n.TrustedKeys, Ahead: s.roster.shows(n.ID)}
		if a := platform.Ahead; a != nil && a.Node == n.Name {
			st.Ahead = &NodeAhead{Epoch: a.Epoch, Generation: a.Generation, Proven: true}
		}
		if a := st.Ahead; a != nil && !newer(a.Epoch, a.Generation, platform.Epoch, platform.Generation) {
			st.Ahead = nil // it was, until the epoch was raised
		}
		if a := n.Acked; a != nil {
			if a.Version != 0 { // it serves something; who does not acknowledges purges all the same
				st.VersionsBehind = behind(l.newest, a.Version)
				st.GenerationsBehind = behind(l.generation, a.Generation)
				if a.Epoch < l.epoch && *st.GenerationsBehind == 0 {
					*st.GenerationsBehind = 1 // generations of an epoch that a recovery ended may be greater
				}
			}
			st.Freshness = a.Freshness
		}
		if n.LastSeen.After(now) {
			n.LastSeen, st.LastSeen = now, now // by a clock that was wrong
		}
		st.FreshnessStale = st.Freshness == "stale" || n.LastSeen.Sub(cmp.Or(n.FreshAt, n.CreatedAt)) > MaxFreshnessAge ||
			!n.FreshAt.IsZero() && now.Sub(n.FreshAt) > MaxFreshnessAge
		out[i] = st
	}
	return out, nil
}

// behind is now less has, 0 when has is greater.
func behind(now, has uint64) *uint64 {
	n := now - min(now, has)
	return &n
}

// CreateNode registers a node and makes its token (operator). ErrExists when the name is taken.
func (s *Service) CreateNode(ctx context.Context, p Principal, name string) (NewNode, error) {
	return s.createNode(ctx, p, name, false)
}

func (s *Service) createNode(ctx context.Context, p Principal, name string, cohort bool) (NewNode, error) {
	if err := p.operates(); err != nil {
		return NewNode{}, err
	}
	name = strings.TrimSpace(name)
	if msg := badTitle(name); msg != "" {
		return NewNode{}, malformed("", "node", "name_invalid", "%s", msg)
	}
	if _, err := zone.ParseID(name); err == nil {
		return NewNode{}, malformed("", "node", "name_invalid", "a name cannot look like an id")
	}
	if cohort && s.cohort == nil {
		return NewNode{}, malformed("", "cohort", "rollout_unavailable", "%s", noCohort)
	}
	now := s.stored.at(s.now())
	n := NewNode{Node: Node{ID: newID(), Name: name, CreatedAt: now, Cohort: cohort}, Secret: newSecret()}
	t := Token{ID: newID(), Name: "node " + name, Hash: hashSecret(n.Secret), NodeID: n.ID, CreatedAt: now}
	a := s.entry(p, "", "node.create", name)
	if cohort {
		a.Detail = detail(map[string]any{"cohort": true})
	}
	if err := s.store.CreateNode(ctx, n.Node, t, a); err != nil {
		return NewNode{}, fmt.Errorf("node %q: %w", name, rosterRefused(unrepeated(err)))
	}
	return n, nil
}

// DeleteNode removes a node, by id or name, and ends its tokens (operator); it leaves the cohort too, which aborts a rollout
// that is voted on. *RolloutOpenError while one is on trial.
func (s *Service) DeleteNode(ctx context.Context, p Principal, ref string) error {
	if err := p.operates(); err != nil {
		return err
	}
	n, err := s.findNode(ctx, ref)
	if err != nil {
		return err
	}
	if err := s.store.DeleteNode(ctx, n.ID, s.entry(p, "", "node.delete", n.Name)); err != nil {
		return fmt.Errorf("node %q: %w", ref, unrepeated(err))
	}
	s.credentials.drop()
	return nil
}

// findNode finds a node by id or name.
func (s *Service) findNode(ctx context.Context, ref string) (Node, error) {
	nodes, err := s.store.ListNodes(ctx)
	if err != nil {
		return Node{}, fmt.Errorf("listing nodes: %w", err)
	}
	for _, n := range nodes {
		if n.ID == strings.ToLower(ref) || n.Name == ref {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("node %q: %w", ref, ErrNotFound)
}
