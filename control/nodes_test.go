package control_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

const boot = "0123456789abcdef0123456789abcdef"

// ack acknowledges what was applied.
func ack(res control.ApplyResult) nodeproto.Ack {
	return nodeproto.Ack{
		Version: res.Version, Generation: res.Generation, Epoch: 1, ContentHash: res.ContentHash, Boot: boot,
		TrustedKeys: []seal.KeyID{"8f2c1ab30d4e57f9"}, Freshness: "fresh",
	}
}

func TestPollTable(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	n := w.node(t, "fra1")
	empty := func(name string, q nodeproto.Poll) {
		t.Helper()
		a, err := w.svc.Poll(ctx, n, q)
		if err != nil || a.Artefact != nil || a.Version != 0 || a.Generation != 0 {
			t.Errorf("%s, nothing published: %+v, %v", name, a, err)
		}
	}
	empty("no configuration", nodeproto.Poll{})
	empty("with a nonce", nodeproto.Poll{Nonce: strings.Repeat("0a", 16)})
	_, err := w.svc.Poll(ctx, n, nodeproto.Poll{Have: 3})
	wantError(t, "has a version, nothing published", err, control.ErrNodeAhead)
	_, err = w.svc.Poll(ctx, n, nodeproto.Poll{Have: 3, Epoch: 1, Generation: 3})
	wantError(t, "has a generation, nothing published", err, control.ErrNodeAhead)

	w.published(t)
	w.record(t, w.editor, "example.com", "@", "TXT", `"x"`)
	w.apply(t, control.ApplyRequest{})
	const live = 2
	rows := []struct {
		name     string
		q        nodeproto.Poll
		artefact bool
		err      error
	}{
		{"nothing yet", nodeproto.Poll{}, true, nil},
		{"current, only have", nodeproto.Poll{Have: 2}, false, nil},
		{"older, only have", nodeproto.Poll{Have: 1}, true, nil},
		{"newer version, only have", nodeproto.Poll{Have: 9}, true, nil}, // after a rollback
		{"current", nodeproto.Poll{Have: 2, Epoch: 1, Generation: 2}, false, nil},
		{"older generation", nodeproto.Poll{Have: 1, Epoch: 1, Generation: 1}, true, nil},
		{"older generation, newer version", nodeproto.Poll{Have: 7, Epoch: 1, Generation: 1}, true, nil},
		{"kept the mark, lost the artefact", nodeproto.Poll{Have: 0, Epoch: 1, Generation: 2}, true, nil},
		{"ahead by generation", nodeproto.Poll{Have: 2, Epoch: 1, Generation: 3}, false, control.ErrNodeAhead},
		{"ahead by epoch", nodeproto.Poll{Have: 1, Epoch: 2, Generation: 1}, false, control.ErrNodeAhead},
	}
	for _, r := range rows {
		a, err := w.svc.Poll(ctx, n, r.q)
		if !errors.Is(err, r.err) || (a.Artefact != nil) != r.artefact || a.Version != live || a.Generation != live {
			t.Errorf("%s: %+v, %v", r.name, a, err)
		}
	}
	for range 3 { // the same complaint is audited once
		_, err = w.svc.Poll(ctx, n, nodeproto.Poll{Have: 2, Epoch: 2, Generation: 1})
		wantError(t, "again", err, control.ErrNodeAhead)
	}
	if err := w.svc.Ack(ctx, n, nodeproto.Ack{Boot: boot}); err != nil { // writes what waits
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, a := range w.audited(t, "config.node_ahead") {
		seen[a.Target]++
	}
	if seen["epoch 1 generation 3"] != 1 || seen["epoch 2 generation 1"] != 1 {
		t.Errorf("audited: %v", seen)
	}

	a, err := w.svc.Poll(ctx, n, nodeproto.Poll{})
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := seal.Trust(w.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	v, err := seal.Open(*a.Artefact, trusted, nil)
	if err != nil || v.Activation().Generation != live || v.Snapshot().Meta().Version != live {
		t.Errorf("the artefact: %+v, %v", v, err)
	}
}

func TestPollRefusesMalformedQuestions(t *testing.T) {
	w := newWorld(t)
	n := w.node(t, "fra1")
	rows := []struct {
		name string
		q    nodeproto.Poll
	}{
		{"waits too long", nodeproto.Poll{Wait: nodeproto.MaxWait + 1}},
		{"waits less than nothing", nodeproto.Poll{Wait: -1}},
		{"short nonce", nodeproto.Poll{Nonce: "0123456789abcde"}},
		{"long nonce", nodeproto.Poll{Nonce: strings.Repeat("a", 65)}},
		{"nonce no hex", nodeproto.Poll{Nonce: "0123456789abcdeg"}},
		{"too many keys", nodeproto.Poll{TrustedKeys: make([]seal.KeyID, 65)}},
	}
	for _, r := range rows {
		_, err := w.svc.Poll(t.Context(), n, r.q)
		problems(t, r.name, err)
	}
}

func TestFreshness(t *testing.T) {
	w := newWorld(t)
	n := w.node(t, "fra1")
	w.published(t)
	nonce := strings.Repeat("0a", 16)
	a, err := w.svc.Poll(t.Context(), n, nodeproto.Poll{Have: 1, Epoch: 1, Generation: 1, Nonce: nonce})
	if err != nil || a.Artefact != nil {
		t.Fatalf("poll: %+v, %v", a, err)
	}
	trusted, err := seal.Trust(w.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	f, by, err := seal.VerifyFreshness(a.Freshness, trusted, nonce)
	if err != nil || f.Generation != 1 || f.Epoch != 1 || by != w.key.ID() || !f.IssuedAt.Equal(w.clock.now()) {
		t.Errorf("freshness: %+v by %s, %v", f, by, err)
	}
}

// waiting returns when n polls wait.
func waiting(t testing.TB, svc *control.Service, n int64) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); svc.Stats().LongPolls != n; {
		if time.Now().After(deadline) {
			t.Fatalf("%d polls wait, want %d", svc.Stats().LongPolls, n)
		}
		<-time.After(time.Millisecond)
	}
}

func TestLongPollIsAnsweredAtOnceByAnApply(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	// A second process on the same database sees it within its refresh.
	other := w.service(t, w.open(t), nil)
	run(t, other)
	type result struct {
		a   control.PollAnswer
		err error
	}
	services := map[string]*control.Service{"the process that applies": w.svc, "another process": other}
	results := map[string]chan result{}
	const waiters = 50
	for name, svc := range services {
		results[name] = make(chan result, waiters)
		n := w.node(t, name)
		for range waiters {
			go func() {
				a, err := svc.Poll(context.Background(), n, nodeproto.Poll{Have: 1, Epoch: 1, Generation: 1, Wait: nodeproto.MaxWait})
				results[name] <- result{a, err}
			}()
		}
		waiting(t, svc, waiters)
	}
	w.record(t, w.editor, "example.com", "@", "TXT", `"x"`)
	began := time.Now()
	w.apply(t, control.ApplyRequest{})
	for name, ch := range results {
		for range waiters {
			if r := <-ch; r.err != nil || r.a.Artefact == nil || r.a.Version != 2 {
				t.Fatalf("%s: %+v, %v", name, r.a, r.err)
			}
		}
		t.Logf("%s: all answered after %v", name, time.Since(began).Round(time.Millisecond))
	}
	waiting(t, w.svc, 0)
	waiting(t, other, 0)
}

func TestLongPollEnds(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	n := w.node(t, "fra1")
	current := nodeproto.Poll{Have: 1, Epoch: 1, Generation: 1, Wait: nodeproto.MaxWait}
	poll := func(ctx context.Context, svc *control.Service, q nodeproto.Poll) chan error {
		done := make(chan error, 1)
		go func() {
			a, err := svc.Poll(ctx, n, q)
			if err == nil && (a.Artefact != nil || a.Version != 1) {
				err = fmt.Errorf("answered %+v", a)
			}
			done <- err
		}()
		return done
	}

	ctx, leave := context.WithCancel(t.Context())
	done := poll(ctx, w.svc, current)
	waiting(t, w.svc, 1)
	leave()
	if err := <-done; err != nil {
		t.Errorf("the node left: %v", err)
	}

	short := current
	short.Wait = time.Millisecond
	if err := <-poll(t.Context(), w.svc, short); err != nil {
		t.Errorf("its time is over: %v", err)
	}

	bounded := w.service(t, w.store, func(c *control.Config) { c.MaxLongPolls = 1 })
	stop := run(t, bounded)
	first := poll(t.Context(), bounded, current)
	waiting(t, bounded, 1)
	if err := <-poll(t.Context(), bounded, current); err != nil { // would wait 55 s
		t.Errorf("beyond the bound: %v", err)
	}
	stop()
	if err := <-first; err != nil {
		t.Errorf("the service ended: %v", err)
	}
}

func TestAckAndNodes(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		n, silent := w.node(t, "fra1"), w.node(t, "lhr1")
		n.From = "198.51.100.4"
		w.published(t)
		w.record(t, w.editor, "example.com", "@", "TXT", `"x"`)
		second := w.apply(t, control.ApplyRequest{})

		first := second
		l, err := w.svc.History(ctx, w.operator, control.Page{})
		if err != nil {
			t.Fatal(err)
		}
		first.Version, first.Generation, first.ContentHash = 1, 1, l.Items[1].ContentHash
		if err := w.svc.Ack(ctx, n, ack(first)); err != nil {
			t.Fatal(err)
		}
		node := func() control.NodeStatus {
			t.Helper()
			// Another process, so that what it says is what is durable.
			nodes, err := w.service(t, w.store, nil).ListNodes(ctx, w.operator)
			if err != nil || len(nodes) != 2 {
				t.Fatalf("nodes: %+v, %v", nodes, err)
			}
			if s := nodes[1]; s.Name != silent.NodeName || s.VersionsBehind != nil || s.GenerationsBehind != nil {
				t.Errorf("a node that never acknowledged a version: %+v", s)
			}
			return nodes[0]
		}
		st := node()
		if st.VersionsBehind == nil || *st.VersionsBehind != 1 || *st.GenerationsBehind != 1 || st.Address != "198.51.100.4" ||
			st.Freshness != "fresh" || len(st.TrustedKeys) != 1 || !st.LastSeen.Equal(w.clock.now()) || st.LastError != nil {
			t.Errorf("one behind: %+v", st)
		}
		if err := w.svc.Ack(ctx, silent, nodeproto.Ack{Boot: boot, TrustedKeys: ack(first).TrustedKeys}); err != nil {
			t.Fatal(err)
		}
		node() // nor does that one say that it serves anything

		failed := ack(first)
		failed.Error = &nodeproto.AckError{Code: "signature_invalid", Message: "no\x1b[2J", Version: 2}
		for range 3 {
			if err := w.svc.Ack(ctx, n, failed); err != nil {
				t.Fatal(err)
			}
		}
		if st = node(); st.LastError == nil || st.LastError.Code != "signature_invalid" || *st.VersionsBehind != 1 {
			t.Errorf("after a refusal: %+v", st)
		}
		rejected := w.audited(t, "config.node_rejected")
		if len(rejected) != 1 || rejected[0].Actor != "node fra1" || rejected[0].Outcome != "signature_invalid" || rejected[0].Target != "version 2" {
			t.Errorf("audited: %+v", rejected)
		}
		if got := w.svc.Stats().NodeRejections; got != 3 {
			t.Errorf("%d rejections counted", got)
		}

		if err := w.svc.Ack(ctx, n, ack(second)); err != nil {
			t.Fatal(err)
		}
		if st = node(); *st.VersionsBehind != 0 || *st.GenerationsBehind != 0 || st.LastError != nil || st.Acked.Version != 2 {
			t.Errorf("current: %+v", st)
		}

		rows := []struct {
			name string
			edit func(a *nodeproto.Ack)
			want error // nil: problems
		}{
			{"generation never issued", func(a *nodeproto.Ack) { a.Generation = 3 }, control.ErrNodeAhead},
			{"generation 2^63", func(a *nodeproto.Ack) { a.Generation = 1 << 63 }, control.ErrNodeAhead},
			{"epoch never begun", func(a *nodeproto.Ack) { a.Epoch = 2 }, control.ErrNodeAhead},
			{"version never issued", func(a *nodeproto.Ack) { a.Version, a.Generation = 9, 1 }, control.ErrNodeAhead},
			{"other content", func(a *nodeproto.Ack) { a.ContentHash = strings.Repeat("0", 64) }, nil},
			{"an older generation, this one's content", func(a *nodeproto.Ack) { a.Version, a.Generation = 1, 1 }, nil},
			{"an older generation, this one's version", func(a *nodeproto.Ack) { a.Generation, a.ContentHash = 1, first.ContentHash }, nil},
			{"this generation, the older one's version and content", func(a *nodeproto.Ack) { a.Version, a.ContentHash = 1, first.ContentHash }, nil},
			{"an older generation, content of nobody", func(a *nodeproto.Ack) { a.Version, a.Generation, a.ContentHash = 1, 1, strings.Repeat("0", 64) }, nil},
			{"no generation", func(a *nodeproto.Ack) { a.Generation = 0 }, nil},
			{"no hash", func(a *nodeproto.Ack) { a.ContentHash = "" }, nil},
			{"hash in capitals", func(a *nodeproto.Ack) { a.ContentHash = strings.Repeat("A", 64) }, nil},
			{"boot too short", func(a *nodeproto.Ack) { a.Boot = "ab" }, nil},
			{"key id", func(a *nodeproto.Ack) { a.TrustedKeys = []seal.KeyID{"x"} }, nil},
			{"too many keys", func(a *nodeproto.Ack) { a.TrustedKeys = make([]seal.KeyID, 65) }, nil},
			{"freshness", func(a *nodeproto.Ack) { a.Freshness = "ripe" }, nil},
			{"code", func(a *nodeproto.Ack) { a.Error = &nodeproto.AckError{Code: "Bad Code"} }, nil},
		}
		for _, r := range rows {
			a := ack(second)
			r.edit(&a)
			err := w.svc.Ack(ctx, n, a)
			if r.want != nil {
				wantError(t, r.name, err, r.want)
			} else {
				problems(t, r.name, err)
			}
			if st := node(); st.Acked.Version != 2 || *st.VersionsBehind != 0 {
				t.Errorf("%s: recorded: %+v", r.name, st)
			}
		}
	})
}

