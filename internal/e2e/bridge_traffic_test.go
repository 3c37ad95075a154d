package e2e_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// bridgeTraffic is messages by way of the bridge: each topic's are numbered, and published one after the other, as a device does.
type bridgeTraffic struct {
	t       testing.TB
	stop    context.CancelFunc
	work    sync.WaitGroup
	sent    map[string]*atomic.Int64 // by the topic that they arrive by
	failed  atomic.Pointer[error]
	mu      sync.Mutex
	arrived map[string]*arrivals
}

// arrivals are one topic's.
type arrivals struct {
	next     int          // every number below has come
	ahead    map[int]bool // that have come, of those that are not below
	order    int          // the highest number that has come
	again    int          // had come already
	disorder []string     // the first time that a number came, behind a higher one
}

// ordered are topics that one member at a time moves, so that their order is kept; shared are those that members share.
const ordered, shared = 10, 10

// startBridgeTraffic publishes rate messages a second on ten topics of each kind, until end.
func startBridgeTraffic(c *bridgeCohort, rate int) *bridgeTraffic {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	f := &bridgeTraffic{t: c.t, stop: stop, sent: map[string]*atomic.Int64{}, arrived: map[string]*arrivals{}}
	topics := map[string]string{}
	for i := range ordered {
		topics[fmt.Sprintf("plant/%d", i)] = fmt.Sprintf("t/%d", i)
	}
	for i := range shared {
		topics[fmt.Sprintf("field/%d", i)] = fmt.Sprintf("f/%d", i)
	}
	for _, to := range topics {
		f.sent[to], f.arrived[to] = &atomic.Int64{}, &arrivals{ahead: map[int]bool{}, order: -1}
	}
	out := f.client(c.cloud.Addr, func(p *paho.Publish) { f.arrive(p.Topic, string(p.Payload)) })
	limited, cancel := context.WithTimeout(ctx, testmosquitto.Patience)
	defer cancel()
	if _, err := out.Subscribe(limited, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "t/#", QoS: 1}, {Topic: "f/#", QoS: 1}}}); err != nil {
		c.t.Fatal(err)
	}
	for from, to := range topics {
		in := f.client(c.plant.Addr, nil)
		f.work.Go(func() {
			tick := time.NewTicker(time.Second * time.Duration(len(topics)) / time.Duration(rate))
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				n := f.sent[to].Load()
				if _, err := in.Publish(context.Background(), &paho.Publish{Topic: from, QoS: 1, Payload: []byte(strconv.FormatInt(n, 10))}); err != nil {
					f.failed.Store(&err)
					return
				}
				f.sent[to].Add(1)
			}
		})
	}
	c.t.Cleanup(f.end)
	return f
}

// client connects one that the test's end disconnects.
func (f *bridgeTraffic) client(addr string, take func(*paho.Publish)) *paho.Client {
	f.t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		f.t.Fatal(err)
	}
	cfg := paho.ClientConfig{Conn: conn, PacketTimeout: time.Minute}
	if take != nil {
		cfg.OnPublishReceived = []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) { take(p.Packet); return true, nil }}
	}
	c := paho.NewClient(cfg)
	ctx, cancel := context.WithTimeout(context.Background(), testmosquitto.Patience)
	defer cancel()
	if _, err := c.Connect(ctx, &paho.Connect{KeepAlive: 60, CleanStart: true}); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Disconnect(&paho.Disconnect{}) })
	return c
}

func (f *bridgeTraffic) arrive(topic, payload string) {
	n, err := strconv.Atoi(payload)
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.arrived[topic]
	switch {
	case a == nil || err != nil:
		f.t.Errorf("%s: %q came", topic, payload)
		return
	case n < a.next || a.ahead[n]:
		a.again++
		return
	case n < a.order && len(a.disorder) < 10:
		a.disorder = append(a.disorder, fmt.Sprintf("%d behind %d", n, a.order))
	}
	a.order, a.ahead[n] = max(a.order, n), true
	for a.ahead[a.next] {
		delete(a.ahead, a.next)
		a.next++
	}
}

