package topic_test

import (
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/topic"
)

func filter(t testing.TB, s topic.Style, text string) topic.Filter {
	t.Helper()
	f, err := topic.ParseFilter(s, text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return f
}

// TestMatch follows the examples of MQTT 5.0 §4.7 and of NATS.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		name   string
		style  topic.Style
		filter string
		topic  string
		want   string // captures, levels joined by ','; "-": no match
	}{
		{"itself", topic.MQTT, "a/b", "a/b", ""},
		{"another", topic.MQTT, "a/b", "a/c", "-"},
		{"shorter", topic.MQTT, "a/b", "a", "-"},
		{"longer", topic.MQTT, "a/b", "a/b/c", "-"},
		{"case", topic.MQTT, "a/b", "a/B", "-"},
		{"one", topic.MQTT, "sport/tennis/+", "sport/tennis/player1", "player1"},
		{"one, deeper", topic.MQTT, "sport/tennis/+", "sport/tennis/player1/ranking", "-"},
		{"one, missing", topic.MQTT, "sport/+", "sport", "-"},
		{"one, empty", topic.MQTT, "sport/+", "sport/", ""},
		{"leading slash", topic.MQTT, "+/+", "/finance", "|finance"},
		{"leading slash, all", topic.MQTT, "/+", "/finance", "finance"},
		{"leading slash, none", topic.MQTT, "+", "/finance", "-"},
		{"rest", topic.MQTT, "sport/#", "sport/tennis/player1", "tennis,player1"},
		{"rest, parent", topic.MQTT, "sport/#", "sport", ""},
		{"rest, other", topic.MQTT, "sport/#", "sports", "-"},
		{"everything", topic.MQTT, "#", "a/b", "a,b"},
		{"two", topic.MQTT, "+/x/#", "a/x/b/c", "a|b,c"},
		{"hidden from everything", topic.MQTT, "#", "$SYS/monitor", "-"},
		{"hidden from one", topic.MQTT, "+/monitor", "$SYS/monitor", "-"},
		{"asked for by name", topic.MQTT, "$SYS/#", "$SYS/monitor", "monitor"},
		{"hidden only in front", topic.MQTT, "a/+", "a/$x", "$x"},
		{"NATS, one", topic.NATS, "a.*.c", "a.b.c", "b"},
		{"NATS, rest", topic.NATS, "a.>", "a.b.c", "b,c"},
		{"NATS, rest is something", topic.NATS, "a.>", "a", "-"},
		{"NATS, slash is a letter", topic.NATS, "a.*", "a.b/c", "b/c"},
		{"NATS, dollar is a letter", topic.NATS, "*.x", "$JS.x", "$JS"},
		{"no topic", topic.MQTT, "#", "", "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := filter(t, tt.style, tt.filter)
			captures, ok := f.Match(tt.topic)
			got := "-"
			if ok {
				var parts []string
				for _, levels := range captures {
					parts = append(parts, strings.Join(levels, ","))
				}
				got = strings.Join(parts, "|")
				if len(captures) != f.Captures() {
					t.Errorf("%d captures, and says %d", len(captures), f.Captures())
				}
			}
			if got != tt.want {
				t.Errorf("%s matches %s with %q, want %q", tt.filter, tt.topic, got, tt.want)
			}
		})
	}
	if _, ok := (topic.Filter{}).Match("a"); ok {
		t.Error("the zero filter matches")
	}
}

func TestFiltersRefused(t *testing.T) {
	for name, row := range map[string]struct {
		style topic.Style
		text  string
	}{
		"empty": {topic.MQTT, ""}, "rest in the middle": {topic.MQTT, "a/#/b"}, "rest in a level": {topic.MQTT, "a#"},
		"one in a level": {topic.MQTT, "a+/b"}, "shared": {topic.MQTT, "$share/g/a"}, "NUL": {topic.MQTT, "a\x00"}, "no UTF-8": {topic.MQTT, "\xff"},
		"long": {topic.MQTT, strings.Repeat("a", topic.MaxBytes+1)}, "deep": {topic.MQTT, strings.Repeat("a/", topic.MaxLevels)},
		"NATS, empty level": {topic.NATS, "a..b"}, "NATS, space": {topic.NATS, "a b"}, "NATS, rest in the middle": {topic.NATS, "a.>.b"},
	} {
		if f, err := topic.ParseFilter(row.style, row.text); err == nil {
			t.Errorf("%s: taken as %q", name, f)
		}
	}
}

