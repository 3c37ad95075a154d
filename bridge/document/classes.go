package document

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// unit is a session, a route, or the bridge itself.
type unit struct {
	section string // bridge, sessions or routes
	id      string // "" for the bridge
}

func (u unit) path(field string) string {
	p := join(u.section, u.id)
	if u.id == "" {
		p = u.section
	}
	if field == "" {
		return p
	}
	return p + "." + field
}

// flatten is a document's normal form: for each unit the values of its fields by their paths in it. Lists, and the properties that
// a route sets, are one value each.
func flatten(d *Document) map[unit]map[string]jsontext.Value {
	w := d.wire()
	out := map[unit]map[string]jsontext.Value{{"bridge", ""}: fieldsOf(w.Bridge)}
	for _, s := range w.Sessions {
		out[unit{"sessions", *s.ID}] = fieldsOf(s)
	}
	for _, r := range w.Routes {
		out[unit{"routes", *r.ID}] = fieldsOf(r)
	}
	return out
}

func fieldsOf(v any) map[string]jsontext.Value {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("document: a parsed document has no normal form: %v", err)) // as in Canonical
	}
	out := map[string]jsontext.Value{}
	flattenInto(out, "", text)
	return out
}

func flattenInto(out map[string]jsontext.Value, path string, v jsontext.Value) {
	var members map[string]jsontext.Value
	if v.Kind() != '{' || path == "transform.properties.set" || json.Unmarshal(v, &members) != nil {
		out[path] = v
		return
	}
	for name, inner := range members {
		flattenInto(out, join(path, name), inner)
	}
}

// judge says of each field whether its change can be taken over while the bridge runs.
type judge struct {
	old, next *Document
	// resubscribed are durable sessions of both documents whose subscriptions differ.
	resubscribed map[string]bool
}

func newJudge(old, next *Document) judge {
	j := judge{old, next, map[string]bool{}}
	for _, s := range old.Sessions {
		n, both := next.Session(s.ID)
		if both && (s.Durable() || n.Durable()) && !slices.Equal(subscriptions(old, s.ID), subscriptions(next, s.ID)) {
			j.resubscribed[s.ID] = true
		}
	}
	return j
}

// subscriptions are those that a session asks its broker for, sorted, each once.
func subscriptions(d *Document, session string) []string {
	var all []string
	for _, r := range d.Routes {
		if f := r.From; f.Session == session {
			all = append(all, fmt.Sprintf("%s\x00%s\x00%d", f.Share, f.Topic, f.QoS))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fields are the fields of a unit that differ.
func (j judge) fields(u unit, before, after map[string]jsontext.Value) []FieldChange {
	var out []FieldChange
	all := maps.Clone(before)
	maps.Copy(all, after)
	for name := range all {
		if string(before[name]) == string(after[name]) {
			continue
		}
		f := FieldChange{Path: u.path(name), Class: LiveSafe, From: before[name], To: after[name]}
		switch u.section {
		case "bridge":
			f.Why = bridgeWhy(name)
		case "sessions":
			f.Why = j.sessionWhy(u.id, name)
		case "routes":
			f.Why = j.routeWhy(u.id, name)
		}
		if f.Why != "" {
			f.Class = Replacement
		}
		out = append(out, f)
	}
	return out
}

// wholly says why a session or route cannot come or go while the bridge runs, or "".
func (j judge) wholly(u unit) string {
	if u.section == "routes" {
		return j.routeWhy(u.id, "from.topic")
	}
	if j.durable(u.id) {
		return "the broker keeps a durable session's messages: one that goes leaves them behind, and one that comes takes them from nobody's hands"
	}
	return ""
}

// durable tells whether the session is in either document.
func (j judge) durable(session string) bool {
	a, _ := j.old.Session(session)
	b, _ := j.next.Session(session)
	return a.Durable() || b.Durable()
}

func bridgeWhy(field string) string {
	switch field {
	case "deployment_mode":
		return "a process is standalone or a member of a cohort for its whole life"
	case "cluster.rollout":
		return "members that agree and members that do not would change apart"
	case "cluster.members":
		return "who must agree is fixed for the cohort's life"
	}
	return ""
}

// durableIdentity are the fields that a durable session is known by, or that say what its broker keeps.
var durableIdentity = []string{"kind", "url", "protocol", "client_id", "clean_start", "session_expiry", "exclusive"}

func (j judge) sessionWhy(session, field string) string {
	if j.durable(session) && slices.Contains(durableIdentity, field) {
		return "it is part of what a durable session is: its broker keeps messages that nobody would fetch any more"
	}
	return ""
}

func (j judge) routeWhy(route, field string) string {
	if !strings.HasPrefix(field, "from.") {
		return ""
	}
	a, _ := j.old.Route(route)
	b, _ := j.next.Route(route)
	for _, session := range []string{a.From.Session, b.From.Session} {
		if j.resubscribed[session] {
			return fmt.Sprintf("it changes the subscriptions of the durable session %s, for which its broker keeps messages", session)
		}
	}
	return ""
}
