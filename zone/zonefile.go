package zone

import (
	"fmt"
	"strings"
)

// Bounds of a zone file.
const (
	// MaxFileRecords is the most records that one file may hold.
	MaxFileRecords = 1_000_000
	// MaxGenerated is the most records that the $GENERATE lines of one file may make together.
	MaxGenerated = 65_536
	// MaxFileEntry is the most bytes of one entry, over all its lines.
	MaxFileEntry = 1 << 20
	// MaxLineErrors is the most problems that are told of one file; a last one says how many more there are.
	MaxLineErrors = 1000
)

// proxiedComment is the comment that marks a proxied record in a zone file.
const proxiedComment = "proxied"

// A LineError is a problem at a place of a zone file.
type LineError struct {
	Line, Column int // from 1, columns in bytes; Column 0 when unknown
	Message      string
}

func (e LineError) Error() string {
	if e.Column > 0 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// LineErrors are all problems of a file, in line order; it is an error.
type LineErrors []LineError

// Error prints one problem per line.
func (e LineErrors) Error() string {
	var b strings.Builder
	for i, one := range e {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(one.Error())
	}
	return b.String()
}

// ZoneFile is what ReadZoneFile returns: records in file order and normal form, and the SOA's fields when
// there was one, in normal form: what equals the default that the zone would have anyway is zero.
type ZoneFile struct {
	Records []Record
	SOA     *SOA
}
