package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// purgeLog is a control plane's log of purges, which a test writes and nodes ask.
type purgeLog struct {
	signer
	log   byte // tells logs apart: a restored one is another
	n     uint64
	floor uint64
	most  uint64 // in one statement; 0: all
	edit  func(*seal.PurgeStatement)
	fail  func(after *seal.PurgeMark) (string, error) // answers in its place, when not nil
	asked []string
	at    []time.Time
}

func (l *purgeLog) mark(n uint64) seal.PurgeMark {
	if n == 0 {
		return seal.PurgeMark{}
	}
	return seal.PurgeMark{Sequence: n, ID: fmt.Sprintf("0190f6a0-0000-7000-80%02x-%012x", l.log, n)}
}

func (l *purgeLog) end() string { return l.mark(l.n).String() }

func (l *purgeLog) statement(after *seal.PurgeMark) seal.PurgeStatement {
	st := seal.PurgeStatement{Platform: platform, Epoch: 1, After: after, To: l.mark(l.n), IssuedAt: time.Unix(1, 0), Purges: []zone.Purge{}}
	if after == nil || after.Sequence < l.floor || *after != l.mark(after.Sequence) || after.Sequence > l.n {
		st.Floor = true
	} else {
		to := l.n
		if l.most > 0 {
			to = min(to, after.Sequence+l.most)
		}
		for i := after.Sequence + 1; i <= to; i++ {
			st.Purges = append(st.Purges, zone.Purge{
				Sequence: i, Zone: zone.MustName("example.com"), Kind: zone.PurgeTag, Values: []string{fmt.Sprint("t", i)}, At: time.Unix(1, 0).UTC(),
			})
		}
		st.To, st.More = l.mark(to), to < l.n
	}
	if l.edit != nil {
		l.edit(&st)
	}
	return st
}

func (l *purgeLog) Purges(_ context.Context, after *seal.PurgeMark) (string, error) {
	place := nodeproto.NoPurges
	if after != nil {
		place = after.String()
	}
	l.asked, l.at = append(l.asked, place), append(l.at, time.Now())
	if l.fail != nil {
		return l.fail(after)
	}
	return seal.SignPurges(l.key, l.statement(after))
}

// purger notes what it was told.
type purger struct {
	did  []string
	fail error
}

func (p *purger) Purge(_ context.Context, ps []zone.Purge) error {
	if p.fail != nil {
		return p.fail
	}
	for _, one := range ps {
		p.did = append(p.did, fmt.Sprintf("%d %s %s", one.Sequence, one.Kind, strings.Join(one.Values, ",")))
	}
	return nil
}

func (p *purger) Floor(sequence uint64) { p.did = append(p.did, fmt.Sprintf("floor %d", sequence)) }

// current is an answer that brings nothing but the end of the log.
func current(l *purgeLog) answer {
	return func(p nodeproto.Poll) (nodeproto.Answer, error) {
		a := nodeproto.Answer{Version: 1}
		if p.Purged != "" {
			a.Purges = l.end()
		}
		return a, nil
	}
}

// then does something before an answer.
func then(do func(), next answer) answer {
	return func(p nodeproto.Poll) (nodeproto.Answer, error) {
		do()
		return next(p)
	}
}

// purging runs an agent that serves version 1, of a log that signs with the same key, through the answers.
func purging(t *testing.T, l *purgeLog, p *purger, src *source) *node.Agent {
	t.Helper()
	d, err := durable.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	src.end = cancel
	cfg := node.Config{
		Source: src, Host: &host{}, Keys: l.trust(), Dir: d, Interval: 5 * time.Second, Wait: 50 * time.Second, Jitter: func() float64 { return 0 },
	}
	if p != nil {
		cfg.Purger, cfg.Purges = p, l
	}
	a, err := node.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	src.answers = append([]answer{offers(l.signer, l.artefact(1, 1))}, src.answers...)
	if err := a.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return a
}

func wantDid(t *testing.T, p *purger, want ...string) {
	t.Helper()
	if !slices.Equal(p.did, want) {
		t.Errorf("did %q, want %q", p.did, want)
	}
}

func TestPurgesAreDoneInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, p := &purgeLog{signer: testSigner(1), n: 3, most: 2}, &purger{}
		now := current(l)
		src := &source{answers: []answer{now, now, then(func() { l.n = 8 }, now), now}}
		a := purging(t, l, p, src)
		// What was cached before the node had a place may have been purged at 1 to 3.
		wantDid(t, p, "floor 3", "4 tag t4", "5 tag t5", "6 tag t6", "7 tag t7", "8 tag t8")
		if want := []string{"none", l.mark(3).String(), l.mark(5).String(), l.mark(7).String()}; !slices.Equal(l.asked, want) {
			t.Errorf("asked after %q, want %q", l.asked, want)
		}
		var polled []string
		for _, q := range src.polls {
			polled = append(polled, q.Purged)
		}
		if want := []string{"none", "none", l.mark(3).String(), l.mark(3).String(), l.end(), l.end()}; !slices.Equal(polled, want) {
			t.Errorf("polled with %q, want %q", polled, want)
		}
		var acked []string
		for _, ack := range src.acks {
			acked = append(acked, ack.Purged.String())
		}
		if want := []string{"0", l.mark(3).String(), l.end()}; !slices.Equal(acked, want) {
			t.Errorf("acknowledged %q, want %q", acked, want)
		}
		if s := a.Status(); !s.PurgesFollowed || s.PurgeSequence != 8 || s.Purges != 5 || s.PurgeFloors != 1 || s.PurgeFailures != 0 {
			t.Errorf("status %+v", s)
		}
	})
}

// Whatever is wrong with a statement, nothing of it is done, and the genuine one is as soon as it comes.
func TestPurgesRefused(t *testing.T) {
	thief := testSigner(2)
	for _, row := range []struct {
		name string
		edit func(l *purgeLog, st *seal.PurgeStatement)
		by   *signer
	}{
		{"forged", nil, &thief},
		{"of another fleet", func(_ *purgeLog, st *seal.PurgeStatement) { st.Platform = "0190f6a0-0000-7000-8000-00000000000f" }, nil},
		{"of an epoch that ended", func(_ *purgeLog, st *seal.PurgeStatement) { st.Epoch = 1 }, nil},
		{"replayed", func(l *purgeLog, st *seal.PurgeStatement) {
			m := l.mark(2)
			st.After, st.To, st.Purges = &m, l.mark(3), st.Purges[:1]
			st.Purges[0].Sequence = 3
		}, nil},
		{"of a later place", func(l *purgeLog, st *seal.PurgeStatement) {
			m := l.mark(4)
			st.After, st.Purges = &m, st.Purges[1:]
		}, nil},
		{"for a node that starts", func(_ *purgeLog, st *seal.PurgeStatement) { st.After, st.Floor, st.Purges = nil, true, nil }, nil},
		{"that everything is lost, for another node", func(l *purgeLog, st *seal.PurgeStatement) {
			m := l.mark(1)
			st.After, st.Floor, st.Purges = &m, true, nil
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l, p := &purgeLog{signer: testSigner(1), n: 3}, &purger{}
				now := current(l)
				refused := func() {
					l.n = 5
					l.fail = func(after *seal.PurgeMark) (string, error) {
						st := l.statement(after)
						for i := range st.Purges {
							st.Purges[i].Values = []string{"false"}
						}
						if row.edit != nil {
							row.edit(l, &st)
						}
						k := l.key
						if row.by != nil {
							k = row.by.key
						}
						return seal.SignPurges(k, st)
					}
				}
				src := &source{answers: []answer{now, now, then(refused, now), now, then(func() { l.fail = nil }, now), now}}
				if strings.Contains(row.name, "epoch") {
					// The node serves the next one.
					l.edit = func(st *seal.PurgeStatement) { st.Epoch = 2 }
					src.answers = slices.Insert(src.answers, 0, offers(l.signer, l.inEpoch(2)))
				}
				a := purging(t, l, p, src)
				wantDid(t, p, "floor 3", "4 tag t4", "5 tag t5")
				if s := a.Status(); s.PurgeFailures != 0 || s.Purges != 2 {
					t.Errorf("status %+v", s)
				}
			})
		})
	}
}

// inEpoch is version 1 activated in another epoch.
func (s signer) inEpoch(epoch uint64) *seal.Artefact {
	a := *s.artefact(1, 1)
	signed, err := seal.Activate(s.key, a.Sealed, seal.Activation{
		Platform: platform, Epoch: epoch, Generation: 2, Kind: seal.KindApply, ParentGeneration: 1, IssuedAt: time.Unix(2, 0),
	})
	if err != nil {
		panic(err)
	}
	a.Activation = signed
	return &a
}

func TestMissedPurgesDropEverything(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*purgeLog)
		want   string
	}{
		{"away for longer than purges are kept", func(l *purgeLog) { l.n, l.floor = 900, 500 }, "floor 900"},
		{"a database that was restored, and is behind", func(l *purgeLog) { l.log, l.n = 1, 2 }, "floor 2"},
		{"one that has come as far since", func(l *purgeLog) { l.log = 1 }, "floor 3"},
		{"one that is further", func(l *purgeLog) { l.log, l.n = 1, 9 }, "floor 9"},
		{"one without purges", func(l *purgeLog) { l.log, l.n = 1, 0 }, "floor 0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				l, p := &purgeLog{signer: testSigner(1), n: 3}, &purger{}
				now := current(l)
				src := &source{answers: []answer{now, fails, then(func() { row.change(l) }, now), now, then(func() { l.n++ }, now), now}}
				purging(t, l, p, src)
				wantDid(t, p, "floor 3", row.want, fmt.Sprintf("%d tag t%d", l.n, l.n))
				if got := src.lastAck(t).Purged.String(); got != l.end() {
					t.Errorf("acknowledged %s", got)
				}
			})
		})
	}
}

