package control

import (
	"context"
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

// dictionary is a payload that nodes may hold.
type dictionary struct {
	id      seal.DictionaryID
	payload []byte
}

// codings are what is live, coded with what was before it. Each is made when the first node asks for it, and kept as long
// as it is live: at most maxDictionaries, none of them larger than the payload.
type codings struct {
	key    seal.SigningKey
	target seal.Sealed
	known  []dictionary // newest first, beginning with the target itself; never changed

	mu   sync.Mutex
	made map[seal.DictionaryID]*coding
}

// coding is one of them. ready is closed once value is there, nil when it would not be worth sending.
type coding struct {
	ready chan struct{}
	value *seal.Coding
}

// newCodings follows old (may be nil) with target, which is live from now on.
func newCodings(k seal.SigningKey, target seal.Sealed, old *codings) *codings {
	if old != nil && old.target.Signature == target.Signature {
		return old // another activation of the same bytes
	}
	c := &codings{key: k, target: target, made: make(map[seal.DictionaryID]*coding)}
	add := func(d dictionary) {
		if d.id != (seal.DictionaryID{}) {
			c.known = append(c.known, d)
		}
	}
	add(dictionary{seal.DictionaryOf(target.Payload), target.Payload})
	if old == nil {
		return c
	}
	left := maxDictionaryBytes
	for _, d := range old.known {
		if left -= len(d.payload); left < 0 || len(c.known) == maxDictionaries {
			break
		}
		if len(c.known) == 0 || d.id != c.known[0].id {
			add(d)
		}
	}
	return c
}

// get returns the target coded with what has this id, nil when that is not kept or nothing is gained. Who comes while it is
// made waits for it, as long as ctx is not done.
func (c *codings) get(ctx context.Context, id seal.DictionaryID) *seal.Coding {
	// A node takes a coding that is signed with the key of what it is of.
	if c == nil || id == (seal.DictionaryID{}) || c.target.KeyID != c.key.ID() {
		return nil
	}
	c.mu.Lock()
	made, ok := c.made[id]
	if ok {
		c.mu.Unlock()
		select {
		case <-made.ready:
			return made.value
		case <-ctx.Done():
			return nil
		}
	}
	var with []byte
	for _, d := range c.known {
		if d.id == id {
			with = d.payload
		}
	}
	if with == nil {
		c.mu.Unlock()
		return nil
	}
	made = &coding{ready: make(chan struct{})}
	c.made[id] = made
	c.mu.Unlock()
	defer close(made.ready)
	if v, err := seal.Encode(c.key, c.target.Payload, with); err == nil {
		made.value = &v
	}
	return made.value
}