func TestTemplate(t *testing.T) {
	for _, tt := range []struct {
		name, template, want string // want "!": no topic
		from, to             topic.Style
		filter, topic        string
	}{
		{"text", "x/y", "x/y", topic.MQTT, topic.MQTT, "a", "a"},
		{"one", "t/{1}", "t/b", topic.MQTT, topic.MQTT, "a/+", "a/b"},
		{"rest", "t/{1}", "t/b/c", topic.MQTT, topic.MQTT, "a/#", "a/b/c"},
		{"both, turned", "{2}/{1}", "c/d/b", topic.MQTT, topic.MQTT, "a/+/#", "a/b/c/d"},
		{"the topic", "copy/{topic}", "copy/a/b", topic.MQTT, topic.MQTT, "a/+", "a/b"},
		{"braces", "x/{{1}}", "x/{1}", topic.MQTT, topic.MQTT, "a", "a"},
		{"into NATS", "t.{1}.{2}", "t.b.c.d", topic.MQTT, topic.NATS, "a/+/#", "a/b/c/d"},
		{"the topic into NATS", "t.{topic}", "t.a.b", topic.MQTT, topic.NATS, "#", "a/b"},
		{"from NATS", "t/{1}", "t/b/c", topic.NATS, topic.MQTT, "a.>", "a.b.c"},
		{"a level that would be two", "t.{1}", "!", topic.MQTT, topic.NATS, "a/+", "a/b.c"},
		{"a level that would be two, whole", "t.{topic}", "!", topic.MQTT, topic.NATS, "a/+", "a/b.c"},
		{"nothing where NATS needs something", "t.{1}", "!", topic.MQTT, topic.NATS, "a/#", "a"},
		{"a wildcard comes in", "t/{1}", "!", topic.NATS, topic.MQTT, "a.*", "a.+"},
		{"led to a command", "{1}.{2}", "!", topic.MQTT, topic.NATS, "a/+/#", "a/$JS/API/STREAM/DELETE/S"},
		{"led to an answer", "{1}", "!", topic.MQTT, topic.NATS, "a/#", "a/_INBOX/x"},
		{"a command that was asked for", "$JS.{1}", "!", topic.MQTT, topic.NATS, "a/+", "a/API"},
		{"led to what is the broker's own", "{1}", "!", topic.MQTT, topic.MQTT, "a/#", "a/$CONTROL/dynamic-security/v1"},
		{"led there behind nothing", "{1}{2}", "!", topic.MQTT, topic.MQTT, "a/+/#", "a//$CONTROL/x"},
		{"what is the broker's own, asked for", "$CONTROL/{1}", "$CONTROL/x", topic.MQTT, topic.MQTT, "a/+", "a/x"},
		{"what is the broker's own, whole", "{topic}", "$aws/x", topic.MQTT, topic.MQTT, "$aws/#", "$aws/x"},
		{"a bucket that is asked for", "$KV.b.{1}", "$KV.b.x", topic.MQTT, topic.NATS, "a/+", "a/x"},
		{"a dollar further behind", "t/{1}", "t/$x", topic.MQTT, topic.MQTT, "a/+", "a/$x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := filter(t, tt.from, tt.filter)
			captures, ok := f.Match(tt.topic)
			if !ok {
				t.Fatal("no match")
			}
			p, err := topic.ParseTemplate(tt.template, f.Captures())
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Topic(tt.from, tt.to, tt.topic, captures)
			if err != nil {
				got = "!"
			}
			if got != tt.want {
				t.Errorf("%s makes %q, %v; want %q", tt.template, got, err, tt.want)
			}
		})
	}
	for name, text := range map[string]string{"not closed": "a/{1", "not opened": "a/1}", "zero": "{0}", "more than there are": "{3}", "a name": "{x}", "empty": "{}", "a sign": "{+1}", "zeros": "{01}"} {
		if p, err := topic.ParseTemplate(text, 2); err == nil {
			t.Errorf("%s: taken as %q", name, p)
		}
	}
	p, _ := topic.ParseTemplate("{1}: {topic}", 1)
	if got := p.Text(topic.MQTT, "a/b/c", [][]string{{"b", "c"}}); got != "b/c: a/b/c" {
		t.Errorf("as text: %q", got)
	}
}

// TestFeeds errs to the side of yes, and says no where it can be sure.
func TestFeeds(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		from, template, next string
		want                 bool
	}{
		{"copies elsewhere", "a/#", "b/{1}", "a/#", false},
		{"copies below itself", "a/#", "a/b/{1}", "a/#", true},
		{"everything", "#", "b/{1}", "#", true},
		{"one level deeper", "a/+", "a/b/{1}", "a/+", false},
		{"the topic itself", "a/+", "{topic}", "a/+", true},
		{"the topic moved", "a/+", "x/{topic}", "a/+", false},
		{"turned", "+/b", "b/{1}", "+/b", true},
		{"never equal", "+/b", "c/{1}/b", "+/b", false},
		{"text about a capture", "a/+", "a/x{1}", "a/+", true},
		{"text about the rest", "a/#", "a{1}", "a/#", true},
		{"another's filter", "a/+", "b/{1}", "b/#", true},
		{"not another's", "a/+", "b/{1}", "c/#", false},
		{"what is hidden", "a/+", "$x/{1}", "+/b", false},
		{"the parent of the rest", "a/+", "b", "b/#", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from, next := filter(t, topic.MQTT, tt.from), filter(t, topic.MQTT, tt.next)
			p, err := topic.ParseTemplate(tt.template, from.Captures())
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Feeds(from, next); got != tt.want {
				t.Errorf("%s of %s feeds %s: %v", tt.template, tt.from, tt.next, got)
			}
		})
	}
}

// FuzzFeeds: whatever a template makes, Feeds knew of.
func FuzzFeeds(f *testing.F) {
	f.Add("a/+", "b/{1}", "a/x", "b/#")
	f.Add("#", "{1}/{topic}", "$a/b", "+/+/#")
	f.Add("a/#", "a{1}", "a", "a/#")
	f.Add("+/#", "{2}/{1}", "/", "#")
	f.Fuzz(func(t *testing.T, from, template, text, next string) {
		a, err := topic.ParseFilter(topic.MQTT, from)
		if err != nil {
			return
		}
		b, err := topic.ParseFilter(topic.MQTT, next)
		if err != nil {
			return
		}
		p, err := topic.ParseTemplate(template, a.Captures())
		if err != nil || topic.CheckTopic(topic.MQTT, text) != nil {
			return
		}
		captures, ok := a.Match(text)
		if !ok {
			return
		}
		out, err := p.Topic(topic.MQTT, topic.MQTT, text, captures)
		if err != nil {
			return
		}
		if _, taken := b.Match(out); taken && !p.Feeds(a, b) {
			t.Errorf("%q by %q became %q, which %q takes", text, from, out, next)
		}
	})
}
