package strictyaml

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// convert turns a tree into JSON text.
func convert(root *yaml.Node) *Document {
	d := &Document{root: root, lines: map[jsontext.Pointer]int{}}
	d.encoder = jsontext.NewEncoder(&d.text)
	if root != nil {
		d.value(root, "", 0)
	}
	return d
}

func (d *Document) problem(n *yaml.Node, format string, args ...any) {
	d.problems = append(d.problems, Problem{n.Line, fmt.Sprintf(format, args...)})
	d.token(jsontext.Null)
}

// token writes; after a problem what was written no longer matters, so its error does not either.
func (d *Document) token(t jsontext.Token) {
	if err := d.encoder.WriteToken(t); err != nil && len(d.problems) == 0 {
		d.problems = append(d.problems, Problem{1, err.Error()})
	}
}

func (d *Document) value(n *yaml.Node, at jsontext.Pointer, depth int) {
	if _, seen := d.lines[at]; !seen {
		d.lines[at] = n.Line
	}
	switch {
	case depth > MaxDepth:
		d.problem(n, "nested deeper than %d levels", MaxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.problem(n, "anchors and aliases are not read; write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		d.problem(n, "tags are not read (%s)", n.Tag)
	case n.Kind == yaml.MappingNode:
		d.mapping(n, at, depth)
	case n.Kind == yaml.SequenceNode:
		d.token(jsontext.BeginArray)
		for i, item := range n.Content {
			d.value(item, at.AppendToken(fmt.Sprint(i)), depth+1)
		}
		d.token(jsontext.EndArray)
	default:
		d.scalar(n)
	}
}

func (d *Document) mapping(n *yaml.Node, at jsontext.Pointer, depth int) {
	d.token(jsontext.BeginObject)
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		line, repeated := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || key.Anchor != "":
			d.problems = append(d.problems, Problem{key.Line, "a member's name must be plain text"})
			continue
		case repeated:
			d.problems = append(d.problems, Problem{key.Line, fmt.Sprintf("%q stands already on line %d", key.Value, line)})
			continue
		}
		first[key.Value] = key.Line
		child := at.AppendToken(key.Value)
		d.lines[child] = key.Line
		d.token(jsontext.String(key.Value))
		d.value(value, child, depth+1)
	}
	d.token(jsontext.EndObject)
}

func (d *Document) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!null":
		d.problem(n, "there is no value here; write one, or leave the member out")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			d.problem(n, "%q is not true or false", n.Value)
			return
		}
		d.token(jsontext.Bool(b))
	case "!!int":
		var i int64
		if err := n.Decode(&i); err != nil {
			d.problem(n, "%s is not a whole number that fits", n.Value)
			return
		}
		d.token(jsontext.Int(i))
	case "!!float":
		d.problem(n, "%s: fractions are not used; write text in quotes", n.Value)
	case "!!binary":
		d.problem(n, "binary values are not read")
	default: // strings, and what YAML 1.1 takes for a date
		d.token(jsontext.String(n.Value))
	}
}
