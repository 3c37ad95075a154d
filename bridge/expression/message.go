package expression

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// Message is what an expression sees. Its fields are set before the first evaluation and not changed after; the payload is read as
// JSON once, when an expression first asks for it. One goroutine at a time uses it.
type Message struct {
	Topic      string
	Captures   [][]string // as topic.Filter.Match returns them
	Separator  string     // that several captured levels are joined by
	Properties map[string]string
	Payload    []byte
	QoS        int
	Retain     bool

	read   bool
	parsed ref.Val
}

var _ interpreter.Activation = (*Message)(nil)

// ResolveName implements interpreter.Activation.
func (m *Message) ResolveName(name string) (any, bool) {
	switch name {
	case "topic":
		return m.Topic, true
	case "captures":
		out := make([]string, len(m.Captures))
		for i, levels := range m.Captures {
			out[i] = strings.Join(levels, m.Separator)
		}
		return out, true
	case "properties":
		if m.Properties == nil {
			return map[string]string{}, true
		}
		return m.Properties, true
	case "payload":
		return m.json(), true
	case "text":
		if !utf8.Valid(m.Payload) {
			return types.NewErr("the payload is not UTF-8"), true
		}
		return string(m.Payload), true
	case "qos":
		return int64(m.QoS), true
	case "retain":
		return m.Retain, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (*Message) Parent() interpreter.Activation { return nil }

// json is the payload as a value, or the error that it is none.
func (m *Message) json() ref.Val {
	if !m.read {
		m.read = true
		var v any
		if err := json.Unmarshal(m.Payload, &v); err != nil {
			m.parsed = types.NewErr("the payload is not JSON: %s", err.Error())
		} else {
			m.parsed = types.DefaultTypeAdapter.NativeToValue(v)
		}
	}
	return m.parsed
}

// Make returns the new payload. The error says why there is none; it is the message's fault and will be the same again.
func (p *Payload) Make(m *Message) ([]byte, error) {
	out, _, err := p.program.Eval(m)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	switch v := out.(type) {
	case types.String:
		return []byte(v), nil
	case types.Bytes:
		return []byte(v), nil
	}
	native, err := out.ConvertToNative(types.JSONValueType)
	if err != nil {
		return nil, fmt.Errorf("payload: it gave a %s, which has no JSON form: %w", out.Type().TypeName(), err)
	}
	value, ok := native.(*structpb.Value)
	if !ok {
		return nil, errors.New("payload: it has no JSON form")
	}
	text, err := protojson.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	// protojson varies its spaces from build to build.
	var compact any
	if err := json.Unmarshal(text, &compact); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	if text, err = json.Marshal(compact, json.Deterministic(true)); err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	return text, nil
}
