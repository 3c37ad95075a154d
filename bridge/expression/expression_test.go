package expression_test

import (
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/expression"
)

func message() *expression.Message {
	return &expression.Message{
		Topic: "plant/a/temp", Captures: [][]string{{"a"}, {"x", "y"}}, Separator: "/", Properties: map[string]string{"site": "north"},
		Payload: []byte(`{"c": 21.5, "n": 3, "tags": ["a", "b"], "ok": true, "none": null}`), QoS: 1, Retain: true,
	}
}

func TestFilter(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"number", "payload.c > 0.0", "true"},
		{"whole number is a double", "payload.n == 3.0", "true"},
		{"compared with a whole number", "payload.n > 2", "true"},
		{"list", "'b' in payload.tags", "true"},
		{"there or not", "has(payload.d)", "false"},
		{"null", "payload.none == null", "true"},
		{"a bool as it is", "payload.ok", "true"},
		{"topic", "topic.startsWith('plant/')", "true"},
		{"captures", "captures[0] == 'a' && captures[1] == 'x/y'", "true"},
		{"property", "properties.site == 'south'", "false"},
		{"text", "text.contains('21.5')", "true"},
		{"flags", "qos == 1 && retain", "true"},
		{"what is not there", "payload.d > 1.0", "error"},
		{"not true or false", "payload.c", "error"},
		{"decided before", "retain || payload.d > 1.0", "true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := expression.ParseFilter(tt.src)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Takes(message())
			text := map[bool]string{true: "true", false: "false"}[got]
			if err != nil {
				text = "error"
			}
			if text != tt.want {
				t.Errorf("%s gives %s, %v; want %s", tt.src, text, err, tt.want)
			}
		})
	}
	f, err := expression.ParseFilter("payload.c > 0.0 || topic == 'x'")
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		m    *expression.Message
		want bool
	}{
		"no JSON": {&expression.Message{Topic: "y", Payload: []byte("21.5 degrees")}, false}, "no JSON needed": {&expression.Message{Topic: "x", Payload: []byte("{")}, true},
		"nothing": {&expression.Message{}, false},
	} {
		if got, err := f.Takes(row.m); got != row.want || (err == nil) != row.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestPayload(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"text", "'c=' + string(payload.c)", "c=21.5"},
		{"bytes", "b'\\xff'", "\xff"},
		{"object", "{'site': properties.site, 'c': payload.c}", `{"c":21.5,"site":"north"}`},
		{"list", "payload.tags.map(t, t + '!')", `["a!","b!"]`},
		{"number", "payload.c + 0.5", "22"},
		{"bool", "payload.c > 1.0", "true"},
		{"null", "payload.none", "null"},
		{"part of it", "payload.tags", `["a","b"]`},
		{"no form", "duration('1s') > duration('0s') ? payload.d : ''", "!"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := expression.ParsePayload(tt.src)
			if err != nil {
				t.Fatal(err)
			}
			out, err := p.Make(message())
			got := string(out)
			if err != nil {
				got = "!"
			}
			if got != tt.want {
				t.Errorf("%s makes %q, %v; want %q", tt.src, got, err, tt.want)
			}
		})
	}
}

// TestNormalForm: spaces and comments are no difference.
func TestNormalForm(t *testing.T) {
	a, err := expression.ParseFilter("payload.c>0.0//warm")
	if err != nil {
		t.Fatal(err)
	}
	b, err := expression.ParseFilter("\n  (payload.c   > 0.0)")
	if err != nil {
		t.Fatal(err)
	}
	if a.String() != b.String() || a.String() != "payload.c > 0.0" {
		t.Errorf("%q and %q", a, b)
	}
	if again, err := expression.ParseFilter("payload.tags.exists(t, t == 'a') && has(payload.x)"); err != nil || !strings.Contains(again.String(), "exists") {
		t.Errorf("macros are printed as they are written: %v, %v", again, err)
	}
}

func TestRefusedExpressions(t *testing.T) {
	for name, src := range map[string]string{
		"empty": " ", "syntax": "payload.c >", "unknown": "body.c > 1", "text": "topic", "types": "topic > 1",
		"long": "topic == '" + strings.Repeat("x", expression.MaxSource) + "'", "deep": strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200),
	} {
		if f, err := expression.ParseFilter(src); err == nil {
			t.Errorf("%s: taken as %q", name, f)
		}
	}
}

// TestCostIsBounded: a message does not choose how long it takes.
func TestCostIsBounded(t *testing.T) {
	f, err := expression.ParseFilter("payload.all(a, payload.all(b, payload.all(c, a + b + c >= 0.0)))")
	if err != nil {
		t.Fatal(err)
	}
	m := &expression.Message{Payload: []byte("[" + strings.Repeat("1,", 999) + "1]")}
	if took, err := f.Takes(m); err == nil {
		t.Errorf("a thousand million steps were taken, with %v", took)
	}
}
