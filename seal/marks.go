package seal

import "cmp"

// Mark is the highest (epoch, generation) that fully passed under one key, and its content hash.
type Mark struct {
	Epoch       uint64         `json:"epoch"`
	Generation  uint64         `json:"generation"`
	ContentHash string         `json:"content_hash"`
	Kind        ActivationKind `json:"kind"`
}

func (m Mark) compare(epoch, generation uint64) int {
	return cmp.Or(cmp.Compare(m.Epoch, epoch), cmp.Compare(m.Generation, generation))
}

// Marks holds one Mark per key that ever signed what this node installed.
type Marks map[KeyID]Mark

// MaxJump is by how much an activation's epoch, and its generation, may each exceed the mark's. What is
// farther was signed by a thief or by mistake, and would leave no room for the genuine next one.
const MaxJump = 1 << 20

// Highest returns the maximum over the keys of t; false when none of them has a mark.
func (m Marks) Highest(t TrustedKeys) (Mark, bool) {
	var high Mark
	found := false
	for _, k := range t.keys {
		if mark, ok := m[k.ID()]; ok && (!found || high.compare(mark.Epoch, mark.Generation) < 0) {
			high, found = mark, true
		}
	}
	return high, found
}

// Admit decides by the table of §7 whether a may be installed over what the trusted keys' marks say.
// install false with a nil error means that there is nothing to do. Activations are ordered by epoch, then
// generation, so that any generation of a higher epoch is higher; but neither number may exceed the mark's
// by more than MaxJump. Without a mark, everything that Open passes is admitted. At the same generation and
// hash there is something to do only when a provisional activation is confirmed: the caller records the kind.
// Errors are *Refusal: stale_generation, equivocation, generation_jump.
func (m Marks) Admit(a Activation, t TrustedKeys) (install bool, err error) {
	if a.Epoch > maxInteger || a.Generation > maxInteger {
		return false, refuse(CodeGenerationJump, "epoch %d generation %d is beyond 2^53-1", a.Epoch, a.Generation)
	}
	high, ok := m.Highest(t)
	if !ok {
		return true, nil
	}
	switch c := high.compare(a.Epoch, a.Generation); {
	case c > 0:
		return false, refuse(CodeStaleGeneration, "the activation is epoch %d generation %d, older than epoch %d generation %d, which was installed here", a.Epoch, a.Generation, high.Epoch, high.Generation)
	case c == 0 && high.ContentHash != a.ContentHash:
		return false, refuse(CodeEquivocation, "epoch %d generation %d was signed twice: for content %s, which was installed here, and for %s", a.Epoch, a.Generation, high.ContentHash, a.ContentHash)
	case c == 0:
		return high.Kind == KindProvisional && a.Kind == KindConfirmed, nil
	case above(a.Epoch, high.Epoch) || above(a.Generation, high.Generation):
		return false, refuse(CodeGenerationJump, "the activation is epoch %d generation %d, more than %d ahead of epoch %d generation %d, which was installed here", a.Epoch, a.Generation, MaxJump, high.Epoch, high.Generation)
	}
	return true, nil
}

func above(n, mark uint64) bool { return n > mark && n-mark > MaxJump }

// Raise records that a passed fully under key k. It never lowers a mark; at the same generation it takes
// over the kind of a confirmation. m must not be nil.
func (m Marks) Raise(k KeyID, a Activation) {
	mark, ok := m[k]
	if ok {
		switch c := mark.compare(a.Epoch, a.Generation); {
		case c > 0:
			return
		case c == 0 && (mark.Kind != KindProvisional || a.Kind != KindConfirmed || mark.ContentHash != a.ContentHash):
			return
		}
	}
	m[k] = Mark{Epoch: a.Epoch, Generation: a.Generation, ContentHash: a.ContentHash, Kind: a.Kind}
}
