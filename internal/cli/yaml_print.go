package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// printYAML prints v, by its JSON members and in their order, as YAML that readYAML reads back.
func (a *app) printYAML(v any) error {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("print YAML: %w", err)
	}
	out, err := formatYAML(text)
	if err != nil {
		return fmt.Errorf("print YAML: %w", err)
	}
	_, err = io.WriteString(a.Stdout, out)
	return err
}

// formatYAML turns JSON text into YAML with the same members in the same order.
func formatYAML(text []byte) (string, error) {
	node, err := yamlNode(jsontext.NewDecoder(bytes.NewReader(text)))
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return "", err
	}
	return inertLines(out.String()), nil
}

func yamlNode(d *jsontext.Decoder) (*yaml.Node, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch kind := token.Kind(); kind {
	case '{', '[':
		node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if kind == '[' {
			node = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		}
		for d.PeekKind() != '}' && d.PeekKind() != ']' {
			child, err := yamlNode(d)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		if len(node.Content) == 0 {
			node.Style = yaml.FlowStyle
		}
		_, err := d.ReadToken()
		return node, err
	case '"':
		node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: token.String()}
		if strings.IndexFunc(node.Value, func(r rune) bool { return r != '\n' && live(r) }) >= 0 {
			node.Style = yaml.DoubleQuotedStyle
		}
		return node, nil
	case '0':
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: token.String()}, nil
	case 't', 'f':
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: token.String()}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}
