package document

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ports are those of URLs that name none.
var ports = map[Kind]map[string]string{
	MQTT: {"mqtt": "1883", "mqtts": "8883", "ws": "80", "wss": "443"},
	NATS: {"nats": "4222", "tls": "4222", "ws": "80", "wss": "443"},
	HTTP: {"http": "80", "https": "443"},
}

func (v *validator) session(p place, w wireSession, mode Mode) Session {
	s := Session{ID: value(w.ID, ""), Credentials: File(value(w.Credentials, ""))}
	if w.Kind == nil {
		p.member("kind").lacks("it is missing: mqtt, http or nats")
		return s
	}
	if s.Kind = choice(p.member("kind"), w.Kind, MQTT, HTTP, NATS); s.Kind != *w.Kind {
		return s // what else is wrong depends on it
	}
	v.address(p, w, &s)
	v.tls(p.member("tls"), w, &s)
	if s.Kind == MQTT {
		v.mqtt(p, w, &s)
	} else {
		for name, given := range map[string]bool{
			"protocol": w.Protocol != nil, "clean_start": w.CleanStart != nil, "session_expiry": w.SessionExpiry != nil, "keep_alive": w.KeepAlive != nil,
		} {
			if given {
				p.member(name).problem("it is of mqtt sessions, and this one is of kind %s", s.Kind)
			}
		}
	}
	if s.Kind == HTTP {
		for name, given := range map[string]bool{"client_id": w.ClientID != nil, "exclusive": w.Exclusive != nil} {
			if given {
				p.member(name).problem("an http session has none")
			}
		}
		return s
	}
	s.Exclusive = value(w.Exclusive, false)
	s.ClientID = "gdn-" + s.ID
	if mode == Clustered && !s.Exclusive {
		s.ClientID += "-" + Member
	}
	s.ClientID = value(w.ClientID, s.ClientID)
	v.clientID(p.member("client_id"), s, mode)
	return s
}

// address reads where the session is.
func (v *validator) address(p place, w wireSession, s *Session) {
	at := p.member("url")
	switch {
	case s.Kind == HTTP && (w.URL == nil) == (w.Listen == nil):
		p.lacks("an http session has either a url, which messages are POSTed to, or listen, where they are taken and given out")
	case s.Kind != HTTP && w.Listen != nil:
		p.member("listen").problem("it is of http sessions, and this one is of kind %s", s.Kind)
	case s.Kind != HTTP && w.URL == nil:
		at.lacks("it is missing: the broker's, as %s", map[Kind]string{MQTT: "mqtts://HOST", NATS: "nats://HOST"}[s.Kind])
	}
	if w.Listen != nil && s.Kind == HTTP {
		s.Listen = *w.Listen
		host, port, err := net.SplitHostPort(s.Listen)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || strings.ContainsAny(host, " /") || len(host) > 255 {
			p.member("listen").problem("%.80q is not an address, as 127.0.0.1:8088 or :8088", s.Listen)
		}
	}
	if w.URL != nil {
		s.URL = v.url(at, *w.URL, s.Kind)
	}
}

// url returns the one spelling.
func (v *validator) url(p place, text string, kind Kind) string {
	if len(text) > MaxTextBytes {
		p.problem("it has more than %d bytes", MaxTextBytes)
		return ""
	}
	u, err := url.Parse(text)
	if err != nil {
		p.problem("it is no URL") // not the text: it may hold a password
		return ""
	}
	u.Scheme = strings.ToLower(u.Scheme)
	standard, known := ports[kind][u.Scheme]
	web := kind == HTTP || u.Scheme == "ws" || u.Scheme == "wss"
	switch {
	case u.User != nil:
		p.problem("it has credentials: put them into a file, and write credentials: file:NAME")
	case !known:
		p.problem("a session of kind %s has a URL of %s", kind, either(schemes(kind)))
	case u.Hostname() == "":
		p.problem("it names no host")
	case u.Fragment != "" || u.RawQuery != "" && kind != HTTP || strings.Trim(u.Path, "/") != "" && !web:
		p.problem("only scheme, host and port are used%s", map[bool]string{true: ", and a path"}[web])
	}
	port := u.Port()
	if port == "" {
		port = standard
	}
	if n, err := strconv.ParseUint(port, 10, 16); known && (err != nil || n == 0) {
		p.problem("%q is no port", port)
	}
	u.Host = net.JoinHostPort(strings.ToLower(u.Hostname()), port)
	if !web {
		u.Path = ""
	}
	if u.Path == "/" {
		u.Path = ""
	}
	return u.String()
}

