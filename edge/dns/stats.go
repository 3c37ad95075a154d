package dns

import (
	"sync/atomic"

	"github.com/guardyn-edge/guardyn/edge/pool"
)

// rcodes bounds the response codes that are counted one by one: BADVERS (16) is the highest that is sent.
const rcodes = 17

// Stats counts since the server was made. Reading them takes no lock; the numbers of one Stats may be a few
// messages apart.
type Stats struct {
	// UDPQueries and TCPQueries are messages received, ignored ones included.
	UDPQueries, TCPQueries uint64
	// Answers are those given to the system to send, by response code (RFC 6895 §2.3).
	Answers [rcodes]uint64
	// Truncated are those of Answers with TC, slipped ones included.
	Truncated uint64
	// Ignored are messages that get no answer by their form: answers, and less than a header.
	Ignored uint64
	// RateDropped and RateSlipped are answers that response-rate limiting did not send, or sent cut.
	RateDropped, RateSlipped uint64
	// SendErrors are those of Answers that the system did not take.
	SendErrors uint64
	// Panics are messages whose handling failed by a fault of the server. It should be 0.
	Panics uint64
	// Connections are TCP connections accepted, OpenConnections those open now, RefusedConnections those
	// closed at once because of a cap.
	Connections, OpenConnections, RefusedConnections uint64
	// UDPSeconds is how long it took from when messages were read from a socket, up to 32 at once, until the answers to all of them
	// were given to the system.
	UDPSeconds pool.HistogramValues
}

// ZoneCounts are the queries of one zone. The zero value is ready.
type ZoneCounts struct{ queries [rcodes]atomic.Uint64 }

// Queries are those that were answered from the zone, by the response code that was made for them, whether it was sent or rate
// limiting held it back.
func (z *ZoneCounts) Queries() (n [rcodes]uint64) {
	for i := range n {
		n[i] = z.queries[i].Load()
	}
	return n
}

// countZone counts the message that r has just answered for the zone that its question is in.
func (c *Config) countZone(r *responder) {
	if c.Zones == nil {
		return
	}
	name := ""
	if r.zone != nil {
		name = r.zone.Config.Name.String()
	}
	c.Zones.Of(name).queries[min(r.message.rcode, rcodes-1)].Add(1)
}

// counters are one socket's, or one connection's share of a set that TCP spreads its own over.
type counters struct {
	queries, ignored, truncated, dropped, slipped, sendErrors, panics atomic.Uint64
	answers                                                           [rcodes]atomic.Uint64
	_                                                                 [64]byte // of another socket's cache line
}

// addTo adds all but queries.
func (c *counters) addTo(s *Stats) {
	s.Ignored += c.ignored.Load()
	s.Truncated += c.truncated.Load()
	s.RateDropped += c.dropped.Load()
	s.RateSlipped += c.slipped.Load()
	s.SendErrors += c.sendErrors.Load()
	s.Panics += c.panics.Load()
	for i := range c.answers {
		s.Answers[i] += c.answers[i].Load()
	}
}

// made counts an answer, before it is sent: who has it finds it counted.
func (c *counters) made(m *message) {
	c.answers[min(m.rcode, rcodes-1)].Add(1)
	if m.truncated {
		c.truncated.Add(1)
	}
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	out := Stats{
		TCPQueries:         s.tcp.counters.queries.Load(),
		Connections:        s.tcp.accepted.Load(),
		RefusedConnections: s.tcp.refused.Load(),
		OpenConnections:    uint64(s.tcp.open()),
	}
	s.tcp.counters.addTo(&out)
	seconds := make([]*pool.Histogram, len(s.udp))
	for i := range s.udp {
		seconds[i] = &s.udp[i].seconds
		out.UDPQueries += s.udp[i].counters.queries.Load()
		s.udp[i].counters.addTo(&out)
	}
	out.UDPSeconds = pool.Values(seconds...)
	return out
}
