package zone

// ListKind is what a list's items are.
type ListKind string

// The kinds of list: addresses and prefixes, host names, or byte-exact strings.
const (
	ListIP       ListKind = "ip"
	ListHostname ListKind = "hostname"
	ListString   ListKind = "string"
)

// List is a named set that rules ask for membership with in_list. Normal form: items parsed by kind,
// sorted, without duplicates.
type List struct {
	Kind  ListKind `json:"kind"`
	Items []string `json:"items,omitempty"`
}
