package document

import (
	"cmp"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Class is how a change can be taken over.
type Class string

// The classes.
const (
	NoChange    Class = "none"
	LiveSafe    Class = "live-safe"            // while the bridge runs
	Replacement Class = "replacement-required" // by processes that are started anew, all of the cohort
)

// Change is what is different between two documents.
type Change struct {
	Class  Class         `json:"class"`  // the worst of Fields
	Fields []FieldChange `json:"fields"` // sorted by Path

	Sessions Units `json:"sessions"`
	Routes   Units `json:"routes"`
}

// FieldChange is one field that differs, or a whole session or route that one of the documents lacks.
type FieldChange struct {
	Path  string         `json:"path"` // by ids, as "routes.temps.to.topic"; "sessions.plant" for a whole session
	Class Class          `json:"class"`
	Why   string         `json:"why,omitzero"`  // of Replacement
	From  jsontext.Value `json:"from,omitzero"` // none: it was not there
	To    jsontext.Value `json:"to,omitzero"`   // none: it is not there any more
}

// Units are the ids of what a change starts, stops and restarts, each sorted, and how many it leaves as they are.
type Units struct {
	Start   []string `json:"start,omitzero"`
	Stop    []string `json:"stop,omitzero"`
	Restart []string `json:"restart,omitzero"`
	Keep    int      `json:"keep"`
}

// Of returns the fields of a class.
func (c Change) Of(class Class) []FieldChange {
	var all []FieldChange
	for _, f := range c.Fields {
		if f.Class == class {
			all = append(all, f)
		}
	}
	return all
}

// Compare tells what becomes of a bridge that runs old, or nothing when old is nil, when it is to run next. Both documents
// are normal forms of this build.
func Compare(old, next *Document) Change {
	if old == nil {
		old = &Document{}
	}
	c := Change{Class: NoChange}
	was, is := flatten(old), flatten(next)
	restart := map[unit]bool{}
	j := newJudge(old, next)
	all := maps.Clone(was)
	maps.Copy(all, is)
	for u := range all {
		before, after := was[u], is[u]
		switch {
		case before == nil || after == nil:
			f := FieldChange{Path: u.path(""), Class: LiveSafe, From: whole(before), To: whole(after)}
			if f.Why = j.wholly(u); f.Why != "" {
				f.Class = Replacement
			}
			c.Fields = append(c.Fields, f)
		default:
			changes := j.fields(u, before, after)
			restart[u] = len(changes) > 0
			c.Fields = append(c.Fields, changes...)
		}
	}
	slices.SortFunc(c.Fields, func(a, b FieldChange) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range c.Fields {
		if c.Class == NoChange || f.Class == Replacement {
			c.Class = f.Class
		}
	}
	if len(was) == 1 && old.Bridge.Mode == "" {
		c.Class, c.Fields = LiveSafe, nil // nothing runs: there is nothing to say of single fields
	}
	c.Sessions = units(old.Sessions, next.Sessions, func(s Session) unit { return unit{"sessions", s.ID} }, func(s Session) bool {
		return restart[unit{"sessions", s.ID}]
	})
	c.Routes = units(old.Routes, next.Routes, func(r Route) unit { return unit{"routes", r.ID} }, func(r Route) bool {
		for _, session := range []string{r.From.Session, r.To.Session, r.DeadLetter.Session} {
			if restart[unit{"sessions", session}] {
				return true // what it holds on to is another one
			}
		}
		return restart[unit{"routes", r.ID}]
	})
	return c
}

// whole stands for a session or route.
func whole(fields map[string]jsontext.Value) jsontext.Value {
	if fields == nil {
		return nil
	}
	return fields["id"]
}

// units tells what becomes of the sessions, or the routes, of two documents.
func units[T any](old, next []T, of func(T) unit, restarts func(T) bool) (u Units) {
	was := map[unit]bool{}
	for _, x := range old {
		was[of(x)] = true
	}
	is := map[unit]bool{}
	for _, x := range next {
		id := of(x)
		is[id] = true
		switch {
		case !was[id]:
			u.Start = append(u.Start, id.id)
		case restarts(x):
			u.Restart = append(u.Restart, id.id)
		default:
			u.Keep++
		}
	}
	for _, x := range old {
		if id := of(x); !is[id] {
			u.Stop = append(u.Stop, id.id)
		}
	}
	return u
}
