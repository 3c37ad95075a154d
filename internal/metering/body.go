package metering

import (
	"errors"
	"fmt"
)

// body is one function's code on its way.
type body struct {
	m      *module
	code   []byte // of the module, the final end included
	params int
	locals uint32 // declared, parameters not among them
	result []byte // block type of a block that leaves the function's results

	calls bool
	total int   // weight of all instructions
	loops []int // weight of the body of each, in their order
}

// scan learns what a rewriting must know ahead.
func (b *body) scan() error {
	r := reader{b: b.code}
	type frame struct{ loop, before int }
	frames := make([]frame, 1, 16)
	frames[0].loop = -1
	for !r.done() {
		in := r.next(nil)
		switch in.op {
		case opBlock, opIf:
			frames = append(frames, frame{loop: -1})
		case opLoop:
			frames = append(frames, frame{loop: len(b.loops), before: b.total})
			b.loops = append(b.loops, 0)
		case opEnd:
			f := frames[len(frames)-1]
			if frames = frames[:len(frames)-1]; f.loop >= 0 {
				b.loops[f.loop] = b.total - f.before
			}
			if len(frames) == 0 && !r.done() {
				return errors.New("a function goes on after its end")
			}
		case opCall, opCallIndirect:
			b.calls = true
		case opMisc:
			switch in.sub {
			case miscMemoryCopy, miscMemoryFill:
				b.calls = true
			case miscMemoryInit, miscDataDrop:
				b.m.named = true
			}
		}
		if len(frames) > maxNesting {
			return fmt.Errorf("a function has more than %d blocks in each other", maxNesting)
		}
		b.total += in.weight(b.m.imports, b.m.data)
	}
	if r.err == nil && len(frames) > 0 {
		return errors.New("a function does not end")
	}
	return r.err
}

// maxNesting bounds blocks in each other, which compilers of machine code recurse over or keep state for.
const maxNesting = 2000

// frame is the estimate of what one call takes of the stack, in bytes.
func (b *body) frame() int {
	return min(32+8*(b.params+int(b.locals))+b.total, MaxStack/4)
}

// path is the longest one since a payment.
type path struct {
	left int // more than was executed where a call returned, so that the next payment is near
	run  int // what was executed
}

func (p path) longest(q path) path { return path{max(p.left, q.left), max(p.run, q.run)} }

func (p path) plus(weight int) path { return path{p.left + weight, p.run + weight} }

// label is a block that is open: where a branch to it goes on, for a loop the head.
type label struct {
	loop    bool
	arrived path // on which branches have come
	before  path // at the head of an if, where its else goes on
	dead    bool
	isIf    bool
}