// end ends publishing.
func (f *bridgeTraffic) end() {
	f.stop()
	f.work.Wait()
}

// check ends publishing, waits for every message, and returns how many there were and how many came more than once.
func (f *bridgeTraffic) check(c *bridgeCohort) (sent, again int) {
	f.t.Helper()
	f.end()
	if err := f.failed.Load(); err != nil {
		f.t.Fatalf("publish: %v", *err)
	}
	c.await("every message has come", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for topic, n := range f.sent {
			if a := f.arrived[topic]; int64(a.next) != n.Load() {
				return fmt.Errorf("%s: %d of %d, and %d behind", topic, a.next, n.Load(), len(a.ahead))
			}
		}
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for topic, a := range f.arrived {
		sent += int(f.sent[topic].Load())
		again += a.again
		if strings.HasPrefix(topic, "t/") && len(a.disorder) > 0 {
			f.t.Errorf("%s came out of order: %s", topic, strings.Join(a.disorder, ", "))
		}
	}
	return sent, again
}

// TestBridgeTraffic rolls changes of every kind over a cohort while messages go through it: none is lost, those of a topic keep their order,
// none comes twice but where a process was killed, and the exclusive session is never held twice. With GUARDYN_TEST_SOAK it is 50 changes at
// 2,000 messages a second, and the member that holds the session is killed every ten of them.
func TestBridgeTraffic(t *testing.T) {
	t.Parallel()
	rate, changes, killEvery := 500, 6, 0
	if os.Getenv("GUARDYN_TEST_SOAK") != "" {
		rate, changes, killEvery = 2000, 50, 10
	}
	c := postgresBridge(t, nil, "log_type none", "log_type notice", "log_type information") // who connects, and not each message
	c.start()
	f := startBridgeTraffic(c, rate)
	began := time.Now()
	d, kills, restarts := c.doc, 0, 0
	for i := range changes {
		want := barrier.Committed
		if c.doc.window != "" {
			want = barrier.Confirmed
		}
		d.rev++
		switch i % 6 {
		case 0: // the routes alone
		case 1: // a session and a route more
			d.sessions = fmt.Sprintf(`, {id: aux, kind: mqtt, url: "mqtt://%s", client_id: "gdn-aux-{member}", credentials: "file:cloud.cred"}`, c.cloudAddr)
			d.routes = `, {id: aux, from: {session: aux, topic: "aux/#", share: g}, to: {session: cloud, topic: "x/{1}"}}`
		case 2: // the target's session, and from now on with a window
			d.cloudAlive, d.window = 61-d.cloudAlive, trial
		case 3: // the exclusive session itself
			d.plantAlive = 61 - d.plantAlive
			restarts++
		case 4: // and less
			d.sessions, d.routes = "", ""
		case 5: // what no message passes
			d.routes = `, {id: none, from: {session: cloud, topic: "none/#", share: g}, to: {session: cloud, topic: "n/{1}"}, filter: "false"}`
			d.window = ""
		}
		c.roll(c.members[i%len(c.members)], d, want)
		if killEvery > 0 && i%killEvery == killEvery-1 {
			m := c.holder()
			m.kill()
			kills++
			m.start()
			c.holder()
			c.converged(c.row().Committed.Version)
		}
	}
	length := time.Since(began)
	sent, again := f.check(c)
	t.Logf("%d changes in %s, over %d messages (%.0f a second); %d members killed; %d came twice", changes, length.Round(time.Second), sent, float64(sent)/length.Seconds(), kills, again)
	// What was under way when a member was killed: up to in_flight of each of its routes. A session that is left in good order owes nothing.
	if most := kills * 2 * 64; again > most {
		t.Errorf("%d messages came twice, and %d may", again, most)
	}
	if n := heldOnce(t, c.plant, "gdn-plant"); n < 1+restarts {
		t.Errorf("the exclusive session was connected %d times", n)
	}
}
