package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// trial is a change that is judged. What changes in it is guarded by Prober.checking.
type trial struct {
	questions []question
	margin    int      // in hundredths of a percentage point
	base      Requests // at the swap
	before    float64  // share of failures before the swap

	judged   Report // the last that was whole
	judgedAt time.Time
}

// question is about one zone, host or pool, with the newest answer.
type question struct {
	kind    string
	ask     func(context.Context) error
	excused bool // it failed before the change too

	at  time.Time // of the answer; zero: none yet
	err error
}

// questions are all that is asked of ch.
func (p *Prober) questions(ch *change) []question {
	var qs []question
	for _, z := range ch.zones {
		qs = append(qs, question{kind: "zones", ask: func(ctx context.Context) error { return p.askZone(ctx, z) }})
	}
	for _, h := range ch.hosts {
		qs = append(qs, question{kind: "hosts", excused: ch.failing[h], ask: func(ctx context.Context) error { return p.askHost(ctx, h) }})
	}
	for _, r := range append(slices.Clone(ch.pools), ch.healthy...) {
		qs = append(qs, question{kind: "pools", ask: func(ctx context.Context) error { return p.askPool(ctx, r) }})
	}
	return qs
}

// ask asks all questions, those first whose answer is the oldest. What fails is asked once more: one packet that was lost must not
// take a whole cohort back.
func (t *trial) ask(ctx context.Context, now func() time.Time) {
	order := make([]*question, len(t.questions))
	for i := range t.questions {
		order[i] = &t.questions[i]
	}
	slices.SortStableFunc(order, func(a, b *question) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	errs := each(ctx, len(order), func(ctx context.Context, i int) error {
		if order[i].excused {
			return nil
		}
		return order[i].ask(ctx)
	})
	var again []int
	for i, err := range errs {
		if err != nil && !unasked(err) {
			again = append(again, i)
		}
	}
	for i, err := range each(ctx, len(again), func(ctx context.Context, i int) error { return order[again[i]].ask(ctx) }) {
		if !unasked(err) {
			errs[again[i]] = err
		}
	}
	at := now()
	for i, err := range errs {
		if !unasked(err) {
			order[i].err, order[i].at = err, at
		}
	}
}

// errUnasked is why a question has no answer: there was no time for one.
var errUnasked = errors.New("not asked")

func unasked(err error) bool { return errors.Is(err, errUnasked) }

// each asks n questions, some at once, and returns their errors: errUnasked when ctx ended before an answer came.
func each(ctx context.Context, n int, ask func(ctx context.Context, i int) error) []error {
	errs := make([]error, n)
	var (
		running sync.WaitGroup
		slots   = make(chan struct{}, atOnce)
	)
	for i := range n {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() != nil {
				errs[i] = errUnasked
				return
			}
			one, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			if errs[i] = ask(one, i); errs[i] != nil && ctx.Err() != nil {
				errs[i] = errUnasked
			}
		})
	}
	running.Wait()
	return errs
}

// judge makes a report of the newest answers; whole when there is one to each question.
func (t *trial) judge(now Requests, at time.Time) (r Report, whole bool) {
	var seen, failed []string
	waiting := 0
	for rest := t.questions; len(rest) > 0; {
		kind := rest[0].kind
		n := slices.IndexFunc(rest, func(q question) bool { return q.kind != kind })
		if n < 0 {
			n = len(rest)
		}
		good := 0
		for _, q := range rest[:n] {
			switch {
			case q.at.IsZero() || at.Sub(q.at) > tooOld:
				waiting++
			case q.err != nil:
				failed = append(failed, q.err.Error())
			default:
				good++
			}
		}
		seen = append(seen, fmt.Sprintf("%s %d/%d", kind, good, n))
		rest = rest[n:]
	}
	since := now.less(t.base)
	if since.All > 0 {
		seen = append(seen, fmt.Sprintf("5xx %.2f%% of %d, %.2f%% before", since.share()*100, since.All, t.before*100))
	}
	if since.All >= MinRequests && since.share() > t.before+float64(t.margin)/10_000+rounding {
		failed = append(failed, fmt.Sprintf("%.2f%% of %d requests since the swap were answered 5xx, %.2f%% before it: more than the margin of %.2f points",
			since.share()*100, since.All, t.before*100, float64(t.margin)/100))
	}
	switch {
	case len(failed) > 0:
		r.Detail = clip(strings.Join(failed, "; "), len(failed))
	case waiting > 0:
		r.Detail = fmt.Sprintf("%s; %d of %d questions have no answer yet", strings.Join(seen, ", "), waiting, len(t.questions))
	case len(seen) == 0:
		r = Report{Converged: true, Detail: "nothing to ask: no zone, host or pool is concerned"}
	default:
		r = Report{Converged: true, Detail: strings.Join(seen, ", ")}
	}
	return r, waiting == 0
}

// rounding is less than any difference of two shares that a million requests can make.
const rounding = 1e-9

// clip keeps the beginning of what failed, and how much did.
func clip(detail string, n int) string {
	if len(detail) <= maxDetail {
		return detail
	}
	return strings.ToValidUTF8(detail[:maxDetail], "") + fmt.Sprintf(" … %d failures in all", n)
}