func TestControlPlaneFromBeforePurges(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, p := &purgeLog{signer: testSigner(1)}, &purger{}
		silent := func(nodeproto.Poll) (nodeproto.Answer, error) { return nodeproto.Answer{Version: 1}, nil }
		purging(t, l, p, &source{answers: []answer{silent, silent, silent}})
		wantDid(t, p)
		if len(l.asked) > 0 {
			t.Errorf("asked %d times for what is not there", len(l.asked))
		}
	})
}

// While the log cannot be followed the node asks less and less often, and its polls go on as ever, unless they say that it
// lags behind: then each would be answered at once.
func TestPurgesThatCannotBeFetched(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, p := &purgeLog{signer: testSigner(1), n: 1}, &purger{}
		l.fail = func(*seal.PurgeMark) (string, error) { return "", errors.New("answered 404") }
		held := func(q nodeproto.Poll) (nodeproto.Answer, error) {
			if q.Purged == "" {
				<-time.After(q.Wait) // as a control plane does, in the time of the bubble
				return nodeproto.Answer{Version: 1}, nil
			}
			return current(l)(q)
		}
		src := &source{answers: slices.Repeat([]answer{held}, 12)}
		a := purging(t, l, p, src)
		wantDid(t, p)
		for i := 2; i < len(l.at); i++ {
			if now, before := l.at[i].Sub(l.at[i-1]), l.at[i-1].Sub(l.at[i-2]); now < before {
				t.Errorf("asked after %v, then after %v", before, now)
			}
		}
		if s := a.Status(); s.PurgeFailures != len(l.at) || len(l.at) < 3 || len(l.at) > 6 {
			t.Errorf("asked %d times in %d polls, %d failures", len(l.at), len(src.polls), s.PurgeFailures)
		}
		said := 0
		for _, q := range src.polls[1:] {
			if q.Purged != "" {
				said++
			}
		}
		if said != len(l.at) {
			t.Errorf("%d polls said that the node lags behind, which it tried to mend %d times", said, len(l.at))
		}
		for i := 2; i < len(src.at); i++ {
			if d := src.at[i].Sub(src.at[i-1]); d < 5*time.Second {
				t.Errorf("poll %d came after %v", i, d)
			}
		}
	})
}

func TestPurgerThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, p := &purgeLog{signer: testSigner(1)}, &purger{}
		now := current(l)
		src := &source{answers: []answer{
			now, then(func() { l.n, p.fail = 1, errors.New("no memory") }, now), now, then(func() { p.fail = nil }, now), now, now,
		}}
		purging(t, l, p, src)
		wantDid(t, p, "floor 0", "1 tag t1")
		if got := src.lastAck(t).Purged.String(); got != l.end() {
			t.Errorf("acknowledged %s", got)
		}
	})
}

func TestPurgeOfALaterKind(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, p := &purgeLog{signer: testSigner(1)}, &purger{}
		now := current(l)
		l.edit = func(st *seal.PurgeStatement) {
			if len(st.Purges) > 0 {
				st.Purges[0].Kind = "cookie"
			}
		}
		purging(t, l, p, &source{answers: []answer{now, now, then(func() { l.n = 2 }, now), now}})
		wantDid(t, p, "floor 0", "1 all ", "2 tag t2")
	})
}

// Of a platform that purges all the time a node takes once in a second what came together.
func TestPaceOfPurges(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, p := &purgeLog{signer: testSigner(1)}, &purger{}
		busy := then(func() { l.n += 3 }, current(l))
		src := &source{answers: slices.Repeat([]answer{busy}, 8)}
		purging(t, l, p, src)
		if len(p.did) != 1+3*7 {
			t.Errorf("did %q", p.did)
		}
		for i := 3; i < len(src.at); i++ {
			if d := src.at[i].Sub(src.at[i-1]); d != time.Second {
				t.Errorf("poll %d came after %v", i, d)
			}
		}
	})
}

func TestNodeThatCachesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := &purgeLog{signer: testSigner(1), n: 3}
		src := &source{answers: []answer{current(l), current(l)}}
		purging(t, l, nil, src)
		if len(l.asked) > 0 || src.polls[1].Purged != "" || src.lastAck(t).Purged != nil {
			t.Errorf("asked %q, polled with %q, acknowledged %v", l.asked, src.polls[1].Purged, src.lastAck(t).Purged)
		}
	})
	if _, err := node.New(node.Config{Purger: &purger{}}); err == nil {
		t.Error("a purger without a source of purges was taken")
	}
}
