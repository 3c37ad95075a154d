package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/barrier/slotfile"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/host"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// home is a document's home in memory. Every handle is a source of it.
type home struct {
	shared bool

	mu      sync.Mutex
	stored  *source.Stored
	lineage int
	down    error
}

func (h *home) Read(context.Context) (source.Stored, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.down != nil:
		return source.Stored{}, h.down
	case h.stored == nil:
		return source.Stored{}, source.ErrMissing
	}
	return *h.stored, nil
}

func (h *home) SaveIfVersion(_ context.Context, version uint64, body []byte) (source.Stored, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.down != nil:
		return source.Stored{}, h.down
	case h.stored == nil:
		return source.Stored{}, source.ErrMissing
	case h.stored.Version != version:
		return source.Stored{}, &source.VersionError{Have: h.stored.Version}
	}
	body, err := document.WithVersion(body, version+1)
	if err != nil {
		return source.Stored{}, err
	}
	h.stored = &source.Stored{Body: body, Version: version + 1, Lineage: h.stored.Lineage}
	return *h.stored, nil
}

func (h *home) CreateIfAbsent(_ context.Context, body []byte) (source.Stored, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.down != nil:
		return source.Stored{}, h.down
	case h.stored != nil:
		return source.Stored{}, source.ErrExists
	}
	body, err := document.WithVersion(body, 1)
	if err != nil {
		return source.Stored{}, err
	}
	h.lineage++
	h.stored = &source.Stored{Body: body, Version: 1, Lineage: fmt.Sprint(h.lineage)}
	return *h.stored, nil
}

func (h *home) Shared() bool   { return h.shared }
func (h *home) String() string { return "memory" }
func (h *home) Close() error   { return nil }

// write is what a person does.
func (h *home) write(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, _ := document.VersionOf([]byte(text))
	if h.stored == nil {
		h.lineage++
	}
	h.stored = &source.Stored{Body: []byte(text), Version: v, Lineage: fmt.Sprint(h.lineage)}
}

func (h *home) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored = nil
}

func (h *home) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = err
}

// recorder is a data path that only remembers what it was told, and says of itself what the test wants.
type recorder struct {
	mu      sync.Mutex
	running *document.Document
	deeds   []string
	sick    map[string]string // session: why it has not converged
	fails   map[string]error  // of prepare, swap, drain, stop
	built   int               // Prepared that were neither used nor discarded
	at      time.Time         // of the last swap
}

func newRecorder() *recorder {
	return &recorder{sick: map[string]string{}, fails: map[string]error{}}
}

func (r *recorder) set(f func(*recorder)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

func (r *recorder) log() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deeds)
}

// failure is what was set for a deed. A deed "hang:…" lasts until its context ends.
func (r *recorder) failure(ctx context.Context, deed string) error {
	r.mu.Lock()
	err := r.fails[deed]
	r.mu.Unlock()
	if errors.Is(err, errHangs) {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

var errHangs = errors.New("hangs")

func (r *recorder) Prepare(ctx context.Context, d *document.Document) (bridge.Prepared, error) {
	if err := r.failure(ctx, "prepare"); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.built > 0 {
		r.deeds = append(r.deeds, "PREPARED TWICE")
	}
	r.built++
	return &build{r, d}, nil
}

type build struct {
	r *recorder
	d *document.Document
}

func (b *build) Discard() {
	b.r.mu.Lock()
	defer b.r.mu.Unlock()
	b.r.built--
}

func (b *build) Swap(ctx context.Context) error {
	r := b.r
	err := r.failure(ctx, "swap")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.built--
	if err != nil {
		return err
	}
	c := document.Compare(r.running, b.d)
	var parts []string
	for _, u := range []struct {
		sign string
		ids  []string
	}{{"+", c.Sessions.Start}, {"~", c.Sessions.Restart}, {"-", c.Sessions.Stop}} {
		for _, id := range u.ids {
			parts = append(parts, u.sign+id)
		}
	}
	r.deeds = append(r.deeds, strings.TrimSpace(fmt.Sprintf("swap %d %s", b.d.Version, strings.Join(parts, " "))))
	r.running, r.at = b.d, time.Now()
	return nil
}

func (r *recorder) Status() bridge.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		return bridge.Status{}
	}
	s := bridge.Status{Digest: r.running.Digest()}
	for _, x := range r.running.Sessions {
		why := r.sick[x.ID]
		s.Sessions = append(s.Sessions, bridge.SessionStatus{ID: x.ID, Converged: why == "", Detail: why})
	}
	for _, x := range r.running.Routes {
		s.Routes = append(s.Routes, bridge.RouteStatus{ID: x.ID, Converged: true})
	}
	return s
}

