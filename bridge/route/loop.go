package route

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// path tells what has passed this route, or come from where it leads.
//
// Every route adds the property gdn-origin to what it sends: BRIDGE/ROUTE@BROKER, where BROKER stands for the source's broker. What
// has passed the route is not taken again, nor what has been at the target's broker, whichever bridge took it there: so
// two bridges, or two routes, that lead in both directions between two brokers give back nothing that came from the other side.
type path struct {
	hop    session.Property
	route  string // of hop, up to the '@'
	target string // with its '@'; "": the same broker as the source, or none that can be told
}

func pathOf(d *document.Document, r document.Route, origin string) path {
	from, _ := d.Session(r.From.Session)
	to, _ := d.Session(r.To.Session)
	p := path{route: origin + "/" + r.ID + "@"}
	p.hop = session.Property{Name: document.OriginProperty, Value: p.route + broker(from)}
	if to.Endpoint() != "" && to.Endpoint() != from.Endpoint() {
		p.target = "@" + broker(to)
	}
	return p
}

// broker stands for a broker, the same on all bridges that name its host alike.
func broker(s document.Session) string {
	at := s.Endpoint()
	if at == "" {
		at = "http " + s.ID
	}
	sum := sha256.Sum256([]byte(at))
	return hex.EncodeToString(sum[:6])
}

// passed tells whether a message with these properties has been here.
func (p path) passed(properties []session.Property) bool {
	hops := 0
	for _, h := range properties {
		if !strings.EqualFold(h.Name, document.OriginProperty) {
			continue
		}
		if hops++; hops > maxHops || strings.HasPrefix(h.Value, p.route) || p.target != "" && strings.HasSuffix(h.Value, p.target) {
			return true
		}
	}
	return false
}
