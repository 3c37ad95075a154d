package run_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// TestConnectionEndsOverAMessage: a broker that ends the connection over what it does not like, without a word, is not sent that for ever; what was
// sent with it goes on, in order.
func TestConnectionEndsOverAMessage(t *testing.T) {
	for _, protocol := range []string{"5.0", "3.1.1"} {
		t.Run(protocol, func(t *testing.T) {
			a := testmosquitto.Start(t)
			b := newTouchy(t, protocol == "5.0")
			dir := t.TempDir()
			m := start(t, run.Options{Secrets: session.Secrets(dir)}, strings.Replace(doc(a.URL(), b.url(),
				`{id: r, from: {session: a, topic: in}, to: {session: b, topic: out}, dead_letter: {file: "file:letters.jsonl"}}`),
				"client_id: bridge-b", `client_id: bridge-b, protocol: "`+protocol+`"`, 1)).converge()
			in := testmosquitto.Dial(t, a.Addr)
			for _, payload := range []string{"one", "two", "poison", "three", "four"} {
				in.Publish("in", payload)
			}
			testmosquitto.Until(t, "what follows arrives", func() bool { return m.route("r").Delivered == 4 && m.route("r").InFlight == 0 })
			if got := strings.Join(firsts(b.got()), " "); got != "one two three four" {
				t.Errorf("came %s", got)
			}
			if n := b.poisoned.Load(); n < 5 || n > 8 {
				t.Errorf("it was sent %d times", n)
			}
			raw, err := os.ReadFile(filepath.Join(dir, "letters.jsonl"))
			if err != nil || strings.Count(string(raw), "\n") != 1 || !strings.Contains(string(raw), `"text":"poison"`) || !strings.Contains(string(raw), "in a row") {
				t.Errorf("the letters are %s, %v", raw, err)
			}
		})
	}
}

// TestUnspeakable: what MQTT cannot say never reaches the wire.
func TestUnspeakable(t *testing.T) {
	b := testmosquitto.Start(t)
	dir := t.TempDir()
	door := testmosquitto.FreeAddr(t)
	out := testmosquitto.Dial(t, b.Addr, "#")
	m := start(t, run.Options{Secrets: session.Secrets(dir)}, `sessions:
  - {id: door, kind: http, listen: "`+door+`"}
  - {id: b, kind: mqtt, url: "`+b.URL()+`"}
routes:
  - {id: long, from: {session: door, topic: "in/#"}, to: {session: b, topic: out}, transform: {properties: {set: {first: "`+strings.Repeat("{topic}", 300)+`"}}}, dead_letter: {session: b, topic: dead}}
`).converge()
	for name, bad := range map[string]struct {
		path   string
		header http.Header
	}{
		"header": {"/in/x", http.Header{"X-Foo": {"\xff"}}}, "content type": {"/in/x", http.Header{"Content-Type": {"t/\xff"}}}, "a tab": {"/in/x", http.Header{"X-Foo": {"a\tb"}}},
		"topic": {"/in/%ff", nil}, "U+0000 in the topic": {"/in/%00", nil}, "a control character in the topic": {"/in/%01", nil},
	} {
		if code, text := post(t, door, bad.path, bad.header); code != http.StatusBadRequest || !strings.Contains(text, "cannot be taken") {
			t.Errorf("%s: the answer is %d, %s", name, code, text)
		}
	}
	post(t, door, "/in/"+strings.Repeat("y", 300), nil)
	post(t, door, "/in/x", nil)
	got := map[string]*paho.Publish{}
	for _, p := range out.AwaitCount(2) {
		got[p.Topic] = p
	}
	if got["dead"] == nil || got["out"] == nil || !strings.Contains(got["dead"].Properties.User.Get("gdn-reason"), "more than 65535") {
		t.Errorf("came %v", got)
	}
	if n := m.session("b").Connects; n != 1 {
		t.Errorf("it took %d connections", n)
	}
}

// touchy is a broker that takes messages, and ends the connection over a payload that says poison.
type touchy struct {
	on       net.Listener
	five     bool
	poisoned atomic.Int64
	mu       sync.Mutex
	payloads []string
	conns    []net.Conn
	work     sync.WaitGroup
}

func newTouchy(t *testing.T, five bool) *touchy {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &touchy{on: on, five: five}
	b.work.Go(func() {
		for {
			c, err := on.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.conns = append(b.conns, c)
			b.mu.Unlock()
			b.work.Go(func() { b.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = on.Close()
		b.mu.Lock()
		for _, c := range b.conns {
			_ = c.Close()
		}
		b.mu.Unlock()
		b.work.Wait()
	})
	return b
}

func (b *touchy) url() string { return "mqtt://" + b.on.Addr().String() }

func (b *touchy) got() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.payloads...)
}

func (b *touchy) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		first, err := r.ReadByte()
		if err != nil {
			return
		}
		length, err := binary.ReadUvarint(r) // a variable byte integer is one
		body := make([]byte, length)
		if err != nil {
			return
		}
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		var answer []byte
		switch first >> 4 {
		case packets.CONNECT:
			if answer = []byte{packets.CONNACK << 4, 2, 0, 0}; b.five {
				answer = []byte{packets.CONNACK << 4, 3, 0, 0, 0}
			}
		case packets.PUBLISH:
			n := 2 + int(binary.BigEndian.Uint16(body))
			id, payload := body[n:n+2], body[n+2:]
			if b.five {
				payload = payload[1+payload[0]:]
			}
			if string(payload) == "poison" {
				b.poisoned.Add(1)
				return
			}
			b.mu.Lock()
			b.payloads = append(b.payloads, string(payload))
			b.mu.Unlock()
			answer = []byte{packets.PUBACK << 4, 2, id[0], id[1]}
		case packets.PINGREQ:
			answer = []byte{packets.PINGRESP << 4, 0}
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// post POSTs "{}" and returns the answer's status and text.
func post(t *testing.T, addr, path string, header http.Header) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
