package route

import (
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/expression"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/bridge/topic"
)

// verdict is what becomes of a message.
type verdict int

const (
	send   verdict = iota
	drop           // it does not pass the filter
	fail           // the filter cannot tell
	loop           // it has been here before
	refuse         // it has no form that the target could take
)

// styles are how topics are written at the route's sessions.
type styles struct{ from, to, dead topic.Style }

func stylesOf(d *document.Document, r document.Route) styles {
	of := func(id string) topic.Style {
		s, _ := d.Session(id)
		return s.Kind.Style()
	}
	return styles{of(r.From.Session), of(r.To.Session), of(r.DeadLetter.Session)}
}

// prepare makes of what came what goes out. The error says why not.
func (r *Route) prepare(w *work) (verdict, error) {
	d, route := w.d, &r.cfg.Route
	captures, ok := route.From.Topic.Match(d.Topic)
	if !ok {
		return drop, nil // it came by an older subscription of the session
	}
	w.captures = captures
	if r.path.passed(d.Properties) {
		return loop, nil
	}
	m := expression.Message{Topic: d.Topic, Captures: captures, Separator: r.style.from.Separator, Payload: d.Payload, QoS: d.QoS, Retain: d.Retain}
	if route.Filter != nil || route.Transform.Payload != nil {
		m.Properties = propertyMap(d.Properties)
	}
	if route.Filter != nil {
		if takes, err := route.Filter.Takes(&m); err != nil {
			return fail, err
		} else if !takes {
			return drop, nil
		}
	}
	out := &session.Outgoing{Message: d.Message, Retries: &r.retry}
	if p := route.Transform.Payload; p != nil {
		payload, err := p.Make(&m)
		if err != nil {
			return refuse, err
		}
		out.Payload, out.Text = payload, false
	}
	var err error
	if out.Topic, err = route.To.Topic.Topic(r.style.from, r.style.to, d.Topic, captures); err != nil {
		return refuse, err
	}
	out.QoS = route.To.QoS
	switch route.To.Retain {
	case document.RetainSet:
		out.Retain = true
	case document.RetainClear:
		out.Retain = false
	}
	out.Properties = r.properties(d, captures)
	out.Done = func(err error) { r.answered(w, err) }
	w.out = out
	return send, nil
}

// properties are those of the message that goes out: without what is removed, with what is set, and with the hop.
func (r *Route) properties(d *session.Delivery, captures [][]string) []session.Property {
	t := &r.cfg.Route.Transform
	out := make([]session.Property, 0, len(d.Properties)+len(t.Set)+1)
	for _, p := range d.Properties {
		if slices.Contains(t.Remove, p.Name) || slices.ContainsFunc(t.Set, func(s document.Property) bool { return s.Name == p.Name }) {
			continue
		}
		out = append(out, p)
	}
	for _, s := range t.Set {
		out = append(out, session.Property{Name: s.Name, Value: s.Value.Text(r.style.from, d.Topic, captures)})
	}
	return append(out, r.path.hop)
}

func propertyMap(all []session.Property) map[string]string {
	m := make(map[string]string, len(all))
	for _, p := range all {
		if !strings.EqualFold(p.Name, document.OriginProperty) {
			m[p.Name] = p.Value
		}
	}
	return m
}
