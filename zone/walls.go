package zone

import "io"

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
