package control_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/guardyn-edge/guardyn/control"
)

var soakLive = flag.Duration("soak.live", 2*time.Second, "how long TestLiveRowIsLinearizable runs")

// move is an operation on the live row.
type move struct{ rollback, read bool }

// moved is what an operation found or made live.
type moved struct {
	generation, version uint64
	outcome             string // "ok", "none" (nothing was moved), "unknown"
}

// liveModel is the live row as one register: a generation and the version that it made live. what holds every
// version that a generation ever made live, and parent every version's recorded one, as history has them
// in the end.
func liveModel(what map[uint64]uint64, parent map[uint64]uint64, first moved) porcupine.Model {
	type state struct{ generation, version uint64 }
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{first.generation, first.version}} },
		Step: func(s, input, output any) []any {
			st, in, out := s.(state), input.(move), output.(moved)
			next := state{st.generation + 1, what[st.generation+1]}
			// A rollback goes to the parent of what is live, an apply makes a version whose parent that is.
			legal := next.version != 0 && parent[next.version] == st.version
			if in.rollback {
				legal = next.version != 0 && parent[st.version] == next.version
			}
			switch {
			case in.read:
				if out.generation == st.generation && out.version == st.version {
					return []any{st}
				}
			case out.outcome == "none":
				return []any{st}
			case out.outcome == "unknown" && legal:
				return []any{st, next}
			case out.outcome == "unknown":
				return []any{st}
			case legal && out.generation == next.generation && out.version == next.version:
				return []any{next}
			}
			return nil
		},
		Equal: func(a, b any) bool { return a == b },
	}).ToModel()
}

// forgetful is a store whose answers to some publications are lost, and that cannot be asked about them.
type forgetful struct {
	control.Store
	mu     sync.Mutex
	random *rand.Rand
	lost   map[uint64]bool // versions that are not to be asked for
}

func (f *forgetful) Publish(ctx context.Context, p control.Publication) error {
	f.mu.Lock()
	before, after := f.random.IntN(12) == 0, f.random.IntN(12) == 0
	f.lost[p.Activation.Version] = before || after
	f.mu.Unlock()
	if before {
		return errLost
	}
	if err := f.Store.Publish(ctx, p); err != nil {
		return err
	}
	if after {
		return errLost
	}
	return nil
}

func (f *forgetful) SnapshotByVersion(ctx context.Context, version uint64) (control.SnapshotRow, error) {
	f.mu.Lock()
	lost := f.lost[version]
	f.lost[version] = false
	f.mu.Unlock()
	if lost {
		return control.SnapshotRow{}, errLost
	}
	return f.Store.SnapshotByVersion(ctx, version)
}

// Several processes on one Postgres apply, roll back and read; some answers are lost. Whatever happened can
// be put in one order.
func TestLiveRowIsLinearizable(t *testing.T) {
	const processes = 4
	w := worldOn(t, migratedPostgres.URL(t))
	w.versions(t, 3)
	row := w.liveRow(t)
	first := moved{generation: row.Generations[0], version: row.Version}

	var (
		mu      sync.Mutex
		history []porcupine.Operation
		wg      sync.WaitGroup
	)
	began := time.Now()
	seed := uint64(began.UnixNano())
	t.Logf("seed %d", seed)
	note := func(client int, in move, call int64, out moved) {
		op := porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: int64(time.Since(began))}
		if out.outcome == "unknown" {
			op.Return = int64(time.Hour) // it may take place at any time, for all that is known
		}
		mu.Lock()
		history = append(history, op)
		mu.Unlock()
	}
	for i := range processes {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		st := w.open(t)
		svc := w.service(t, &forgetful{Store: st, random: rand.New(rand.NewPCG(seed, 100+uint64(i))), lost: map[uint64]bool{}}, nil)
		wg.Go(func() {
			// A client whose operation has an unknown outcome goes on as another.
			for client := i; time.Since(began) < *soakLive; client += processes {
				for time.Since(began) < *soakLive {
					in := move{rollback: random.IntN(3) == 0, read: random.IntN(3) == 0}
					call := int64(time.Since(began))
					out := operate(t, w, st, svc, in)
					note(client, in, call, out)
					if out.outcome == "unknown" {
						break
					}
				}
			}
		})
	}
	wg.Wait()

	what, parent := map[uint64]uint64{}, map[uint64]uint64{}
	page := control.Page{Limit: control.MaxPage}
	for {
		l, err := w.svc.History(t.Context(), w.operator, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range l.Items {
			parent[row.Version] = row.ParentVersion
			for _, g := range row.Generations {
				if what[g] != 0 {
					t.Errorf("generation %d is of versions %d and %d", g, what[g], row.Version)
				}
				what[g] = row.Version
			}
		}
		if page.After = l.Next; page.After == "" {
			break
		}
	}
	moves, unknown := 0, 0
	for _, op := range history {
		switch out := op.Output.(moved); {
		case out.outcome == "unknown":
			unknown++
		case out.outcome == "ok" && !op.Input.(move).read:
			moves++
		}
	}
	t.Logf("%d operations, %d moves, %d of unknown outcome, %d generations", len(history), moves, unknown, len(what))
	if moves == 0 {
		t.Fatal("nothing was moved")
	}
	if res := porcupine.CheckOperationsTimeout(liveModel(what, parent, first), history, time.Minute); res != porcupine.Ok {
		t.Errorf("the history has no order: %v", res)
	}
}

