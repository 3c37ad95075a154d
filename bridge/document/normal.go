package document

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns the normal form's RFC 8785 bytes, without the version. They are a document themselves, and the same for all
// texts that mean the same to this build.
func (d *Document) Canonical() []byte {
	text, err := json.Marshal(d.wire(), json.Deterministic(true))
	if err == nil {
		err = (*jsontext.Value)(&text).Canonicalize()
	}
	if err != nil {
		panic(fmt.Sprintf("document: a parsed document has no normal form: %v", err)) // text and numbers, checked when they were read
	}
	return text
}

// Digest returns the content identity.
func (d *Document) Digest() Digest { return DigestOf(d.Canonical()) }

// DigestOf is the digest of canonical bytes.
func DigestOf(canonical []byte) Digest {
	sum := sha256.Sum256(canonical)
	return Digest("sha256:" + hex.EncodeToString(sum[:]))
}

// Same tells whether two documents have the same content.
func Same(a, b *Document) bool { return string(a.Canonical()) == string(b.Canonical()) }

// wire writes every default out.
func (d *Document) wire() wireDocument {
	w := wireDocument{Bridge: d.Bridge.wire()}
	for _, s := range d.Sessions {
		w.Sessions = append(w.Sessions, s.wire())
	}
	for _, r := range d.Routes {
		w.Routes = append(w.Routes, r.wire(d))
	}
	return w
}

func (b Bridge) wire() wireBridge {
	w := wireBridge{
		Mode: &b.Mode, LogLevel: &b.LogLevel,
		ShutdownTimeout: ptr(duration(b.ShutdownTimeout)), DrainTimeout: ptr(duration(b.DrainTimeout)),
	}
	if b.Mode != Clustered {
		return w
	}
	c := b.Cluster
	w.Cluster = &wireCluster{Rollout: &c.Rollout, Members: c.Members}
	if c.Rollout == Coordinated {
		w.Cluster.Deadline, w.Cluster.ConfirmWindow = ptr(duration(c.Deadline)), ptr(duration(c.ConfirmWindow))
	}
	if c.ConfirmWindow > 0 {
		w.Cluster.Soak = ptr(duration(c.Soak))
	}
	return w
}

func (s Session) wire() wireSession {
	w := wireSession{
		ID: &s.ID, Kind: &s.Kind, URL: some(s.URL), Listen: some(s.Listen), Credentials: some(file(s.Credentials)),
	}
	if s.TLS != (TLS{}) {
		w.TLS = &wireTLS{
			CA: some(file(s.TLS.CA)), Certificate: some(file(s.TLS.Certificate)), Key: some(file(s.TLS.Key)), ServerName: some(s.TLS.ServerName),
		}
	}
	if s.Kind != HTTP {
		w.ClientID, w.Exclusive = &s.ClientID, &s.Exclusive
	}
	if s.Kind == MQTT {
		w.Protocol, w.CleanStart, w.KeepAlive = &s.Protocol, &s.CleanStart, ptr(duration(s.KeepAlive))
		if s.Protocol == MQTT5 {
			w.SessionExpiry = ptr(expiry(s.SessionExpiry))
		}
	}
	return w
}

func (r Route) wire(d *Document) wireRoute {
	from, _ := d.Session(r.From.Session)
	to, _ := d.Session(r.To.Session)
	w := wireRoute{
		ID:       &r.ID,
		From:     &wireFrom{Session: &r.From.Session, Topic: ptr(r.From.Topic.String()), Share: some(r.From.Share), Stream: some(r.From.Stream)},
		To:       &wireTo{Session: &r.To.Session, Topic: ptr(r.To.Topic.String())},
		InFlight: &r.InFlight, HealthMargin: ptr(percent(r.HealthMargin)),
	}
	if from.Kind == MQTT {
		w.From.QoS = &r.From.QoS
	}
	if to.Kind == MQTT {
		w.To.QoS, w.To.Retain = &r.To.QoS, &r.To.Retain
	}
	if r.Filter != nil {
		w.Filter = ptr(r.Filter.String())
	}
	if t := r.Transform; len(t.Set)+len(t.Remove) > 0 || t.Payload != nil {
		w.Transform = &wireTransform{}
		if t.Payload != nil {
			w.Transform.Payload = ptr(t.Payload.String())
		}
		if len(t.Set)+len(t.Remove) > 0 {
			p := &wireProperties{Remove: t.Remove}
			for _, s := range t.Set {
				if p.Set == nil {
					p.Set = map[string]string{}
				}
				p.Set[s.Name] = s.Value.String()
			}
			w.Transform.Properties = p
		}
	}
	if l := r.DeadLetter; !l.IsZero() {
		w.DeadLetter = &wireDeadLetter{Session: some(l.Session), Topic: some(l.Topic.String()), File: some(file(l.File))}
	}
	return w
}

func ptr[T any](v T) *T { return &v }

// some is nil for what is empty.
func some[T ~string](v T) *T {
	if v == "" {
		return nil
	}
	return &v
}
