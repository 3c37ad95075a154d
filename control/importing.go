package control

import (
	"context"
	"io"
)

// ImportOptions say how a zone file meets the records that stand.
type ImportOptions struct {
	// Replace removes the records that the file does not have.
	Replace bool
	// DryRun counts and changes nothing.
	DryRun bool
}

// ImportResult counts records. Settings tells that the file's SOA changed the zone's settings.
type ImportResult struct {
	Added     int
	Removed   int
	Updated   int // same name, type and content, other TTL or proxied flag
	Unchanged int
	Settings  bool
}

// ImportZoneFile reads an RFC 1035 zone file of at most MaxImport bytes into the zone (editor), all or
// nothing. A *ProblemsError holds every bad line with its number. The SOA goes to the zone's settings.
// ErrConflict when the zone is edited faster than the import can compare.
func (s *Service) ImportZoneFile(ctx context.Context, p Principal, ref string, r io.Reader, o ImportOptions) (ImportResult, error) {
	panic("unbuilt")
}

// ExportZoneFile prints the zone as a file that ImportZoneFile reads back to the same rows (viewer). An
// error before the first byte leaves w untouched.
func (s *Service) ExportZoneFile(ctx context.Context, p Principal, ref string, w io.Writer) error {
	panic("unbuilt")
}
