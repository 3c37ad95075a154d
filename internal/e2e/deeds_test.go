package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/guardyn-edge/guardyn/api"
)

// deeds is what clients did with a plane, and what they were answered.
type deeds struct {
	t     testing.TB
	p     *plane
	began time.Time
	count atomic.Int64 // of marks
	turns chan struct{}

	mu       sync.Mutex
	history  []porcupine.Operation
	consents map[string]consent // by mark
	versions []uint64           // known to be published
	records  []*edited
}

// consent is what the plan before a deed said.
type consent struct {
	hash    string
	planned int64 // when the plan was asked for
}

// edited is a record that a client wrote.
type edited struct {
	zone, name, id string
	may            []string // its contents as far as its client knows: more than one after an unknown outcome; "" is none
	acknowledged   int64    // when it was added; 0: that was never said
	kept           bool     // never changed after
}

func (d *deeds) now() int64 { return int64(time.Since(d.began)) }

func (d *deeds) note(in move, call int64, out moved) {
	op := porcupine.Operation{Input: in, Call: call, Output: out, Return: d.now()}
	if out.outcome == unknown {
		op.Return = int64(1000 * time.Hour)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.history = append(d.history, op)
	if out.outcome == done && in.kind == moveApply {
		d.versions = append(d.versions, out.version)
	}
}

// mark names a deed that will publish what hash says.
func (d *deeds) mark(what, hash string, planned int64) string {
	m := fmt.Sprintf("%s %d", what, d.count.Add(1))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.consents[m] = consent{hash, planned}
	return m
}

// outcome tells what err says of a request. No process fails, they only die: an answer of a fault is one.
func (d *deeds) outcome(what string, err error) int {
	var answer *api.Error
	switch {
	case err == nil:
		return done
	case !errors.As(err, &answer):
		return unknown
	case !slices.Contains([]string{"conflict", "plan_changed", "no_parent", "version_live", "busy"}, answer.Code):
		d.t.Errorf("%s: %v", what, err)
		if answer.Status >= 500 {
			return unknown
		}
	}
	return refused
}

// apply plans and publishes what the plan showed, as gdn apply does, each at a process of its own.
func (d *deeds) apply(ctx context.Context, random *rand.Rand) {
	planned := d.now()
	c, end := d.p.pick(random)
	plan, err := c.Plan(ctx, api.PlanOptions{})
	end()
	if d.outcome("plan", err) != done {
		return
	}
	if plan.Live != nil {
		d.note(move{}, planned, moved{done, plan.Live.Generation, plan.Live.Version, plan.Live.ContentHash})
	}
	in := move{kind: moveApply, mark: d.mark("apply", plan.ContentHash, planned)}
	call := d.now()
	c, end = d.p.pick(random)
	res, err := c.Apply(ctx, api.ApplyRequest{Message: in.mark, ExpectedContentHash: plan.ContentHash, AcceptDisruption: true})
	end()
	out := moved{outcome: d.outcome(in.mark, err)}
	switch {
	case err == nil && !res.Applied: // what is live has that content
		d.note(move{}, call, moved{done, res.Generation, res.Version, res.ContentHash})
		out.outcome = refused
	case err == nil:
		out.generation, out.version, out.hash = res.Generation, res.Version, res.ContentHash
	}
	d.note(in, call, out)
}

// rollback looks at what going back would do, and goes back, as gdn rollback does.
func (d *deeds) rollback(ctx context.Context, random *rand.Rand) {
	in := move{kind: moveRollback}
	if random.IntN(3) == 0 {
		d.mu.Lock()
		in.target = d.versions[random.IntN(len(d.versions))]
		d.mu.Unlock()
	}
	planned := d.now()
	c, end := d.p.pick(random)
	plan, err := c.Rollback(ctx, api.RollbackRequest{Version: in.target, DryRun: true})
	end()
	if d.outcome("rollback, dry", err) != done {
		return
	}
	in.mark = d.mark("rollback", plan.ContentHash, planned)
	call := d.now()
	c, end = d.p.pick(random)
	res, err := c.Rollback(ctx, api.RollbackRequest{
		Version: in.target, Message: in.mark, ExpectedContentHash: plan.ContentHash, AcceptDisruption: true,
	})
	end()
	out := moved{outcome: d.outcome(in.mark, err)}
	if err == nil {
		out.generation, out.version, out.hash = res.Generation, res.Version, res.ContentHash
	}
	d.note(in, call, out)
}

// turn lets one edit go ahead: an editor that did not wait for publishers would leave them no plan that still
// holds when it is applied.
func (d *deeds) turn() {
	select {
	case d.turns <- struct{}{}:
	default:
	}
}

// maxEdited bounds what one editor keeps, and with it the size of a build.
const maxEdited = 300

// edit adds, changes and deletes records of one editor until ctx ends. What a record is after a change whose answer
// was lost is not known, and it is left alone.
func (d *deeds) edit(ctx context.Context, random *rand.Rand, editor int) {
	zone := []string{"one.test", "two.test"}[editor%2]
	var mine []*edited // whose content is known
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-d.turns:
		}
		content := fmt.Sprintf("e%d-%d", editor, n)
		if n < maxEdited && (len(mine) == 0 || random.IntN(2) == 0) {
			r := &edited{zone: zone, name: content, may: []string{content}, kept: random.IntN(2) == 0}
			added, out := change(d, random, "add "+content, func(c *api.Client) (*api.Record, error) {
				return c.AddRecord(d.t.Context(), zone, api.RecordEdit{Name: r.name, Type: "TXT", Content: content})
			})
			switch out {
			case refused:
				continue
			case unknown:
				r.may = append(r.may, "")
			case done:
				r.id, r.acknowledged = added.ID, d.now()
				if !r.kept {
					mine = append(mine, r)
				}
			}
			d.mu.Lock()
			d.records = append(d.records, r)
			d.mu.Unlock()
			continue
		}
		if len(mine) == 0 {
			return
		}
		i := random.IntN(len(mine))
		r, out := mine[i], 0
		if random.IntN(4) == 0 {
			content = ""
			_, out = change(d, random, "delete "+r.name, func(c *api.Client) (any, error) {
				return nil, c.DeleteRecord(d.t.Context(), zone, r.id)
			})
		} else {
			_, out = change(d, random, "change "+r.name, func(c *api.Client) (*api.Record, error) {
				return c.UpdateRecord(d.t.Context(), zone, r.id, api.RecordEdit{Name: r.name, Type: "TXT", Content: content})
			})
		}
		switch out {
		case unknown:
			r.may = append(r.may, content)
		case done:
			r.may = []string{content}
		}
		if out == unknown || out == done && content == "" {
			mine = slices.Delete(mine, i, i+1)
		}
	}
}

// change sends an edit once. One that never left is refused.
func change[T any](d *deeds, random *rand.Rand, what string, send func(*api.Client) (T, error)) (T, int) {
	c, end := d.p.pick(random)
	answer, err := send(c)
	end()
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return answer, refused
	}
	return answer, d.outcome(what, err)
}

// counts sums up for the log what became of deeds and edits.
func (d *deeds) counts(l liveRow) string {
	n := map[string]int{}
	for _, op := range d.history {
		in, out := op.Input.(move), op.Output.(moved)
		_, took := l.bears[in.mark]
		switch {
		case in.kind == moveRead:
			n["reads"]++
		case out.outcome == done:
			n["deeds done"]++
		case out.outcome == refused:
			n["deeds refused"]++
		case took:
			n["deeds unknown that took place"]++
		default:
			n["deeds unknown that did not"]++
		}
	}
	for _, r := range d.records {
		n["records"]++
		if len(r.may) > 1 {
			n["records of unknown content"]++
		}
	}
	var text string
	for _, what := range slices.Sorted(maps.Keys(n)) {
		text += fmt.Sprintf(", %d %s", n[what], what)
	}
	return text
}
