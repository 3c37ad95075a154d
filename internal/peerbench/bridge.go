package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/paho"
)

// Of the row bridge: senders each wait for an acknowledgement before the next message, as devices do.
const (
	bridgeSenders = 64
	bridgePayload = 1 << 10
)

// bridgeRow moves messages of 1 KiB and QoS 1 from one broker to another. Mosquitto's own bridge is a third Mosquitto between the two; the brokers are not
// measured.
func (b *bench) bridgeRow() (row, error) {
	r := row{title: "Bridge, 1 KiB, QoS 1"}
	program, err := b.find("mosquitto")
	if err != nil {
		return row{}, fmt.Errorf("mosquitto is %w", err)
	}
	var brokers []string
	for _, name := range []string{"source", "target"} {
		addr, err := b.mosquitto(program, name, "")
		if err != nil {
			return row{}, err
		}
		brokers = append(brokers, addr)
	}
	source, target := brokers[0], brokers[1]
	document := filepath.Join(b.dir, "bridge.yaml")
	text := fmt.Sprintf(`sessions:
  - {id: a, kind: mqtt, url: "mqtt://%s"}
  - {id: b, kind: mqtt, url: "mqtt://%s"}
routes:
  - {id: r, from: {session: a, topic: gdn/#}, to: {session: b, topic: "{topic}"}, in_flight: 200}
`, source, target)
	if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
		return row{}, err
	}
	control, err := freeAddr()
	if err != nil {
		return row{}, err
	}
	ours, err := b.launch("gdn bridge", nil, b.options.gdn, "bridge", "--source", "file:"+document, "--listen", control)
	if err != nil {
		return row{}, err
	}
	r.servers = append(r.servers, server{name: "this bridge", addr: "gdn", process: ours})
	config := fmt.Sprintf(`connection from
address %s
topic mosquitto/# in 1
bridge_protocol_version mqttv50
connection to
address %s
topic mosquitto/# out 1
bridge_protocol_version mqttv50
`, source, target)
	if _, err := b.mosquitto(program, "bridge", config); err != nil {
		return row{}, err
	}
	r.servers = append(r.servers, server{name: "Mosquitto", addr: "mosquitto", process: b.processes[len(b.processes)-1]})
	out, err := b.watchBridge(target)
	if err != nil {
		return row{}, err
	}
	in, err := dialMQTT(source, nil)
	if err != nil {
		return row{}, err
	}
	for _, s := range r.servers {
		if err := s.await(func() error { return out.passes(in, s.addr) }); err != nil {
			return row{}, err
		}
	}
	r.load = func(s server) (load, error) { return out.run(source, s.addr, b.length) }
	return r, nil
}

// mosquitto starts one that listens, with lines of its configuration.
func (b *bench) mosquitto(program, name, config string) (string, error) {
	addr, err := freeAddr()
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	text := "listener " + port + " 127.0.0.1\nallow_anonymous true\nlog_dest none\npersistence false\nmax_queued_messages 0\nmax_inflight_messages 200\n"
	if os.Geteuid() == 0 {
		text = "user root\n" + text
	}
	path := filepath.Join(b.dir, name+".conf")
	if err := os.WriteFile(path, []byte(text+config), 0o600); err != nil {
		return "", err
	}
	p, err := b.launch("mosquitto "+name, nil, program, "-c", path)
	if err != nil {
		return "", err
	}
	return addr, p.await(func() error {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

func dialMQTT(addr string, received func(*paho.Publish)) (*paho.Client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := paho.NewClient(paho.ClientConfig{Conn: conn, OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
		if received != nil {
			received(p.Packet)
		}
		return true, nil
	}}})
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	_, err = c.Connect(ctx, &paho.Connect{CleanStart: true, KeepAlive: 60})
	return c, err
}

// bridgeWatch counts what comes to the target's broker.
type bridgeWatch struct {
	came atomic.Int64
	mu   sync.Mutex
	took []time.Duration
}

func (b *bench) watchBridge(target string) (*bridgeWatch, error) {
	w := &bridgeWatch{}
	c, err := dialMQTT(target, func(p *paho.Publish) {
		took := time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(p.Payload))))
		w.mu.Lock()
		w.took = append(w.took, took)
		w.mu.Unlock()
		w.came.Add(1)
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	_, err = c.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "#", QoS: 0}}})
	return w, err
}

// passes tells whether a message comes through the bridge.
func (w *bridgeWatch) passes(in *paho.Client, prefix string) error {
	before := w.came.Load()
	if err := sendMQTT(in, prefix+"/ready"); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if w.came.Load() > before {
			return nil
		}
	}
	return errors.New("no message comes through")
}

func sendMQTT(c *paho.Client, topic string) error {
	payload := make([]byte, bridgePayload)
	binary.BigEndian.PutUint64(payload, uint64(time.Now().UnixNano()))
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	_, err := c.Publish(ctx, &paho.Publish{Topic: topic, Payload: payload, QoS: 1})
	return err
}

// run sends for a while and waits until everything has come.
func (w *bridgeWatch) run(source, prefix string, length time.Duration) (load, error) {
	in, err := dialMQTT(source, nil)
	if err != nil {
		return load{}, err
	}
	defer func() { _ = in.Disconnect(&paho.Disconnect{}) }()
	w.mu.Lock()
	w.took = nil
	w.mu.Unlock()
	before, begin := w.came.Load(), time.Now()
	var sent atomic.Int64
	errs := make([]error, bridgeSenders)
	var senders sync.WaitGroup
	for i := range bridgeSenders {
		senders.Go(func() {
			topic := fmt.Sprintf("%s/device/%d", prefix, i)
			for time.Since(begin) < length && errs[i] == nil {
				if errs[i] = sendMQTT(in, topic); errs[i] == nil {
					sent.Add(1)
				}
			}
		})
	}
	senders.Wait()
	if err := errors.Join(errs...); err != nil {
		return load{}, err
	}
	for deadline := time.Now().Add(readyTimeout); w.came.Load()-before < sent.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return load{}, fmt.Errorf("%d of %d messages came", w.came.Load()-before, sent.Load())
		}
	}
	took := time.Since(begin)
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.took)
	n := float64(sent.Load())
	return load{answered: n, perSecond: n / took.Seconds(), p99: w.took[len(w.took)*99/100]}, nil
}
