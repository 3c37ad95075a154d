package barriertest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/guardyn-edge/guardyn/barrier"
)

// order is one command of a script: "name word… key=value… word: text".
type order struct {
	words   []string
	options map[string]string
	text    string // what follows a word that ends in a colon
}

func parse(d *datadriven.TestData) order {
	o := order{options: map[string]string{}}
	for i, arg := range d.CmdArgs {
		if len(arg.Vals) == 1 {
			o.options[arg.Key] = arg.Vals[0]
			continue
		}
		if word, ends := strings.CutSuffix(arg.Key, ":"); ends {
			o.words = append(o.words, word)
			var rest []string
			for _, a := range d.CmdArgs[i+1:] {
				rest = append(rest, a.String())
			}
			o.text = strings.Join(rest, " ")
			break
		}
		o.words = append(o.words, arg.Key)
	}
	return o
}

// command does what d says and returns what came of it.
func (w *stage) command(t testing.TB, d *datadriven.TestData) string {
	t.Helper()
	w.lines = nil
	do, ok := commands[d.Cmd]
	if !ok {
		d.Fatalf(t, "there is no command %q", d.Cmd)
	}
	if err := do(w, t.Context(), parse(d)); err != nil {
		d.Fatalf(t, "%v", err)
	}
	return strings.Join(w.lines, "\n")
}

// commands are described in testdata/scenarios/README.md of package barrier.
var commands = map[string]func(w *stage, ctx context.Context, o order) error{
	"ready":    (*stage).ready,
	"cohort":   (*stage).cohort,
	"baseline": (*stage).baseline,
	"propose":  (*stage).propose,
	"put":      (*stage).put,
	"roster":   (*stage).roster,
	"abort": func(w *stage, ctx context.Context, o order) error {
		return w.verb(ctx, o, "aborts", w.store.Store.Abort)
	},
	"revert": func(w *stage, ctx context.Context, o order) error {
		return w.verb(ctx, o, "reverts", w.store.Store.Revert)
	},

	"poll": func(w *stage, ctx context.Context, o order) error {
		return w.each(o.words, func(p *player) { w.poll(ctx, p) })
	},
	"look": func(w *stage, ctx context.Context, o order) error {
		for _, name := range o.words {
			w.look(ctx, name)
		}
		return nil
	},
	"advance": func(w *stage, _ context.Context, o order) error {
		d, err := time.ParseDuration(o.word(0))
		w.passed += d
		return err
	},
	"run": func(w *stage, ctx context.Context, o order) error {
		d, err := time.ParseDuration(o.word(0))
		if err == nil {
			w.run(ctx, d)
		}
		return err
	},
	"clock": func(w *stage, _ context.Context, o order) error {
		d, err := time.ParseDuration(o.word(0))
		w.stepped += d
		return err
	},
	"suspend": func(w *stage, _ context.Context, o order) error { return w.suspend(o.words, true) },
	"resume":  func(w *stage, _ context.Context, o order) error { return w.suspend(o.words, false) },

	"start": (*stage).startCommand,
	"crash": func(w *stage, _ context.Context, o order) error {
		return w.each(o.words, func(p *player) { p.gone, p.host.gone = true, true })
	},
	"cut":   func(w *stage, _ context.Context, o order) error { return w.cut(o.words, true) },
	"heal":  func(w *stage, _ context.Context, o order) error { return w.cut(o.words, false) },
	"store": (*stage).storeCommand,
	"lose":  func(w *stage, _ context.Context, o order) error { return w.next("lose", o) },
	"hold":  func(w *stage, _ context.Context, o order) error { return w.next("hold", o) },
	"mute":  func(w *stage, _ context.Context, o order) error { return w.next("mute", o) },
	"deliver": func(w *stage, _ context.Context, _ order) error {
		if len(w.held) == 0 {
			return fmt.Errorf("nothing is held")
		}
		h := w.held[0]
		w.held = w.held[1:]
		result := "it takes effect"
		if err := h.arrive(); err != nil {
			result = explain(err)
		}
		w.say(h.actor, "%s, arriving late: %s", h.what, result)
		return nil
	},

	"fail":   (*stage).failCommand,
	"mend":   (*stage).mend,
	"class":  (*stage).classCommand,
	"health": (*stage).healthCommand,
	"builds": func(w *stage, _ context.Context, o order) error {
		return w.each(o.words[:1], func(p *player) { p.host.builds = o.word(1) })
	},
	"disk": func(w *stage, _ context.Context, o order) error {
		s := w.disks[o.word(0)]
		if s == nil {
			return fmt.Errorf("no member %q", o.word(0))
		}
		s.full = o.word(1) == "full"
		return nil
	},

	"row":    func(w *stage, ctx context.Context, _ order) error { return w.printRow(ctx) },
	"status": func(w *stage, _ context.Context, o order) error { return w.each(o.words, w.printStatus) },
}

