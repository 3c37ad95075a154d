package zone

import (
	"io"
	"net/netip"
)

// Normalize puts every object of z into normal form in place and returns all of what is malformed by
// itself, one error each with the object's name ("record www A", "pool main"), joined.
func (z *Zone) Normalize() error { panic("unbuilt") }

// Served returns a copy of z without what serving does not need: descriptions, disabled rules, disabled
// origins. z is not changed; unchanged parts are shared.
func (z *Zone) Served() *Zone { panic("unbuilt") }

// Normalize and validate one object by itself. in is the zone that it is written in.
func (r Rule) Normalize(phase Phase) (Rule, error)      { panic("unbuilt") }
func (l List) Normalize() (List, error)                 { panic("unbuilt") }
func (p Pool) Normalize() (Pool, error)                 { panic("unbuilt") }
func (b LoadBalancer) Normalize() (LoadBalancer, error) { panic("unbuilt") }
func (c CachePolicy) Normalize() (CachePolicy, error)   { panic("unbuilt") }
func (t TLSHost) Normalize() (TLSHost, error)           { panic("unbuilt") }
func (f Function) Normalize() (Function, error)         { panic("unbuilt") }
func (s Settings) Normalize() (Settings, error)         { panic("unbuilt") }
func (c Ceilings) Normalize() (Ceilings, error)         { panic("unbuilt") }
func ParseObjectName(s string) (string, error)          { panic("unbuilt") } // [a-z0-9][a-z0-9_-]{0,62}
func ParseID(s string) (ID, error)                      { panic("unbuilt") }
func ParsePhase(s string) (Phase, error)                { panic("unbuilt") }

// Phases lists the phases in the order of execution.
func Phases() []Phase { panic("unbuilt") }

// Effective returns c with each zero member replaced by its default.
func (c Ceilings) Effective() Ceilings { panic("unbuilt") }

// Render prints a rule in one line, without its description: what rulesets are compared by.
func (r Rule) Render() string { panic("unbuilt") }

// SettingsDiff tells how b differs from a, one entry per setting, in the order of Settings' fields, with
// values as the plan prints them ("trace sampling", "1.00%", "100.00%").
func SettingsDiff(a, b Settings) []SettingChange { panic("unbuilt") }

// SettingChange is one setting that differs.
type SettingChange struct{ Label, Old, New string }

// Set changes one setting by its key (the JSON name; soa.refresh for members) from text, as in
// KEY=VALUE of the command line. An empty value restores the default.
func (s *Settings) Set(key, value string) error { panic("unbuilt") }

// ParsePrefix reads an address or a prefix; a bare address becomes a host prefix.
func ParsePrefix(s string) (netip.Prefix, error) { panic("unbuilt") }

// A LineError is a problem at a place of a zone file.
type LineError struct {
	Line, Column int // from 1; Column 0 when unknown
	Message      string
}

// ZoneFile is what ReadZoneFile returns: records in file order, and the SOA's fields when there was one.
type ZoneFile struct {
	Records []Record
	SOA     *SOA
}

// LineErrors are all problems of a file, in line order; it is an error.
type LineErrors []LineError

func (e LineErrors) Error() string { panic("unbuilt") }

// ReadZoneFile reads an RFC 1035 §5 zone file ($ORIGIN, $TTL, bounded $GENERATE; $INCLUDE refused). The
// error is LineErrors, holding every bad line.
func ReadZoneFile(r io.Reader, zone Name) (*ZoneFile, error) { panic("unbuilt") }

// WriteZoneFile prints z's SOA and records as a zone file that ReadZoneFile reads back to equal records.
func WriteZoneFile(w io.Writer, z *Zone) error { panic("unbuilt") }
