package node_test

import (
	"cmp"
	"slices"

	"github.com/guardyn-edge/guardyn/seal"
)

// claim is what a signed activation says, and by which key.
type claim struct {
	key               seal.KeyID
	epoch, generation uint64
	version           uint64
	hash              string
	kind              seal.ActivationKind
}

// order compares by (epoch, generation) alone.
func (c claim) order(d claim) int {
	return cmp.Or(cmp.Compare(c.epoch, d.epoch), cmp.Compare(c.generation, d.generation))
}

// file is an artefact on a node's disk.
type file struct {
	claim
	// head: its activation can be read; whole: all of it can.
	head, whole bool
}

// rules is the specification of a node's trust (activation and freshness, installing and booting), for one state
// directory over any number of processes. It knows nothing of how the agent does it.
type rules struct {
	trusted []seal.KeyID
	// marks holds, by key, the highest claim that fully passed.
	marks map[seal.KeyID]claim
	// current and previous are what a process boots from.
	current, previous *file
	// others lie in the directory until the next install.
	others []*file
	served *claim
	// damaged: the file of the marks makes no sense.
	damaged bool
	// doubtful: the marks were put together from the files beside them, which may not be all that passed.
	doubtful bool
}

func (r *rules) trusts(k seal.KeyID) bool { return slices.Contains(r.trusted, k) }

// mark is the maximum over the keys that are trusted now.
func (r *rules) mark() (high claim, ok bool) {
	for k, m := range r.marks {
		if r.trusts(k) && (!ok || m.order(high) > 0) {
			high, ok = m, true
		}
	}
	return high, ok
}

// needsProof tells whether only what a fresh answer names may be installed.
func (r *rules) needsProof() bool {
	_, ok := r.mark()
	return !ok || r.doubtful
}

// start is a new process on the directory; false: it must not start, since what it knew is gone and nothing
// proves what was installed.
func (r *rules) start() bool {
	r.served = nil
	if r.damaged {
		var proven, others []*file
		for _, f := range append(r.others, r.current, r.previous) {
			switch {
			case f == nil:
			case f.head && r.trusts(f.key):
				proven = append(proven, f)
			default:
				others = append(others, f)
			}
		}
		if len(proven) == 0 {
			return false
		}
		slices.SortFunc(proven, func(a, b *file) int { return b.order(a.claim) })
		r.marks, r.current, r.previous, r.others, r.doubtful = map[seal.KeyID]claim{}, proven[0], nil, others, true
		for _, f := range proven {
			r.raise(f.claim)
		}
		if len(proven) > 1 {
			r.previous, r.others = proven[1], append(others, proven[2:]...)
		}
	}
	for _, f := range []*file{r.current, r.previous} {
		if f != nil && f.whole && r.trusts(f.key) {
			r.served, r.damaged = &f.claim, false
			break
		}
	}
	return true
}

// offer tells whether an offer must be installed, and takes it as installed. genuine: key, signatures, bytes and
// envelope belong together. proof is what a valid fresh answer that came with it names.
func (r *rules) offer(o claim, genuine bool, proof *claim) bool {
	must := genuine && r.admits(o, proof)
	r.proved(proof)
	if !must {
		return false
	}
	r.raise(o)
	f := &file{claim: o, head: true, whole: true}
	switch {
	case r.current != nil && r.current.order(o) == 0:
	case r.served != nil:
		r.previous = &file{claim: *r.served, head: true, whole: true}
	case r.previous != nil && r.previous.order(o) == 0:
		r.previous = nil // one file of that name
	}
	r.current, r.served, r.others, r.damaged, r.doubtful = f, &f.claim, nil, false, false
	return true
}

func (r *rules) admits(o claim, proof *claim) bool {
	if !r.trusts(o.key) || o.kind == seal.KindProvisional {
		return false // what is provisional, only a rollout may ask for
	}
	if r.needsProof() && (proof == nil || proof.order(o) != 0 || proof.hash != o.hash) {
		return false
	}
	high, ok := r.mark()
	if !ok {
		return true
	}
	switch c := o.order(high); {
	case c < 0:
		return false
	case c == 0 && o.hash != high.hash:
		return false
	case c == 0:
		served := r.served != nil && r.served.order(o) == 0
		return !served || high.kind == seal.KindProvisional && o.kind == seal.KindConfirmed
	}
	return o.generation <= high.generation+1<<20 && o.epoch <= high.epoch+1<<20
}

// proved: a fresh answer that names what is served ends every doubt.
func (r *rules) proved(proof *claim) {
	if proof != nil && r.served != nil && proof.order(*r.served) == 0 && proof.hash == r.served.hash {
		r.doubtful = false
	}
}

func (r *rules) raise(o claim) {
	m, ok := r.marks[o.key]
	switch c := o.order(m); {
	case !ok || c > 0:
		r.marks[o.key] = o
	case c == 0 && m.kind == seal.KindProvisional && o.kind == seal.KindConfirmed:
		m.kind = o.kind
		r.marks[o.key] = m
	}
}
