package zone

import (
	"fmt"
)

// ListKind is what a list's items are.
type ListKind string

// The kinds of list: addresses and prefixes, host names, or byte-exact strings.
const (
	ListIP       ListKind = "ip"
	ListHostname ListKind = "hostname"
	ListString   ListKind = "string"
)

// maxListString is the most bytes of one item of a list of strings.
const maxListString = 1024

// List is a named set that rules ask for membership with in_list. Normal form: items parsed by kind,
// sorted, without duplicates. A host prefix prints as its address.
type List struct {
	Kind  ListKind `json:"kind"`
	Items []string `json:"items,omitempty"`
}

// Normalize returns l in normal form, or all that is wrong with it, joined. l's items are not changed.
func (l List) Normalize() (List, error) {
	var items []string
	var p problems
	switch l.Kind {
	case ListIP:
		var err error
		items, err = normalPrefixes(l.Items, "item")
		p.add(err)
	case ListHostname:
		for i, s := range l.Items {
			n, err := ParseName(s)
			if err != nil {
				p.in(fmt.Sprintf("item %d", i+1), err)
			}
			items = append(items, n.s)
		}
		items = sortedUnique(items)
	case ListString:
		for i, s := range l.Items {
			if s == "" {
				p.addf("item %d is empty", i+1)
			}
			p.add(checkText(s, fmt.Sprintf("item %d", i+1), maxListString))
		}
		items = sortedUnique(l.Items)
	default:
		p.addf("kind %s: use ip, hostname or string", quote(string(l.Kind)))
	}
	if err := p.err(); err != nil {
		return List{}, err
	}
	return List{Kind: l.Kind, Items: items}, nil
}
