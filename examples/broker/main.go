// Command broker runs two MQTT brokers in memory, to try a message bridge with: plant, where messages begin, and cloud, where they should
// arrive.
//
//	broker [-plant ADDRESS] [-cloud ADDRESS] [-deny CLIENT=FILTER]
//
// Each line of standard input, a topic and a text with a space between, is published at plant; each message that comes to cloud is printed
// in the same form. It ends with standard input. Nothing is kept, and everybody may do everything but what -deny says.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

func main() {
	plant := flag.String("plant", "127.0.0.1:1883", "`ADDRESS` of the first broker")
	cloud := flag.String("cloud", "127.0.0.1:1884", "`ADDRESS` of the second")
	deny := flag.String("deny", "", "a client that may not subscribe to a filter at the second, as `CLIENT=FILTER`")
	flag.Parse()
	client, filter, ok := strings.Cut(*deny, "=")
	if flag.NArg() > 0 || *deny != "" && !ok {
		fmt.Fprintln(os.Stderr, "usage: broker [-plant ADDRESS] [-cloud ADDRESS] [-deny CLIENT=FILTER]")
		os.Exit(2)
	}
	if err := run(*plant, *cloud, rights{client: client, filter: filter}, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run serves both brokers until in ends.
func run(plant, cloud string, r rights, in io.Reader, out io.Writer) error {
	first, err := serve(plant, rights{})
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := serve(cloud, r)
	if err != nil {
		return err
	}
	defer second.Close()
	var printing sync.Mutex
	show := func(_ *mqtt.Client, _ packets.Subscription, p packets.Packet) {
		if strings.HasPrefix(p.TopicName, "$") {
			return // what the broker tells of itself
		}
		printing.Lock()
		defer printing.Unlock()
		fmt.Fprintf(out, "%s %s\n", p.TopicName, p.Payload)
	}
	if err := second.Subscribe("#", 1, show); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		topic, text, _ := strings.Cut(lines.Text(), " ")
		if err := first.Publish(topic, []byte(text), false, 1); err != nil {
			return fmt.Errorf("publish %q: %w", topic, err)
		}
	}
	return lines.Err()
}

// serve starts a broker, which the caller closes.
func serve(addr string, r rights) (*mqtt.Server, error) {
	s := mqtt.New(&mqtt.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)})
	err := s.AddHook(&r, nil)
	if err == nil {
		err = s.AddListener(listeners.NewTCP(listeners.Config{ID: "mqtt", Address: addr}))
	}
	if err == nil {
		err = s.Serve()
	}
	if err != nil {
		return nil, fmt.Errorf("a broker at %s: %w", addr, err)
	}
	return s, nil
}

// rights are who may do what: everybody everything, but for one client and one filter.
type rights struct {
	mqtt.HookBase
	client, filter string
}

// ID implements mqtt.Hook.
func (*rights) ID() string { return "rights" }

// Provides implements mqtt.Hook.
func (*rights) Provides(b byte) bool { return b == mqtt.OnConnectAuthenticate || b == mqtt.OnACLCheck }

// OnConnectAuthenticate implements mqtt.Hook.
func (*rights) OnConnectAuthenticate(*mqtt.Client, packets.Packet) bool { return true }

// OnACLCheck implements mqtt.Hook: of a shared subscription the filter is behind its group.
func (r *rights) OnACLCheck(c *mqtt.Client, topic string, write bool) bool {
	return write || c.ID != r.client || !strings.HasSuffix(topic, r.filter)
}