// rewrite appends the rewritten code to out.
func (b *body) rewrite(out []byte) ([]byte, error) {
	if b.calls {
		out = b.m.appendPayment(out, b.scratch(), min(b.total, maxPath))
		out = b.appendEnter(out)
		out = append(out, opBlock)
		out = append(out, b.result...)
	} else if b.total > freeLeaf && len(b.loops) == 0 {
		out = b.m.appendPayment(out, b.scratch(), min(b.total, maxPath))
	}
	var (
		r      = reader{b: b.code}
		labels = append(make([]label, 0, 16), label{}) // of the function
		p      path
		dead   bool // nothing comes here
		loop   int
		branch = func(to uint32) {
			if !dead && int(to) < len(labels) {
				if l := &labels[len(labels)-1-int(to)]; !l.loop {
					l.arrived = l.arrived.longest(p)
				}
			}
		}
		called = func() { p.left = max(p.left, maxPath-afterCall) }
	)
	for !r.done() {
		in := r.next(branch)
		weight := in.weight(b.m.imports, b.m.data)
		if p.left+weight > maxPath && !dead && in.op != opElse && in.op != opEnd {
			out = b.m.appendPayment(out, b.scratch(), p.run+weight)
			p = path{}
		}
		p = p.plus(weight)
		raw := b.code[in.start:r.at]
		switch in.op {
		case opBlock, opIf:
			labels = append(labels, label{before: p, dead: dead, isIf: in.op == opIf})
		case opLoop:
			labels = append(labels, label{loop: true})
			out = append(out, raw...)
			out = b.m.appendPayment(out, b.scratch(), 1+min(b.loops[loop], maxPath))
			loop++
			p = path{}
			continue
		case opElse:
			l := &labels[len(labels)-1]
			if !dead {
				l.arrived = l.arrived.longest(p)
			}
			p, dead, l.isIf = l.before, l.dead, false
		case opEnd:
			l := labels[len(labels)-1]
			labels = labels[:len(labels)-1]
			if dead {
				p = path{}
			}
			p = p.longest(l.arrived)
			if l.isIf {
				p = p.longest(l.before)
			}
			dead = false
			if len(labels) == 0 && b.calls {
				out = append(out, opEnd)
				out = b.appendLeave(out)
			}
		case opBr:
			branch(in.index)
			dead = true
		case opBrIf:
			branch(in.index)
		case opBrTable, opUnreachable:
			dead = true
		case opReturn:
			dead = true
			if b.calls {
				out = append(out, opBr)
				out = appendU32(out, uint32(len(labels)-1))
				continue
			}
		case opCall:
			called()
			out = append(out, opCall)
			out = appendU32(out, b.m.function(in.index))
			continue
		case opCallIndirect:
			called()
		case opRefFunc:
			out = append(out, opRefFunc)
			out = appendU32(out, b.m.function(in.index))
			continue
		case opMisc:
			if in.sub == miscMemoryCopy || in.sub == miscMemoryFill {
				called()
				out = append(out, opCall)
				out = appendU32(out, b.m.helper(in.sub))
				continue
			}
		}
		out = append(out, raw...)
	}
	return out, r.err
}

// scratch is the local that was added.
func (b *body) scratch() uint32 { return uint32(b.params) + b.locals }

// appendEnter counts the function's frame, and calls the host when that is one too many.
func (b *body) appendEnter(out []byte) []byte {
	out = append(out, opGlobalGet)
	out = appendU32(out, b.m.stack)
	out = append(out, opI32Const)
	out = appendI32(out, int32(b.frame()))
	out = append(out, opI32Add, opLocalTee)
	out = appendU32(out, b.scratch())
	out = append(out, opGlobalSet)
	out = appendU32(out, b.m.stack)
	out = append(out, opLocalGet)
	out = appendU32(out, b.scratch())
	out = append(out, opI32Const)
	out = appendI32(out, MaxStack)
	out = append(out, opI32GtU, opIf, void, opI32Const, Overflow, opCall)
	out = appendU32(out, b.m.yield)
	return append(out, opDrop, opUnreachable, opEnd)
}

// appendLeave takes the frame off.
func (b *body) appendLeave(out []byte) []byte {
	out = append(out, opGlobalGet)
	out = appendU32(out, b.m.stack)
	out = append(out, opI32Const)
	out = appendI32(out, int32(b.frame()))
	out = append(out, opI32Sub, opGlobalSet)
	return appendU32(out, b.m.stack)
}

// appendPayment pays, and calls the host when nothing is left. scratch is a local of type i32.
func (m *module) appendPayment(out []byte, scratch uint32, amount int) []byte {
	out = append(out, opGlobalGet)
	out = appendU32(out, m.fuel)
	out = append(out, opI32Const)
	out = appendI32(out, int32(amount))
	return m.appendPaid(out, scratch)
}

// appendPaid pays the amount that is on the stack, above what there is.
func (m *module) appendPaid(out []byte, scratch uint32) []byte {
	out = append(out, opI32Sub, opLocalTee)
	out = appendU32(out, scratch)
	out = append(out, opGlobalSet)
	out = appendU32(out, m.fuel)
	out = append(out, opLocalGet)
	out = appendU32(out, scratch)
	out = append(out, opI32Const, 0, opI32LtS, opIf, void, opI32Const, Exhausted, opCall)
	out = appendU32(out, m.yield)
	out = append(out, opGlobalSet)
	out = appendU32(out, m.fuel)
	return append(out, opEnd)
}