// Of the epoch that a recovery began, all is known; of those before, what this database has.
func TestAckAcrossEpochs(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		n := w.node(t, "fra1")
		w.versions(t, 2)
		live := w.liveRow(t)
		if _, err := w.svc.Recover(ctx, w.operator, control.RecoverRequest{BumpEpoch: true}); err != nil {
			t.Fatal(err)
		}
		says := func(epoch, generation, version uint64, hash string) error {
			return w.svc.Ack(ctx, n, nodeproto.Ack{
				Version: version, Generation: generation, Epoch: epoch, ContentHash: hash, Boot: boot, TrustedKeys: []seal.KeyID{w.key.ID()},
			})
		}
		other := strings.Repeat("0", 64)
		check := func(when string) {
			t.Helper()
			if err := says(1, 2, 2, live.ContentHash); err != nil {
				t.Errorf("%s, what the epoch before issued: %v", when, err)
			}
			problems(t, when+", what the epoch before issued, other content", says(1, 2, 2, other))
			if err := says(1, 40, 7, other); err != nil {
				t.Errorf("%s, what the database forgot: %v", when, err)
			}
			problems(t, when+", the epoch before's generation in this epoch", says(2, 1, 1, other))
		}
		check("recovered")
		res := w.apply(t, control.ApplyRequest{})
		check("recovered and published")
		if err := says(2, res.Generation, res.Version, res.ContentHash); err != nil {
			t.Error(err)
		}
	})
}

