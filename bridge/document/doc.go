// Package document is the message bridge's configuration: read strictly, with all of its problems together, held in one normal form
// that its identity is the hash of, and compared so that a change tells its class and which sessions and routes restart.
package document

import (
	"net/url"
	"time"

	"github.com/guardyn-edge/guardyn/bridge/expression"
	"github.com/guardyn-edge/guardyn/bridge/topic"
)

// Bounds of a document.
const (
	// MaxBytes is the most that its text may have: what one item of the weakest source holds.
	MaxBytes      = 350 << 10
	MaxSessions   = 200
	MaxRoutes     = 2000
	MaxInFlight   = 65535     // MQTT 5.0 §3.1.2.11.3
	MaxVersion    = 1<<53 - 1 // what every JSON reader holds
	MaxProperties = 64        // that a route sets, and that it removes
	MaxTextBytes  = 2048      // of a URL, an address, a file's name, a client id, a property's name
	MaxTimeout    = time.Hour // of bridge.shutdown_timeout
)

// Document is one configuration in normal form: defaults are filled in, sessions and routes are sorted by id. Parse makes
// it; nobody changes it.
type Document struct {
	Version  uint64 // the writers' optimistic counter; not content
	Bridge   Bridge
	Sessions []Session
	Routes   []Route
}

// Mode is how many processes run the document.
type Mode string

// The modes.
const (
	Standalone Mode = "standalone" // one, which reloads live
	Clustered  Mode = "clustered"  // several members, which share brokers and identities
)

// Rollout is how a clustered bridge takes a change over.
type Rollout string

// The ways.
const (
	Refuse      Rollout = "refuse"      // not while it runs: the cohort is replaced
	Coordinated Rollout = "coordinated" // all members together, through the barrier
)

// Bridge is what concerns the whole process.
type Bridge struct {
	Mode            Mode
	ShutdownTimeout time.Duration // until the process has ended, from the signal
	DrainTimeout    time.Duration // of it, for what is in flight; not above ShutdownTimeout
	LogLevel        string        // debug, info, warn or error
	Cluster         Cluster       // of a clustered bridge; else zero
}

// Cluster is how members agree.
type Cluster struct {
	Rollout       Rollout
	Members       []string      // the roster, sorted
	ConfirmWindow time.Duration // 0: a change stays once it is decided
	Soak          time.Duration // for how long it must work without a break; with a window only
	Deadline      time.Duration // for the votes
}

// Kind is what a session speaks.
type Kind string

// The kinds.
const (
	MQTT Kind = "mqtt"
	HTTP Kind = "http"
	NATS Kind = "nats"
)

// Style is how the kind's topics are written.
func (k Kind) Style() topic.Style {
	if k == NATS {
		return topic.NATS
	}
	return topic.MQTT
}

// Protocol is a version of MQTT.
type Protocol string

// The versions. 3.1.1 has no user properties, reasons or session expiry.
const (
	MQTT5   Protocol = "5.0"
	MQTT311 Protocol = "3.1.1"
)

// Session is a connection that routes take messages from or give them to.
type Session struct {
	ID          string
	Kind        Kind
	URL         string // of a broker, or of an http session that POSTs; host in lower case, port written out, no credentials
	Listen      string // of an http session that takes POSTs and serves events: HOST:PORT
	Credentials File   // see Credentials in docs/guide/bridge.md for what is in it; "": none
	TLS         TLS

	// ClientID may have {member} (Member), which stands for the member's id when the session starts. Of mqtt; of nats it is
	// the connection's name.
	ClientID string

	// Of mqtt alone; zero for the other kinds.
	Protocol      Protocol
	CleanStart    bool
	SessionExpiry time.Duration // whole seconds; NeverExpires
	KeepAlive     time.Duration // whole seconds; 0: none

	// Exclusive: only one member at a time, by lease, holds the session; the others stand by. Of mqtt and nats.
	Exclusive bool
}

// NeverExpires is the SessionExpiry "never" (MQTT 5.0 §3.1.2.11.2).
const NeverExpires = time.Duration(0xFFFFFFFF) * time.Second

// Member is what stands for the member's id in a client id.
const Member = "{member}"

// OriginProperty is the user property or header by which a bridge knows what has come through it; routes neither set nor
// remove it.
const OriginProperty = "gdn-origin"

// Endpoint is the broker that the session speaks to, the same for all sessions with it; "" for http, of which that cannot be told.
func (s Session) Endpoint() string {
	if s.Kind == HTTP {
		return ""
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return string(s.Kind) + " " + u.Host
}

// Durable tells whether the broker keeps the session's subscriptions and queued messages while it is not connected.
func (s Session) Durable() bool { return s.Kind == MQTT && !s.CleanStart && s.SessionExpiry > 0 }

// File names a file that holds a secret or a certificate, as it stands behind "file:" in the document; a relative one is below the
// process's own directory of secrets.
type File string

// TLS is how a session that speaks TLS proves things. Files are PEM. The zero TLS takes the system's authorities.
type TLS struct {
	CA          File
	Certificate File
	Key         File
	ServerName  string // "": the URL's host
}

// Route moves messages from one session to another.
type Route struct {
	ID        string
	From      From
	Filter    *expression.Filter // nil: everything
	Transform Transform
	To        To
	// InFlight is how many messages may be taken and not confirmed by the target: the receive maximum. 1: strictly one by one.
	InFlight int
	// HealthMargin, in hundredths of a percent, is by how much the share of messages that the target refused for good may rise on
	// trial before the route counts as not converged.
	HealthMargin int
	DeadLetter   DeadLetter
}

// From is where a route's messages come from.
type From struct {
	Session string
	Topic   topic.Filter
	QoS     int    // 0, 1 or 2: the most that is asked for; of mqtt
	Share   string // the group of a shared subscription; "": not shared
	Stream  string // of nats: the JetStream stream; "": found by its subjects
}

// To is where a route's messages go.
type To struct {
	Session string
	Topic   topic.Template
	QoS     int // 0, 1 or 2; of mqtt
	Retain  Retain
}

// Retain is what becomes of the retain flag; of mqtt.
type Retain string

// The ways.
const (
	RetainKeep  Retain = "keep" // as it came
	RetainSet   Retain = "set"
	RetainClear Retain = "clear"
)

// Transform is what a route does to a message. The zero Transform leaves it as it is.
type Transform struct {
	Set     []Property          // sorted by name; in their order after Remove
	Remove  []string            // sorted names of properties
	Payload *expression.Payload // nil: as it came
}

// Property is a user property (MQTT 5.0 §3.3.2.3.7) or header that is set.
type Property struct {
	Name  string
	Value topic.Template
}

// DeadLetter is where messages go that the target refuses for good. Without either they are counted and told in the log, and
// acknowledged.
type DeadLetter struct {
	Session string
	Topic   topic.Template // with Session
	File    string         // one JSON object on each line is appended
}

// IsZero tells whether there is no place.
func (d DeadLetter) IsZero() bool { return d.Session == "" && d.File == "" }

// Session returns the session of that id.
func (d *Document) Session(id string) (Session, bool) {
	for _, s := range d.Sessions {
		if s.ID == id {
			return s, true
		}
	}
	return Session{}, false
}

// Route returns the route of that id.
func (d *Document) Route(id string) (Route, bool) {
	for _, r := range d.Routes {
		if r.ID == id {
			return r, true
		}
	}
	return Route{}, false
}

// Digest is a document's content identity: "sha256:" and the hash, in hexadecimal, of its normal form's RFC 8785 bytes. Its version is not
// content.
type Digest string
