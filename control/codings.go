package control

import (
	"sync"

	"github.com/guardyn-edge/guardyn/seal"
)

// Bounds of what is kept so that nodes can be sent a difference.
const (
	// maxDictionaries is how many payloads are kept that were live last, what is live included: a node that holds an older
	// one is sent all of it.
	maxDictionaries = 4
	// maxDictionaryBytes bounds them together, what is live left out.
	maxDictionaryBytes = seal.MaxDictionary
)

// codings are what is live, coded with each payload that nodes may hold; at most maxDictionaries, none of them larger than
// what is live. Ten thousand nodes ask at one time, so asking takes no lock.
type codings struct {
	key    seal.SigningKey // zero when the target is sealed with another, whose coding no node would take
	target seal.Sealed
	with   []*coding // newest first, beginning with the target itself; never changed
}

// coding is the target coded with one payload, when the first node asks for it.
type coding struct {
	id      seal.DictionaryID
	payload []byte

	once  sync.Once
	value *seal.Coding // nil: not worth sending
}

// newCodings follows old (may be nil) with target, which is live from now on. What was live until now is what most nodes
// hold: their coding is made here, before anybody is told.
func newCodings(k seal.SigningKey, target seal.Sealed, old *codings) *codings {
	if old != nil && old.target.Signature == target.Signature {
		return old // another activation of the same bytes
	}
	c := &codings{target: target}
	if k.ID() == target.KeyID { // once: deriving it costs as much as a signature
		c.key = k
	}
	c.add(seal.DictionaryOf(target.Payload), target.Payload)
	if old == nil {
		return c
	}
	left := maxDictionaryBytes
	for _, d := range old.with {
		if left -= len(d.payload); left < 0 || len(c.with) == maxDictionaries {
			break
		}
		c.add(d.id, d.payload)
	}
	c.get(seal.DictionaryOf(old.target.Payload))
	return c
}

// add has nodes that hold payload be sent a coding with it.
func (c *codings) add(id seal.DictionaryID, payload []byte) {
	if id != (seal.DictionaryID{}) && c.find(id) == nil {
		c.with = append(c.with, &coding{id: id, payload: payload})
	}
}

func (c *codings) find(id seal.DictionaryID) *coding {
	for _, d := range c.with {
		if d.id == id {
			return d
		}
	}
	return nil
}

// get returns the target coded with what has this id, nil when that is not kept or nothing is gained. Who comes while it is
// made waits for it.
func (c *codings) get(id seal.DictionaryID) *seal.Coding {
	if c == nil || c.key.IsZero() || id == (seal.DictionaryID{}) {
		return nil
	}
	d := c.find(id)
	if d == nil {
		return nil
	}
	d.once.Do(func() {
		if v, err := seal.Encode(c.key, c.target.Payload, d.payload); err == nil {
			d.value = &v
		}
	})
	return d.value
}
