package barriertest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Scenarios runs every golden script that pattern matches, each on a new, empty cohort: what the script's commands
// print must be what it says. go test -rewrite writes what they print into the scripts.
//
// A script is the story of one cohort. Its members and coordinators are the real drivers, called one step at a time; it
// says what their hosts, disks, clocks and network do. The commands are described in testdata/scenarios/README.md
// of package barrier. fresh returns handles to a new store whose time is clock's.
func Scenarios(t *testing.T, pattern string, fresh func(t testing.TB, clock func() time.Time) Handles) {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario at %s: %v", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			w := newStage(t, fresh)
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				return w.command(t, d)
			})
			w.checkHosts(t)
		})
	}
}

// opening is when every script begins, by the store's clock.
var opening = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// stage is where a script plays.
type stage struct {
	fresh func(clock func() time.Time) Handles
	store Handles
	down  bool

	passed  time.Duration // since the opening
	stepped time.Duration // by how much the store's clock was set forward

	members      map[string]*player // by member and by process
	coordinators map[string]*conductor
	proposer     *scriptHost
	hosts        []*scriptHost // all there have been
	links        map[string]*link
	disks        map[string]*scriptSlots
	boots        map[string]int
	rollouts     int
	held         []heldCall

	lines []string
	quiet bool              // waits and renewals are not worth a line
	last  map[string]string // in quiet mode: each actor's last line
}

// player is one process of a member.
type player struct {
	name   string // of the process
	id     string
	member *barrier.Member
	host   *scriptHost
	link   *link
	timer
	gone bool
}

// conductor is a coordinator's process.
type conductor struct {
	c *barrier.Coordinator
	timer
	waits string // what it said last that it waits for
}

// timer is a process's monotonic clock, which stands still while the process's machine is suspended.
type timer struct {
	w         *stage
	lost      time.Duration
	suspended bool
	since     time.Duration
}

func (t *timer) now() time.Duration {
	if t.suspended {
		return t.since - t.lost
	}
	return t.w.passed - t.lost
}

func (t *timer) suspend(yes bool) {
	switch {
	case yes && !t.suspended:
		t.suspended, t.since = true, t.w.passed
	case !yes && t.suspended:
		t.suspended = false
		t.lost += t.w.passed - t.since
	}
}

func newStage(t testing.TB, fresh func(t testing.TB, clock func() time.Time) Handles) *stage {
	w := &stage{
		fresh:   func(clock func() time.Time) Handles { return fresh(t, clock) },
		members: map[string]*player{}, coordinators: map[string]*conductor{},
		links: map[string]*link{}, disks: map[string]*scriptSlots{}, boots: map[string]int{},
	}
	w.store = w.fresh(w.now)
	w.proposer = w.newHost("proposer")
	return w
}

// now is the store's time.
func (w *stage) now() time.Time { return opening.Add(w.passed + w.stepped) }

// say adds a line to the output of the command that runs.
func (w *stage) say(actor, format string, args ...any) {
	line := actor + ": " + fmt.Sprintf(format, args...)
	if w.quiet {
		if w.last[actor] == line {
			return
		}
		w.last[actor] = line
		line = fmt.Sprintf("%-7s %s", "+"+w.passed.String(), line)
	}
	w.lines = append(w.lines, line)
}

// start begins a new process of the member called id.
func (w *stage) start(ctx context.Context, id string, disk *scriptSlots) (*player, error) {
	w.boots[id]++
	p := &player{name: fmt.Sprintf("%s.%d", id, w.boots[id]), id: id, timer: timer{w: w}}
	actor := id
	if old := w.members[id]; old != nil && !old.gone {
		// The old process is another machine's: from here on it is spoken of by its own name.
		old.link.actor, old.host.actor = old.name, old.name
		w.links[old.name] = old.link
	}
	p.host, p.link = w.newHost(actor), w.newLink(actor)
	m, err := barrier.NewMember(ctx, barrier.MemberOptions{
		ID: barrier.MemberID(id), Boot: barrier.BootID(p.name),
		Store: p.link, Artefacts: p.link, Host: p.host, Slots: disk.mount(w, p.link),
		Timing: barrier.Timing{Poll: time.Second, MaxAttempts: 3, MaxBackoff: 8 * time.Second},
		Clock:  p.now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	p.member = m
	w.members[id], w.members[p.name] = p, p
	return p, nil
}

// poll has a process of a member do all that it can.
func (w *stage) poll(ctx context.Context, p *player) {
	until, err := p.member.Poll(ctx)
	s := p.member.Status()
	switch {
	case err != nil:
		w.say(p.link.actor, "stops: %v", err)
	case w.quiet:
	case s.Waiting == "":
		w.say(p.link.actor, "will look again")
	case until-p.now() != time.Second:
		w.say(p.link.actor, "waits %s: %s", (until - p.now()).Round(time.Millisecond), s.Waiting)
	default:
		w.say(p.link.actor, "waits: %s", s.Waiting)
	}
	if err != nil {
		p.gone = true
	}
}

// coordinator returns the coordinator called name; it starts when it is first spoken of.
func (w *stage) coordinator(name string) *conductor {
	if c := w.coordinators[name]; c != nil {
		return c
	}
	c := &conductor{timer: timer{w: w}}
	l := w.newLink(name)
	c.c = barrier.NewCoordinator(barrier.CoordinatorOptions{
		Store: l, Leases: l, Holder: name, Clock: c.now, Logger: slog.New(&waitLog{c}),
	})
	w.coordinators[name] = c
	return c
}

// look has a coordinator do all that it can.
func (w *stage) look(ctx context.Context, name string) {
	c := w.coordinator(name)
	c.waits = ""
	again, err := c.c.Look(ctx)
	switch {
	case err != nil: // said by its link
	case c.waits != "" && !w.quiet:
		w.say(name, "waits %s: %s", again.Round(10*time.Millisecond), c.waits)
	}
}

// waitLog hears from a coordinator's log what it waits for.
type waitLog struct{ c *conductor }

func (h *waitLog) Enabled(context.Context, slog.Level) bool { return true }
func (h *waitLog) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *waitLog) WithGroup(string) slog.Handler            { return h }

func (h *waitLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "wait" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "reason" {
				h.c.waits = a.Value.String()
			}
			return true
		})
	}
	return nil
}

// run lets d pass: every second each member that is up polls and each coordinator looks, unless they are suspended.
func (w *stage) run(ctx context.Context, d time.Duration) {
	w.quiet, w.last = true, map[string]string{}
	defer func() { w.quiet = false }()
	for end := w.passed + d; w.passed < end; {
		w.passed += min(time.Second, end-w.passed)
		for _, name := range slices.Sorted(maps.Keys(w.members)) {
			if p := w.members[name]; name == p.name && !p.gone && !p.suspended {
				w.poll(ctx, p)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(w.coordinators)) {
			if c := w.coordinators[name]; !c.suspended {
				w.look(ctx, name)
			}
		}
	}
	if len(w.lines) == 0 {
		w.lines = append(w.lines, "nothing happens")
	}
}

// checkHosts asserts that everything that was prepared was used once.
func (w *stage) checkHosts(t testing.TB) {
	for _, h := range w.hosts {
		for _, p := range h.prepared {
			if p.used > 1 {
				t.Errorf("%s: what was prepared of %s was used %d times", h.actor, p.name, p.used)
			}
		}
		if h.gone {
			continue
		}
		open := 0
		for _, p := range h.prepared {
			if p.used == 0 {
				open++
			}
		}
		if open > 1 {
			t.Errorf("%s: %d prepared artefacts were neither swapped to nor discarded", h.actor, open)
		}
	}
}
