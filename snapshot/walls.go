// Package snapshot is the immutable value that is published: built from zones with all its problems
// reported together, printed as canonical bytes under a content hash, parsed strictly, and compared by
// meaning.
package snapshot

import (
	"iter"
	"net/netip"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// Format is the wire format that this build writes and the only one that it reads.
const Format = 2

// Meta is what a snapshot says of its own making. It is outside the content hash.
type Meta struct {
	Version       uint64
	ParentVersion uint64 // 0: none
	CreatedAt     time.Time
	CreatedBy     string
	Message       string
}

// Input is everything that Build judges.
type Input struct {
	Zones []ZoneInput
	// Now is the instant that certificates are judged at.
	Now time.Time
	// AllowedOrigins are ranges that origins may have although they are private or loopback.
	AllowedOrigins []netip.Prefix
	// Live is the published snapshot, nil when there is none: certificates that it holds unchanged are not
	// refused for their dates.
	Live *Snapshot
}

// ZoneInput is one zone as its rows hold it, with the workspace that owns it.
type ZoneInput struct {
	Workspace string
	Zone      *zone.Zone
}

// Problem is one thing that stops a build, or, as a warning, deserves a word.
type Problem struct {
	Zone    zone.Name `json:"zone,omitzero"`
	Object  string    `json:"object,omitempty"` // "rule 3 of custom", "pool main", "record www A"
	Code    string    `json:"code"`             // snake_case, stable: list_unknown, pool_without_origin
	Message string    `json:"message"`          // a sentence that says what to do
}

// Problems is the error of Build: all of them, ordered by zone, then object.
type Problems []Problem

func (p Problems) Error() string { panic("unbuilt") }

// Snapshot is immutable and safe for concurrent use. Only Build and Parse make one.
type Snapshot struct{ meta Meta }

// Build judges and builds. It keeps the zones of in, which the caller must not change afterwards. Warnings
// come back whether or not there are problems.
func Build(in Input, meta Meta) (s *Snapshot, warnings []Problem, err error) { panic("unbuilt") }

// WithMeta returns the same content under another meta: what apply rebuilds with once it has a version.
func (s *Snapshot) WithMeta(m Meta) *Snapshot { panic("unbuilt") }

func (s *Snapshot) Meta() Meta          { return s.meta }
func (s *Snapshot) ContentHash() string { panic("unbuilt") }
func (s *Snapshot) Len() int            { panic("unbuilt") }

// Zone returns a zone by id, nil when there is none. The caller must not change it.
func (s *Snapshot) Zone(id zone.ID) *zone.Zone { panic("unbuilt") }

// Zones iterates in order of id.
func (s *Snapshot) Zones() iter.Seq[*zone.Zone] { panic("unbuilt") }

// JSON returns the whole document of spec §2, canonical (RFC 8785).
func (s *Snapshot) JSON() []byte { panic("unbuilt") }

// Parse reads a document strictly and verifies it (§6 step 6). A zone whose bytes equal the one of prev
// (may be nil) shares prev's value, and the difference to prev is remembered for Delta.
func Parse(doc []byte, prev *Snapshot) (*Snapshot, error) { panic("unbuilt") }

// Delta tells which zones of s are new or differ from prev's, and which of prev's are gone. It is O(1)
// when s was parsed against prev, else it walks both. prev nil: everything is changed.
type Delta struct {
	Changed []*zone.Zone
	Removed []*zone.Zone // prev's values
}

func (s *Snapshot) Delta(prev *Snapshot) Delta { panic("unbuilt") }

// Diff compares by meaning; old may be nil.
func Diff(old, new *Snapshot) *Plan { panic("unbuilt") }

// Plan is a difference of meaning. Text prints it as spec §5, JSON is its data.
type Plan struct {
	LiveVersion uint64       `json:"live_version"`
	ContentHash string       `json:"content_hash"` // of new
	Disruptive  bool         `json:"disruptive"`
	Changes     int          `json:"changes"`
	Zones       []ZoneChange `json:"zones,omitempty"`
	Warnings    []Problem    `json:"warnings,omitempty"` // the caller adds Build's
}

// ZoneChange is one zone's part of a plan.
type ZoneChange struct {
	ID     zone.ID   `json:"id"`
	Name   zone.Name `json:"name"`
	Action string    `json:"action"` // add, change, remove
	// Records counts the records of a zone that is removed (or added).
	Records    int    `json:"records,omitzero"`
	Disruptive bool   `json:"disruptive,omitzero"`
	Lines      []Line `json:"lines,omitempty"`
}

// Line is one line under a zone.
type Line struct {
	Kind       string `json:"kind"` // dns, rules, lists, pools, balancers, cache, tls, functions, settings, ceilings
	Text       string `json:"text"`
	Disruptive bool   `json:"disruptive,omitzero"`
}

// Text prints the plan, final newline included. hint adds the line about --accept-disruption.
func (p *Plan) Text(hint bool) string { panic("unbuilt") }
