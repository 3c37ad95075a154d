package testmosquitto

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"
)

// Client is an MQTT 5 client, the Paho library's.
type Client struct {
	t testing.TB
	c *paho.Client

	mu   sync.Mutex
	got  []*paho.Publish
	more chan struct{}
}

// Dial connects a client until the test ends. subscriptions are what it takes, with QoS 2 at most, as topics.
func Dial(t testing.TB, addr string, subscriptions ...string) *Client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{t: t, more: make(chan struct{})}
	c.c = paho.NewClient(paho.ClientConfig{
		Conn: conn, PacketTimeout: Patience,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.got = append(c.got, p.Packet)
			close(c.more)
			c.more = make(chan struct{})
			return true, nil
		}},
	})
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if _, err := c.c.Connect(ctx, &paho.Connect{KeepAlive: 60, CleanStart: true, ClientID: "test-" + t.Name() + time.Now().Format(".000000000")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.c.Disconnect(&paho.Disconnect{}) })
	for _, s := range subscriptions {
		if _, err := c.c.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: s, QoS: 2, RetainAsPublished: true}}}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Publish sends a message of QoS 1 and waits for its acknowledgement.
func (c *Client) Publish(topic, payload string, properties ...string) {
	c.t.Helper()
	p := &paho.Publish{Topic: topic, Payload: []byte(payload), QoS: 1, Properties: &paho.PublishProperties{}}
	for i := 0; i+1 < len(properties); i += 2 {
		p.Properties.User.Add(properties[i], properties[i+1])
	}
	c.Send(p)
}

// Send sends a message as it is.
func (c *Client) Send(p *paho.Publish) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if _, err := c.c.Publish(ctx, p); err != nil {
		c.t.Fatalf("publish %s: %v", p.Topic, err)
	}
}

// Got returns what came so far.
func (c *Client) Got() []*paho.Publish {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*paho.Publish(nil), c.got...)
}

// Await waits until enough is true of what came, and returns that.
func (c *Client) Await(what string, enough func([]*paho.Publish) bool) []*paho.Publish {
	c.t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		c.mu.Lock()
		got, more := append([]*paho.Publish(nil), c.got...), c.more
		c.mu.Unlock()
		if enough(got) {
			return got
		}
		select {
		case <-more:
		case <-timeout.C:
			c.t.Fatalf("%s: %d messages came", what, len(got))
		}
	}
}

// AwaitCount waits for so many messages.
func (c *Client) AwaitCount(n int) []*paho.Publish {
	c.t.Helper()
	return c.Await("so many messages", func(got []*paho.Publish) bool { return len(got) >= n })
}
