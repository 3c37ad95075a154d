package api

import (
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// Zone is a zone without what it holds.
type Zone struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Revision  int64     `json:"revision"` // rises with every edit of anything in the zone
	Records   int       `json:"records"`
	CreatedAt time.Time `json:"created_at"`
}

// NewZone creates a zone.
type NewZone struct {
	Name string `json:"name"`
}

// Record is a record in normal form. Its id may be new after the record was deleted and made again.
type Record struct {
	ID      string `json:"id"`
	Name    string `json:"name"` // absolute
	Type    string `json:"type"`
	Content string `json:"content"`
	TTL     uint32 `json:"ttl"` // seconds
	Proxied bool   `json:"proxied"`
}

// RecordEdit is a record as people write it: the name relative to its zone ("@" is the apex) or absolute.
type RecordEdit struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Content string `json:"content"`
	TTL     uint32 `json:"ttl,omitzero"` // seconds; 0 is auto
	Proxied bool   `json:"proxied,omitzero"`
}

// RecordFilter narrows a listing of records; empty members do not.
type RecordFilter struct {
	Name string // relative to the zone, or absolute
	Type string
}

// ImportOptions says how a zone file is imported.
type ImportOptions struct {
	Replace bool // records that the file does not have are removed
	DryRun  bool // only tell what would be done
	// IfRevision, when not 0, is the zone's revision that must still stand, else the answer is 412.
	IfRevision int64
}

// ImportResult counts records by what the import did (or would do) with them; updated ones changed TTL or
// the proxied flag alone. Settings tells that the file's SOA changed the zone's settings.
type ImportResult struct {
	Added     int  `json:"added"`
	Removed   int  `json:"removed"`
	Updated   int  `json:"updated"`
	Unchanged int  `json:"unchanged"`
	Settings  bool `json:"settings,omitzero"`
}

// Object is a named object of a zone in a listing; Value is what GET of its path answers.
type Object[T any] struct {
	Name     string `json:"name"`
	Revision int64  `json:"revision"`
	Value    T      `json:"value"`
}

// Ruleset is the rules of one phase, in their order.
type Ruleset struct {
	Rules []zone.Rule `json:"rules"`
}

// ListSummary is a list in a listing, without its items.
type ListSummary struct {
	Kind  zone.ListKind `json:"kind"`
	Items int           `json:"items"` // how many
}

// FunctionSummary is a function in a listing, without its module.
type FunctionSummary struct {
	Bytes   int           `json:"bytes"` // of the module
	Memory  zone.Size     `json:"memory,omitzero"`
	Timeout zone.Duration `json:"timeout,omitzero"`
	Output  zone.Size     `json:"output,omitzero"`
}

// SettingsPatch changes settings by key (the JSON name; soa.refresh for members) from text; an empty value
// restores the default.
type SettingsPatch struct {
	Set map[string]string `json:"set"`
}
