package cache

import (
	"hash/maphash"
	"strings"

	"github.com/guardyn-edge/guardyn/zone"
)

// MaxKey is the most octets that a key may have; what is longer is neither stored nor looked for.
const MaxKey = 8 << 10

// Key is what objects are found by, beside Vary. The method is not part of it: what is stored are answers to GET.
type Key struct {
	// Zone is the zone's id, so that one which was deleted and made again starts without objects; Apex its name, by which purges go.
	Zone zone.ID
	Apex zone.Name
	// Scheme, Host and Path are in the normal form that is forwarded; Query is what [QueryRule.Of] leaves of the query.
	Scheme, Host, Path, Query string
}

// Len is how many octets a key has.
func (k *Key) Len() int {
	return len(k.Zone) + len(k.Scheme) + len(k.Host) + len(k.Path) + len(k.Query)
}

// clone returns a key that shares no memory with the request it was made from.
func (k *Key) clone() Key {
	all := k.Scheme + k.Host + k.Path + k.Query
	host := len(k.Scheme)
	path := host + len(k.Host)
	query := path + len(k.Path)
	return Key{
		Zone: zone.ID(strings.Clone(string(k.Zone))), Apex: k.Apex,
		Scheme: all[:host], Host: all[host:path], Path: all[path:query], Query: all[query:],
	}
}

// hash is what keys are stored by. Two keys of one hash push each other out; they are never taken for each other.
func (c *Cache) hash(k *Key) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	for _, s := range [...]string{string(k.Zone), k.Scheme, k.Host, k.Path, k.Query} {
		h.WriteString(s)
		h.WriteByte(0) // no part holds one
	}
	return h.Sum64()
}
