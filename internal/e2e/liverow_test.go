package e2e_test

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// Kinds of a move.
const (
	moveRead = iota
	moveApply
	moveRollback
)

// move is an operation on the live row, as its client sent it.
type move struct {
	kind   int
	mark   string // of a deed: no other has it
	target uint64 // of a rollback, 0: the parent
}

// Outcomes of a move.
const (
	done    = iota // read, or moved, as moved says
	refused        // nothing was moved
	unknown        // no answer came: it may take place at any time after it was sent, or never
)

// moved is what its client was answered.
type moved struct {
	outcome             int
	generation, version uint64
	hash                string
}

// liveRow is what the live row was over time, as the database tells in the end: generation by generation.
type liveRow struct {
	version map[uint64]uint64 // that a generation made live
	parent  map[uint64]uint64 // that a version has recorded
	bears   map[string]uint64 // the generation of the deed with that mark
}

// model is the live row as one register, whose value is a generation. What the client of a deed of unknown outcome
// does not know, history tells: whether it took place, and as what; when, is for the checker to find.
func (l liveRow) model(first uint64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			now, in, out := state.(uint64), input.(move), output.(moved)
			if in.kind == moveRead {
				return out.generation == now && out.version == l.version[now], now
			}
			next, took := l.bears[in.mark]
			if !took || out.outcome == refused {
				return !took && out.outcome != done, now
			}
			legal := next == now+1
			switch {
			case in.kind == moveApply:
				legal = legal && l.parent[l.version[next]] == l.version[now]
			case in.target == 0:
				legal = legal && l.parent[l.version[now]] == l.version[next]
			default:
				legal = legal && in.target == l.version[next]
			}
			if out.outcome == done {
				legal = legal && out.generation == next && out.version == l.version[next]
			}
			return legal, next
		},
	}
}

// The model is worth something: it finds what must not be.
func TestLiveRowModelFindsFaults(t *testing.T) {
	row := liveRow{
		version: map[uint64]uint64{1: 1, 2: 2, 3: 1, 4: 2},
		parent:  map[uint64]uint64{2: 1},
		bears:   map[string]uint64{"a": 2, "b": 3, "c": 4},
	}
	op := func(in move, call, ret int64, out moved) porcupine.Operation {
		return porcupine.Operation{Input: in, Call: call, Output: out, Return: ret}
	}
	read := move{}
	apply, back, forth := move{kind: moveApply, mark: "a"}, move{kind: moveRollback, mark: "b"}, move{kind: moveRollback, mark: "c", target: 2}
	at := func(generation, version uint64) moved { return moved{done, generation, version, ""} }
	for _, tt := range []struct {
		name string
		ops  []porcupine.Operation
		ok   bool
	}{
		{"apply, to the parent, to a version, read", []porcupine.Operation{
			op(apply, 1, 2, at(2, 2)), op(back, 3, 4, at(3, 1)), op(forth, 5, 6, at(4, 2)), op(read, 7, 8, at(4, 2)),
		}, true},
		{"three at once", []porcupine.Operation{
			op(forth, 1, 9, at(4, 2)), op(back, 2, 8, at(3, 1)), op(apply, 3, 7, at(2, 2)), op(read, 4, 6, at(3, 1)),
		}, true},
		{"a read of what was before", []porcupine.Operation{op(apply, 1, 2, at(2, 2)), op(read, 3, 4, at(1, 1))}, false},
		{"a read of a version that the generation is not", []porcupine.Operation{op(read, 1, 2, at(1, 2))}, false},
		{"unknown, and late", []porcupine.Operation{
			op(apply, 1, 99, moved{outcome: unknown}), op(read, 2, 3, at(1, 1)), op(read, 4, 5, at(2, 2)),
		}, true},
		{"unknown, seen and then not", []porcupine.Operation{
			op(apply, 1, 99, moved{outcome: unknown}), op(read, 2, 3, at(2, 2)), op(read, 4, 5, at(1, 1)),
		}, false},
		{"unknown, before it was sent", []porcupine.Operation{
			op(read, 1, 2, at(2, 2)), op(apply, 3, 99, moved{outcome: unknown}),
		}, false},
		{"unknown, never", []porcupine.Operation{
			op(move{kind: moveApply, mark: "x"}, 1, 99, moved{outcome: unknown}), op(read, 2, 3, at(1, 1)),
		}, true},
		{"answered out of order", []porcupine.Operation{op(back, 1, 2, at(3, 1)), op(apply, 3, 4, at(2, 2))}, false},
		{"answered another generation", []porcupine.Operation{op(apply, 1, 2, at(3, 2))}, false},
		{"answered and not done", []porcupine.Operation{op(move{kind: moveApply, mark: "x"}, 1, 2, at(2, 2))}, false},
		{"refused and done", []porcupine.Operation{op(apply, 1, 2, moved{outcome: refused})}, false},
		{"to another version than was asked for", []porcupine.Operation{
			op(apply, 1, 2, at(2, 2)), op(back, 3, 4, at(3, 1)), op(move{kind: moveRollback, mark: "c", target: 3}, 5, 6, at(4, 2)),
		}, false},
		{"to what is no parent", []porcupine.Operation{
			op(apply, 1, 2, at(2, 2)), op(back, 3, 4, at(3, 1)), op(move{kind: moveRollback, mark: "c"}, 5, 6, at(4, 2)),
		}, false},
		{"an apply on what it does not name", []porcupine.Operation{
			op(apply, 1, 2, at(2, 2)), op(move{kind: moveApply, mark: "b"}, 3, 4, at(3, 1)),
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := porcupine.CheckOperations(row.model(1), tt.ops); got != tt.ok {
				t.Errorf("in order: %t, want %t", got, tt.ok)
			}
		})
	}
}