func (r *recorder) Drain(ctx context.Context) error {
	r.set(func(r *recorder) { r.deeds = append(r.deeds, "drain") })
	return r.failure(ctx, "drain")
}

func (r *recorder) Stop(ctx context.Context) error {
	r.set(func(r *recorder) { r.deeds, r.running = append(r.deeds, "stop"), nil })
	return r.failure(ctx, "stop")
}

// member is one process of a bridge, on a machine of its own.
type member struct {
	t    testing.TB
	id   string
	home *home
	rec  *recorder
	dir  string
	cfg  host.Config

	host  *host.Host
	stop  context.CancelFunc
	ended chan error
	slots *slotfile.Slots
}

// start starts the member's process, with a data path that behaves as told from the first.
func (m *member) start(with ...func(*recorder)) {
	m.t.Helper()
	m.rec = newRecorder()
	for _, set := range with {
		m.rec.set(set)
	}
	cfg := m.cfg
	cfg.Source, cfg.Runner = m.home, m.rec
	cfg.Logger = slog.New(slog.DiscardHandler)
	if cfg.Rollouts != nil {
		r := *cfg.Rollouts
		var err error
		if m.slots, err = slotfile.Open(m.dir); err != nil {
			m.t.Fatal(err)
		}
		r.Slots = m.slots
		cfg.Rollouts = &r
	}
	h, err := host.New(cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	m.host, m.stop, m.ended = h, stop, make(chan error, 1)
	go func() {
		err := h.Run(ctx)
		if m.slots != nil {
			err = errors.Join(err, m.slots.Close())
		}
		m.ended <- err
	}()
}

// end ends the process and returns what it ended with.
func (m *member) end() error {
	m.stop()
	err := <-m.ended
	m.ended <- err
	return err
}

// world is a few members in a bubble of their own time.
type world struct {
	t       testing.TB
	store   *memory.Store
	home    *home
	members []*member
}

const poll = time.Second

// inWorld runs f with n members that are not started yet, and ends those that it leaves running.
func inWorld(t *testing.T, n int, f func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, store: memory.New(memory.Options{}), home: &home{shared: true}}
		for i := range n {
			w.members = append(w.members, w.machine(fmt.Sprintf("node-%c", 'a'+i)))
		}
		defer w.end()
		f(w)
	})
}

// end ends the members that run, as a test that has failed leaves them too.
func (w *world) end() {
	for _, m := range w.members {
		if m.host != nil {
			_ = m.end()
		}
		if m.rec != nil {
			m.rec.mu.Lock()
			if m.rec.built != 0 {
				w.t.Errorf("%s: %d builds were neither used nor discarded", m.id, m.rec.built)
			}
			m.rec.mu.Unlock()
		}
	}
}

func (w *world) machine(id string) *member {
	return &member{t: w.t, id: id, home: w.home, dir: w.t.TempDir(), cfg: host.Config{
		Process: document.Process{MemberID: id, LeaseStore: true}, Name: "bridge", Poll: poll,
		Rollouts: &host.Rollouts{Store: w.store, Leases: w.store, Artefacts: w.store, Timing: barrier.Timing{Poll: poll}, Lease: 3 * time.Second},
	}}
}

func (w *world) start() {
	for _, m := range w.members {
		m.start()
	}
}

// rest lets d pass, and all that happens in it.
func (w *world) rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// run fails the test unless these members come to run that version within d; they may be on their way.
func (w *world) run(version uint64, d time.Duration, members ...*member) {
	w.t.Helper()
	for end := time.Now().Add(d); ; w.rest(poll / 10) {
		at := ""
		for _, m := range members {
			if s := m.host.Status(); s.Phase != host.Active || s.Version != version {
				at += fmt.Sprintf("\n%s is %s, runs version %d, degraded by %q, %+v", m.id, s.Phase, s.Version, s.Degraded, s.Rollout)
			}
		}
		if at == "" {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("not on version %d after %s:%s", version, d, at)
		}
	}
}

// text is a document of some sessions.
func text(version int, cluster string, sessions ...string) string {
	s := fmt.Sprintf("version: %d\n", version)
	if cluster != "" {
		s += "bridge:\n  deployment_mode: clustered\n  cluster: {" + cluster + "}\n"
	}
	s += "sessions:\n"
	for _, id := range sessions {
		s += fmt.Sprintf("  - {id: %s, kind: nats, url: \"nats://%s\"}\n", id, id)
	}
	return s
}

const (
	coordinated = "rollout: coordinated, members: [node-a, node-b, node-c], deadline: 30s"
	windowed    = coordinated + ", confirm_window: 60s, soak: 5s"
)

func equal(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func newStore() *memory.Store { return memory.New(memory.Options{}) }
