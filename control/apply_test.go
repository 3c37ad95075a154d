package control_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// The example that the product was conceived from: the printed plan to the letter, and its refusal.
func TestPlanOfTheExample(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.zone(t, w.editor, "amthalgroup.com")
		w.record(t, w.editor, "amthalgroup.com", "www", "A", "192.0.2.1")
		rules := []zone.Rule{rule("/wp-"), rule("/cgi-bin"), rule("/.git"), rule("/.env")}
		put := func(rules []zone.Rule) {
			t.Helper()
			if _, err := w.svc.Rulesets().Put(ctx, w.editor, "amthalgroup.com", "custom", rules, control.Any); err != nil {
				t.Fatal(err)
			}
		}
		put(rules)
		w.apply(t, control.ApplyRequest{AcceptDisruption: true})

		w.record(t, w.editor, "amthalgroup.com", "_dmarc", "TXT", `"v=DMARC1; p=none"`)
		put(append(rules, rule("/xmlrpc.php")))
		if _, err := w.svc.PatchSettings(ctx, w.editor, "amthalgroup.com", map[string]string{"trace_sampling": "100%"}, control.Any); err != nil {
			t.Fatal(err)
		}
		w.zone(t, w.editor, "lab.amthalgroup.com")

		report, err := w.svc.Plan(ctx, w.operator)
		if err != nil {
			t.Fatal(err)
		}
		want := lines(
			`  + lab.amthalgroup.com`,
			`  ~ amthalgroup.com`,
			`       dns        + TXT    _dmarc.amthalgroup.com → v=DMARC1; p=none  ttl 300`,
			`     ! rules      4 → 5 rules in the custom phase`,
			`       settings   trace sampling 1.00% → 100.00%`,
			``,
			`4 changes. Lines marked ! can interrupt traffic.`,
			`Pass --accept-disruption to apply this.`,
		)
		if got := report.Plan.Text(true); got != want {
			t.Errorf("plan:\n%s\nwant:\n%s", got, want)
		}
		if report.Live == nil || report.Live.Version != 1 || report.Plan.LiveVersion != 1 {
			t.Errorf("live is %+v, plan against %d", report.Live, report.Plan.LiveVersion)
		}

		var disruptive *control.DisruptiveError
		if _, err := w.svc.Apply(ctx, w.operator, control.ApplyRequest{}); !errors.As(err, &disruptive) {
			t.Fatalf("apply of a disruptive plan: %v", err)
		}
		if got := disruptive.Plan.Text(true); got != want {
			t.Errorf("refused with another plan:\n%s", got)
		}
		res := w.apply(t, control.ApplyRequest{AcceptDisruption: true, ExpectedContentHash: report.Plan.ContentHash})
		if !res.Applied || res.Version != 2 || res.Generation != 2 || res.Zones != 2 || res.ContentHash != report.Plan.ContentHash {
			t.Errorf("apply: %+v", res)
		}
		report, err = w.svc.Plan(ctx, w.operator)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := report.Plan.Text(true), "No changes. Version 2 is live.\n"; got != want {
			t.Errorf("afterwards: %q, want %q", got, want)
		}
		history, err := w.svc.History(ctx, w.operator, control.Page{})
		if err != nil || len(history.Items) != 2 {
			t.Fatalf("history: %+v, %v", history, err)
		}
		live := history.Items[0]
		if live.Version != 2 || live.ParentVersion != 1 || live.CreatedBy != "you@example.com" || live.KeyID != w.key.ID() ||
			live.ActivatedAt.IsZero() || !history.Items[1].ActivatedAt.IsZero() {
			t.Errorf("history: %+v", history.Items)
		}
	})
}

func TestApplyWithNothingToDoTakesNoVersion(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	for range 1000 {
		if res := w.apply(t, control.ApplyRequest{}); res.Applied || res.Reason != control.ReasonNoChanges || res.Version != 1 || res.Generation != 1 {
			t.Fatalf("apply: %+v", res)
		}
	}
	w.record(t, w.editor, "example.com", "@", "TXT", `"one"`)
	if res := w.apply(t, control.ApplyRequest{}); res.Version != 2 || res.Generation != 2 {
		t.Errorf("the next apply: %+v", res)
	}
}

