package barriertest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// errNoAnswer says nothing about whether a call took effect.
var errNoAnswer = errors.New("no answer")

// link is one process's way to the store: it tells the reader what passes, and fails as the script says.
type link struct {
	w        *stage
	actor    string
	cut      bool
	next     map[string]string // call → lose, hold or mute: what becomes of the next one
	evidence barrier.Ref       // of the last Converge: a renewal is not worth a line in quiet mode
	unheard  bool              // the last read failed, and was said to
}

// heldCall is on its way, though its caller has given it up.
type heldCall struct {
	actor, what string
	arrive      func() error
}

func (w *stage) newLink(actor string) *link {
	l := &link{w: w, actor: actor, next: map[string]string{}}
	w.links[actor] = l
	return l
}

// read makes one call that changes nothing.
func read[T any](l *link, call func(Handles) (T, error)) (T, error) {
	if l.cut || l.w.down {
		if !l.unheard || !l.w.quiet {
			l.w.say(l.actor, "reads the row: %v", errNoAnswer)
		}
		l.unheard = true
		var none T
		return none, errNoAnswer
	}
	l.unheard = false
	return call(l.w.store)
}

// write makes one call that may change something; name is what the script calls it by. Without a what it is worth a line only
// when it fails.
func (l *link) write(name, what string, call func(Handles) error) error {
	fate := l.next[name]
	delete(l.next, name)
	said := what
	if what == "" {
		what = name
	}
	switch {
	case l.cut || l.w.down || fate == "lose":
		l.w.say(l.actor, "%s: %v", what, errNoAnswer)
		return errNoAnswer
	case fate == "hold":
		l.w.held = append(l.w.held, heldCall{l.actor, what, func() error { return call(l.w.store) }})
		l.w.say(l.actor, "%s: %v yet", what, errNoAnswer)
		return errNoAnswer
	}
	err := call(l.w.store)
	switch {
	case fate == "mute" && err == nil:
		l.w.say(l.actor, "%s: it takes effect, and the answer is lost", what)
		return errNoAnswer
	case err != nil:
		l.w.say(l.actor, "%s: %s", what, explain(err))
	case said != "":
		l.w.say(l.actor, "%s", what)
	}
	return err
}

// random is what a coordinator adds to its name.
var random = regexp.MustCompile("-[A-Z2-7]{26}")

// explain is err's text without what is random.
func explain(err error) string { return random.ReplaceAllString(err.Error(), "") }

func (l *link) Current(ctx context.Context) (barrier.Row, error) {
	return read(l, func(h Handles) (barrier.Row, error) { return h.Store.Current(ctx) })
}

func (l *link) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	return read(l, func(h Handles) (barrier.View, error) { return h.Store.Look(ctx, m) })
}

func (l *link) Watch(ctx context.Context, _ barrier.Topic) <-chan struct{} {
	c := make(chan struct{})
	context.AfterFunc(ctx, func() { close(c) })
	return c
}

// later is ctx for a call that may arrive when its caller has gone.
func later(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func (l *link) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (reg barrier.Registration, err error) {
	ctx = later(ctx)
	err = l.write("join", fmt.Sprintf("joins as %s, process %d of %s", boot, incarnation+1, m), func(h Handles) (err error) {
		reg, err = h.Store.Join(ctx, m, boot, incarnation)
		return err
	})
	return reg, err
}

func (l *link) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, build string) error {
	ctx = later(ctx)
	return l.write("ack", fmt.Sprintf("acks %d, built %s", r.Generation, build), func(h Handles) error {
		return h.Store.Ack(ctx, r, m, boot, build)
	})
}

func (l *link) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	ctx = later(ctx)
	return l.write("nack", fmt.Sprintf("nacks %d: %s", r.Generation, reason), func(h Handles) error {
		return h.Store.Nack(ctx, r, m, boot, reason)
	})
}

func (l *link) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	ctx = later(ctx)
	what := fmt.Sprintf("gives evidence on %d: %s", r.Generation, detail)
	if l.w.quiet && l.evidence == r {
		what = ""
	}
	err := l.write("converge", what, func(h Handles) error { return h.Store.Converge(ctx, r, m, boot, detail) })
	if err == nil {
		l.evidence = r
	}
	return err
}

func (l *link) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	ctx = later(ctx)
	return l.write("withdraw", fmt.Sprintf("withdraws from %d: %s", r.Generation, reason), func(h Handles) error {
		return h.Store.Withdraw(ctx, r, m, boot, reason)
	})
}

func (l *link) Claim(ctx context.Context, t barrier.Token) error {
	ctx = later(ctx)
	return l.write("claim", fmt.Sprintf("claims with token %d", t), func(h Handles) error { return h.Store.Claim(ctx, t) })
}

func (l *link) Commit(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	ctx = later(ctx)
	return l.write("commit", fmt.Sprintf("commits %d", r.Generation), func(h Handles) error { return h.Store.Commit(ctx, r, t) })
}

func (l *link) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	ctx = later(ctx)
	return l.write("abort", fmt.Sprintf("aborts %d: %s", r.Generation, reason), func(h Handles) error {
		return h.Store.Abort(ctx, r, by, reason)
	})
}

func (l *link) Confirm(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	ctx = later(ctx)
	return l.write("confirm", fmt.Sprintf("confirms %d", r.Generation), func(h Handles) error { return h.Store.Confirm(ctx, r, t) })
}

func (l *link) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	ctx = later(ctx)
	return l.write("revert", fmt.Sprintf("reverts %d: %s", r.Generation, reason), func(h Handles) error {
		return h.Store.Revert(ctx, r, by, reason)
	})
}

func (l *link) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	ctx = later(ctx)
	var lease barrier.Lease
	err := l.write("acquire", "", func(h Handles) (err error) {
		lease, err = h.Leases.Acquire(ctx, holder, ttl)
		return err
	})
	if err == nil {
		l.w.say(l.actor, "takes the lease: token %d", lease.Token)
	}
	return lease, err
}

func (l *link) Renew(ctx context.Context, lease barrier.Lease) error {
	ctx = later(ctx)
	return l.write("renew", "", func(h Handles) error { return h.Leases.Renew(ctx, lease) })
}

func (l *link) Release(ctx context.Context, lease barrier.Lease) error {
	ctx = later(ctx)
	return l.write("release", "gives the lease back", func(h Handles) error { return h.Leases.Release(ctx, lease) })
}

func (l *link) Get(ctx context.Context, d barrier.Digest) ([]byte, error) {
	var artefact []byte
	err := l.write("fetch", "fetches "+nameOf(d), func(h Handles) (err error) {
		artefact, err = h.Artefacts.Get(ctx, d)
		return err
	})
	return artefact, err
}
