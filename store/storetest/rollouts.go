package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

var clusterClauses = []clause{
	{name: "settings are replaced at the revision that was read, and by one of many", alone: true, run: func(f *fixture) {
		c, err := f.store.ClusterSettings(f.ctx)
		f.ok(err)
		f.same("at first", c, control.ClusterSettings{
			Rollout: control.RolloutDirect, Deadline: barrier.DefaultDeadline, Soak: barrier.DefaultSoak, Margin: control.DefaultMargin, Revision: c.Revision,
		})
		before := len(f.auditOf(f.ws))
		next := control.ClusterSettings{
			Rollout: control.RolloutCoordinated, ConfirmWindow: time.Minute, Deadline: 1500 * time.Millisecond, Soak: time.Millisecond, Margin: 1, Revision: c.Revision,
		}
		f.winners(atOnce(8, func(int) error {
			_, err := f.store.PutClusterSettings(f.ctx, next, f.entry("cluster.settings"))
			return err
		}), control.ErrConflict)
		if c, err = f.store.ClusterSettings(f.ctx); err != nil || c.Revision <= next.Revision {
			f.Fatalf("after: %+v, %v", c, err)
		}
		next.Revision = c.Revision
		f.same("settings", c, next)
		f.same("audit entries", len(f.auditOf(f.ws))-before, 1)
	}},
	{name: "without a cohort nothing is proposed and nobody joins", alone: true, run: func(f *fixture) {
		if _, err := f.store.SetCohort(f.ctx, id(), true, f.entry("cohort.change")); err == nil {
			f.Error("a node joined")
		}
		if err := f.store.AdoptLive(f.ctx); err == nil {
			f.Error("what is live was adopted")
		}
		n := control.Node{ID: id(), Name: "n", CreatedAt: f.now(), Cohort: true}
		if err := f.store.CreateNode(f.ctx, n, control.Token{ID: id(), CreatedAt: f.now()}, f.entry("node.create")); err == nil {
			f.Error("a member was made")
		}
		if nodes, err := f.store.ListNodes(f.ctx); err != nil || len(nodes) != 0 {
			f.Errorf("nodes: %v, %v", nodes, err)
		}
	}},
}

// Decide is what the store does with a step of a rollout.
type Decide = func(context.Context, control.DecisionFacts) (control.Decision, error)

// RunJoined holds an adapter that was joined to a cohort against the clauses of publishing and of rollouts. open returns an
// empty store and its cohort, whose steps are decided by decide.
func RunJoined(t *testing.T, open func(t *testing.T, decide Decide) (control.Store, control.Cohort)) {
	plain := func(t *testing.T) control.Store {
		s, _ := open(t, func(context.Context, control.DecisionFacts) (control.Decision, error) {
			return control.Decision{}, errors.New("there is no rollout")
		})
		return s
	}
	runGroups(t, plain, []group{
		{"Publish", publishClauses},
		{"Reseal", resealClauses},
		{"Recovery", recoveryClauses},
		{"History", historyClauses},
		{"Nodes", nodeClauses},
		{"Cluster", clusterClauses[:1]},
	})
	for _, c := range joinedClauses {
		t.Run("Rollouts/"+c.name, func(t *testing.T) {
			j := &joint{token: 1}
			s, cohort := open(t, func(_ context.Context, f control.DecisionFacts) (control.Decision, error) { return j.decide(f) })
			j.fixture, j.cohort = newFixture(t, s), cohort
			for range 2 {
				j.apply()
			}
			j.member("one")
			c.run(j)
		})
	}
}

// joint is a store and its cohort of one node, with two versions published.
type joint struct {
	*fixture
	cohort control.Cohort
	token  barrier.Token
	nodes  []barrier.MemberID

	mu   sync.Mutex
	says func(control.DecisionFacts) (control.Decision, error) // nil: an audit entry
	seen []control.DecisionFacts
}

func (j *joint) decide(f control.DecisionFacts) (control.Decision, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = append(j.seen, f)
	if j.says != nil {
		return j.says(f)
	}
	return control.Decision{Rollout: f.Row.ID, Audit: []control.AuditEntry{j.entry("rollout." + string(f.After.Rollout.State))}}, nil
}

