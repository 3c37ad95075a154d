package document

import (
	"maps"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/bridge/expression"
	"github.com/guardyn-edge/guardyn/bridge/topic"
)

func (v *validator) route(p place, w wireRoute, d *Document) Route {
	r := Route{
		ID: value(w.ID, ""), InFlight: value(w.InFlight, DefaultInFlight), HealthMargin: int(value(w.HealthMargin, DefaultHealthMargin)),
	}
	if r.InFlight < 1 || r.InFlight > MaxInFlight {
		p.member("in_flight").problem("%d is not between 1 and %d", r.InFlight, MaxInFlight)
	}
	if w.Filter != nil {
		var err error
		if r.Filter, err = expression.ParseFilter(*w.Filter); err != nil {
			p.member("filter").problem("%v", err)
		}
	}
	if w.From == nil {
		p.member("from").lacks("it is missing: the session and topic that messages come from")
	}
	if w.To == nil {
		p.member("to").lacks("it is missing: the session and topic that messages go to")
	}
	from, ok := v.from(p.member("from"), value(w.From, wireFrom{}), &r, d)
	if !ok || w.To == nil {
		return r // the rest depends on it
	}
	to, ok := v.to(p.member("to"), *w.To, &r, d)
	v.transform(p.member("transform"), value(w.Transform, wireTransform{}), &r, to)
	v.deadLetter(p.member("dead_letter"), w.DeadLetter, &r, d)
	if ok && feeds(r, from, to, r.To.Topic) {
		p.member("to").member("topic").problem("what it sends to %s comes by its own filter %s again: the route would feed itself", r.To.Topic, r.From.Topic)
	}
	if l, ok := d.Session(r.DeadLetter.Session); ok && feeds(r, from, l, r.DeadLetter.Topic) {
		p.member("dead_letter").member("topic").problem("what is refused comes by the route's own filter %s again: it would go round for ever", r.From.Topic)
	}
	return r
}

// consumers refuses routes from nats sessions whose ids differ in no more than dots and underscores: JetStream takes no dots in the name that it keeps
// a route's place under, and they would share one.
func (v *validator) consumers(routes place, d *Document) {
	names := map[string]string{}
	for i, r := range d.Routes {
		if s, ok := d.Session(r.From.Session); !ok || s.Kind != NATS || r.ID == "" {
			continue
		}
		name := strings.ReplaceAll(r.ID, ".", "_")
		if other, taken := names[name]; taken && other != r.ID {
			routes.item(i, &r.ID).member("id").problem("NATS would keep the places of %q and %q as one: let them differ in more than '.' and '_'", other, r.ID)
			continue
		}
		names[name] = r.ID
	}
}

// feeds tells whether what r sends could come by r again.
func feeds(r Route, from, to Session, t topic.Template) bool {
	return from.Endpoint() != "" && from.Endpoint() == to.Endpoint() && !t.IsZero() && t.Feeds(r.From.Topic, r.From.Topic)
}

// sessionOf finds the session that is named.
func (v *validator) sessionOf(p place, id *string, d *Document) (Session, bool) {
	if id == nil {
		p.lacks("it is missing: the id of a session")
		return Session{}, false
	}
	s, ok := d.Session(*id)
	if !ok {
		p.problem("there is no session %.80q", *id)
	}
	return s, ok && s.Kind != ""
}

func qos(p place, q *int, s Session) int {
	n := value(q, DefaultQoS)
	switch {
	case s.Kind != MQTT && q != nil:
		p.problem("it is of mqtt sessions, and %s is of kind %s", s.ID, s.Kind)
	case n < 0 || n > 2:
		p.problem("%d is not 0, 1 or 2", n)
	}
	return n
}

func (v *validator) from(p place, w wireFrom, r *Route, d *Document) (Session, bool) {
	s, known := v.sessionOf(p.member("session"), w.Session, d)
	if w.Topic == nil {
		p.member("topic").lacks("it is missing: the filter that messages come by")
	}
	if !known {
		return s, false
	}
	r.From = From{Session: s.ID, Share: value(w.Share, ""), Stream: value(w.Stream, ""), QoS: qos(p.member("qos"), w.QoS, s)}
	if s.Kind == HTTP && s.Listen == "" {
		p.member("session").problem("%s sends to a url; messages come from an http session that listens", s.ID)
	}
	share := p.member("share")
	switch {
	case w.Share != nil && s.Kind != MQTT:
		share.problem("it is of mqtt sessions, and %s is of kind %s", s.ID, s.Kind)
	case w.Share != nil && (*w.Share == "" || len(*w.Share) > MaxTextBytes || strings.ContainsAny(*w.Share, "/+#\x00")):
		share.problem("%.80q is no group: at least one character, none of / + #", *w.Share)
	case w.Share == nil && s.Kind == MQTT && d.Bridge.Mode == Clustered && !s.Exclusive:
		share.lacks("every member would take every message: name a group in share, or make session %s exclusive", s.ID)
	}
	if w.Stream != nil && (s.Kind != NATS || *w.Stream == "" || strings.ContainsAny(*w.Stream, " .*>/\\\t\r\n")) {
		p.member("stream").problem("%.80q is no stream of a nats session", *w.Stream)
	}
	if w.Topic == nil {
		return s, false
	}
	var err error
	if r.From.Topic, err = topic.ParseFilter(s.Kind.Style(), *w.Topic); err != nil {
		p.member("topic").problem("%.80q: %v", *w.Topic, err)
		return s, false
	}
	return s, true
}