func TestApplyReseals(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	old := w.key
	var err error
	if w.key, err = seal.GenerateSigningKey(); err != nil {
		t.Fatal(err)
	}
	// Another process with a new key: what is live was sealed with one that it does not know.
	svc := w.service(t, w.store, nil)
	report, err := svc.Plan(t.Context(), w.operator)
	if err != nil || report.Plan.Changes != 0 {
		t.Fatalf("plan: %+v, %v", report, err)
	}
	res, err := svc.Apply(t.Context(), w.operator, control.ApplyRequest{Reseal: true})
	if err != nil || !res.Applied || res.Version != 2 {
		t.Fatalf("reseal: %+v, %v", res, err)
	}
	l, err := svc.History(t.Context(), w.operator, control.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := l.Items[0], l.Items[1]; a.ContentHash != b.ContentHash || a.KeyID != w.key.ID() || b.KeyID != old.ID() || a.ParentVersion != 1 {
		t.Errorf("history: %+v", l.Items)
	}
}

func TestApplyPublishesWhatWasConsentedTo(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	ctx := t.Context()
	w.record(t, w.editor, "example.com", "@", "TXT", `"reviewed"`)
	report, err := w.svc.Plan(ctx, w.operator)
	if err != nil {
		t.Fatal(err)
	}
	w.record(t, w.editor, "example.com", "@", "TXT", `"not reviewed"`)
	var changed *control.PlanChangedError
	_, err = w.svc.Apply(ctx, w.operator, control.ApplyRequest{ExpectedContentHash: report.Plan.ContentHash})
	if !errors.As(err, &changed) || changed.Plan.Changes != 2 || changed.Plan.ContentHash == report.Plan.ContentHash {
		t.Fatalf("apply of what changed: %v", err)
	}

	// Whatever is edited meanwhile, only consented hashes are ever published.
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := w.svc.AddRecord(ctx, w.editor, "example.com", control.RecordInput{Name: fmt.Sprintf("r%d", i), Type: "TXT", Content: `"x"`}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	consented := map[string]bool{}
	applied := 0
	for range 40 {
		report, err := w.svc.Plan(ctx, w.operator)
		if err != nil {
			t.Fatal(err)
		}
		consented[report.Plan.ContentHash] = true
		res, err := w.svc.Apply(ctx, w.operator, control.ApplyRequest{ExpectedContentHash: report.Plan.ContentHash})
		switch {
		case errors.As(err, &changed):
		case err != nil:
			t.Fatal(err)
		default:
			applied++
			if res.ContentHash != report.Plan.ContentHash {
				t.Errorf("consented to %s, published %s", report.Plan.ContentHash, res.ContentHash)
			}
		}
	}
	close(stop)
	wg.Wait()
	l, err := w.svc.History(ctx, w.operator, control.Page{Limit: control.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range l.Items[:len(l.Items)-1] {
		if !consented[row.ContentHash] {
			t.Errorf("version %d has content %s that nobody consented to", row.Version, row.ContentHash)
		}
	}
	t.Logf("%d of 40 applied", applied)
}

func TestConcurrentAppliesMakeOneLine(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		w.published(t)
		ctx := t.Context()
		const processes, each = 3, 6
		services := make([]*control.Service, processes)
		for i := range services {
			services[i] = w.service(t, w.open(t), nil)
		}
		var (
			wg      sync.WaitGroup
			mu      sync.Mutex
			applied = map[uint64]uint64{} // generation → version
			lost    int
		)
		for i, svc := range services {
			for j := range 2 {
				wg.Go(func() {
					for k := range each {
						in := control.RecordInput{Name: fmt.Sprintf("p%d-%d-%d", i, j, k), Type: "TXT", Content: `"x"`}
						if _, err := svc.AddRecord(ctx, w.editor, "example.com", in); err != nil {
							t.Error(err)
							return
						}
						res, err := svc.Apply(ctx, w.operator, control.ApplyRequest{Message: in.Name})
						mu.Lock()
						switch {
						case errors.Is(err, control.ErrConflict):
							lost++
							var stale *control.StaleError
							if !errors.As(err, &stale) || stale.Plan == nil {
								t.Errorf("a lost race gave no fresh plan: %v", err)
							}
						case err != nil:
							t.Error(err)
						case res.Applied:
							if v, twice := applied[res.Generation]; twice {
								t.Errorf("generation %d is version %d and %d", res.Generation, v, res.Version)
							}
							applied[res.Generation] = res.Version
						}
						mu.Unlock()
					}
				})
			}
		}
		wg.Wait()
		t.Logf("%d applied, %d lost", len(applied), lost)
		l, err := w.svc.History(ctx, w.operator, control.Page{Limit: control.MaxPage})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Items) != len(applied)+1 {
			t.Errorf("%d versions for %d applies", len(l.Items), len(applied)+1)
		}
		live := 0
		byGeneration := map[uint64]control.SnapshotRow{}
		for _, row := range l.Items {
			if !row.ActivatedAt.IsZero() {
				live++
			}
			for _, g := range row.Generations {
				byGeneration[g] = row
			}
		}
		if live != 1 {
			t.Errorf("%d live rows", live)
		}
		parent := uint64(0)
		for g := uint64(1); g <= uint64(len(l.Items)); g++ {
			row, ok := byGeneration[g]
			if !ok || row.ParentVersion != parent {
				t.Fatalf("generation %d: %+v, want parent %d", g, row, parent)
			}
			parent = row.Version
		}
		if want := len(l.Items); len(w.audited(t, "config.apply")) < want {
			t.Errorf("fewer than %d audit entries", want)
		}
	})
}

func TestApplyWithAForeignKeyStoresNothing(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	w.record(t, w.editor, "example.com", "@", "TXT", `"x"`)
	other, err := seal.GenerateSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := seal.Trust(other.Public())
	if err != nil {
		t.Fatal(err)
	}
	svc := w.service(t, w.store, func(c *control.Config) { c.TrustedKeys = trusted })
	_, err = svc.Apply(t.Context(), w.operator, control.ApplyRequest{})
	wantError(t, "apply", err, control.ErrKeyMismatch)
	if got := w.audited(t, "config.apply")[0].Outcome; got != "key_mismatch" {
		t.Errorf("audited as %q", got)
	}
	if l, err := w.svc.History(t.Context(), w.operator, control.Page{}); err != nil || len(l.Items) != 1 {
		t.Errorf("history: %+v, %v", l, err)
	}
	if res := w.apply(t, control.ApplyRequest{}); res.Version != 2 {
		t.Errorf("a version was used: %+v", res)
	}
}

// unsure is a store whose Publish does or does not take place and whose answer is lost.
type unsure struct {
	control.Store
	takesPlace bool
}

var errLost = errors.New("connection reset")

func (u unsure) Publish(ctx context.Context, p control.Publication) error {
	if u.takesPlace {
		if err := u.Store.Publish(ctx, p); err != nil {
			return err
		}
	}
	return errLost
}

func TestApplyWhenTheAnswerToTheCommitIsLost(t *testing.T) {
	for _, takesPlace := range []bool{true, false} {
		t.Run(fmt.Sprintf("took place %t", takesPlace), func(t *testing.T) {
			w := newWorld(t)
			w.published(t)
			w.record(t, w.editor, "example.com", "@", "TXT", `"x"`)
			svc := w.service(t, unsure{w.store, takesPlace}, nil)
			res, err := svc.Apply(t.Context(), w.operator, control.ApplyRequest{})
			if takesPlace {
				if err != nil || !res.Applied || res.Version != 2 {
					t.Errorf("apply: %+v, %v", res, err)
				}
				return
			}
			wantError(t, "apply", err, errLost)
			// Nothing happened: the next one does it, with another version.
			if res := w.apply(t, control.ApplyRequest{}); !res.Applied || res.Version != 3 || res.Generation != 2 {
				t.Errorf("the retry: %+v", res)
			}
		})
	}
}

func TestApplyReportsAllProblems(t *testing.T) {
	w := newWorld(t)
	z := w.published(t)
	ctx := t.Context()
	if _, err := w.svc.Rulesets().Put(ctx, w.editor, "example.com", "custom", []zone.Rule{{
		Expression: `in_list(ip.src, "nobody")`, Action: zone.ActionBlock,
	}}, control.Any); err != nil {
		t.Fatal(err)
	}
	if _, err := w.svc.LoadBalancers().Put(ctx, w.editor, "example.com", "www", zone.LoadBalancer{Pools: []string{"none"}}, control.Any); err != nil {
		t.Fatal(err)
	}
	_, err := w.svc.Plan(ctx, w.operator)
	ps := problems(t, "plan", err)
	if len(ps) != 2 || ps[0].Zone != z.Name.String() || ps[0].Object == "" || ps[0].Message == "" {
		t.Errorf("problems: %+v", ps)
	}
	_, err = w.svc.Apply(ctx, w.operator, control.ApplyRequest{AcceptDisruption: true})
	if got := problems(t, "apply", err); len(got) != 2 {
		t.Errorf("problems: %+v", got)
	}
	if got := w.audited(t, "config.apply")[0].Outcome; got != "problems" {
		t.Errorf("audited as %q", got)
	}
}

func TestApplyRefusesMalformedRequests(t *testing.T) {
	w := newWorld(t)
	long := string(make([]byte, control.MaxMessage+1))
	rows := []struct {
		name string
		r    control.ApplyRequest
	}{
		{"message too long", control.ApplyRequest{Message: long}},
		{"message no UTF-8", control.ApplyRequest{Message: "\xff"}},
		{"hash too short", control.ApplyRequest{ExpectedContentHash: "18e2"}},
		{"hash in capitals", control.ApplyRequest{ExpectedContentHash: fmt.Sprintf("%064X", 0xABC)}},
	}
	for _, r := range rows {
		_, err := w.svc.Apply(t.Context(), w.operator, r.r)
		problems(t, r.name, err)
	}
}