// member makes a node of the cohort, which has joined.
func (j *joint) member(name string) barrier.MemberID {
	j.Helper()
	n := control.Node{ID: id(), Name: name, CreatedAt: j.now(), Cohort: true}
	j.ok(j.store.CreateNode(j.ctx, n, control.Token{ID: id(), Hash: [32]byte([]byte(n.ID)), CreatedAt: j.now()}, j.entry("node.create")))
	m := barrier.MemberID(n.ID)
	_, err := j.cohort.Join(j.ctx, m, barrier.BootID(m), 0)
	j.ok(err)
	j.nodes = append(j.nodes, m)
	return m
}

func (j *joint) row() barrier.Row {
	j.Helper()
	row, err := j.cohort.Current(j.ctx)
	j.ok(err)
	return row
}

// candidate is a new version to propose, with a window unless that is 0.
func (j *joint) candidate(window time.Duration) control.NewRollout {
	j.Helper()
	version, err := j.store.NextVersion(j.ctx)
	j.ok(err)
	p, row := j.platform(), j.row()
	pub := j.publication(p, version)
	n := control.NewRollout{
		Row: control.RolloutRow{
			ID: barrier.NewRolloutID(), Epoch: p.Epoch, Kind: seal.KindApply, Version: version, ContentHash: pub.Insert.Row.ContentHash,
			Message: "next", By: "ada@example.net", Margin: 5, CreatedAt: j.now(),
		},
		SeenGeneration: p.Generation, Insert: pub.Insert,
		Proposal: barrier.Proposal{
			Proposer: "ada@example.net", Digest: barrier.Digest(nodeproto.CandidateDigest(pub.Insert.Row.ContentHash)), Version: version,
			RosterRevision: row.Roster.Revision, Seen: row.Generation, After: p.Generation, Window: window,
		},
	}
	n.Proposal.ID = n.Row.ID
	n.Complete = func(ro barrier.Rollout) (control.AuditEntry, *control.Replay, error) {
		return j.entry("rollout.propose"), &control.Replay{UserID: "u", Key: string(ro.ID), Answer: []byte(`{}`), At: j.now()}, nil
	}
	return n
}

func (j *joint) propose(window time.Duration) barrier.Rollout {
	j.Helper()
	ro, err := j.store.ProposeRollout(j.ctx, j.candidate(window))
	j.ok(err)
	j.ok(j.cohort.Claim(j.ctx, j.token))
	for _, m := range j.nodes {
		j.ok(j.cohort.Ack(j.ctx, ro.Ref, m, barrier.BootID(m), ""))
	}
	return ro
}

// joinedState is all that both hold, to compare before and after.
type joinedState struct {
	Published published
	Head      barrier.Head
	Roster    barrier.Roster
	Nodes     int
}

func (j *joint) state() joinedState {
	j.Helper()
	row := j.row()
	nodes, err := j.store.ListNodes(j.ctx)
	j.ok(err)
	return joinedState{j.published(), row.Head, row.Roster, len(nodes)}
}

// nothing holds that deed fails and leaves both as they were.
func (j *joint) nothing(what string, want error, deed func() error) {
	j.Helper()
	before := j.state()
	if err := deed(); err == nil || want != nil && !errors.Is(err, want) {
		j.Fatalf("%s: %v, want %v", what, err, want)
	}
	j.same("after "+what, j.state(), before)
}

func (j *joint) publishes(f control.DecisionFacts, kind seal.ActivationKind) (control.Decision, error) {
	pub := j.activation(f.Platform, f.Row.Version, kind)
	pub.Activation.Generation = f.After.Rollout.Generation
	return control.Decision{Rollout: f.Row.ID, Publish: &pub}, nil
}

var errSaidNo = errors.New("said no")