func (o order) word(i int) string {
	if i >= len(o.words) {
		return ""
	}
	return o.words[i]
}

// each calls do for the named processes.
func (w *stage) each(names []string, do func(p *player)) error {
	for _, name := range names {
		p := w.members[name]
		if p == nil || p.gone {
			return fmt.Errorf("no process of %q is up", name)
		}
		do(p)
	}
	return nil
}

func ids(names []string) []barrier.MemberID {
	var members []barrier.MemberID
	for _, name := range names {
		members = append(members, barrier.MemberID(name))
	}
	return members
}

// cohort makes the named members the roster, and starts a process of each.
func (w *stage) cohort(ctx context.Context, o order) error {
	if _, err := w.store.Store.SetRoster(ctx, 0, ids(o.words)); err != nil {
		return err
	}
	return w.startAll(ctx, o.words)
}

// ready is how most scripts begin: the named members run the baseline, and c1 has waited out its lock delay.
func (w *stage) ready(ctx context.Context, o order) error {
	name := o.options["on"]
	if err := w.cohort(ctx, o); err != nil {
		return err
	}
	if err := w.baseline(ctx, order{words: []string{name}}); err != nil {
		return err
	}
	for _, id := range o.words {
		p := w.members[id]
		w.poll(ctx, p)
		if s := p.member.Status(); !s.Applied || nameOf(s.Running.Digest) != name {
			return fmt.Errorf("%s does not run %s: %s", id, name, s.Waiting)
		}
	}
	w.look(ctx, "c1")
	w.passed += 10 * time.Second
	w.look(ctx, "c1")
	w.lines = nil
	w.print("%s run %s, and c1 coordinates", strings.Join(o.words, ", "), name)
	return nil
}

func (w *stage) startAll(ctx context.Context, names []string) error {
	for _, id := range names {
		if w.disks[id] == nil {
			w.disks[id] = &scriptSlots{bytes: map[barrier.Digest][]byte{}}
		}
		if _, err := w.start(ctx, id, w.disks[id]); err != nil {
			return err
		}
	}
	return nil
}

// startCommand starts new processes; "elsewhere" on machines that know nothing of the member.
func (w *stage) startCommand(ctx context.Context, o order) error {
	if i := slices.Index(o.words, "elsewhere"); i >= 0 {
		for _, id := range o.words[:i] {
			delete(w.disks, id)
		}
		o.words = o.words[:i]
	}
	return w.startAll(ctx, o.words)
}

func (w *stage) baseline(ctx context.Context, o order) error {
	name := o.word(0)
	if err := w.store.Artefacts.Put(ctx, digestOf(name), []byte(name)); err != nil {
		return err
	}
	outcome, err := w.store.Store.AdoptBaseline(ctx, barrier.Pointer{Digest: digestOf(name)})
	if err != nil {
		w.say("store", "baseline %s: %s: %v", name, outcome, err)
		return nil
	}
	w.say("store", "baseline %s: %s", name, outcome)
	return nil
}

// put keeps bytes under a digest that may not be theirs.
func (w *stage) put(ctx context.Context, o order) error {
	return w.store.Artefacts.Put(ctx, digestOf(o.word(0)), []byte(o.options["bytes"]))
}

func (w *stage) propose(ctx context.Context, o order) error {
	w.rollouts++
	p := barrier.Proposal{
		ID: barrier.RolloutID(fmt.Sprintf("r%d", w.rollouts)), Proposer: "alice", Version: uint64(w.rollouts),
	}
	for key, value := range o.options {
		var err error
		switch key {
		case "by":
			p.Proposer = value
		case "id":
			p.ID = barrier.RolloutID(value)
		case "after":
			p.After, err = strconv.ParseUint(value, 10, 64)
		case "seen":
			p.Seen, err = strconv.ParseUint(value, 10, 64)
		case "roster":
			p.RosterRevision, err = strconv.ParseUint(value, 10, 64)
		default:
			field := map[string]*time.Duration{
				"window": &p.Window, "soak": &p.Soak, "deadline": &p.Deadline, "grace": &p.Grace, "evidence": &p.EvidenceTTL,
			}[key]
			if field == nil {
				return fmt.Errorf("a proposal has no %q", key)
			}
			*field, err = time.ParseDuration(value)
		}
		if err != nil {
			return err
		}
	}
	by := barrier.Proposer{Store: w.store.Store, Artefacts: w.store.Artefacts, Host: w.proposer}
	ro, err := by.Propose(ctx, []byte(o.word(0)), p)
	if err != nil {
		w.say(p.Proposer, "cannot propose %s: %v", o.word(0), err)
		return nil
	}
	w.say(p.Proposer, "proposes %s as %s to %d members", o.word(0), ro.Ref, ro.EpochSize)
	return nil
}

