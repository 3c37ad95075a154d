package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/document"
)

// TestCycles: routes that feed one another are refused where nothing that a message bears would end it, and only there.
func TestCycles(t *testing.T) {
	const (
		old  = `, protocol: "3.1.1"`
		back = "what it sends comes back to it by "
		one  = ", all at one broker: the routes would feed one another; choose topics that do not meet"
		lost = ", on a way over MQTT 3.1.1, which has no properties to tell it by: let all sessions of these routes speak 5.0, or choose topics that do not meet"
	)
	for _, tt := range []struct {
		name     string
		protocol [3]string // of the sessions a, b and c, each at a broker of its own; a2 is at a's
		routes   []string  // "FROM FILTER TO TOPIC", or with " DEAD TOPIC" behind it
		want     []string
	}{
		{"to and fro over 5.0", [3]string{}, []string{"a x/# b {topic}", "b x/# a {topic}"}, nil},
		{"round three brokers over 5.0", [3]string{}, []string{"a # b {topic}", "b # c {topic}", "c # a {topic}"}, nil},
		{"to and fro over 3.1.1", [3]string{old, old}, []string{"a x/# b {topic}", "b x/# a {topic}"}, []string{"routes.r0.to: " + back + "r1" + lost}},
		{"one of them 3.1.1", [3]string{"", old}, []string{"a x/# b {topic}", "b x/# a {topic}"}, []string{"routes.r0.to: " + back + "r1" + lost}},
		{"round three brokers, one 3.1.1", [3]string{"", "", old}, []string{"a # b {topic}", "b # c {topic}", "c # a {topic}"}, []string{"routes.r1.to: " + back + "r2, r0" + lost}},
		{"3.1.1 on no cycle", [3]string{"", "", old}, []string{"a x b {topic}", "b x a {topic}", "c x a x", "b x c x2"}, nil},
		{"3.1.1, and topics that do not meet", [3]string{old, old}, []string{"a up/# b {topic}", "b down/# a {topic}"}, nil},
		{"3.1.1, and captures that do not meet", [3]string{old, old}, []string{"a up/+ b down/{1}", "b up/+ a down/{1}"}, nil},
		{"3.1.1, and captures that meet", [3]string{old, old}, []string{"a +/x b {1}/y", "b in/+ a {1}/x"}, []string{"routes.r0.to: " + back + "r1" + lost}},
		{"within one broker", [3]string{}, []string{"a x a y", "a y a x"}, []string{"routes.r0.to: " + back + "r1" + one}},
		{"within one broker by two sessions", [3]string{}, []string{"a x/+ a2 y/{1}", "a2 y/+ a z/{1}", "a z/# a2 x/1"}, []string{"routes.r0.to: " + back + "r1, r2" + one}},
		{"within one broker, and no way back", [3]string{}, []string{"a x a y", "a y a z", "a y b x"}, nil},
		{"out to another broker and back", [3]string{}, []string{"a x b y", "b y a x2", "a x2 a x"}, nil},
		{"by dead letters", [3]string{}, []string{"a x a y", "a y b t a x"}, []string{"routes.r0.to: " + back + "r1" + one}},
		{"two cycles", [3]string{}, []string{"a 1 a 2", "a 2 a 1", "b 3 b 4", "b 4 b 3"}, []string{"routes.r0.to: " + back + "r1" + one, "routes.r2.to: " + back + "r3" + one}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "sessions:\n"
			for i, id := range []string{"a", "b", "c"} {
				text += fmt.Sprintf("  - {id: %s, kind: mqtt, url: \"mqtt://%s\"%s}\n", id, id, tt.protocol[i])
			}
			text += "  - {id: a2, kind: mqtt, url: \"mqtt://A:1883\"}\nroutes:\n"
			for i, r := range tt.routes {
				f := strings.Fields(r)
				text += fmt.Sprintf("  - {id: r%d, from: {session: %s, topic: %q}, to: {session: %s, topic: %q}", i, f[0], f[1], f[2], f[3])
				if len(f) > 4 {
					text += fmt.Sprintf(", dead_letter: {session: %s, topic: %q}", f[4], f[5])
				}
				text += "}\n"
			}
			_, err := document.Parse([]byte(text))
			got := problems(t, err)
			for i := range got {
				_, got[i], _ = strings.Cut(got[i], ": ") // its line
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s\nsays %q\nwant %q", text, got, tt.want)
			}
		})
	}
}

// TestCyclesOfManyRoutes: as many routes as a document may have, every one of which meets many others, are looked at in reasonable time:
// the test's own.
func TestCyclesOfManyRoutes(t *testing.T) {
	var text strings.Builder
	text.WriteString("sessions:\n  - {id: a, kind: mqtt, url: \"mqtt://a\", protocol: \"3.1.1\"}\n  - {id: b, kind: mqtt, url: \"mqtt://b\"}\nroutes:\n")
	for i := range document.MaxRoutes {
		from, to := "a", "b"
		if i%2 == 1 {
			from, to = to, from
		}
		fmt.Fprintf(&text, "  - {id: r%d, from: {session: %s, topic: \"plant/line/%s/%d/+\"}, to: {session: %s, topic: \"plant/line/%s/%d/{1}\"}}\n", i, from, from, i, to, from, i)
	}
	if _, err := document.Parse([]byte(text.String())); err != nil {
		t.Fatalf("%.500v", err)
	}
}
