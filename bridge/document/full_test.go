package document_test

import (
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/document"
)

// full has every field that there is.
const full = `version: 7
bridge:
  deployment_mode: clustered
  shutdown_timeout: 40s
  drain_timeout: 20s
  log_level: debug
  cluster:
    rollout: coordinated
    members: [node-a, node-b, node-c]
    confirm_window: 90s
    soak: 20s
    deadline: 5m
sessions:
  - id: plant
    kind: mqtt
    url: mqtts://broker:8883
    client_id: gdn-plant
    protocol: "5.0"
    clean_start: false
    session_expiry: 1h
    keep_alive: 20s
    exclusive: true
    credentials: file:plant.cred
    tls: {ca: file:ca.pem, certificate: file:c.pem, key: file:k.pem, server_name: broker.example}
  - {id: cloud, kind: mqtt, url: "mqtt://cloud:1883", client_id: "gdn-{member}"}
  - {id: hook, kind: http, url: "https://hook.example/in?x=1", credentials: file:hook.cred}
  - {id: door, kind: http, listen: "127.0.0.1:8088", tls: {certificate: file:c.pem, key: file:k.pem}}
  - {id: stream, kind: nats, url: "nats://nats", client_id: "bridge {member}", exclusive: false}
routes:
  - id: temps
    from: {session: plant, topic: plant/+/temp, qos: 2}
    filter: payload.c > 0.0
    transform:
      properties: {set: {site: "{1}", kind: temp}, remove: [debug, trace]}
      payload: '{"c": payload.c}'
    to: {session: cloud, topic: "t/{1}", qos: 0, retain: set}
    in_flight: 10
    health_margin: 0.5%
    dead_letter: {session: cloud, topic: "dead/{topic}"}
  - {id: shared, from: {session: cloud, topic: "in/#", share: bridge}, to: {session: stream, topic: "in.{1}"}, dead_letter: {file: file:dead.jsonl}}
  - {id: events, from: {session: stream, topic: "ev.*.>", stream: EV}, to: {session: hook}}
  - {id: posts, from: {session: door, topic: "in/+"}, to: {session: cloud, topic: "posts/{1}"}}
`

func parse(t testing.TB, text string) *document.Document {
	t.Helper()
	d, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// edit replaces text that must be there.
func edit(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in the document", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}
