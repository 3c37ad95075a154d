package snapshot

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

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

// Build judges and builds. It changes nothing of in, but shares parts of its zones with the snapshot: the
// caller must not change them afterwards, and may build from them again, also at the same time. Warnings
// come back whether or not there are problems; both are in the order of Problems. The error is Problems. A
// zone that is malformed by itself has that told of it alone: how its objects fit together is judged once
// each of them is sound.
func Build(in Input, meta Meta) (s *Snapshot, warnings []Problem, err error) {
	built := buildZones(&in)
	sound := soundZones(built)
	checkTogether(sound)

	var problems Problems
	for i := range built {
		problems = append(problems, built[i].problems...)
		warnings = append(warnings, built[i].warnings...)
	}
	sortProblems(problems)
	sortProblems(warnings)
	if len(problems) > 0 {
		return nil, warnings, problems
	}
	return assemble(sound, meta), warnings, nil
}

// buildZones judges each zone by itself.
func buildZones(in *Input) []builtZone {
	built := make([]builtZone, len(in.Zones))
	exprs, rules := newExpressions(), newRuleMemo()
	each(len(in.Zones), func(i int, scratch *[]byte) {
		built[i].build(in.Zones[i], in, exprs, rules, scratch)
	})
	return built
}

// soundZones returns those that have content to publish, in order of id.
func soundZones(built []builtZone) []*builtZone {
	sound := make([]*builtZone, 0, len(built))
	for i := range built {
		if built[i].entry != nil {
			sound = append(sound, &built[i])
		}
	}
	slices.SortStableFunc(sound, func(a, b *builtZone) int { return strings.Compare(string(a.entry.zone.ID), string(b.entry.zone.ID)) })
	return sound
}

func assemble(sound []*builtZone, meta Meta) *Snapshot {
	c := &content{zones: make([]*entry, len(sound))}
	for i := range sound {
		c.zones[i] = sound[i].entry
	}
	c.setHash()
	return &Snapshot{meta: meta.clean(), content: c}
}

// builtZone is what became of one zone of the input.
type builtZone struct {
	workspace string
	entry     *entry // nil when the zone is malformed by itself, or left out
	held      bool   // entry is the published one
	problems  []Problem
	warnings  []Problem
}

func (b *builtZone) build(zi ZoneInput, in *Input, exprs *expressions, rules *ruleMemo, scratch *[]byte) {
	b.workspace = zi.Workspace
	if zi.Zone == nil {
		b.problems = append(b.problems, Problem{Code: "zone_malformed", Message: "A zone of the input is missing."})
		return
	}
	z := owned(zi.Zone.Served())
	if err := rules.normalize(z, scratch); err != nil {
		b.malformed(zi.Zone, err)
		return
	}
	if id, err := zone.ParseID(string(z.ID)); err != nil || id != z.ID {
		b.malformed(z, fmt.Errorf("the zone id %s is not a UUID in lower case", quote(string(z.ID))))
		return
	}
	bytes, err := appendZone((*scratch)[:0], z)
	*scratch = bytes
	if err != nil {
		b.malformed(z, err)
		return
	}
	b.entry = newEntry(z, bytes)
	j := judge{
		z: z, source: zi.Zone, in: in, exprs: exprs, out: b,
		usedLists: map[string]bool{}, usedPools: map[string]bool{},
	}
	if in.Live != nil {
		j.live = in.Live.Zone(z.ID)
	}
	j.records()
	j.occluded()
	j.rules()
	j.pools()
	j.balancers()
	j.tlsHosts()
	j.functions()
	j.ceilings()
	j.unused()
}

// owned gives z containers of its own, which zone.Normalize may write to.
func owned(z *zone.Zone) *zone.Zone {
	z.Records = slices.Clone(z.Records)
	z.Lists = maps.Clone(z.Lists)
	z.LoadBalancers = maps.Clone(z.LoadBalancers)
	z.TLSHosts = maps.Clone(z.TLSHosts)
	z.Functions = maps.Clone(z.Functions)
	return z
}

// malformed takes the error of zone.Normalize apart, one problem for each object's.
func (b *builtZone) malformed(z *zone.Zone, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			b.malformed(z, one)
		}
		return
	}
	p := Problem{Zone: z.Name, ID: z.ID, Code: "zone_malformed", Message: sentence(err.Error())}
	var o *zone.ObjectError
	if errors.As(err, &o) {
		p.Object, p.Message = o.Object, sentence(o.Err.Error())
	}
	b.problems = append(b.problems, p)
}

// judge checks how the objects of one zone fit together.
type judge struct {
	z      *zone.Zone // served, in normal form
	source *zone.Zone // as the rows hold it
	live   *zone.Zone // as published, or nil
	in     *Input
	exprs  *expressions
	out    *builtZone

	usedLists, usedPools map[string]bool
	names                map[zone.Name]bool // see exists
}

func (j *judge) problem(object, code, format string, args ...any) {
	j.out.problem(object, code, format, args...)
}

func (j *judge) warn(object, code, format string, args ...any) {
	j.out.warnings = append(j.out.warnings, j.out.about(object, code, format, args...))
}

func (b *builtZone) problem(object, code, format string, args ...any) {
	b.problems = append(b.problems, b.about(object, code, format, args...))
}

func (b *builtZone) about(object, code, format string, args ...any) Problem {
	z := b.entry.zone
	return Problem{Zone: z.Name, ID: z.ID, Object: object, Code: code, Message: sentence(fmt.Sprintf(format, args...))}
}

// sentence makes one line of an error: joined ones are separated, the first letter is upper-case, a full
// stop ends it.
func sentence(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ")
	if s == "" {
		return s
	}
	if c := s[0]; 'a' <= c && c <= 'z' {
		s = string(c-'a'+'A') + s[1:]
	}
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}