func (w *stage) roster(ctx context.Context, o order) error {
	row, err := w.store.Store.Current(ctx)
	if err != nil {
		return err
	}
	r, err := w.store.Store.SetRoster(ctx, row.Roster.Revision, ids(o.words))
	if err != nil {
		w.say("operator", "cannot change the roster: %v", err)
		return nil
	}
	w.say("operator", "roster %d: %s", r.Revision, join(r.Members))
	return nil
}

// verb is what an operator can do to an open rollout: "abort alice: why" while it is voted on, "revert alice: why" in its
// window.
func (w *stage) verb(ctx context.Context, o order, name string,
	decide func(context.Context, barrier.Ref, barrier.Authority, string) error,
) error {
	row, err := w.store.Store.Current(ctx)
	if err != nil {
		return err
	}
	if row.Rollout == nil {
		return fmt.Errorf("there is no rollout")
	}
	if err := decide(ctx, row.Rollout.Ref, barrier.ByOperator(o.word(0)), o.text); err != nil {
		w.say(o.word(0), "cannot %s %d: %v", strings.TrimSuffix(name, "s"), row.Rollout.Generation, err)
		return nil
	}
	w.say(o.word(0), "%s %d: %s", name, row.Rollout.Generation, o.text)
	return nil
}

func (w *stage) suspend(names []string, yes bool) error {
	for _, name := range names {
		if p := w.members[name]; p != nil {
			p.suspend(yes)
			continue
		}
		c := w.coordinators[name]
		if c == nil {
			return fmt.Errorf("no process %q", name)
		}
		c.suspend(yes)
	}
	return nil
}

func (w *stage) cut(names []string, yes bool) error {
	for _, name := range names {
		l := w.links[name]
		if l == nil {
			return fmt.Errorf("no process %q", name)
		}
		l.cut = yes
	}
	return nil
}

// next says what becomes of a process's next calls: "hold a ack".
func (w *stage) next(fate string, o order) error {
	l := w.links[o.word(0)]
	if l == nil {
		w.coordinator(o.word(0))
		l = w.links[o.word(0)]
	}
	l.next[o.word(1)] = fate
	return nil
}

// storeCommand takes the store away, brings it back, or puts an empty one in its place, as after a restore.
func (w *stage) storeCommand(_ context.Context, o order) error {
	switch o.word(0) {
	case "down":
		w.down = true
	case "up":
		w.down = false
	case "replaced":
		w.store = w.fresh(w.now)
	default:
		return fmt.Errorf("store down, up or replaced")
	}
	return nil
}

// failCommand makes a step of a host fail until mend: "fail b prepare: why", or of one artefact only: "fail b prepare d2: why".
func (w *stage) failCommand(_ context.Context, o order) error {
	h, err := w.host(o.word(0))
	if err == nil {
		h.fails[strings.Join(o.words[1:], " ")] = o.text
	}
	return err
}

func (w *stage) host(name string) (*scriptHost, error) {
	if name == "proposer" {
		return w.proposer, nil
	}
	p := w.members[name]
	if p == nil || p.gone {
		return nil, fmt.Errorf("no process of %q is up", name)
	}
	return p.host, nil
}

func (w *stage) mend(_ context.Context, o order) error {
	h, err := w.host(o.word(0))
	if err == nil {
		clear(h.fails)
		h.class, h.builds = barrier.Class{}, ""
	}
	return err
}

// classCommand has a host, or the proposer's, refuse what it is asked to classify: "class b replacement-required: why".
func (w *stage) classCommand(_ context.Context, o order) error {
	h, err := w.host(o.word(0))
	if err == nil {
		h.class = barrier.Class{Refused: true, Name: o.word(1), Reason: o.text}
	}
	return err
}

func (w *stage) healthCommand(_ context.Context, o order) error {
	h, err := w.host(o.word(0))
	if err != nil {
		return err
	}
	h.health = barrier.Health{Converged: o.word(1) == "yes", Detail: o.text}
	if h.health.Converged && o.text == "" {
		h.health.Detail = "works"
	}
	return nil
}

func join(members []barrier.MemberID) string {
	var names []string
	for _, m := range members {
		names = append(names, string(m))
	}
	return strings.Join(names, " ")
}