// slowRecords counts writes of nodes and lets each begin only when it is told to.
type slowRecords struct {
	control.Store
	begin chan struct{}
	mu    sync.Mutex
	sizes []int
}

func (s *slowRecords) RecordNodes(ctx context.Context, seen []control.NodeReport, a []control.AuditEntry) error {
	<-s.begin
	s.mu.Lock()
	s.sizes = append(s.sizes, len(seen))
	s.mu.Unlock()
	return s.Store.RecordNodes(ctx, seen, a)
}

func TestAcksShareWrites(t *testing.T) {
	w := newWorld(t)
	slow := &slowRecords{Store: w.store, begin: make(chan struct{})}
	svc := w.service(t, slow, nil)
	const nodes = 40
	principals := make([]control.Principal, nodes)
	for i := range principals {
		principals[i] = w.node(t, fmt.Sprintf("n%02d", i))
	}
	done := make(chan error, nodes)
	for _, n := range principals {
		go func() { done <- svc.Ack(t.Context(), n, nodeproto.Ack{Boot: boot}) }()
	}
	for deadline := time.Now().Add(10 * time.Second); svc.Stats().Acks < nodes; {
		if time.Now().After(deadline) {
			t.Fatal("acks do not arrive")
		}
		<-time.After(time.Millisecond)
	}
	select {
	case err := <-done:
		t.Fatalf("an ack was answered before it was durable: %v", err)
	default:
	}
	close(slow.begin)
	for range nodes {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if total := len(slow.sizes); total > 2 {
		t.Errorf("%d writes for %d acks: %v", total, nodes, slow.sizes)
	}
}

// failingRecords refuses the first writes of nodes after making them, or instead.
type failingRecords struct {
	control.Store
	takesPlace bool
	failures   int
}

func (f *failingRecords) RecordNodes(ctx context.Context, seen []control.NodeReport, a []control.AuditEntry) error {
	if f.failures == 0 {
		return f.Store.RecordNodes(ctx, seen, a)
	}
	f.failures--
	if f.takesPlace {
		if err := f.Store.RecordNodes(ctx, seen, a); err != nil {
			return err
		}
	}
	return errLost
}

func TestAckIsNotLostWhenAWriteFails(t *testing.T) {
	for _, takesPlace := range []bool{true, false} {
		t.Run(fmt.Sprintf("took place %t", takesPlace), func(t *testing.T) {
			w := newWorld(t)
			w.published(t)
			n := w.node(t, "fra1")
			svc := w.service(t, &failingRecords{Store: w.store, takesPlace: takesPlace, failures: 1}, nil)
			a := nodeproto.Ack{Boot: boot, Error: &nodeproto.AckError{Code: "disk_failed", Version: 1}}
			wantError(t, "ack", svc.Ack(t.Context(), n, a), errLost)
			nodes, err := svc.ListNodes(t.Context(), w.operator) // writes what waits
			if err != nil || nodes[0].LastError == nil || nodes[0].LastError.Code != "disk_failed" {
				t.Errorf("nodes: %+v, %v", nodes, err)
			}
		})
	}
}

func TestRunWritesAtItsEnd(t *testing.T) {
	w := newWorld(t)
	n := w.node(t, "fra1")
	svc := w.service(t, w.store, func(c *control.Config) { c.Refresh = time.Hour })
	stop := run(t, svc)
	w.clock.advance(time.Minute)
	if _, err := svc.Poll(t.Context(), n, nodeproto.Poll{}); err != nil {
		t.Fatal(err)
	}
	stop()
	nodes, err := w.svc.ListNodes(t.Context(), w.operator)
	if err != nil || !nodes[0].LastSeen.Equal(w.clock.now()) {
		t.Errorf("nodes: %+v, %v", nodes, err)
	}
}

func TestDeletedNode(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	made, err := w.svc.CreateNode(ctx, w.operator, "fra1")
	if err != nil {
		t.Fatal(err)
	}
	n, err := w.svc.Authenticate(ctx, made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.svc.CreateNode(ctx, w.operator, "fra1")
	wantError(t, "the same name", err, control.ErrExists)
	if _, err := w.svc.Poll(ctx, n, nodeproto.Poll{}); err != nil {
		t.Fatal(err)
	}
	if err := w.svc.DeleteNode(ctx, w.operator, "fra1"); err != nil {
		t.Fatal(err)
	}
	_, err = w.svc.Authenticate(ctx, made.Secret)
	wantError(t, "its token", err, control.ErrUnauthenticated)
	wantError(t, "again", w.svc.DeleteNode(ctx, w.operator, "fra1"), control.ErrNotFound)
	if nodes, err := w.svc.ListNodes(ctx, w.operator); err != nil || len(nodes) != 0 {
		t.Errorf("nodes: %+v, %v", nodes, err)
	}
}

func BenchmarkPollCurrent(b *testing.B) {
	w := newWorld(b)
	w.published(b)
	n, err := w.svc.CreateNode(context.Background(), w.operator, "fra1")
	if err != nil {
		b.Fatal(err)
	}
	q := nodeproto.Poll{Have: 1, Epoch: 1, Generation: 1, TrustedKeys: []seal.KeyID{w.key.ID()}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, err := w.svc.Authenticate(context.Background(), n.Secret)
			if err != nil {
				b.Fatal(err)
			}
			if a, err := w.svc.Poll(context.Background(), p, q); err != nil || a.Artefact != nil {
				b.Fatal(a, err)
			}
		}
	})
}
