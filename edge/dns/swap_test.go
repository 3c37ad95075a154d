package dns_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/dns"
	"github.com/guardyn-edge/guardyn/zone"
)

// TestSwap: while versions change, no query fails and each answer is one version's whole: the chain crosses two
// zones, and all of its texts and the serial say the same number.
func TestSwap(t *testing.T) {
	zones := func(n int) []*zone.Zone {
		a := newZone(t, 1, "a.example", "@ NS ns.a.example", "start CNAME mid.b.example", fmt.Sprintf("end TXT %d", n), fmt.Sprintf("end TXT also-%d", n))
		b := newZone(t, 2, "b.example", "@ NS ns.a.example", fmt.Sprintf("mid %d CNAME end.a.example", 1000+n))
		return []*zone.Zone{a, b}
	}
	const versions = 100
	live := new(edge.Live)
	view := newView(t, nil, newSnapshot(t, 1, zones(1)...), 1)
	live.Store(view)
	s := start(t, dns.Config{Live: live, RateLimit: -1})

	var stop atomic.Bool
	var clients sync.WaitGroup
	for _, network := range []string{"udp", "tcp"} {
		clients.Go(func() {
			client := mdns.Client{Net: network, Timeout: 5 * time.Second}
			conn, err := client.Dial(s.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for seen := 0; !stop.Load() || seen < versions; {
				a, _, err := client.ExchangeWithConn(question("start.a.example", mdns.TypeTXT), conn)
				if err != nil || len(a.Answer) != 4 {
					t.Errorf("%s: %v %v", network, err, a)
					return
				}
				n := int(a.Answer[1].Header().Ttl) - 1000
				one, two := fmt.Sprint(n), fmt.Sprintf("also-%d", n)
				if got := strings.Join(a.Answer[2].(*mdns.TXT).Txt, "") + " " + strings.Join(a.Answer[3].(*mdns.TXT).Txt, ""); got != one+" "+two {
					t.Errorf("version %d answers %s", n, got)
					return
				}
				if n < seen {
					t.Errorf("version %d after %d", n, seen)
					return
				}
				seen = n
			}
		})
	}
	for n := 2; n <= versions; n++ {
		view = newView(t, view, newSnapshot(t, uint64(n), zones(n)...), uint64(n))
		live.Store(view)
		a := ask(t, s, "udp", question("a.example", mdns.TypeSOA))
		if serial := a.Answer[0].(*mdns.SOA).Serial; serial != uint32(n) {
			t.Errorf("serial %d under generation %d", serial, n)
		}
	}
	stop.Store(true)
	clients.Wait()
	if got := s.Stats(); got.Panics+got.SendErrors+got.Ignored != 0 {
		t.Errorf("%+v", got)
	}
}