func schemes(kind Kind) []string {
	var all []string
	for s := range ports[kind] {
		all = append(all, s+"://")
	}
	slices.Sort(all)
	return all
}

func (v *validator) tls(p place, w wireSession, s *Session) {
	if w.TLS == nil {
		return
	}
	t := *w.TLS
	s.TLS = TLS{File(value(t.CA, "")), File(value(t.Certificate, "")), File(value(t.Key, "")), value(t.ServerName, "")}
	scheme, _, _ := strings.Cut(s.URL, ":")
	plain := s.URL != "" && (slices.Contains([]string{"mqtt", "ws", "http"}, scheme) || s.Kind == NATS && scheme == "nats")
	switch {
	case (t.Certificate == nil) != (t.Key == nil) && !v.missing(p.member("key").at) && !v.missing(p.member("certificate").at):
		p.problem("a certificate and its key come together")
	case s.Listen != "" && t.Certificate == nil:
		p.lacks("who listens with TLS needs certificate and key")
	case s.Listen != "" && t.ServerName != nil:
		p.member("server_name").problem("it is of who connects, and this session listens")
	case plain:
		p.problem("%s:// is without TLS; choose another scheme, or leave tls out", scheme)
	}
	if s.TLS == (TLS{}) {
		p.lacks("it says nothing: leave it out, and the system's authorities are trusted")
	}
}

func (v *validator) mqtt(p place, w wireSession, s *Session) {
	s.Protocol = choice(p.member("protocol"), w.Protocol, MQTT5, MQTT311)
	s.CleanStart = value(w.CleanStart, true)
	s.KeepAlive = time.Duration(value(w.KeepAlive, duration(DefaultKeepAlive)))
	s.SessionExpiry = time.Duration(value(w.SessionExpiry, 0))
	within(p.member("keep_alive"), s.KeepAlive, 0, 65535*time.Second)
	at := p.member("session_expiry")
	within(at, s.SessionExpiry, 0, NeverExpires)
	for name, d := range map[string]time.Duration{"keep_alive": s.KeepAlive, "session_expiry": s.SessionExpiry} {
		if d%time.Second != 0 && d > 0 {
			p.member(name).problem("%s is not whole seconds", spell(d))
		}
	}
	switch {
	case s.Protocol == MQTT311 && w.SessionExpiry != nil:
		at.problem("MQTT 3.1.1 has no session expiry: clean_start: false alone keeps the session")
	case s.Protocol == MQTT311 && !s.CleanStart:
		s.SessionExpiry = NeverExpires
	case s.CleanStart && s.SessionExpiry > 0:
		at.problem("clean_start throws away at each connection what this keeps: write clean_start: false, or leave it out")
	case !s.CleanStart && s.SessionExpiry == 0 && !v.missing(at.at):
		p.member("clean_start").problem("the session that it would go on with ends with each connection: write session_expiry, as 1h, or leave it out")
	}
}

func (v *validator) clientID(p place, s Session, mode Mode) {
	without := strings.ReplaceAll(s.ClientID, Member, "")
	switch {
	case s.ClientID == "" || len(s.ClientID) > MaxTextBytes:
		p.problem("it has %d bytes, not 1 to %d", len(s.ClientID), MaxTextBytes)
	case strings.ContainsFunc(without, func(r rune) bool { return r < ' ' || r == 0x7f || r == '{' || r == '}' }):
		p.problem("%.80q: beside %s it has no braces and no control characters", s.ClientID, Member)
	case mode != Clustered || s.Kind != MQTT:
	case !s.Exclusive && without == s.ClientID:
		p.problem("every member would connect as %s and throw the others off: write %s into it, or make the session exclusive", s.ClientID, Member)
	case s.Exclusive && s.Durable() && without != s.ClientID:
		p.problem("what the broker keeps for one member another would never get: a durable exclusive session has one client id, without %s", Member)
	}
}

// clientIDs notes sessions that would throw each other off one broker.
func (v *validator) clientIDs(p place, w []wireSession, d *Document) {
	first := map[string]string{}
	for i := range w {
		s, ok := d.Session(value(w[i].ID, ""))
		if !ok || s.Kind != MQTT || s.Endpoint() == "" {
			continue
		}
		key := s.Endpoint() + " " + s.ClientID
		if other, twice := first[key]; twice && other != s.ID {
			p.item(i, w[i].ID).member("client_id").problem("session %s connects to the same broker as %s too: they would throw each other off", other, s.ClientID)
			continue
		}
		first[key] = s.ID
	}
}
