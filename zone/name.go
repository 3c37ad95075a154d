package zone

// Name is a domain name in normal form: absolute, lower-case, A-labels (IDNA2008), without the trailing
// dot, at most 253 octets. The root is not a Name; the zero Name is "no name". Only ParseName and its
// siblings make one, so a Name that is not zero is always in normal form.
type Name struct{ s string }

// String returns the text form, "" for the zero Name.
func (n Name) String() string { return n.s }

// IsZero reports whether n is the zero Name.
func (n Name) IsZero() bool { return n.s == "" }

// Compare orders names by their text.
func (n Name) Compare(m Name) int { panic("unbuilt") }

// ParseName folds a host or domain name (case, one trailing dot, U-labels) to its normal form. Labels may
// hold letters, digits, hyphens and underscores; the first label may be "*".
func ParseName(s string) (Name, error) { panic("unbuilt") }

// ParseNameIn reads a name as people write it inside a zone: "@" is the apex, a trailing dot or a suffix
// equal to the zone makes it absolute, anything else is relative to the zone. A name outside the zone is an error.
func ParseNameIn(zone Name, s string) (Name, error) { panic("unbuilt") }

// MustName is ParseName for constants and tests; it panics on an error.
func MustName(s string) Name { panic("unbuilt") }

// Under reports whether n is parent or below it.
func (n Name) Under(parent Name) bool { panic("unbuilt") }

// Parent returns the name less its first label, the zero Name for a single label.
func (n Name) Parent() Name { panic("unbuilt") }

// IsWildcard reports whether the first label is "*".
func (n Name) IsWildcard() bool { panic("unbuilt") }