var joinedClauses = []struct {
	name string
	run  func(*joint)
}{
	{"what is published is the cohort's, in one step", func(j *joint) {
		for range 2 {
			pub := j.apply()
			j.same("committed", j.row().Committed, barrier.Pointer{
				Generation: pub.Activation.Generation, Version: pub.Activation.Version, Digest: barrier.Digest(nodeproto.CandidateDigest(pub.Activation.ContentHash)),
			})
		}
		late := j.publication(j.platform(), 9)
		late.SeenGeneration--
		j.nothing("a publication that lost", control.ErrConflict, func() error { return j.store.Publish(j.ctx, late) })
	}},
	{"a proposal inserts, keeps and proposes, or nothing of it", func(j *joint) {
		stale := j.candidate(0)
		stale.SeenGeneration--
		j.nothing("a proposal after another publication", control.ErrConflict, func() error { _, err := j.store.ProposeRollout(j.ctx, stale); return err })
		roster := j.candidate(0)
		roster.Proposal.RosterRevision++
		j.nothing("a proposal to another roster", control.ErrConflict, func() error { _, err := j.store.ProposeRollout(j.ctx, roster); return err })
		late := j.candidate(0)
		late.Proposal.Seen--
		j.nothing("a proposal after another decision", control.ErrConflict, func() error { _, err := j.store.ProposeRollout(j.ctx, late); return err })
		failing := j.candidate(0)
		failing.Complete = func(barrier.Rollout) (control.AuditEntry, *control.Replay, error) {
			return control.AuditEntry{}, nil, errSaidNo
		}
		j.nothing("a proposal whose answer cannot be kept", errSaidNo, func() error { _, err := j.store.ProposeRollout(j.ctx, failing); return err })

		n := j.candidate(0)
		before, err := j.store.Revisions(j.ctx)
		j.ok(err)
		ro, err := j.store.ProposeRollout(j.ctx, n)
		j.ok(err)
		j.same("the cohort's rollout", j.row().Rollout, &ro)
		rows, err := j.store.RolloutRows(j.ctx, []barrier.RolloutID{ro.ID, barrier.NewRolloutID()})
		j.ok(err)
		n.Row.Generation = ro.Generation
		j.same("row", rows, []control.RolloutRow{n.Row})
		row, err := j.store.SnapshotByVersion(j.ctx, n.Row.Version)
		j.ok(err)
		if len(row.Generations) != 0 || !row.ActivatedAt.IsZero() {
			j.Errorf("the candidate is live: %+v", row)
		}
		if _, err := j.store.Replay(j.ctx, "u", string(ro.ID), j.now()); err != nil {
			j.Error(err)
		}
		after, err := j.store.Revisions(j.ctx)
		j.ok(err)
		if after.Rollouts <= before.Rollouts {
			j.Errorf("revisions stay at %+v", after)
		}
		var open *control.RolloutOpenError
		pub := j.publication(j.platform(), 99)
		pub.Activation.Generation = ro.Generation + 1
		j.nothing("a publication meanwhile", control.ErrRolloutOpen, func() error {
			err := j.store.Publish(j.ctx, pub)
			if !errors.As(err, &open) || open.Rollout.ID != ro.ID {
				j.Errorf("it names %+v", open)
			}
			return err
		})
		j.nothing("a recovery meanwhile", control.ErrRolloutOpen, func() error {
			return j.store.BumpEpoch(j.ctx, control.EpochBump{SeenEpoch: 1, Epoch: 2, Audit: j.entry("config.recover")})
		})
		another := j.candidate(0)
		j.nothing("another proposal meanwhile", control.ErrRolloutOpen, func() error { _, err := j.store.ProposeRollout(j.ctx, another); return err })
	}},
	{"of many proposals and publications at once one wins", func(j *joint) {
		rollouts := []control.NewRollout{j.candidate(0), j.candidate(0), j.candidate(0)}
		var pubs []control.Publication
		for range 3 {
			version, err := j.store.NextVersion(j.ctx)
			j.ok(err)
			pubs = append(pubs, j.publication(j.platform(), version))
		}
		won := 0
		for i, err := range atOnce(6, func(i int) error {
			if i < 3 {
				_, err := j.store.ProposeRollout(j.ctx, rollouts[i])
				return err
			}
			return j.store.Publish(j.ctx, pubs[i-3])
		}) {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, control.ErrConflict) && !errors.Is(err, control.ErrRolloutOpen):
				j.Errorf("%d: %v", i, err)
			}
		}
		j.same("winners", won, 1)
	}},
	{"a decision is told the facts, and moves both sides or none", func(j *joint) {
		ro := j.propose(0)
		j.says = func(control.DecisionFacts) (control.Decision, error) { return control.Decision{}, errSaidNo }
		j.nothing("a refused commit", errSaidNo, func() error { return j.cohort.Commit(j.ctx, ro.Ref, j.token) })
		j.says = func(f control.DecisionFacts) (control.Decision, error) {
			d, err := j.publishes(f, seal.KindApply)
			d.Publish.SeenGeneration++
			d.Publish.Activation.Generation += 2
			return d, err
		}
		j.nothing("a publication that does not follow", control.ErrConflict, func() error { return j.cohort.Commit(j.ctx, ro.Ref, j.token) })
		j.says = func(f control.DecisionFacts) (control.Decision, error) { return j.publishes(f, seal.KindApply) }
		j.ok(j.cohort.Commit(j.ctx, ro.Ref, j.token))
		f := j.seen[len(j.seen)-1]
		if f.Live == nil || f.Live.Version != 2 || f.Candidate.Version != ro.Version || f.Candidate.Bytes == 0 || f.Candidate.PayloadBLAKE3 == "" ||
			f.Row.ID != ro.ID || f.Row.Message != "next" || f.Platform.Generation != 2 || f.Before.Rollout.State != barrier.Staging || f.After.Rollout.State != barrier.Committed {
			j.Errorf("the facts: %+v", f)
		}
		live, err := j.store.Live(j.ctx)
		j.ok(err)
		j.same("live", live.Generations, []uint64{ro.Generation})
		j.same("committed", j.row().Committed, ro.Pointer())
	}},
	{"a trial's activation is kept once, and counts as issued", func(j *joint) {
		ro := j.propose(time.Hour)
		j.says = func(f control.DecisionFacts) (control.Decision, error) {
			return control.Decision{Rollout: f.Row.ID, Provisional: "signed", Audit: []control.AuditEntry{j.entry("rollout.commit")}}, nil
		}
		_, _, err := j.store.Activated(j.ctx, 1, ro.Generation)
		j.fails(err, control.ErrNotFound)
		j.ok(j.cohort.Commit(j.ctx, ro.Ref, j.token))
		version, _, err := j.store.Activated(j.ctx, 1, ro.Generation)
		j.ok(err)
		j.same("version", version, ro.Version)
		rows, err := j.store.RolloutRows(j.ctx, []barrier.RolloutID{ro.ID})
		j.ok(err)
		j.same("provisional", rows[0].Provisional, seal.SignedActivation("signed"))
		j.same("live", j.platform().Generation, uint64(2))
		j.nothing("a second one", nil, func() error { return j.cohort.Revert(j.ctx, ro.Ref, barrier.ByOperator("ada"), "no") })
	}},
	{"nodes come and go with the roster", func(j *joint) {
		one := j.nodes[0]
		two := j.member("two")
		want := []barrier.MemberID{one, two}
		slices.Sort(want)
		j.same("roster", j.row().Roster.Members, want)
		before := j.row().Roster.Revision
		changed, err := j.store.SetCohort(j.ctx, string(two), true, j.entry("cohort.change"))
		j.ok(err)
		j.same("changed", changed, false)
		j.same("revision", j.row().Roster.Revision, before)
		j.nothing("an unknown node", control.ErrNotFound, func() error {
			_, err := j.store.SetCohort(j.ctx, id(), true, j.entry("cohort.change"))
			return err
		})
		j.nothing("a name that is taken", control.ErrExists, func() error {
			return j.store.CreateNode(j.ctx, control.Node{ID: id(), Name: "two", CreatedAt: j.now(), Cohort: true},
				control.Token{ID: id(), CreatedAt: j.now()}, j.entry("node.create"))
		})
		j.ok(j.store.DeleteNode(j.ctx, string(two), j.entry("node.delete")))
		j.nodes = j.nodes[:1]
		j.same("roster", j.row().Roster.Members, []barrier.MemberID{one})

		ro := j.propose(time.Hour)
		j.says = func(f control.DecisionFacts) (control.Decision, error) {
			return control.Decision{Rollout: f.Row.ID, Provisional: "signed"}, nil
		}
		j.ok(j.cohort.Commit(j.ctx, ro.Ref, j.token))
		j.nothing("a node that goes on trial", control.ErrRolloutOpen, func() error { return j.store.DeleteNode(j.ctx, string(one), j.entry("node.delete")) })
		j.nothing("a node that leaves on trial", control.ErrRolloutOpen, func() error {
			_, err := j.store.SetCohort(j.ctx, string(one), false, j.entry("cohort.change"))
			return err
		})
		j.says = nil
		j.ok(j.cohort.Revert(j.ctx, ro.Ref, barrier.ByOperator("ada"), "no"))
		changed, err = j.store.SetCohort(j.ctx, string(one), false, j.entry("cohort.change"))
		j.ok(err)
		j.same("changed", changed, true)
		j.same("roster", len(j.row().Roster.Members), 0)
	}},
}
