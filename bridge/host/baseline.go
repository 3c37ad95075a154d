package host

import (
	"cmp"
	"context"
	"fmt"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge/document"
)

// baseline is what became of the document that the cohort begins with.
type baseline struct {
	outcome barrier.BaselineOutcome
	reason  string
}

func (h *Host) setBaseline(o barrier.BaselineOutcome, format string, args ...any) {
	b := baseline{o, fmt.Sprintf(format, args...)}
	h.mu.Lock()
	changed := h.baseline != b
	h.baseline = b
	h.mu.Unlock()
	if changed {
		h.cfg.Logger.Info("baseline", "outcome", o, "reason", b.reason)
	}
}

// adopt makes d what the cohort begins with, if nothing is committed yet and it is what the deployment names, or if that names nothing.
func (h *Host) adopt(ctx context.Context, d *document.Document, row barrier.Row) error {
	if !row.Committed.IsZero() {
		return h.judgeBaseline(row.Committed)
	}
	named, own := h.cfg.Baseline, d.Digest()
	if named != "" && named != own {
		h.setBaseline(barrier.BaselineFailed, "the deployment names %s, and the source holds %s", named, own)
		return fmt.Errorf("the deployment names the document %s as the cohort's first, and the source holds %s: put that one into the source, or name this one", named, own)
	}
	p := barrier.Pointer{Digest: barrier.Digest(own), Version: d.Version}
	r := h.cfg.Rollouts
	if err := r.Artefacts.Put(ctx, p.Digest, d.Canonical()); err != nil {
		return fmt.Errorf("put the document: %w", err)
	}
	outcome, err := r.Store.AdoptBaseline(ctx, p)
	if err != nil {
		// Another member may have found another document first.
		now, again := r.Store.Current(ctx)
		if again != nil || now.Committed.IsZero() {
			return fmt.Errorf("adopt the baseline: %w", cmp.Or(again, err))
		}
		return h.judgeBaseline(now.Committed)
	}
	if named == "" {
		h.setBaseline(barrier.BaselineSkipped, "the deployment names none; the first document that a member found is it: version %d, %s", d.Version, own)
		return nil
	}
	h.setBaseline(outcome, "version %d, %s", d.Version, own)
	return nil
}

// judgeBaseline compares what the deployment names with what is committed. Only who has nothing to go on with stays out for it.
func (h *Host) judgeBaseline(c barrier.Pointer) error {
	switch named := barrier.Digest(h.cfg.Baseline); {
	case named == "":
		h.setBaseline(barrier.BaselineSkipped, "the deployment names none; %v is committed", c)
	case c.Generation > 0:
		h.setBaseline(barrier.BaselineSuperseded, "%v was committed since", c)
	case c.Digest == named:
		h.setBaseline(barrier.BaselineVerified, "version %d, %s", c.Version, named)
	default:
		h.setBaseline(barrier.BaselineFailed, "the deployment names %s, and the cohort began with %s", named, c.Digest)
		return fmt.Errorf("the deployment names the document %s as the cohort's first, and cohort %s began with %s: name that one, or start every member with another --cohort", named, h.cfg.Name, c.Digest)
	}
	return nil
}

// lookAtBaseline is judgeBaseline for a member that has taken part before: whatever comes of it, it goes on.
func (h *Host) lookAtBaseline(ctx context.Context) {
	r := h.cfg.Rollouts
	call, cancel := context.WithTimeout(ctx, r.callTimeout())
	defer cancel()
	row, err := r.Store.Current(call)
	if err == nil && !row.Committed.IsZero() {
		err = h.judgeBaseline(row.Committed)
	}
	if err != nil {
		h.cfg.Logger.Warn("baseline", "error", err)
	}
}