func (v *validator) to(p place, w wireTo, r *Route, d *Document) (Session, bool) {
	s, known := v.sessionOf(p.member("session"), w.Session, d)
	if !known {
		return s, false
	}
	r.To = To{Session: s.ID, QoS: qos(p.member("qos"), w.QoS, s), Retain: choice(p.member("retain"), w.Retain, RetainKeep, RetainSet, RetainClear)}
	if w.Retain != nil && s.Kind != MQTT {
		p.member("retain").problem("it is of mqtt sessions, and %s is of kind %s", s.ID, s.Kind)
	}
	var ok bool
	r.To.Topic, ok = v.template(p.member("topic"), w.Topic, r, s)
	return s, ok
}

// template reads where messages go; to an http session, by their own topic when nothing is said.
func (v *validator) template(p place, text *string, r *Route, to Session) (topic.Template, bool) {
	if text == nil && to.Kind == HTTP {
		text = ptr("{topic}")
	}
	if text == nil {
		p.lacks("it is missing: the topic that messages go to")
		return topic.Template{}, false
	}
	t, err := topic.ParseTemplate(*text, r.From.Topic.Captures())
	if err == nil {
		err = t.Check(to.Kind.Style())
	}
	if err != nil {
		p.problem("%.80q: %v", *text, err)
	}
	return t, err == nil
}

func (v *validator) transform(p place, w wireTransform, r *Route, to Session) {
	if w.Payload != nil {
		var err error
		if r.Transform.Payload, err = expression.ParsePayload(*w.Payload); err != nil {
			p.member("payload").problem("%v", err)
		}
	}
	if w.Properties == nil {
		return
	}
	set, remove := p.member("properties").member("set"), p.member("properties").member("remove")
	for at, n := range map[place]int{set: len(w.Properties.Set), remove: len(w.Properties.Remove)} {
		if n > MaxProperties {
			at.problem("%d properties are more than %d", n, MaxProperties)
		}
	}
	if len(w.Properties.Set) > 0 && to.Protocol == MQTT311 {
		set.problem("MQTT 3.1.1, which session %s speaks, has no properties", to.ID)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Properties.Set)) {
		at := set.member(name)
		property(at, name, to)
		t, err := topic.ParseTemplate(w.Properties.Set[name], r.From.Topic.Captures())
		if err != nil {
			at.problem("%v", err)
		}
		r.Transform.Set = append(r.Transform.Set, Property{name, t})
	}
	for i, name := range w.Properties.Remove {
		property(remove.item(i, &name), name, Session{})
	}
	r.Transform.Remove = slices.Compact(slices.Sorted(slices.Values(w.Properties.Remove)))
}

// property notes what is wrong with the name of a property that is set on messages to a session.
func property(p place, name string, to Session) {
	switch {
	case name == "" || len(name) > MaxTextBytes || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		p.problem("%.80q is no name of a property", name)
	case strings.EqualFold(name, OriginProperty):
		p.problem("%s tells bridges what has come through them; it is not for routes", OriginProperty)
	case (to.Kind == HTTP || to.Kind == NATS) && strings.ContainsFunc(name, func(r rune) bool { return !token(r) }):
		p.problem("%.80q cannot be the name of a header, which session %s makes of it (RFC 9110 §5.6.2)", name, to.ID)
	}
}

func token(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func (v *validator) deadLetter(p place, w *wireDeadLetter, r *Route, d *Document) {
	if w == nil {
		return
	}
	r.DeadLetter.File = string(value(w.File, ""))
	switch {
	case (w.File == nil) == (w.Session == nil):
		p.lacks("name either a session with a topic, or a file")
	case w.File != nil && w.Topic != nil:
		p.member("topic").problem("a file has no topic")
	}
	if w.Session == nil {
		return
	}
	if s, ok := v.sessionOf(p.member("session"), w.Session, d); ok {
		r.DeadLetter.Session = s.ID
		r.DeadLetter.Topic, _ = v.template(p.member("topic"), w.Topic, r, s)
	}
}