// operate does one operation.
func operate(t *testing.T, w *world, st control.Store, svc *control.Service, in move) moved {
	ctx := context.Background()
	var (
		out moved
		err error
	)
	switch {
	case in.read:
		var row control.SnapshotRow
		if row, err = st.Live(ctx); err == nil {
			out = moved{row.Generations[len(row.Generations)-1], row.Version, "ok"}
		}
	case in.rollback:
		var res control.RollbackResult
		res, err = svc.Rollback(ctx, w.operator, control.RollbackRequest{AcceptDisruption: true})
		out = moved{res.Generation, res.Version, "ok"}
	default:
		var res control.ApplyResult
		res, err = svc.Apply(ctx, w.operator, control.ApplyRequest{AcceptDisruption: true, Reseal: true})
		out = moved{res.Generation, res.Version, "ok"}
	}
	var target *control.TargetError
	switch {
	case err == nil:
	case errors.Is(err, control.ErrConflict) || errors.As(err, &target):
		out = moved{outcome: "none"}
	case errors.Is(err, errLost):
		out = moved{outcome: "unknown"}
	default:
		t.Errorf("%+v: %v", in, err)
		out = moved{outcome: "unknown"}
	}
	return out
}

// The model is worth something: it finds what must not be.
func TestLiveModelFindsFaults(t *testing.T) {
	what := map[uint64]uint64{1: 1, 2: 2, 3: 1}
	parent := map[uint64]uint64{1: 0, 2: 1}
	op := func(in move, call, ret int64, out moved) porcupine.Operation {
		return porcupine.Operation{ClientId: int(call), Input: in, Call: call, Output: out, Return: ret}
	}
	apply, back, read := move{}, move{rollback: true}, move{read: true}
	for _, tt := range []struct {
		name string
		ops  []porcupine.Operation
		ok   bool
	}{
		{"apply, rollback, read", []porcupine.Operation{
			op(apply, 1, 2, moved{2, 2, "ok"}), op(back, 3, 4, moved{3, 1, "ok"}), op(read, 5, 6, moved{3, 1, "ok"}),
		}, true},
		{"a read of what was before", []porcupine.Operation{
			op(apply, 1, 2, moved{2, 2, "ok"}), op(read, 3, 4, moved{1, 1, "ok"}),
		}, false},
		{"an unknown apply that is seen and then not", []porcupine.Operation{
			op(apply, 1, 99, moved{outcome: "unknown"}), op(read, 2, 3, moved{2, 2, "ok"}), op(read, 4, 5, moved{1, 1, "ok"}),
		}, false},
		{"two that both won", []porcupine.Operation{
			op(apply, 1, 4, moved{2, 2, "ok"}), op(apply, 2, 3, moved{2, 2, "ok"}),
		}, false},
		{"a refusal that moved", []porcupine.Operation{
			op(apply, 1, 2, moved{outcome: "none"}), op(read, 3, 4, moved{2, 2, "ok"}),
		}, false},
		{"a rollback to no parent", []porcupine.Operation{op(back, 1, 2, moved{2, 2, "ok"})}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := porcupine.CheckOperations(liveModel(what, parent, moved{1, 1, "ok"}), tt.ops); got != tt.ok {
				t.Errorf("in order: %t, want %t", got, tt.ok)
			}
		})
	}
}
